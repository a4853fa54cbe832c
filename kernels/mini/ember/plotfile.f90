!> Plotfiles: the mesh and its zones in the layout of FLASH, for people and visualisation programs (docs/ember-files.md).
!>
!> The layout is known from its readers: yt (yt.frontends.flash) and VisIt (databases/FLASH). It holds the whole tree, parents
!> before their children; ember has no data of parents, and computes them here as volume-weighted means of the children's
!> conserved variables.
module ember_plotfile
    use ember_container, only: load_interior
    use pw_hdf5, only: file_t, kind_double, kind_float, kind_integer, kind_text, table_t
    use ember_mesh, only: block_zones, cylindrical, first_species, mesh_t, outflow, reflecting, v_dens, v_ener, v_gamc, &
        v_momx, v_momy, v_momz, v_pres, v_temp
    use ember_output_info, only: append, longest, name_length, named_real_t, named_text_t, output_info_t, variable_names
    use ember_parallel, only: comm_t
    use ember_tree, only: tree_t
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_system, only: host_name, utc_now
    implicit none
    private

    public :: write_plotfile

    integer, parameter :: half = block_zones/2
    integer, parameter :: format_version = 9        ! that of FLASH 3 and 4
    integer, parameter :: nobody = -1               ! no such block
    integer, parameter :: reflecting_side = -31, outflow_side = -32
    integer, parameter :: window_bytes = 4*1024**2

    !> All blocks of the tree, parents before children, in depth-first Morton order.
    type :: nodes_t
        integer :: n = 0
        integer, allocatable :: level(:), place(:, :)
        integer, allocatable :: leaf(:)             !< 0: a parent
        integer, allocatable :: parent(:)           !< 0: a root
        integer, allocatable :: children(:, :)      !< 0: a leaf
        integer, allocatable :: of_leaf(:)          !< (leaf) its node
    end type nodes_t

    !> The part of the file that is being written: some rows of every variable, one row per block.
    type :: window_t
        integer :: first = 1, n = 0, capacity = 0, zones = 0
        character(name_length), allocatable :: name(:)
        real(r8), allocatable :: values(:, :, :)    !< (zone, row, variable)
        real(r8), allocatable :: least(:), greatest(:)
    end type window_t

    !> A list of named values, as FLASH has, one per kind; numbers are integers and logicals too.
    type :: list_t
        type(named_real_t), allocatable :: numbers(:)
        type(named_text_t), allocatable :: texts(:)
    contains
        procedure :: has
        procedure :: put_number
        procedure :: put_text
    end type list_t

contains

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
        type(output_info_t) :: whole

        whole = info
        call whole%complete()
        if (comm%rank == 0) then
            call list_nodes(mesh%tree, nodes)
            call open_window(mesh, whole, window)
            call file%create(path, error)
            call write_facts(file, mesh, whole, nodes, error)
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

    !> The blocks of the tree. A parent is visited at the first of its leaves.
    subroutine list_nodes(tree, nodes)
        type(tree_t), intent(in) :: tree
        type(nodes_t), intent(out) :: nodes
        integer, allocatable :: path(:), path_place(:, :)
        integer :: place(3), leaf, level, depth, deepest, n_children

        n_children = 2**tree%dims
        deepest = maxval(tree%level(:tree%n_leaves))
        ! Each parent replaces one block by n_children blocks.
        nodes%n = tree%n_leaves + (tree%n_leaves - product(tree%roots))/(n_children - 1)
        allocate (nodes%level(nodes%n), nodes%place(3, nodes%n), nodes%of_leaf(tree%n_leaves))
        allocate (nodes%leaf(nodes%n), nodes%parent(nodes%n), nodes%children(n_children, nodes%n), source=0)
        allocate (path(0:deepest), path_place(3, 0:deepest))
        nodes%n = 0
        depth = 0
        do leaf = 1, tree%n_leaves
            do level = 0, tree%level(leaf)
                place = above(tree, tree%place(:, leaf), tree%level(leaf) - level)
                if (level < depth .and. level < tree%level(leaf)) then
                    if (all(path_place(:, level) == place)) cycle
                end if
                call add()
                depth = level + 1
            end do
            nodes%leaf(nodes%n) = leaf
            nodes%of_leaf(leaf) = nodes%n
        end do

    contains

        !> The block at `place` of `level`, below the end of the path.
        subroutine add()
            integer :: c

            nodes%n = nodes%n + 1
            nodes%level(nodes%n) = level
            nodes%place(:, nodes%n) = place
            path(level) = nodes%n
            path_place(:, level) = place
            if (level == 0) return
            nodes%parent(nodes%n) = path(level - 1)
            c = octant(place)
            nodes%children(c, path(level - 1)) = nodes%n
        end subroutine add

    end subroutine list_nodes

    !> Which child of its parent the block at `place` is, from 1.
    pure integer function octant(place)
        integer, intent(in) :: place(3)

        octant = 1 + iand(place(1), 1) + 2*iand(place(2), 1) + 4*iand(place(3), 1)
    end function octant

    !> The position of the block that contains `place`, this number of levels above.
    pure function above(tree, place, levels)
        type(tree_t), intent(in) :: tree
        integer, intent(in) :: place(3), levels
        integer :: above(3)

        above = place
        above(:tree%dims) = shiftr(place(:tree%dims), levels)
    end function above

    !> The node at `place` of `level`; nobody if only a coarser block exists there.
    pure integer function node_at(tree, nodes, level, place) result(node)
        type(tree_t), intent(in) :: tree
        type(nodes_t), intent(in) :: nodes
        integer, intent(in) :: level, place(3)

        node = nodes%of_leaf(tree%find(level, place))
        do while (nodes%level(node) > level)
            node = nodes%parent(node)
        end do
        if (nodes%level(node) < level) node = nobody
    end function node_at

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
        integer :: p, status
        real(r8) :: number

        do p = 1, size(info%parameters)
            name = trim(info%parameters(p)%name)
            value = info%parameters(p)%value
            if (any(scalars == name) .or. integers%has(name) .or. reals%has(name) .or. texts%has(name)) cycle
            if (value == 'true' .or. value == 'false') then
                call logicals%put_number(name, merge(1.0_r8, 0.0_r8, value == 'true'))
                cycle
            end if
            status = 1
            if (is_number(value)) read (value, *, iostat=status) number
            if (status /= 0) then
                call texts%put_text(name, value)
            else if (scan(value, '.eE') == 0 .and. abs(number) <= huge(p)) then
                call integers%put_number(name, number)
            else
                call reals%put_number(name, number)
            end if
        end do
    end subroutine put_parameters

    !> Whether a text is a decimal number: sign, digits with or without a point, exponent.
    pure logical function is_number(text)
        character(*), intent(in) :: text
        integer :: mantissa, first

        is_number = .false.
        mantissa = scan(text, 'eE') - 1
        if (mantissa < 0) mantissa = len(text)
        first = 1
        if (mantissa > 0) first = merge(2, 1, scan(text(1:1), '+-') == 1)
        if (verify(text(first:mantissa), '0123456789.') /= 0 .or. scan(text(first:mantissa), '0123456789') == 0) return
        if (index(text(:mantissa), '.') /= index(text(:mantissa), '.', back=.true.)) return
        if (mantissa < len(text)) then
            first = mantissa + 2
            if (first <= len(text)) first = first + merge(1, 0, scan(text(first:first), '+-') == 1)
            if (first > len(text)) return
            if (verify(text(first:), '0123456789') /= 0) return
        end if
        is_number = .true.
    end function is_number

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
    subroutine write_lists(file, what, integers, reals, logicals, texts, error)
        type(file_t), intent(inout) :: file
        character(*), intent(in) :: what
        type(list_t), intent(in) :: integers, reals, logicals, texts
        type(error_t), intent(inout) :: error

        if (allocated(integers%numbers)) call write_numbers(file, 'integer '//what, integers%numbers, .true., error)
        if (allocated(reals%numbers)) call write_numbers(file, 'real '//what, reals%numbers, .false., error)
        if (allocated(logicals%numbers)) call write_numbers(file, 'logical '//what, logicals%numbers, .true., error)
        if (allocated(texts%texts)) then
            call write_texts(file, 'string '//what, texts%texts, max(name_length, longest(texts%texts)), error)
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
        type(table_t) :: table

        names = numbers%name
        call table%add('name', names)
        if (whole) then
            integers = nint(numbers%value)
            call table%add('value', integers)
        else
            reals = numbers%value
            call table%add('value', reals)
        end if
        call file%write_table(name, table, error)
    end subroutine write_numbers

    subroutine write_texts(file, name, texts, length, error)
        type(file_t), intent(inout) :: file
        character(*), intent(in) :: name
        type(named_text_t), intent(in) :: texts(:)
        integer, intent(in) :: length
        type(error_t), intent(inout) :: error
        character(name_length), target :: names(size(texts))
        character(length), target :: values(size(texts))
        type(table_t) :: table
        integer :: i

        do i = 1, size(texts)
            names(i) = texts(i)%name
            values(i) = texts(i)%value
        end do
        call table%add('name', names)
        call table%add('value', values)
        call file%write_table(name, table, error)
    end subroutine write_texts

    !> The record 'sim info': the format's version, and the file's writer and date.
    subroutine write_sim_info(file, info, error)
        type(file_t), intent(inout) :: file
        type(output_info_t), intent(in) :: info
        type(error_t), intent(inout) :: error
        type(table_t) :: table
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
        call table%add('file format version', version)
        call table%add('setup call', call_of_setup)
        call table%add('file creation time', created)
        call table%add('flash version', writer)
        call table%add('build date', unknown)
        call table%add('build dir', unknown)
        call table%add('build machine', machine)
        call table%add('cflags', options)
        call table%add('fflags', options)
        call table%add('setup time stamp', unknown)
        call table%add('build time stamp', unknown)
        call file%write_table('sim info', table, error)
    end subroutine write_sim_info

    !> Positions and relations of the blocks.
    subroutine write_tree(file, mesh, nodes, error)
        type(file_t), intent(inout) :: file
        type(mesh_t), intent(in) :: mesh
        type(nodes_t), intent(in) :: nodes
        type(error_t), intent(inout) :: error
        real(r8), allocatable :: centre(:, :), width(:, :), bounds(:, :, :)
        integer, allocatable :: kind_of(:), which(:), rank(:), gid(:, :)
        integer :: node, d

        allocate (centre(3, nodes%n), width(3, nodes%n), bounds(2, 3, nodes%n))
        allocate (kind_of(nodes%n), which(nodes%n), rank(nodes%n), gid(2*mesh%dims + 1 + 2**mesh%dims, nodes%n))
        ! From the last to the first: parents inherit from their first child.
        do node = nodes%n, 1, -1
            bounds(1, :, node) = corner(nodes%place(:, node))
            bounds(2, :, node) = corner(nodes%place(:, node) + 1)
            centre(:, node) = 0.5_r8*(bounds(1, :, node) + bounds(2, :, node))
            width(:, node) = bounds(2, :, node) - bounds(1, :, node)
            which(node) = merge(octant(nodes%place(:, node)), nobody, nodes%level(node) > 0)
            if (nodes%leaf(node) > 0) then
                kind_of(node) = 1
                rank(node) = mesh%tree%owner(nodes%leaf(node))
            else
                kind_of(node) = merge(2, 3, any(nodes%leaf(nodes%children(:, node)) > 0))
                rank(node) = rank(nodes%children(1, node))
            end if
            call connect(gid(:, node))
        end do
        call put_reals('coordinates', [3, nodes%n], centre)
        call put_reals('block size', [3, nodes%n], width)
        call put_reals('bounding box', [2, 3, nodes%n], bounds)
        call put_integers('refine level', [nodes%n], nodes%level + 1)
        call put_integers('node type', [nodes%n], kind_of)
        call put_integers('which child', [nodes%n], which)
        call put_integers('processor number', [nodes%n], rank)
        call put_integers('gid', shape(gid), gid)

    contains

        !> The lower corner of the block at `place` of the node's level: the same number from whichever level it is computed.
        pure function corner(place)
            integer, intent(in) :: place(3)
            real(r8) :: corner(3), part(3)

            part = real(place, r8)/real(mesh%tree%roots, r8)
            part(:mesh%dims) = part(:mesh%dims)/2.0_r8**nodes%level(node)
            corner = mesh%lower + part*(mesh%upper - mesh%lower)
        end function corner

        !> Neighbours across the faces, parent, children, counted from 1.
        subroutine connect(links)
            integer, intent(out) :: links(:)
            integer :: place(3), extent(3), side

            links = nobody
            extent = mesh%tree%roots
            extent(:mesh%dims) = extent(:mesh%dims)*2**nodes%level(node)
            do d = 1, mesh%dims
                do side = 1, 2
                    place = nodes%place(:, node)
                    place(d) = place(d) + 2*side - 3
                    if (mesh%tree%periodic(d)) place(d) = modulo(place(d), extent(d))
                    if (place(d) >= 0 .and. place(d) < extent(d)) then
                        links(2*d - 2 + side) = node_at(mesh%tree, nodes, nodes%level(node), place)
                    else
                        links(2*d - 2 + side) = merge(reflecting_side, outflow_side, mesh%boundary(side, d) == reflecting)
                    end if
                end do
            end do
            if (nodes%parent(node) > 0) links(2*mesh%dims + 1) = nodes%parent(node)
            if (nodes%leaf(node) == 0) links(2*mesh%dims + 2:) = nodes%children(:, node)
        end subroutine connect

        subroutine put_reals(name, extent, values)
            character(*), intent(in) :: name
            integer, intent(in) :: extent(:)
            real(r8), intent(in) :: values(*)
            integer :: row_values

            row_values = product(extent(:size(extent) - 1))
            call file%define(name, kind_double, extent, error)
            call file%write_reals(name, 1, nodes%n, row_values, values(:row_values*nodes%n), error)
        end subroutine put_reals

        subroutine put_integers(name, extent, values)
            character(*), intent(in) :: name
            integer, intent(in) :: extent(:), values(*)
            integer :: row_values

            row_values = product(extent(:size(extent) - 1))
            call file%define(name, kind_integer, extent, error)
            call file%write_integers(name, 1, nodes%n, row_values, values(:row_values*nodes%n), error)
        end subroutine put_integers

    end subroutine write_tree

    !> The variables of the file, and space for some of their rows.
    subroutine open_window(mesh, info, window)
        type(mesh_t), intent(in) :: mesh
        type(output_info_t), intent(in) :: info
        type(window_t), intent(out) :: window
        character(name_length) :: all_names(mesh%n_variables)

        call variable_names(mesh%n_variables, info, all_names)
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
        allocate (block(mesh%n_variables, zones(1), zones(2), zones(3)))
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
        allocate (block(mesh%n_variables, zones(1), zones(2), zones(3)))
        allocate (parents(mesh%n_variables, zones(1), zones(2), zones(3), 0:max(0, maxval(nodes%level) - 1)))
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
        real(r8) :: a(half), b(half), width(3), left
        integer :: i, j, k, f, g, h, offset(3)

        a = 0.5_r8
        b = 0.5_r8
        if (mesh%geometry == cylindrical) then
            ! A zone's volume is proportional to the radius of its centre.
            width = mesh%zone_size(level)
            do i = 1, half
                left = mesh%lower(1) + width(1)*(place(1)*block_zones + 2*i - 1.5_r8)
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
