!> Checkpoints: everything that a run needs to continue bit by bit (docs/reference/ember-files.md).
!>
!> A checkpoint holds the variables of the leaves without guard cells, the same in both layouts, the tree, time and step, and
!> the named values of `output_info_t`. It can be read by another number of ranks and threads, with the other layout and with
!> another page policy.
module ember_checkpoint
    use ember_checkpoint_format, only: boundary_name, bunch_bytes, format_name, format_version, geometry_name, marker
    use ember_container, only: load_interior
    use ember_mesh, only: mesh_t
    use ember_output_info, only: longest, name_length, output_info_t, variable_names
    use ember_parallel, only: comm_t
    use pw_error, only: error_t
    use pw_hdf5, only: file_t, kind_double, kind_integer, whole_file
    use pw_kinds, only: r8
    implicit none
    private

    public :: write_checkpoint

contains

    !> Write the checkpoint `path`, called by all ranks; rank 0 writes. An error names the file and what to do; the new file
    !> is then removed, and an older file of that name, like all others, is unchanged.
    subroutine write_checkpoint(path, mesh, comm, info, error)
        character(*), intent(in) :: path
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        type(output_info_t), intent(in) :: info
        type(error_t), intent(inout) :: error
        type(file_t) :: file
        type(output_info_t) :: whole

        whole = info
        call whole%complete()
        if (comm%rank == 0) then
            call file%create(path, error)
            call write_head(file, mesh, whole, error)
            call file%define('blocks', kind_double, [mesh%n_used(), mesh%zones(), mesh%tree%n_leaves], error)
            call file%reserve(error)
        end if
        call comm%agree(error)
        if (error%failed()) then
            call file%discard()
            return
        end if
        call write_blocks(file, mesh, comm, error)
        if (comm%rank == 0) then
            call file%put(whole_file, 'complete', marker, error)
            call file%commit(error)
        end if
        call comm%agree(error)
    end subroutine write_checkpoint

    subroutine write_head(file, mesh, info, error)
        type(file_t), intent(inout) :: file
        type(mesh_t), intent(in) :: mesh
        type(output_info_t), intent(in) :: info
        type(error_t), intent(inout) :: error
        character(name_length) :: names(mesh%n_used())
        integer :: n

        call variable_names(mesh%n_used(), info, names)
        n = mesh%tree%n_leaves
        call file%put(whole_file, 'format', format_name, error)
        call file%put(whole_file, 'format version', format_version, error)
        call file%put(whole_file, 'problem', info%problem, error)
        call file%put(whole_file, 'time', info%time, error)
        call file%put(whole_file, 'dt', info%dt, error)
        call file%put(whole_file, 'step', info%step, error)
        call file%put(whole_file, 'dims', mesh%dims, error)
        call file%put(whole_file, 'block zones', mesh%block, error)
        call file%put(whole_file, 'guard cells', mesh%guards, error)
        call file%put(whole_file, 'roots', mesh%tree%roots, error)
        call file%put(whole_file, 'geometry', geometry_name(mesh%geometry), error)
        call file%put(whole_file, 'lower', mesh%lower, error)
        call file%put(whole_file, 'upper', mesh%upper, error)
        call file%put(whole_file, 'boundaries', boundary_names(mesh%boundary), error)
        call file%put(whole_file, 'levels', [mesh%lowest_level, mesh%highest_level], error)
        call file%put(whole_file, 'leaves', n, error)
        call file%put(whole_file, 'variables', names, error)
        call file%define('level', kind_integer, [n], error)
        call file%write_integers('level', 1, n, 1, mesh%tree%level, error)
        call file%define('place', kind_integer, [3, n], error)
        call file%write_integers('place', 1, n, 3, mesh%tree%place, error)
        call write_names(file, info, longest(info%parameters), error)
    end subroutine write_head

    !> Of the lower and the upper end of each direction.
    pure function boundary_names(boundary) result(names)
        integer, intent(in) :: boundary(2, 3)
        character(10) :: names(6)
        integer :: d

        do d = 1, 3
            names(2*d - 1) = boundary_name(boundary(1, d))
            names(2*d) = boundary_name(boundary(2, d))
        end do
    end function boundary_names

    !> The named values, per kind an attribute with the names and one with the values.
    subroutine write_names(file, info, length, error)
        type(file_t), intent(inout) :: file
        type(output_info_t), intent(in) :: info
        integer, intent(in) :: length
        type(error_t), intent(inout) :: error
        character(length) :: texts(size(info%parameters))
        integer :: i

        do i = 1, size(texts)
            texts(i) = info%parameters(i)%value
        end do
        call file%put(whole_file, 'named values', [size(texts), size(info%integers), size(info%reals)], error)
        if (size(texts) > 0) then
            call file%put(whole_file, 'parameters', info%parameters%name, error)
            call file%put(whole_file, 'parameter values', texts, error)
        end if
        if (size(info%integers) > 0) then
            call file%put(whole_file, 'integers', info%integers%name, error)
            call file%put(whole_file, 'integer values', info%integers%value, error)
        end if
        if (size(info%reals) > 0) then
            call file%put(whole_file, 'reals', info%reals%name, error)
            call file%put(whole_file, 'real values', info%reals%value, error)
        end if
    end subroutine write_names

    !> The leaves' variables, in groups of leaves. After an error rank 0 still receives what the others
    !> send.
    subroutine write_blocks(file, mesh, comm, error)
        type(file_t), intent(inout) :: file
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        type(error_t), intent(inout) :: error
        real(r8), allocatable, target :: bunch(:, :, :, :, :)
        real(r8), pointer, contiguous :: flat(:)
        integer :: leaf, n, values, owner, zones(3)

        zones = mesh%zones()
        values = mesh%n_used()*product(zones)
        allocate (bunch(mesh%n_used(), zones(1), zones(2), zones(3), max(1, bunch_bytes/(8*values))))
        n = 0
        do leaf = 1, mesh%tree%n_leaves
            owner = mesh%tree%owner(leaf)
            flat(1:values) => bunch(:, :, :, :, n + 1)
            if (owner == comm%rank) call load_interior(mesh, mesh%slot(leaf), bunch(:, :, :, :, n + 1))
            if (comm%rank /= 0) then
                if (owner == comm%rank) call comm%send(0, flat)
                cycle
            end if
            if (owner /= 0) call comm%receive(owner, flat)
            n = n + 1
            if (n < size(bunch, 5) .and. leaf < mesh%tree%n_leaves) cycle
            call file%write_reals('blocks', leaf - n + 1, n, values, bunch, error)
            n = 0
        end do
    end subroutine write_blocks

end module ember_checkpoint
