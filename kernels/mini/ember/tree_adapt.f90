!> Refinement and coarsening of a tree.
module ember_tree_adapt
    use ember_tree, only: child, coarser, down, equal, finer, kept, key_of, make_room, parent, tree_t, up
    implicit none
    private

    public :: adapt_tree

contains

    !> The tree `new` that `mark(leaf)` requests: 1 refine, -1 coarsen if possible, 0 keep; levels stay within `lowest` to
    !> `highest`. Refinement spreads as nesting requires. Siblings coarsen only if all of them are leaves, are marked and
    !> stay nested. `origin_kind` and `origin` give the origin of each new leaf: kept or child of the old leaf `origin`, or
    !> parent of 2**dims old leaves, the first of which is `origin`. It has the owner of that old leaf.
    subroutine adapt_tree(self, mark, lowest, highest, new, origin_kind, origin)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: mark(:), lowest, highest
        type(tree_t), intent(out) :: new
        integer, allocatable, intent(out) :: origin_kind(:), origin(:)
        integer, allocatable :: step(:)
        integer :: leaf, at, c, n_children

        n_children = 2**self%dims
        step = mark(:self%n_leaves)
        where (step > 0 .and. self%level >= min(highest, self%deepest)) step = 0
        where (step < 0 .and. self%level <= max(lowest, 0)) step = 0
        call spread_refinement(self, step)
        call settle_coarsening(self, step)

        new%dims = self%dims
        new%roots = self%roots
        new%periodic = self%periodic
        new%deepest = self%deepest
        call make_room(new, self%n_leaves + (n_children - 1)*(count(step > 0) - count(step < 0)/n_children))
        allocate (origin_kind(new%n_leaves), origin(new%n_leaves))
        at = 0
        leaf = 1
        do while (leaf <= self%n_leaves)
            select case (step(leaf))
            case (1:)
                do c = 0, n_children - 1
                    call add(self%level(leaf) + 1, down(self, self%place(:, leaf), c), child)
                end do
                leaf = leaf + 1
            case (:-1)
                call add(self%level(leaf) - 1, up(self, self%place(:, leaf)), parent)
                leaf = leaf + n_children
            case default
                call add(self%level(leaf), self%place(:, leaf), kept)
                leaf = leaf + 1
            end select
        end do

    contains

        !> Append a leaf to the new tree.
        subroutine add(level, place, kind)
            integer, intent(in) :: level, place(3), kind

            at = at + 1
            new%level(at) = level
            new%place(:, at) = place
            new%key(at) = key_of(self, level, place)
            new%owner(at) = self%owner(leaf)
            origin_kind(at) = kind
            origin(at) = leaf
        end subroutine add

    end subroutine adapt_tree

    !> Also refine leaves that would be two levels coarser than a neighbour. These are coarser neighbours of refined leaves,
    !> so that each leaf is examined once.
    subroutine spread_refinement(self, step)
        class(tree_t), intent(in) :: self
        integer, intent(inout) :: step(:)
        integer, allocatable :: stack(:)
        integer :: n_stack, leaf, i, j, k, relation, leaves(4), n

        allocate (stack(self%n_leaves))
        n_stack = 0
        do leaf = 1, self%n_leaves
            if (step(leaf) <= 0) cycle
            n_stack = n_stack + 1
            stack(n_stack) = leaf
        end do
        do while (n_stack > 0)
            leaf = stack(n_stack)
            n_stack = n_stack - 1
            do k = merge(-1, 0, self%dims == 3), merge(1, 0, self%dims == 3)
                do j = -1, 1
                    do i = -1, 1
                        call self%neighbour(leaf, [i, j, k], relation, leaves, n)
                        if (relation /= coarser) cycle
                        if (step(leaves(1)) > 0) cycle
                        step(leaves(1)) = 1
                        n_stack = n_stack + 1
                        stack(n_stack) = leaves(1)
                    end do
                end do
            end do
        end do
    end subroutine spread_refinement

    !> Keep marks to coarsen (-1) only where coarsening is possible. That depends on refinement and on the next
    !> finer level: one pass from the highest level down determines it.
    subroutine settle_coarsening(self, step)
        class(tree_t), intent(in) :: self
        integer, intent(inout) :: step(:)
        integer, allocatable :: first(:)
        logical, allocatable :: candidate(:)
        integer :: leaf, g, level, n_children

        n_children = 2**self%dims
        allocate (candidate(self%n_leaves), source=.false.)
        do leaf = 1, self%n_leaves
            if (step(leaf) >= 0) cycle
            if (.not. self%siblings(leaf)) cycle
            candidate(leaf) = all(step(leaf:leaf + n_children - 1) < 0)
        end do
        first = pack([(leaf, leaf=1, self%n_leaves)], candidate)
        where (step < 0) step = 0
        ! Groups of siblings count as coarsened until the opposite is shown.
        do g = 1, size(first)
            step(first(g):first(g) + n_children - 1) = -1
        end do
        do level = maxval(self%level), 1, -1
            do g = 1, size(first)
                if (self%level(first(g)) /= level) cycle
                if (.not. may_coarsen(self, step, first(g))) step(first(g):first(g) + n_children - 1) = 0
            end do
        end do
    end subroutine settle_coarsening

    !> Whether no block that touches the siblings from `first` will be two levels finer than their parent.
    pure logical function may_coarsen(self, step, first)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: step(:), first
        integer :: leaf, i, j, k, relation, leaves(4), n

        may_coarsen = .false.
        do leaf = first, first + 2**self%dims - 1
            do k = merge(-1, 0, self%dims == 3), merge(1, 0, self%dims == 3)
                do j = -1, 1
                    do i = -1, 1
                        call self%neighbour(leaf, [i, j, k], relation, leaves, n)
                        if (relation == equal) then
                            if (step(leaves(1)) > 0) return
                        else if (relation == finer) then
                            if (any(step(leaves(:n)) >= 0)) return
                        end if
                    end do
                end do
            end do
        end do
        may_coarsen = .true.
    end function may_coarsen

end module ember_tree_adapt
