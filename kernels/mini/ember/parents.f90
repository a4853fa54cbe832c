!> Parents with data, as in PARAMESH: blocks of the container for the parents whose leaves are all on one rank. Before guard
!> cells are filled, the means of their children are stored in them; then a leaf next to a finer block copies its guard cells
!> from that block's parent (P. MacNeice et al., Comput. Phys. Commun. 126, 2000, p. 330). The values are those of means that
!> go to the guard cells directly.
module ember_parents
    use ember_mesh, only: mesh_t
    use ember_nodes, only: list_nodes, nodes_t
    use ember_octants, only: octant_box
    use ember_restriction, only: restrict_to
    use ember_tree, only: tree_t
    implicit none
    private

    integer, parameter :: nobody = -1    ! several ranks

    type :: parent_t
        integer :: level = 0, place(3) = 0, slot = 0
        integer :: child(8) = 0          !< their slots
    end type parent_t

    type, public :: parents_t
        integer :: n = 0
        integer, allocatable :: slot_above(:)              !< (leaf) the slot of its parent, 0: without data
        type(parent_t), allocatable, private :: parent(:)  !< from the deepest level to the roots
    contains
        procedure :: build
        procedure :: fill
    end type parents_t

    public :: slots_needed

contains

    !> Slots that the blocks of `tree` need on each rank, from 0: of its leaves, and with `parents` of parents with data.
    function slots_needed(tree, parents, n_ranks) result(needed)
        type(tree_t), intent(in) :: tree
        logical, intent(in) :: parents
        integer, intent(in) :: n_ranks
        integer :: needed(0:n_ranks - 1), leaf, node
        type(nodes_t) :: nodes
        integer, allocatable :: holder(:)

        needed = 0
        do leaf = 1, tree%n_leaves
            needed(tree%owner(leaf)) = needed(tree%owner(leaf)) + 1
        end do
        if (.not. parents) return
        call list_nodes(tree, nodes)
        holder = holders(tree, nodes)
        do node = 1, nodes%n
            if (nodes%leaf(node) > 0 .or. holder(node) == nobody) cycle
            needed(holder(node)) = needed(holder(node)) + 1
        end do
    end function slots_needed

    !> The rank that has all leaves of each node.
    pure function holders(tree, nodes) result(holder)
        type(tree_t), intent(in) :: tree
        type(nodes_t), intent(in) :: nodes
        integer :: holder(nodes%n), node

        ! Children follow their parents.
        do node = nodes%n, 1, -1
            if (nodes%leaf(node) > 0) then
                holder(node) = tree%owner(nodes%leaf(node))
            else
                holder(node) = holder(nodes%children(1, node))
                if (any(holder(nodes%children(:, node)) /= holder(node))) holder(node) = nobody
            end if
        end do
    end function holders

    !> Take slots for the parents on this rank, if the mesh has parents with data, and list them: after each change of the
    !> tree or its owners.
    subroutine build(self, mesh)
        class(parents_t), intent(inout) :: self
        type(mesh_t), intent(inout) :: mesh
        type(nodes_t) :: nodes
        integer, allocatable :: holder(:), slot(:)
        integer :: node, level, leaf

        self%n = 0
        if (allocated(self%parent)) deallocate (self%parent, self%slot_above)
        call mesh%release_parents()
        allocate (self%slot_above(mesh%tree%n_leaves), source=0)
        if (.not. mesh%parents) then
            allocate (self%parent(0))
            return
        end if
        call list_nodes(mesh%tree, nodes)
        holder = holders(mesh%tree, nodes)
        allocate (slot(nodes%n), source=0)
        allocate (self%parent(count(holder == mesh%rank .and. nodes%leaf == 0)))
        do node = 1, nodes%n
            if (nodes%leaf(node) > 0) slot(node) = mesh%slot(nodes%leaf(node))
        end do
        do level = maxval(nodes%level) - 1, 0, -1
            do node = 1, nodes%n
                if (nodes%level(node) /= level .or. nodes%leaf(node) > 0 .or. holder(node) /= mesh%rank) cycle
                slot(node) = mesh%take_parent()
                self%n = self%n + 1
                self%parent(self%n) = parent_t(level, nodes%place(:, node), slot(node))
                self%parent(self%n)%child(:2**mesh%dims) = slot(nodes%children(:, node))
            end do
        end do
        do leaf = 1, mesh%tree%n_leaves
            node = nodes%parent(nodes%of_leaf(leaf))
            if (node > 0) self%slot_above(leaf) = slot(node)
        end do
    end subroutine build

    !> Store the means of their children in all parents.
    subroutine fill(self, mesh)
        class(parents_t), intent(in) :: self
        type(mesh_t), intent(inout) :: mesh
        integer :: first, last, p

        last = 0
        do while (last < self%n)
            ! One level after the other: the parents of a level need those of the next one.
            first = last + 1
            last = count(self%parent%level >= self%parent(first)%level)
            !$omp parallel do schedule(guided)
            do p = first, last
                call restrict_children(mesh, self%parent(p))
            end do
        end do
    end subroutine fill

    subroutine restrict_children(mesh, parent)
        type(mesh_t), intent(inout) :: mesh
        type(parent_t), intent(in) :: parent
        integer :: c, place(3)

        do c = 0, 2**mesh%dims - 1
            place = 2*parent%place + [ibits(c, 0, 1), ibits(c, 1, 1), ibits(c, 2, 1)]
            call restrict_to(mesh, parent%child(c + 1), mesh%volumes_at(parent%level + 1, place), octant_box(mesh, 0), &
                             parent%slot, octant_box(mesh, c))
        end do
    end subroutine restrict_children

end module ember_parents
