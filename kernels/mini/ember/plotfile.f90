!> Plotfiles: mesh and zones in the layout of FLASH, for people and visualisation programs (docs/reference/ember.md).
!>
!> The layout is known from its readers: yt (yt.frontends.flash) and VisIt (databases/FLASH). It holds the whole tree, parents
!> before their children; ember has no data of parents, and computes them here as volume-weighted means of the children's
!> conserved variables.
module ember_plotfile
    use ember_container, only: load_interior
    use ember_mesh, only: cylindrical, first_species, mesh_t, v_dens, v_ener, v_gamc, v_momx, v_momy, v_momz, v_pres, &
        v_temp
    use ember_nodes, only: list_nodes, nodes_t, octant
    use ember_output_info, only: name_length, output_info_t, variable_names
    use ember_parallel, only: comm_t
    use ember_plotfile_lists, only: write_facts
    use ember_plotfile_nodes, only: write_tree
    use pw_error, only: error_t
    use pw_hdf5, only: file_t, kind_double, kind_float, kind_text
    use pw_kinds, only: r8
    implicit none
    private

    integer, parameter :: reflecting_side = -31, outflow_side = -32
    integer, parameter :: window_bytes = 4*1024**2

    !> The part of the file that is being written: some rows of every variable, one row per block.
    type :: window_t
        integer :: first = 1, n = 0, capacity = 0, zones = 0
        character(name_length), allocatable :: name(:)
        real(r8), allocatable :: values(:, :, :)    !< (zone, row, variable)
        real(r8), allocatable :: least(:), greatest(:)
    end type window_t

    public :: plotfile_name, write_plotfile

contains

    !> The name of plotfile `number` of the run `base`, such as folder/sedov: yt recognises its kind by hdf5_plt_cnt.
    pure function plotfile_name(base, number) result(name)
        character(*), intent(in) :: base
        integer, intent(in) :: number
        character(:), allocatable :: name
        character(16) :: counted

        write (counted, '(i0.4)') number
        name = base//'_hdf5_plt_cnt_'//trim(counted)
    end function plotfile_name

    !> Write the plotfile `path`, called by all ranks; rank 0 writes. Its name should contain hdf5_plt_cnt, by which yt
    !> recognises it. `single`: values of zones in single precision. Of the derived variables of zones, pressure,
    !> temperature and gamc are those of the mesh. An error names the file; the new file is then removed, and an older file
    !> of that name is unchanged.
    subroutine write_plotfile(path, mesh, comm, info, error, single)
        character(*), intent(in) :: path
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        type(output_info_t), intent(in) :: info
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: single
        type(file_t) :: file
        type(nodes_t) :: nodes
        type(window_t) :: window
        if (comm%rank == 0) then
            call list_nodes(mesh%tree, nodes)
            call open_window(mesh, info, window)
            call file%create(path, error)
            call write_facts(file, mesh, info, nodes, error)
            call write_tree(file, mesh, nodes, error)
            call define_variables(file, mesh, nodes, window, single, error)
            call file%reserve(error)
        end if
        call comm%agree(error)
        if (error%failed()) then
            call file%discard()
            return
        end if
        if (comm%rank > 0) then
            call send_zones(mesh, comm)
        else
            call write_zones(file, mesh, comm, nodes, window, error)
            call write_extremes(file, window, error)
            call file%commit(error)
        end if
        call comm%agree(error)
    end subroutine write_plotfile

    !> The variables of the file, and space for some of their rows.
    subroutine open_window(mesh, info, window)
        type(mesh_t), intent(in) :: mesh
        type(output_info_t), intent(in) :: info
        type(window_t), intent(out) :: window
        character(name_length) :: all_names(mesh%n_used())

        call variable_names(mesh%n_used(), info, all_names)
        window%name = [character(name_length) :: 'dens', 'velx', 'vely', 'velz', 'pres', 'ener', 'eint', 'temp', 'gamc', &
                       all_names(first_species:)]
        window%zones = product(mesh%zones())
        window%capacity = max(1, window_bytes/(8*window%zones*size(window%name)))
        allocate (window%values(window%zones, window%capacity, size(window%name)), source=0.0_r8)
        allocate (window%least(size(window%name)), source=huge(1.0_r8))
        allocate (window%greatest(size(window%name)), source=-huge(1.0_r8))
    end subroutine open_window

    subroutine define_variables(file, mesh, nodes, window, single, error)
        type(file_t), intent(inout) :: file
        type(mesh_t), intent(in) :: mesh
        type(nodes_t), intent(in) :: nodes
        type(window_t), intent(in) :: window
        logical, intent(in), optional :: single
        type(error_t), intent(inout) :: error
        ! FLASH's names have four letters.
        character(max(4, maxval(len_trim(window%name)))) :: names(size(window%name))
        integer :: v, kind_of

        kind_of = kind_double
        if (present(single)) kind_of = merge(kind_float, kind_double, single)
        names = window%name
        call file%define('unknown names', kind_text(len(names)), [1, size(names)], error)
        call file%write_texts('unknown names', 1, size(names), 1, names, error)
        do v = 1, size(window%name)
            call file%define(trim(window%name(v)), kind_of, [mesh%zones(), nodes%n], error)
        end do
    end subroutine define_variables

    !> Send the zones of this rank's leaves to rank 0.
    subroutine send_zones(mesh, comm)
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        real(r8), allocatable, target :: block(:, :, :, :)
        real(r8), pointer, contiguous :: flat(:)
        integer :: l, zones(3)

        zones = mesh%zones()
        allocate (block(mesh%n_used(), zones(1), zones(2), zones(3)))
        flat(1:size(block)) => block
        do l = 1, size(mesh%local)
            call load_interior(mesh, mesh%slot(mesh%local(l)), block)
            call comm%send(0, flat)
        end do
    end subroutine send_zones

    !> On rank 0: write the zones of all blocks. The leaves come one after another; a parent is complete when its last child is.
    !> After an error this still receives what the others send.
    subroutine write_zones(file, mesh, comm, nodes, window, error)
        type(file_t), intent(inout) :: file
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        type(nodes_t), intent(in) :: nodes
        type(window_t), intent(inout) :: window
        type(error_t), intent(inout) :: error
        real(r8), allocatable, target :: block(:, :, :, :)
        real(r8), allocatable :: parents(:, :, :, :, :)
        real(r8), pointer, contiguous :: flat(:)
        integer :: leaf, zones(3)

        zones = mesh%zones()
        allocate (block(mesh%n_used(), zones(1), zones(2), zones(3)))
        allocate (parents(mesh%n_used(), zones(1), zones(2), zones(3), 0:max(0, maxval(nodes%level) - 1)))
        flat(1:size(block)) => block
        do leaf = 1, mesh%tree%n_leaves
            if (mesh%tree%owner(leaf) == 0) then
                call load_interior(mesh, mesh%slot(leaf), block)
            else
                call comm%receive(mesh%tree%owner(leaf), flat)
            end if
            if (error%failed()) cycle
            call put_row(file, window, nodes%of_leaf(leaf), block, .true., error)
            call fill_parents(file, mesh, nodes, window, nodes%of_leaf(leaf), block, parents, error)
        end do
        call flush_window(file, window, error)
    end subroutine write_zones

    !> Store the means of a leaf's zones in its parent, and write every parent that this completes.
    subroutine fill_parents(file, mesh, nodes, window, leaf, block, parents, error)
        type(file_t), intent(inout) :: file
        type(mesh_t), intent(in) :: mesh
        type(nodes_t), intent(in) :: nodes
        type(window_t), intent(inout) :: window
        integer, intent(in) :: leaf
        real(r8), contiguous, intent(in) :: block(:, :, :, :)
        real(r8), contiguous, intent(inout) :: parents(:, :, :, :, 0:)
        type(error_t), intent(inout) :: error
        integer :: node, level

        node = leaf
        level = nodes%level(node)
        if (level == 0) return
        call restrict(mesh, level, nodes%place(:, node), block, parents(:, :, :, :, level - 1))
        do while (octant(nodes%place(:, node)) == 2**mesh%dims)
            node = nodes%parent(node)
            level = level - 1
            call put_row(file, window, node, parents(:, :, :, :, level), .false., error)
            if (level == 0) return
            call restrict(mesh, level, nodes%place(:, node), parents(:, :, :, :, level), parents(:, :, :, :, level - 1))
        end do
    end subroutine fill_parents

    !> Set the zones of a parent that the block at `place` of `level` covers to the means of that block's zones. The sums
    !> are by pairs: a mirrored block has mirrored means to the last bit.
    pure subroutine restrict(mesh, level, place, fine, coarse)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: level, place(3)
        real(r8), contiguous, intent(in) :: fine(:, :, :, :)
        real(r8), contiguous, intent(inout) :: coarse(:, :, :, :)
        real(r8) :: a(mesh%block/2), b(mesh%block/2), width(3), left
        integer :: i, j, k, f, g, h, half, offset(3)

        half = mesh%block/2
        a = 0.5_r8
        b = 0.5_r8
        if (mesh%geometry == cylindrical) then
            ! A zone's volume is proportional to the radius of its centre.
            width = mesh%zone_size(level)
            do i = 1, half
                left = mesh%lower(1) + width(1)*(place(1)*mesh%block + 2*i - 1.5_r8)
                a(i) = left/(2.0_r8*left + width(1))
                b(i) = (left + width(1))/(2.0_r8*left + width(1))
            end do
        end if
        offset = half*iand(place, 1)
        if (mesh%dims == 3) then
            do k = 1, half
                h = 2*k - 1
                do j = 1, half
                    g = 2*j - 1
                    do i = 1, half
                        f = 2*i - 1
                        coarse(:, offset(1) + i, offset(2) + j, offset(3) + k) = 0.25_r8*( &
                            ((a(i)*fine(:, f, g, h) + b(i)*fine(:, f + 1, g, h)) &
                             + (a(i)*fine(:, f, g + 1, h) + b(i)*fine(:, f + 1, g + 1, h))) &
                            + ((a(i)*fine(:, f, g, h + 1) + b(i)*fine(:, f + 1, g, h + 1)) &
                               + (a(i)*fine(:, f, g + 1, h + 1) + b(i)*fine(:, f + 1, g + 1, h + 1))))
                    end do
                end do
            end do
        else
            do j = 1, half
                g = 2*j - 1
                do i = 1, half
                    f = 2*i - 1
                    coarse(:, offset(1) + i, offset(2) + j, 1) = 0.5_r8*( &
                        (a(i)*fine(:, f, g, 1) + b(i)*fine(:, f + 1, g, 1)) &
                        + (a(i)*fine(:, f, g + 1, 1) + b(i)*fine(:, f + 1, g + 1, 1)))
                end do
            end do
        end if
    end subroutine restrict

    !> Write the row of a block: into the window, which advances if the row is beyond it, or directly to the file if the
    !> window has already passed it. Leaves count for the extremes.
    subroutine put_row(file, window, row, block, is_leaf, error)
        type(file_t), intent(inout) :: file
        type(window_t), intent(inout) :: window
        integer, intent(in) :: row
        real(r8), contiguous, intent(in) :: block(:, :, :, :)
        logical, intent(in) :: is_leaf
        type(error_t), intent(inout) :: error
        real(r8), allocatable :: values(:, :)
        integer :: at, v

        if (error%failed()) return
        allocate (values(window%zones, size(window%name)))
        call derive(size(block, 1), window%zones, size(window%name), block, values)
        if (is_leaf) then
            do v = 1, size(window%name)
                window%least(v) = min(window%least(v), minval(values(:, v)))
                window%greatest(v) = max(window%greatest(v), maxval(values(:, v)))
            end do
        end if
        if (row < window%first) then
            do v = 1, size(window%name)
                call file%write_reals(trim(window%name(v)), row, 1, window%zones, values(:, v), error)
            end do
            return
        end if
        if (row >= window%first + window%capacity) then
            call flush_window(file, window, error)
            window%first = row
        end if
        at = row - window%first + 1
        window%values(:, at, :) = values
        window%n = max(window%n, at)
    end subroutine put_row

    !> Write the window's rows: also those of incomplete parents, which are written again when complete.
    subroutine flush_window(file, window, error)
        type(file_t), intent(inout) :: file
        type(window_t), intent(inout) :: window
        type(error_t), intent(inout) :: error
        integer :: v

        do v = 1, size(window%name)
            call file%write_reals(trim(window%name(v)), window%first, window%n, window%zones, window%values(:, :window%n, v), &
                                 error)
        end do
        window%n = 0
    end subroutine flush_window

    !> The variables of the file from those of the mesh: values(zone, variable) from block(variable, zone).
    pure subroutine derive(n_variables, n_zones, n_values, block, values)
        integer, intent(in) :: n_variables, n_zones, n_values
        real(r8), intent(in) :: block(n_variables, n_zones)
        real(r8), intent(out) :: values(n_zones, n_values)
        real(r8) :: dens, velx, vely, velz, ener
        integer :: z

        do z = 1, n_zones
            dens = block(v_dens, z)
            velx = block(v_momx, z)/dens
            vely = block(v_momy, z)/dens
            velz = block(v_momz, z)/dens
            ener = block(v_ener, z)/dens
            values(z, 1) = dens
            values(z, 2) = velx
            values(z, 3) = vely
            values(z, 4) = velz
            values(z, 5) = block(v_pres, z)
            values(z, 6) = ener
            values(z, 7) = ener - 0.5_r8*(velx**2 + vely**2 + velz**2)
            values(z, 8) = block(v_temp, z)
            values(z, 9) = block(v_gamc, z)
            values(z, 10:) = block(first_species:, z)/dens
        end do
    end subroutine derive

    !> The smallest and the largest value of each variable among leaves.
    subroutine write_extremes(file, window, error)
        type(file_t), intent(inout) :: file
        type(window_t), intent(in) :: window
        type(error_t), intent(inout) :: error
        integer :: v

        do v = 1, size(window%name)
            call file%put(trim(window%name(v)), 'minimum', window%least(v), error)
            call file%put(trim(window%name(v)), 'maximum', window%greatest(v), error)
        end do
    end subroutine write_extremes

end module ember_plotfile
