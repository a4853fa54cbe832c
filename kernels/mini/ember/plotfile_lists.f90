!> The lists of a plotfile: parameters, scalars and the description of the simulation.
module ember_plotfile_lists
    use ember_mesh, only: cylindrical, mesh_t, outflow, reflecting
    use ember_output_info, only: append, longest, name_length, named_real_t, named_text_t, output_info_t
    use ember_nodes, only: nodes_t
    use pw_error, only: error_t
    use pw_hdf5, only: column_t, file_t
    use pw_kinds, only: r8
    use pw_system, only: host_name, utc_now
    use pw_text, only: text_to_real
    implicit none
    private

    integer, parameter :: format_version = 9        ! that of FLASH 3 and 4

    !> A list of named values, as FLASH has, one per kind; numbers are integers and logicals too.
    type :: list_t
        type(named_real_t), allocatable :: numbers(:)
        type(named_text_t), allocatable :: texts(:)
    contains
        procedure :: has
        procedure :: put_number
        procedure :: put_text
    end type list_t

    public :: write_facts

contains

    !> Time, step, shape and parameters.
    subroutine write_facts(file, mesh, info, nodes, error)
        type(file_t), intent(inout) :: file
        type(mesh_t), intent(in) :: mesh
        type(output_info_t), intent(in) :: info
        type(nodes_t), intent(in) :: nodes
        type(error_t), intent(inout) :: error
        type(list_t) :: integers, reals, logicals, texts
        integer :: zones(3), d
        character(1), parameter :: axis(3) = ['x', 'y', 'z']

        call write_sim_info(file, info, error)
        zones = mesh%zones()
        call integers%put_number('nxb', real(zones(1), r8))
        call integers%put_number('nyb', real(zones(2), r8))
        call integers%put_number('nzb', real(zones(3), r8))
        call integers%put_number('dimensionality', real(mesh%dims, r8))
        call integers%put_number('globalnumblocks', real(nodes%n, r8))
        call integers%put_number('nstep', real(info%step, r8))
        ! The first is where yt reads the time.
        call reals%put_number('time', info%time)
        call reals%put_number('dt', info%dt)
        ! Values belong to zones, not to their corners.
        call logicals%put_number('corners', real(0, r8))
        call write_lists(file, 'scalars', integers, reals, logicals, texts, error)

        integers = list_t()
        reals = list_t()
        logicals = list_t()
        do d = 1, 3
            call integers%put_number('nblock'//axis(d), real(mesh%tree%roots(d), r8))
            call reals%put_number(axis(d)//'min', mesh%lower(d))
            call reals%put_number(axis(d)//'max', mesh%upper(d))
            call texts%put_text(axis(d)//'l_boundary_type', boundary_name(mesh%boundary(1, d)))
            call texts%put_text(axis(d)//'r_boundary_type', boundary_name(mesh%boundary(2, d)))
        end do
        call integers%put_number('lrefine_min', real(mesh%lowest_level + 1, r8))
        call integers%put_number('lrefine_max', real(max(mesh%highest_level, maxval(nodes%level)) + 1, r8))
        call texts%put_text('geometry', trim(merge('cylindrical', 'cartesian  ', mesh%geometry == cylindrical)))
        call put_parameters(info, integers, reals, logicals, texts)
        if (.not. texts%has('problem')) call texts%put_text('problem', info%problem)
        call write_lists(file, 'runtime parameters', integers, reals, logicals, texts, error)
    end subroutine write_facts

    pure function boundary_name(boundary) result(name)
        integer, intent(in) :: boundary
        character(:), allocatable :: name

        select case (boundary)
        case (reflecting)
            name = 'reflecting'
        case (outflow)
            name = 'outflow'
        case default
            name = 'periodic'
        end select
    end function boundary_name

    !> The user's parameters, each in the list of the kind that its text can be read as; those already in the file are
    !> omitted, because in readers later ones overwrite earlier ones.
    subroutine put_parameters(info, integers, reals, logicals, texts)
        type(output_info_t), intent(in) :: info
        type(list_t), intent(inout) :: integers, reals, logicals, texts
        character(*), parameter :: scalars(9) = [character(15) :: 'nxb', 'nyb', 'nzb', 'dimensionality', 'globalnumblocks', &
                                                 'nstep', 'time', 'dt', 'corners']
        character(:), allocatable :: name, value
        integer :: p
        real(r8) :: number
        logical :: ok

        do p = 1, size(info%parameters)
            name = trim(info%parameters(p)%name)
            value = info%parameters(p)%value
            if (any(scalars == name) .or. integers%has(name) .or. reals%has(name) .or. texts%has(name)) cycle
            if (value == 'true' .or. value == 'false') then
                call logicals%put_number(name, merge(1.0_r8, 0.0_r8, value == 'true'))
                cycle
            end if
            call text_to_real(value, number, ok)
            if (.not. ok) then
                call texts%put_text(name, value)
            else if (scan(value, '.eE') == 0 .and. abs(number) <= huge(p)) then
                call integers%put_number(name, number)
            else
                call reals%put_number(name, number)
            end if
        end do
    end subroutine put_parameters

    !> Whether the list contains the name.
    pure logical function has(self, name)
        class(list_t), intent(in) :: self
        character(*), intent(in) :: name

        has = .false.
        if (allocated(self%numbers)) has = any(self%numbers%name == name)
        if (allocated(self%texts)) has = has .or. any(self%texts%name == name)
    end function has

    subroutine put_number(self, name, value)
        class(list_t), intent(inout) :: self
        character(*), intent(in) :: name
        real(r8), intent(in) :: value
        type(named_real_t), allocatable :: larger(:)
        integer :: n

        n = 0
        if (allocated(self%numbers)) n = size(self%numbers)
        allocate (larger(n + 1))
        if (n > 0) larger(:n) = self%numbers
        larger(n + 1)%name = name
        larger(n + 1)%value = value
        call move_alloc(larger, self%numbers)
    end subroutine put_number

    subroutine put_text(self, name, value)
        class(list_t), intent(inout) :: self
        character(*), intent(in) :: name, value

        call append(self%texts, name, value)
    end subroutine put_text

    !> Write lists as 'integer scalars' and the like; `what` is scalars or runtime parameters.
    subroutine write_lists(file, label, integers, reals, logicals, texts, error)
        type(file_t), intent(inout) :: file
        character(*), intent(in) :: label
        type(list_t), intent(in) :: integers, reals, logicals, texts
        type(error_t), intent(inout) :: error

        if (allocated(integers%numbers)) call write_numbers(file, 'integer '//label, integers%numbers, .true., error)
        if (allocated(reals%numbers)) call write_numbers(file, 'real '//label, reals%numbers, .false., error)
        if (allocated(logicals%numbers)) call write_numbers(file, 'logical '//label, logicals%numbers, .true., error)
        if (allocated(texts%texts)) then
            call write_texts(file, 'string '//label, texts%texts, max(name_length, longest(texts%texts)), error)
        end if
    end subroutine write_lists

    subroutine write_numbers(file, name, numbers, whole, error)
        type(file_t), intent(inout) :: file
        character(*), intent(in) :: name
        type(named_real_t), intent(in) :: numbers(:)
        logical, intent(in) :: whole
        type(error_t), intent(inout) :: error
        character(name_length), target :: names(size(numbers))
        integer, target :: integers(size(numbers))
        real(r8), target :: reals(size(numbers))
        type(column_t) :: column

        names = numbers%name
        if (whole) then
            integers = nint(numbers%value)
            column = column_t('value', integers)
        else
            reals = numbers%value
            column = column_t('value', reals)
        end if
        call file%write_table(name, [column_t('name', names), column], error)
    end subroutine write_numbers

    subroutine write_texts(file, name, texts, length, error)
        type(file_t), intent(inout) :: file
        character(*), intent(in) :: name
        type(named_text_t), intent(in) :: texts(:)
        integer, intent(in) :: length
        type(error_t), intent(inout) :: error
        character(name_length), target :: names(size(texts))
        character(length), target :: values(size(texts))
        integer :: i

        do i = 1, size(texts)
            names(i) = texts(i)%name
            values(i) = texts(i)%value
        end do
        call file%write_table(name, [column_t('name', names), column_t('value', values)], error)
    end subroutine write_texts

    !> The record 'sim info': the format's version, and the file's writer and date.
    subroutine write_sim_info(file, info, error)
        type(file_t), intent(inout) :: file
        type(output_info_t), intent(in) :: info
        type(error_t), intent(inout) :: error
        integer, target :: version(1)
        character(400), target :: call_of_setup(1), options(1)
        character(name_length), target :: created(1), writer(1), machine(1), unknown(1)

        version = format_version
        call_of_setup = 'ember '//info%problem
        options = ''
        created = utc_now()
        writer = 'pagewise ember'
        machine = host_name()
        unknown = ''
        call file%write_table('sim info', [column_t('file format version', version), column_t('setup call', call_of_setup), &
                                           column_t('file creation time', created), column_t('flash version', writer), &
                                           column_t('build date', unknown), column_t('build dir', unknown), &
                                           column_t('build machine', machine), column_t('cflags', options), &
                                           column_t('fflags', options), column_t('setup time stamp', unknown), &
                                           column_t('build time stamp', unknown)], error)
    end subroutine write_sim_info

end module ember_plotfile_lists
