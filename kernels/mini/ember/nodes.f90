!> All blocks of a tree, parents too, in depth-first Morton order.
module ember_nodes
    use ember_tree, only: tree_t
    implicit none
    private

    !> All blocks of the tree, parents before children, in depth-first Morton order.
    type, public :: nodes_t
        integer :: n = 0
        integer, allocatable :: level(:), place(:, :)
        integer, allocatable :: leaf(:)             !< 0: a parent
        integer, allocatable :: parent(:)           !< 0: a root
        integer, allocatable :: children(:, :)      !< 0: a leaf
        integer, allocatable :: of_leaf(:)          !< (leaf) its node
    end type nodes_t

    public :: list_nodes, octant

contains

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

end module ember_nodes
