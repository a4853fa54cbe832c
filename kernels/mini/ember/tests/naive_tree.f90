!> Shared by the tests of ember: answers about trees by naive methods, from boxes of integers that are compared pair by pair.
module ember_naive_tree
    use ember_testing, only: expect
    use ember_tree, only: coarser, equal, finer, outside, tree_t
    use pw_kinds, only: i8
    implicit none
    private

    public :: box, extent, naive_key, naive_neighbour, naive_steps, same_tree, touch

contains

    !> The neighbours by examining all leaves.
    subroutine naive_neighbour(tree, leaf, direction, relation, leaves, n)
        type(tree_t), intent(in) :: tree
        integer, intent(in) :: leaf, direction(3)
        integer, intent(out) :: relation, leaves(4), n
        integer :: low(3), high(3), low_b(3), high_b(3), whole(3), depth, b, m, swap
        logical :: touches

        depth = maxval(tree%level)
        whole = extent(tree, depth)
        call box(tree, leaf, depth, low, high)
        high = high - low
        low = low + direction*high
        where (tree%periodic) low = modulo(low, whole)
        high = low + high
        relation = outside
        leaves = 0
        n = 0
        if (any(low < 0 .or. high > whole)) return
        do b = 1, tree%n_leaves
            call box(tree, b, depth, low_b, high_b)
            if (.not. all(low < high_b .and. low_b < high)) cycle
            touches = .true.
            if (tree%level(b) > tree%level(leaf)) touches = all((direction >= 0 .or. high_b == high) .and. &
                                                                (direction <= 0 .or. low_b == low))
            if (.not. touches) cycle
            relation = equal
            if (tree%level(b) < tree%level(leaf)) relation = coarser
            if (tree%level(b) > tree%level(leaf)) relation = finer
            ! At most 4 if levels are correct; direction zero returns the leaf itself.
            if (n == 4) then
                call expect(.false., 'four neighbours at most', [leaf, direction])
                return
            end if
            n = n + 1
            leaves(n) = b
        end do
        do b = 1, n
            do m = 1, n - 1
                call box(tree, leaves(m), depth, low, high)
                call box(tree, leaves(m + 1), depth, low_b, high_b)
                if (low(1) + whole(1)*(low(2) + whole(2)*low(3)) < low_b(1) + whole(1)*(low_b(2) + whole(2)*low_b(3))) cycle
                swap = leaves(m)
                leaves(m) = leaves(m + 1)
                leaves(m + 1) = swap
            end do
        end do
    end subroutine naive_neighbour

    !> What the leaves of a tree do with marks: 1 refined, -1 coarsened, 0 kept, by fixed-point iteration over all pairs.
    !> `n_spread` leaves are refined because of a neighbour, `n_denied` times siblings cannot be coarsened because of one.
    subroutine naive_steps(old, mark, lowest, highest, step, n_spread, n_denied)
        type(tree_t), intent(in) :: old
        integer, intent(in) :: mark(:), lowest, highest
        integer, allocatable, intent(out) :: step(:)
        integer, intent(out) :: n_spread, n_denied
        logical, allocatable :: touching(:, :)
        integer :: a, b, n, group
        logical :: changed

        n = 2**old%dims
        allocate (step, source=mark)
        n_spread = 0
        n_denied = 0
        where (step > 0 .and. old%level >= highest) step = 0
        where (step < 0 .and. old%level <= lowest) step = 0
        allocate (touching(old%n_leaves, old%n_leaves))
        do a = 1, old%n_leaves
            do b = 1, old%n_leaves
                touching(a, b) = touch(old, a, b)
            end do
        end do
        changed = .true.
        do while (changed)
            changed = .false.
            do a = 1, old%n_leaves
                if (step(a) > 0) cycle
                if (.not. any(touching(:, a) .and. old%level + step > old%level(a) + 1 .and. step > 0)) cycle
                step(a) = 1
                n_spread = n_spread + 1
                changed = .true.
            end do
        end do
        changed = .true.
        do while (changed)
            changed = .false.
            do a = 1, old%n_leaves
                if (step(a) >= 0) cycle
                ! The siblings are those leaves whose parent has the same place.
                group = 0
                do b = 1, old%n_leaves
                    if (old%level(b) /= old%level(a) .or. step(b) >= 0) cycle
                    if (all(old%place(:old%dims, b)/2 == old%place(:old%dims, a)/2)) group = group + 1
                end do
                if (group == n .and. .not. any(touching(:, a) .and. old%level + step > old%level(a))) cycle
                step(a) = 0
                if (group == n) n_denied = n_denied + 1
                changed = .true.
            end do
        end do
    end subroutine naive_steps

    !> Whether two trees have the same leaves.
    logical function same_tree(a, b)
        type(tree_t), intent(in) :: a, b

        same_tree = a%n_leaves == b%n_leaves .and. a%dims == b%dims .and. all(a%roots == b%roots)
        if (same_tree) same_tree = all(a%periodic .eqv. b%periodic)
        if (same_tree) same_tree = all(a%level == b%level) .and. all(a%place == b%place) .and. all(a%key == b%key)
    end function same_tree

    !> Whether two leaves share a point, through the ends of the domain too where it is periodic.
    logical function touch(tree, a, b)
        type(tree_t), intent(in) :: tree
        integer, intent(in) :: a, b
        integer :: low(3), high(3), low_b(3), high_b(3), whole(3), d, depth
        logical :: meets(3)

        depth = max(tree%level(a), tree%level(b))
        whole = extent(tree, depth)
        call box(tree, a, depth, low, high)
        call box(tree, b, depth, low_b, high_b)
        meets = low <= high_b .and. low_b <= high
        do d = 1, 3
            if (.not. tree%periodic(d)) cycle
            meets(d) = meets(d) .or. (low(d) <= high_b(d) - whole(d) .and. low_b(d) - whole(d) <= high(d)) .or. &
                       (low(d) <= high_b(d) + whole(d) .and. low_b(d) + whole(d) <= high(d))
        end do
        touch = all(meets)
    end function touch

    !> The blocks of level `depth` that a leaf covers: from `low` to before `high`.
    subroutine box(tree, leaf, depth, low, high)
        type(tree_t), intent(in) :: tree
        integer, intent(in) :: leaf, depth
        integer, intent(out) :: low(3), high(3)
        integer :: width(3)

        width = 1
        width(:tree%dims) = 2**(depth - tree%level(leaf))
        low = tree%place(:, leaf)*width
        high = low + width
    end subroutine box

    !> Blocks of level `depth` in each direction.
    function extent(tree, depth)
        type(tree_t), intent(in) :: tree
        integer, intent(in) :: depth
        integer :: extent(3)

        extent = tree%roots
        extent(:tree%dims) = extent(:tree%dims)*2**depth
    end function extent

    !> A leaf's key, bit by bit.
    integer(i8) function naive_key(tree, leaf) result(key)
        type(tree_t), intent(in) :: tree
        integer, intent(in) :: leaf
        integer :: bit, d, corner

        key = 0
        do d = 1, tree%dims
            corner = tree%place(d, leaf)*2**(tree%deepest - tree%level(leaf))
            do bit = 0, 20
                if (btest(corner, bit)) key = ibset(key, bit*tree%dims + d - 1)
            end do
        end do
    end function naive_key

end module ember_naive_tree
