!> The contents of plotfiles other than the mesh and its zones: time, step, parameters and names of species.
module ember_output_info
    use ember_mesh, only: first_species
    use pw_kinds, only: r8
    implicit none
    private

    integer, parameter, public :: name_length = 80   !< of names in files

    type, public :: named_text_t
        character(name_length) :: name = ''
        character(:), allocatable :: value
    end type named_text_t

    type, public :: named_real_t
        character(name_length) :: name = ''
        real(r8) :: value = 0.0_r8
    end type named_real_t

    !> The same on every rank.
    type, public :: output_info_t
        real(r8) :: time = 0.0_r8, dt = 0.0_r8                  !< [s], or the run's unit
        integer :: step = 0
        character(:), allocatable :: problem
        character(name_length), allocatable :: species(:)       !< names of the mesh's species, in order
        type(named_text_t), allocatable :: parameters(:)        !< their effective values
    end type output_info_t

    public :: variable_names, longest, append

contains

    !> Names of all variables of a zone, in the order of their indices; of species those in `info`, or species01, ...
    pure subroutine variable_names(n_variables, info, names)
        integer, intent(in) :: n_variables
        type(output_info_t), intent(in) :: info
        character(name_length), intent(out) :: names(n_variables)
        character(*), parameter :: always(first_species - 1) = ['dens', 'momx', 'momy', 'momz', 'ener', 'pres', 'temp', 'gamc']
        integer :: s

        names(:size(always)) = always
        do s = 1, n_variables - size(always)
            write (names(size(always) + s), '(a, i2.2)') 'species', s
            if (.not. allocated(info%species)) cycle
            if (s <= size(info%species)) names(size(always) + s) = info%species(s)
        end do
    end subroutine variable_names

    !> The length of the longest text; at least 1.
    pure integer function longest(texts)
        type(named_text_t), intent(in) :: texts(:)
        integer :: i

        longest = 1
        do i = 1, size(texts)
            longest = max(longest, len(texts(i)%value))
        end do
    end function longest

    !> Append a text to a list.
    subroutine append(texts, name, value)
        type(named_text_t), allocatable, intent(inout) :: texts(:)
        character(*), intent(in) :: name, value
        type(named_text_t), allocatable :: larger(:)
        integer :: i, n

        n = 0
        if (allocated(texts)) n = size(texts)
        allocate (larger(n + 1))
        do i = 1, n
            larger(i)%name = texts(i)%name
            call move_alloc(texts(i)%value, larger(i)%value)
        end do
        larger(n + 1)%name = name
        larger(n + 1)%value = value
        call move_alloc(larger, texts)
    end subroutine append

end module ember_output_info
