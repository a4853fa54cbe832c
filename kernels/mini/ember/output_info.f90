!> The contents of ember's files other than the mesh and its zones: time, step, parameters, species, and further named
!> numbers.
module ember_output_info
    use ember_mesh, only: first_species
    use pw_kinds, only: i8, r8
    implicit none
    private

    integer, parameter, public :: name_length = 80   !< of names in files

    type, public :: named_text_t
        character(name_length) :: name = ''
        character(:), allocatable :: value
    end type named_text_t

    type, public :: named_integer_t
        character(name_length) :: name = ''
        integer(i8) :: value = 0
    end type named_integer_t

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
        type(named_text_t), allocatable :: parameters(:)        !< as the user gave them
        type(named_integer_t), allocatable :: integers(:)       !< for checkpoints: counters of the log, ...
        type(named_real_t), allocatable :: reals(:)             !< for checkpoints: next output times, ...
    contains
        procedure, private :: set_text, set_integer, set_long, set_real
        !> call set(name, value): a text is a parameter; an existing name gets the new value.
        generic :: set => set_text, set_integer, set_long, set_real
        procedure, private :: get_text, get_integer, get_long, get_real
        !> call get(name, value, found): the value is unchanged if that name and kind does not exist.
        generic :: get => get_text, get_integer, get_long, get_real
        procedure :: complete
    end type output_info_t

    public :: variable_names, longest, append

contains

    !> Allocate unallocated components as empty.
    subroutine complete(self)
        class(output_info_t), intent(inout) :: self

        if (.not. allocated(self%problem)) self%problem = ''
        if (.not. allocated(self%species)) allocate (self%species(0))
        if (.not. allocated(self%parameters)) allocate (self%parameters(0))
        if (.not. allocated(self%integers)) allocate (self%integers(0))
        if (.not. allocated(self%reals)) allocate (self%reals(0))
    end subroutine complete

    subroutine set_text(self, name, value)
        class(output_info_t), intent(inout) :: self
        character(*), intent(in) :: name, value
        integer :: i

        call self%complete()
        do i = 1, size(self%parameters)
            if (self%parameters(i)%name /= name) cycle
            self%parameters(i)%value = value
            return
        end do
        call append(self%parameters, name, value)
    end subroutine set_text

    subroutine set_integer(self, name, value)
        class(output_info_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer, intent(in) :: value

        call self%set(name, int(value, i8))
    end subroutine set_integer

    subroutine set_long(self, name, value)
        class(output_info_t), intent(inout) :: self
        character(*), intent(in) :: name
        integer(i8), intent(in) :: value
        type(named_integer_t), allocatable :: larger(:)
        integer :: i, n

        call self%complete()
        n = size(self%integers)
        do i = 1, n
            if (self%integers(i)%name /= name) cycle
            self%integers(i)%value = value
            return
        end do
        allocate (larger(n + 1))
        larger(:n) = self%integers
        larger(n + 1)%name = name
        larger(n + 1)%value = value
        call move_alloc(larger, self%integers)
    end subroutine set_long

    subroutine set_real(self, name, value)
        class(output_info_t), intent(inout) :: self
        character(*), intent(in) :: name
        real(r8), intent(in) :: value
        type(named_real_t), allocatable :: larger(:)
        integer :: i, n

        call self%complete()
        n = size(self%reals)
        do i = 1, n
            if (self%reals(i)%name /= name) cycle
            self%reals(i)%value = value
            return
        end do
        allocate (larger(n + 1))
        larger(:n) = self%reals
        larger(n + 1)%name = name
        larger(n + 1)%value = value
        call move_alloc(larger, self%reals)
    end subroutine set_real

    subroutine get_text(self, name, value, found)
        class(output_info_t), intent(in) :: self
        character(*), intent(in) :: name
        character(:), allocatable, intent(inout) :: value
        logical, intent(out) :: found
        integer :: i

        found = .false.
        if (.not. allocated(self%parameters)) return
        do i = 1, size(self%parameters)
            if (self%parameters(i)%name /= name) cycle
            value = self%parameters(i)%value
            found = .true.
        end do
    end subroutine get_text

    subroutine get_integer(self, name, value, found)
        class(output_info_t), intent(in) :: self
        character(*), intent(in) :: name
        integer, intent(inout) :: value
        logical, intent(out) :: found
        integer(i8) :: long

        call self%get(name, long, found)
        if (found) value = int(long)
    end subroutine get_integer

    subroutine get_long(self, name, value, found)
        class(output_info_t), intent(in) :: self
        character(*), intent(in) :: name
        integer(i8), intent(inout) :: value
        logical, intent(out) :: found
        integer :: i

        found = .false.
        if (.not. allocated(self%integers)) return
        do i = 1, size(self%integers)
            if (self%integers(i)%name /= name) cycle
            value = self%integers(i)%value
            found = .true.
        end do
    end subroutine get_long

    subroutine get_real(self, name, value, found)
        class(output_info_t), intent(in) :: self
        character(*), intent(in) :: name
        real(r8), intent(inout) :: value
        logical, intent(out) :: found
        integer :: i

        found = .false.
        if (.not. allocated(self%reals)) return
        do i = 1, size(self%reals)
            if (self%reals(i)%name /= name) cycle
            value = self%reals(i)%value
            found = .true.
        end do
    end subroutine get_real

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
