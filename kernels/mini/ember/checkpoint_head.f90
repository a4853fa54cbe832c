!> The head of a checkpoint: read and checked by one rank, and shared with all.
module ember_checkpoint_head
    use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
    use ember_checkpoint_format, only: boundary_name, format_name, format_version, geometry_name, head_t, marker, max_names, &
        max_text, max_variables, refuse
    use ember_mesh, only: block_sizes, cartesian, cylindrical, first_species, guard_widths, outflow, periodic
    use ember_output_info, only: name_length, output_info_t, variable_names
    use ember_parallel, only: comm_t
    use pw_error, only: error_t
    use pw_hdf5, only: file_t, whole_file
    use pw_kinds, only: i8, r8
    use pw_text, only: to_text
    implicit none
    private

    public :: open_checkpoint, share_head, share_info

contains

    !> Open a file on rank 0 and read everything except tree and zones; an error unless it is a complete checkpoint of a
    !> supported version.
    subroutine open_checkpoint(path, file, head, info, error)
        character(*), intent(in) :: path
        type(file_t), intent(inout) :: file
        type(head_t), intent(out) :: head
        type(output_info_t), intent(out) :: info
        type(error_t), intent(inout) :: error
        character(:), allocatable :: text
        integer :: version, complete

        call file%open(path, error)
        if (error%failed()) return
        if (.not. file%has_attribute(whole_file, 'format')) then
            call refuse(path, 'it is an HDF5 file, but not a checkpoint of ember', error)
            return
        end if
        call file%get(whole_file, 'format', text, error)
        if (error%failed()) return
        if (text /= format_name) then
            call refuse(path, 'it is an HDF5 file, but not a checkpoint of ember', error)
            return
        end if
        version = 0
        call file%get(whole_file, 'format version', version, error)
        if (.not. error%failed() .and. version /= format_version) then
            call refuse(path, 'its format has version '//to_text(version)//', but this program supports '// &
                        to_text(format_version), error)
        end if
        if (error%failed()) return
        complete = 0
        if (file%has_attribute(whole_file, 'complete')) call file%get(whole_file, 'complete', complete, error)
        if (complete /= marker) call refuse(path, 'it is incomplete', error)

        call file%get(whole_file, 'block zones', head%block, error)
        call file%get(whole_file, 'guard cells', head%guards, error)
        call file%get(whole_file, 'time', info%time, error)
        call file%get(whole_file, 'dt', info%dt, error)
        call file%get(whole_file, 'step', info%step, error)
        call file%get(whole_file, 'problem', info%problem, error)
        call file%get(whole_file, 'dims', head%dims, error)
        call file%get(whole_file, 'roots', head%roots, error)
        call file%get(whole_file, 'lower', head%lower, error)
        call file%get(whole_file, 'upper', head%upper, error)
        call file%get(whole_file, 'levels', head%levels, error)
        call file%get(whole_file, 'leaves', head%n_leaves, error)
        call read_words(file, head, error)
        call read_species(path, file, head, info, error)
        call read_names(path, file, info, error)
        if (error%failed()) return
        if (all(head%block /= block_sizes) .or. all(head%guards /= guard_widths)) then
            call refuse(path, 'its blocks have '//to_text(head%block)//' zones and '//to_text(head%guards)// &
                        ' guard cells per direction, which this program does not support', error)
        else if (head%dims < 2 .or. head%dims > 3 .or. head%n_leaves < 1 .or. any(head%roots < 1) .or. &
                 head%n_variables < first_species - 1 .or. any(head%boundary == 0) .or. head%geometry == 0 .or. &
                 .not. all(ieee_is_finite(head%lower)) .or. .not. all(ieee_is_finite(head%upper))) then
            call refuse(path, 'its description of the mesh is invalid', error)
        else
            call check_shapes(path, file, head, error)
        end if
    end subroutine open_checkpoint

    !> Geometry and boundaries; 0 for unknown words.
    subroutine read_words(file, head, error)
        type(file_t), intent(in) :: file
        type(head_t), intent(inout) :: head
        type(error_t), intent(inout) :: error
        character(:), allocatable :: text
        character(10) :: names(6)
        integer :: i, b, d, side

        names = ''
        call file%get(whole_file, 'geometry', text, error)
        call file%get(whole_file, 'boundaries', names, error)
        if (error%failed()) return
        do i = cartesian, cylindrical
            if (text == geometry_name(i)) head%geometry = i
        end do
        do d = 1, 3
            do side = 1, 2
                do b = periodic, outflow
                    if (names(2*d - 2 + side) == boundary_name(b)) head%boundary(side, d) = b
                end do
            end do
        end do
    end subroutine read_words

    !> The number of variables, and the species among them.
    subroutine read_species(path, file, head, info, error)
        character(*), intent(in) :: path
        type(file_t), intent(in) :: file
        type(head_t), intent(inout) :: head
        type(output_info_t), intent(inout) :: info
        type(error_t), intent(inout) :: error
        character(name_length) :: names(max_variables), expected(max_variables)
        integer(i8) :: n
        integer :: length

        call file%attribute_size(whole_file, 'variables', n, length, error)
        if (error%failed()) return
        if (n < first_species - 1 .or. n > max_variables) then
            call refuse(path, 'its variables differ from those of this program', error)
            return
        end if
        head%n_variables = int(n)
        call file%get(whole_file, 'variables', names(:n), error)
        if (error%failed()) return
        info%species = names(first_species:n)
        call variable_names(head%n_variables, info, expected(:n))
        if (any(names(:n) /= expected(:n))) call refuse(path, 'its variables differ from those of this program', error)
    end subroutine read_species

    !> The named values.
    subroutine read_names(path, file, info, error)
        character(*), intent(in) :: path
        type(file_t), intent(in) :: file
        type(output_info_t), intent(inout) :: info
        type(error_t), intent(inout) :: error
        integer :: counts(3), n, length

        call info%complete()
        ! Damage may hide attributes.
        call file%get(whole_file, 'named values', counts, error)
        if (error%failed()) return
        call measure('parameter values', counts(1))
        if (n > 0) call read_texts(file, n, length, info, error)
        call measure('integer values', counts(2))
        if (n > 0) then
            deallocate (info%integers)
            allocate (info%integers(n))
            call file%get(whole_file, 'integers', info%integers%name, error)
            call file%get(whole_file, 'integer values', info%integers%value, error)
        end if
        call measure('real values', counts(3))
        if (n > 0) then
            deallocate (info%reals)
            allocate (info%reals(n))
            call file%get(whole_file, 'reals', info%reals%name, error)
            call file%get(whole_file, 'real values', info%reals%value, error)
        end if

    contains

        !> Number of values, at most max_names, and length of texts; an error unless there are `expected`.
        subroutine measure(values, expected)
            character(*), intent(in) :: values
            integer, intent(in) :: expected
            integer(i8) :: stored

            n = 0
            length = 1
            if (expected == 0) return
            call file%attribute_size(whole_file, values, stored, length, error)
            if (error%failed()) return
            if (stored /= expected .or. stored > max_names) then
                call refuse(path, "'"//values//"' has a size that differs from its head", error)
                return
            end if
            n = expected
            length = min(max(1, length), max_text)
        end subroutine measure

    end subroutine read_names

    subroutine read_texts(file, n, length, info, error)
        type(file_t), intent(in) :: file
        integer, intent(in) :: n, length
        type(output_info_t), intent(inout) :: info
        type(error_t), intent(inout) :: error
        character(name_length), allocatable :: names(:)
        character(length), allocatable :: texts(:)
        integer :: i

        allocate (names(n), texts(n))
        call file%get(whole_file, 'parameters', names, error)
        call file%get(whole_file, 'parameter values', texts, error)
        if (error%failed()) return
        deallocate (info%parameters)
        allocate (info%parameters(n))
        do i = 1, n
            info%parameters(i)%name = names(i)
            info%parameters(i)%value = trim(texts(i))
        end do
    end subroutine read_texts

    !> Whether tree and zones have the sizes given in the head.
    subroutine check_shapes(path, file, head, error)
        character(*), intent(in) :: path
        type(file_t), intent(in) :: file
        type(head_t), intent(in) :: head
        type(error_t), intent(inout) :: error
        integer :: zones(3)

        zones = head%block
        if (head%dims == 2) zones(3) = 1
        call expect('level', [head%n_leaves])
        call expect('place', [3, head%n_leaves])
        call expect('blocks', [head%n_variables, zones, head%n_leaves])

    contains

        subroutine expect(name, expected)
            character(*), intent(in) :: name
            integer, intent(in) :: expected(:)
            integer(i8), allocatable :: shape(:)
            logical :: same

            call file%shape(name, shape, error)
            if (error%failed()) return
            same = size(shape) == size(expected)
            if (same) same = all(shape == expected)
            if (.not. same) call refuse(path, "'"//name//"' has a size that differs from its head", error)
        end subroutine expect

    end subroutine check_shapes

    !> Send rank 0's head to all ranks.
    subroutine share_head(comm, head)
        type(comm_t), intent(in) :: comm
        type(head_t), intent(inout) :: head
        integer :: integers(17)
        real(r8) :: reals(6)

        integers = [head%dims, head%roots, head%geometry, reshape(head%boundary, [6]), head%levels, head%n_variables, &
                    head%n_leaves, head%block, head%guards]
        reals = [head%lower, head%upper]
        call comm%broadcast(integers)
        call comm%broadcast(reals)
        head%dims = integers(1)
        head%roots = integers(2:4)
        head%geometry = integers(5)
        head%boundary = reshape(integers(6:11), [2, 3])
        head%levels = integers(12:13)
        head%n_variables = integers(14)
        head%n_leaves = integers(15)
        head%block = integers(16)
        head%guards = integers(17)
        head%lower = reals(:3)
        head%upper = reals(4:)
    end subroutine share_head

    !> Send rank 0's info to all ranks: the numbers, and all texts in one.
    subroutine share_info(comm, info)
        type(comm_t), intent(in) :: comm
        type(output_info_t), intent(inout) :: info
        character(:), allocatable :: texts
        integer :: counts(5)
        integer(i8), allocatable :: long(:)
        real(r8), allocatable :: number(:)

        call info%complete()
        texts = texts_of(info)
        counts = [info%step, size(info%species), size(info%parameters), size(info%integers), size(info%reals)]
        call comm%broadcast(counts)
        call comm%broadcast(texts)
        allocate (long(counts(4)), number(counts(5) + 2))
        if (comm%rank == 0) then
            long = info%integers%value
            number = [info%time, info%dt, info%reals%value]
        end if
        call comm%broadcast(long)
        call comm%broadcast(number)
        if (comm%rank == 0) return

        info = output_info_t()
        allocate (info%species(counts(2)), info%parameters(counts(3)), info%integers(counts(4)), info%reals(counts(5)))
        call take_texts(texts, info)
        info%step = counts(1)
        info%time = number(1)
        info%dt = number(2)
        info%integers%value = long
        info%reals%value = number(3:)
    end subroutine share_info

    !> All texts of `info` in one, each followed by a null character.
    pure function texts_of(info) result(texts)
        type(output_info_t), intent(in) :: info
        character(:), allocatable :: texts
        integer :: i

        texts = info%problem//achar(0)
        do i = 1, size(info%species)
            texts = texts//trim(info%species(i))//achar(0)
        end do
        do i = 1, size(info%parameters)
            texts = texts//trim(info%parameters(i)%name)//achar(0)//info%parameters(i)%value//achar(0)
        end do
        do i = 1, size(info%integers)
            texts = texts//trim(info%integers(i)%name)//achar(0)
        end do
        do i = 1, size(info%reals)
            texts = texts//trim(info%reals(i)%name)//achar(0)
        end do
    end function texts_of

    !> The inverse of `texts_of`, into allocated lists.
    subroutine take_texts(texts, info)
        character(*), intent(in) :: texts
        type(output_info_t), intent(inout) :: info
        integer :: i, at

        at = 1
        info%problem = next()
        do i = 1, size(info%species)
            info%species(i) = next()
        end do
        do i = 1, size(info%parameters)
            info%parameters(i)%name = next()
            info%parameters(i)%value = next()
        end do
        do i = 1, size(info%integers)
            info%integers(i)%name = next()
        end do
        do i = 1, size(info%reals)
            info%reals(i)%name = next()
        end do

    contains

        !> The text at position `at`.
        function next() result(text)
            character(:), allocatable :: text
            integer :: length

            length = index(texts(at:), achar(0)) - 1
            text = texts(at:at + length - 1)
            at = at + length + 1
        end function next

    end subroutine take_texts

end module ember_checkpoint_head
