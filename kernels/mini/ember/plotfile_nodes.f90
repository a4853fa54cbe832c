!> The tree in a plotfile: positions and relations of all blocks.
module ember_plotfile_nodes
    use ember_mesh, only: mesh_t, reflecting
    use ember_nodes, only: nodes_t, octant
    use ember_tree, only: tree_t
    use pw_error, only: error_t
    use pw_hdf5, only: file_t, kind_double, kind_integer
    use pw_kinds, only: r8
    implicit none
    private

    integer, parameter :: reflecting_side = -31, outflow_side = -32
    integer, parameter :: nobody = -1               ! no such block

    public :: write_tree

contains

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

    !> Positions and relations of the blocks.
    subroutine write_tree(file, mesh, nodes, error)
        type(file_t), intent(inout) :: file
        type(mesh_t), intent(in) :: mesh
        type(nodes_t), intent(in) :: nodes
        type(error_t), intent(inout) :: error
        real(r8), allocatable :: centre(:, :), width(:, :), bounds(:, :, :)
        integer, allocatable :: kind_of(:), which(:), rank(:), gid(:, :)
        integer :: node

        allocate (centre(3, nodes%n), width(3, nodes%n), bounds(2, 3, nodes%n))
        allocate (kind_of(nodes%n), which(nodes%n), rank(nodes%n), gid(2*mesh%dims + 1 + 2**mesh%dims, nodes%n))
        ! From the last to the first: parents inherit from their first child.
        do node = nodes%n, 1, -1
            bounds(1, :, node) = corner(mesh, nodes%level(node), nodes%place(:, node))
            bounds(2, :, node) = corner(mesh, nodes%level(node), nodes%place(:, node) + 1)
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
            call connect(mesh, nodes, node, gid(:, node))
        end do
        call put_reals(file, 'coordinates', [3, nodes%n], centre, error)
        call put_reals(file, 'block size', [3, nodes%n], width, error)
        call put_reals(file, 'bounding box', [2, 3, nodes%n], bounds, error)
        call put_integers(file, 'refine level', [nodes%n], nodes%level + 1, error)
        call put_integers(file, 'node type', [nodes%n], kind_of, error)
        call put_integers(file, 'which child', [nodes%n], which, error)
        call put_integers(file, 'processor number', [nodes%n], rank, error)
        call put_integers(file, 'gid', shape(gid), gid, error)
    end subroutine write_tree

    !> The lower corner of the block at `place` of a level: the same number from whichever level it is computed.
    pure function corner(mesh, level, place)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: level, place(3)
        real(r8) :: corner(3), part(3)

        part = real(place, r8)/real(mesh%tree%roots, r8)
        part(:mesh%dims) = part(:mesh%dims)/2.0_r8**level
        corner = mesh%lower + part*(mesh%upper - mesh%lower)
    end function corner

    !> A node's neighbours across the faces, parent, children, counted from 1.
    subroutine connect(mesh, nodes, node, links)
        type(mesh_t), intent(in) :: mesh
        type(nodes_t), intent(in) :: nodes
        integer, intent(in) :: node
        integer, intent(out) :: links(:)
        integer :: place(3), extent(3), d, side

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

    !> Write a whole dataset of reals, by rows: the last index.
    subroutine put_reals(file, name, extent, values, error)
        type(file_t), intent(inout) :: file
        character(*), intent(in) :: name
        integer, intent(in) :: extent(:)
        real(r8), intent(in) :: values(*)
        type(error_t), intent(inout) :: error
        integer :: rows

        rows = extent(size(extent))
        call file%define(name, kind_double, extent, error)
        call file%write_reals(name, 1, rows, product(extent)/rows, values(:product(extent)), error)
    end subroutine put_reals

    !> Write a whole dataset of integers, by rows: the last index.
    subroutine put_integers(file, name, extent, values, error)
        type(file_t), intent(inout) :: file
        character(*), intent(in) :: name
        integer, intent(in) :: extent(:), values(*)
        type(error_t), intent(inout) :: error
        integer :: rows

        rows = extent(size(extent))
        call file%define(name, kind_integer, extent, error)
        call file%write_integers(name, 1, rows, product(extent)/rows, values(:product(extent)), error)
    end subroutine put_integers

end module ember_plotfile_nodes
