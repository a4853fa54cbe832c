!> The tree against naive methods: boxes of integers compared pair by pair, on trees that random marks adapt.
program test_tree
    use ember_naive_tree, only: box, extent, naive_key, naive_neighbour, naive_steps, same_tree, touch
    use ember_testing, only: expect, expect_success, failures, random_below
    use ember_tree, only: child, kept, parent, tree_t
    use ember_tree_adapt, only: adapt_tree
    use pw_error, only: error_t
    use pw_kinds, only: i8
    implicit none
    integer :: seen(0:3) = 0, n_adaptions = 0, n_coarsened = 0, n_spread = 0, n_denied = 0, n_partitions = 0
    logical, parameter :: no = .false., yes = .true.

    call random_adaptions(2, [1, 1, 1], [no, no, no], 6)
    call random_adaptions(2, [1, 1, 1], [yes, yes, no], 6)
    call random_adaptions(2, [3, 2, 1], [yes, no, no], 5)
    call random_adaptions(2, [2, 5, 1], [no, yes, no], 4)
    call random_adaptions(3, [1, 1, 1], [no, no, no], 4)
    call random_adaptions(3, [1, 1, 1], [yes, yes, yes], 4)
    call random_adaptions(3, [2, 1, 3], [yes, no, yes], 3)
    call random_adaptions(3, [1, 3, 1], [no, yes, no], 3)
    call known_refinement()
    call siblings_rule()
    call levels_limit()
    call deep_corner(2, [1, 1, 1])
    call deep_corner(3, [1, 1, 1])
    call deep_corner(3, [3, 2, 1])
    call too_deep()
    call broken_restores()

    ! A test that had nothing to examine has failed.
    call expect(all(seen > 0), 'every relation was met', seen)
    call expect(n_adaptions >= 48, 'adaptions were made', [n_adaptions])
    call expect(n_coarsened > 1000 .and. n_spread > 100 .and. n_denied > 100, 'coarsened, refined by nesting, denied', &
                [n_coarsened, n_spread, n_denied])
    call expect(n_partitions > 100, 'partitions were made', [n_partitions])
    if (failures > 0) error stop 'test_tree: failures'
    print '(a,5(i0,a))', 'test_tree: ', sum(seen), ' neighbours, ', n_adaptions, ' adaptions, ', n_coarsened, &
        ' blocks coarsened, ', n_spread, ' refined by nesting, ', n_denied, ' kept by it: right'

contains

    !> Adapt a tree by random marks repeatedly, and compare all its answers with naive ones.
    subroutine random_adaptions(dims, roots, periodic, highest)
        integer, intent(in) :: dims, roots(3), highest
        logical, intent(in) :: periodic(3)
        type(tree_t) :: tree, new, again
        type(error_t) :: error
        integer, allocatable :: mark(:), kind(:), origin(:)
        integer :: round, leaf, draw

        call tree%start(dims, roots, periodic, 1, error)
        call expect_success(error, 'start')
        call expect(tree%n_leaves == product(roots)*2**dims, 'leaves at the start', [tree%n_leaves])
        call check_tree(tree)
        do round = 1, 6
            mark = [(step_of(random_below(10), round), leaf=1, tree%n_leaves)]
            ! Sometimes all except a few are marked for coarsening, so that refusals spread from level to level.
            do leaf = 1, tree%n_leaves
                draw = random_below(25)
                if (mod(round, 3) == 0) mark(leaf) = merge(-1, draw, draw > 1)
                if (all(tree%place(:dims, leaf) == 0) .and. round < 5) mark(leaf) = 1
            end do
            tree%owner = [(leaf, leaf=1, tree%n_leaves)]
            call adapt_tree(tree, mark, 0, highest, new, kind, origin)
            call check_adaption(tree, mark, 0, highest, new, kind, origin)
            n_adaptions = n_adaptions + 1
            tree = new
            call check_tree(tree)
            call check_partitions(tree)
        end do

        ! Refined, and coarsened where it was refined: the same tree.
        mark = [(random_below(2), leaf=1, tree%n_leaves)]
        call adapt_tree(tree, mark, 0, highest + 1, new, kind, origin)
        call expect(new%n_leaves > tree%n_leaves, 'leaves refined', [tree%n_leaves, new%n_leaves])
        mark = merge(-1, 0, kind == child)
        call adapt_tree(new, mark, 0, highest + 1, again, kind, origin)
        call expect(same_tree(tree, again), 'refined and coarsened', [tree%n_leaves, again%n_leaves])

        call again%restore(dims, roots, periodic, tree%level, tree%place, error)
        call expect_success(error, 'restore')
        call expect(same_tree(tree, again), 'restored', [tree%n_leaves, again%n_leaves])
    end subroutine random_adaptions

    !> A mark from a random number from 0 to 9.
    pure integer function step_of(number, round)
        integer, intent(in) :: number, round

        step_of = 0
        if (number < 3) step_of = 1
        if (number > 4 .and. round > 2) step_of = -1
    end function step_of

    !> All that must hold of any tree.
    subroutine check_tree(tree)
        type(tree_t), intent(in) :: tree
        integer :: low(3), high(3), low_b(3), high_b(3), direction(3), a, b, i, j, k, depth, overlaps, jumps
        integer :: relation, leaves(4), n, want_relation, want(4), want_n, wrong_keys, wrong_finds
        integer(i8) :: volume

        depth = maxval(tree%level)
        volume = 0
        overlaps = 0
        jumps = 0
        wrong_keys = 0
        wrong_finds = 0
        do a = 1, tree%n_leaves
            call box(tree, a, depth, low, high)
            volume = volume + product(int(high - low, i8))
            if (tree%key(a) /= naive_key(tree, a)) wrong_keys = wrong_keys + 1
            if (a > 1) then
                if (tree%key(a) <= tree%key(a - 1)) wrong_keys = wrong_keys + 1
            end if
            if (tree%find(tree%level(a), tree%place(:, a)) /= a) wrong_finds = wrong_finds + 1
            do b = 1, tree%n_leaves
                if (b == a) cycle
                call box(tree, b, depth, low_b, high_b)
                if (all(low < high_b .and. low_b < high)) overlaps = overlaps + 1
                if (touch(tree, a, b) .and. abs(tree%level(a) - tree%level(b)) > 1) jumps = jumps + 1
            end do
            do k = merge(-1, 0, tree%dims == 3), merge(1, 0, tree%dims == 3)
                do j = -1, 1
                    do i = -1, 1
                        direction = [i, j, k]
                        call tree%neighbour(a, direction, relation, leaves, n)
                        call naive_neighbour(tree, a, direction, want_relation, want, want_n)
                        seen(want_relation) = seen(want_relation) + 1
                        if (relation == want_relation .and. n == want_n .and. all(leaves(:n) == want(:n))) cycle
                        call expect(no, 'neighbour', [a, direction, relation, want_relation, n, want_n, leaves(:n), want(:want_n)])
                    end do
                end do
            end do
        end do
        call expect(overlaps == 0, 'no leaves overlap', [overlaps])
        call expect(volume == product(int(extent(tree, depth), i8)), 'leaves cover the domain', [tree%n_leaves, depth])
        call expect(wrong_keys == 0, 'keys are right and ascend', [wrong_keys])
        call expect(wrong_finds == 0, 'leaves are found', [wrong_finds])
        call expect(jumps == 0, 'two to one', [jumps])
        call expect(tree%nested() .eqv. jumps == 0, 'nested', [jumps])
    end subroutine check_tree

    !> Compare an adaption with the naive one, and with the meaning of its origins.
    subroutine check_adaption(old, mark, lowest, highest, new, kind, origin)
        type(tree_t), intent(in) :: old, new
        integer, intent(in) :: mark(:), lowest, highest, kind(:), origin(:)
        integer, allocatable :: step(:)
        integer :: a, b, c, n, spread_here, denied_here, want_level, want_place(3)

        n = 2**old%dims
        call naive_steps(old, mark, lowest, highest, step, spread_here, denied_here)
        n_spread = n_spread + spread_here
        n_denied = n_denied + denied_here
        n_coarsened = n_coarsened + count(step < 0)
        b = 0
        a = 1
        do while (a <= old%n_leaves)
            do c = 0, merge(n, 1, step(a) > 0) - 1
                b = b + 1
                if (b > new%n_leaves) exit
                want_level = old%level(a) + step(a)
                want_place = old%place(:, a)
                if (step(a) > 0) then
                    want_place(:old%dims) = 2*want_place(:old%dims)
                    want_place = want_place + [mod(c, 2), mod(c/2, 2), c/4]
                else if (step(a) < 0) then
                    want_place(:old%dims) = want_place(:old%dims)/2
                end if
                if (new%level(b) /= want_level .or. any(new%place(:, b) /= want_place)) then
                    call expect(no, 'adapted leaf', [b, new%level(b), want_level, new%place(:, b), want_place])
                    return
                end if
                call expect(kind(b) == merge(child, merge(parent, kept, step(a) < 0), step(a) > 0) .and. origin(b) == a .and. &
                            new%owner(b) == old%owner(a), 'origin', [b, kind(b), origin(b), a, step(a)])
            end do
            a = a + merge(n, 1, step(a) < 0)
        end do
        call expect(b == new%n_leaves .and. size(kind) == b .and. size(origin) == b, 'leaves of the adapted tree', &
                    [b, new%n_leaves, size(kind), size(origin)])
    end subroutine check_adaption

    !> Contiguous stretches of equal count, for any number of ranks.
    subroutine check_partitions(tree)
        type(tree_t), intent(in) :: tree
        integer, allocatable :: owner(:), share(:)
        integer :: ranks, r

        do ranks = 1, min(tree%n_leaves + 2, 40)
            call tree%partition(ranks, owner)
            n_partitions = n_partitions + 1
            call expect(size(owner) == tree%n_leaves .and. all(owner >= 0 .and. owner < ranks), 'owners', [ranks, tree%n_leaves])
            call expect(all(owner(2:) >= owner(:tree%n_leaves - 1)), 'stretches', [ranks, tree%n_leaves])
            share = [(count(owner == r), r=0, ranks - 1)]
            call expect(maxval(share) - minval(share) <= 1, 'shares', [ranks, maxval(share), minval(share)])
        end do
    end subroutine check_partitions

    !> Two refinements with counts by hand: of 4 x 4 blocks one, then the child that touches three coarse ones.
    subroutine known_refinement()
        type(tree_t) :: tree, new
        type(error_t) :: error
        integer, allocatable :: mark(:), kind(:), origin(:)
        integer :: corner(3)

        call tree%start(2, [1, 1, 1], [no, no, no], 2, error)
        call expect(tree%n_leaves == 16, '4 x 4 blocks', [tree%n_leaves])
        call expect(all(tree%place(1, :4) == [0, 1, 0, 1]) .and. all(tree%place(2, :4) == [0, 0, 1, 1]), 'Morton order', &
                    [tree%place(:, 1), tree%place(:, 2), tree%place(:, 3), tree%place(:, 4)])
        allocate (mark(16), source=0)
        mark(tree%find(2, [0, 0, 0])) = 1
        call adapt_tree(tree, mark, 0, 4, new, kind, origin)
        call expect(new%n_leaves == 19, 'one refined', [new%n_leaves])
        tree = new
        deallocate (mark)
        allocate (mark(19), source=0)
        mark(tree%find(3, [1, 1, 0])) = 1
        call adapt_tree(tree, mark, 0, 4, new, kind, origin)
        call expect(new%n_leaves == 31, 'three more by nesting', [new%n_leaves])
        corner = [1, 1, 0]
        call expect(new%level(new%find(2, corner)) == 3, 'refined over the corner', [new%level(new%find(2, corner))])
        ! In a periodic domain the first block's refinement extends to the opposite corner.
        call tree%start(2, [2, 2, 1], [yes, yes, no], 0, error)
        mark = [1, 0, 0, 0]
        call adapt_tree(tree, mark, 0, 4, new, kind, origin)
        mark = [1, 0, 0, 0, 0, 0, 0]
        tree = new
        call adapt_tree(tree, mark, 0, 4, new, kind, origin)
        call expect(new%n_leaves == 19, 'three by nesting round the ends', [new%n_leaves])
    end subroutine known_refinement

    !> One sibling that stays keeps all; only all together are coarsened.
    subroutine siblings_rule()
        type(tree_t) :: tree, new
        type(error_t) :: error
        integer, allocatable :: mark(:), kind(:), origin(:)
        integer :: stays

        call tree%start(3, [1, 1, 1], [no, no, no], 1, error)
        allocate (mark(8))
        do stays = 1, 8
            mark = -1
            mark(stays) = 0
            call adapt_tree(tree, mark, 0, 3, new, kind, origin)
            call expect(same_tree(tree, new) .and. all(kind == kept), 'a sibling that stays', [stays, new%n_leaves])
        end do
        mark = -1
        call adapt_tree(tree, mark, 1, 3, new, kind, origin)
        call expect(same_tree(tree, new), 'not below the lowest level', [new%n_leaves])
        call adapt_tree(tree, mark, 0, 3, new, kind, origin)
        call expect(new%n_leaves == 1 .and. all(kind == parent) .and. all(origin == 1), 'siblings go together', [new%n_leaves])
        tree = new
        call adapt_tree(tree, [-1], 0, 3, new, kind, origin)
        call expect(same_tree(tree, new), 'a root cannot coarsen', [new%n_leaves])
    end subroutine siblings_rule

    !> No leaf is refined beyond the highest level.
    subroutine levels_limit()
        type(tree_t) :: tree, new
        type(error_t) :: error
        integer, allocatable :: mark(:), kind(:), origin(:)
        integer :: leaf

        call tree%start(2, [2, 1, 1], [no, no, no], 3, error)
        mark = [(1, leaf=1, tree%n_leaves)]
        call adapt_tree(tree, mark, 0, 3, new, kind, origin)
        call expect(same_tree(tree, new) .and. all(kind == kept), 'not above the highest level', [new%n_leaves])
    end subroutine levels_limit

    !> Refine the last leaf up to the range of keys.
    subroutine deep_corner(dims, roots)
        integer, intent(in) :: dims, roots(3)
        type(tree_t) :: tree, new
        type(error_t) :: error
        integer, allocatable :: mark(:), kind(:), origin(:)
        integer :: level

        call tree%start(dims, roots, [no, no, no], 0, error)
        do level = 1, tree%deepest + 1
            if (allocated(mark)) deallocate (mark)
            allocate (mark(tree%n_leaves), source=0)
            mark(tree%n_leaves) = 1
            call adapt_tree(tree, mark, 0, 100, new, kind, origin)
            tree = new
        end do
        call expect(tree%level(tree%n_leaves) == tree%deepest, 'the deepest level', [tree%level(tree%n_leaves), tree%deepest])
        call expect(all(tree%key >= 0) .and. all(tree%key(2:) > tree%key(:tree%n_leaves - 1)), 'deep keys ascend', [tree%n_leaves])
        call expect(tree%nested(), 'deep and nested', [tree%n_leaves])
        call expect(all([(tree%find(tree%level(level), tree%place(:, level)) == level, level=1, tree%n_leaves)]), &
                    'deep leaves found', [tree%n_leaves])
        call new%restore(dims, roots, [no, no, no], tree%level, tree%place, error)
        call expect(same_tree(tree, new), 'a deep tree restored', [new%n_leaves])
    end subroutine deep_corner

    !> Levels beyond the range of keys are refused, the last one inside is not.
    subroutine too_deep()
        type(tree_t) :: tree
        type(error_t) :: error

        call tree%start(2, [1, 1, 1], [no, no, no], 22, error)
        call expect_failed(error, 'level 22 of one root', [tree%deepest])
        call tree%start(3, [5, 1, 1], [no, no, no], 19, error)
        call expect_failed(error, 'level 19 of five roots', [tree%deepest])
        call tree%check_level(18, error)
        call expect(.not. error%failed() .and. tree%deepest == 18, 'level 18 of five roots', [tree%deepest])
        call tree%start(2, [2**21, 1, 1], [no, no, no], 1, error)
        call expect_failed(error, 'level 1 of 2**21 roots', [tree%deepest])
        call tree%start(3, [1, 1, 1], [no, no, no], 15, error)
        call expect_failed(error, '2**45 leaves', [tree%deepest])
        call tree%start(3, [1, 1, 1], [no, no, no], -1, error)
        call expect_failed(error, 'level -1', [tree%deepest])
        call tree%start(2, [1, 1, 2], [no, no, no], 1, error)
        call expect_failed(error, 'a third direction in 2-d', [tree%deepest])
        call tree%start(4, [1, 1, 1], [no, no, no], 1, error)
        call expect_failed(error, 'four dimensions', [tree%deepest])
    end subroutine too_deep

    !> Lists of leaves that are not a tree.
    subroutine broken_restores()
        type(tree_t) :: tree, new
        type(error_t) :: error
        integer, allocatable :: level(:), place(:, :), kind(:), origin(:)
        integer :: n

        call tree%start(2, [2, 1, 1], [no, no, no], 1, error)
        n = tree%n_leaves
        level = tree%level
        place = tree%place
        call new%restore(2, [2, 1, 1], [no, no, no], level(:n - 1), place(:, :n - 1), error)
        call expect_failed(error, 'a leaf too few', [n])
        call new%restore(2, [2, 1, 1], [no, no, no], [level(2:), level(1)], reshape([place(:, 2:), place(:, 1)], [3, n]), error)
        call expect_failed(error, 'leaves out of order', [n])
        call new%restore(2, [2, 1, 1], [no, no, no], [0, level], reshape([place(:, 1), place], [3, n + 1]), error)
        call expect_failed(error, 'leaves that overlap', [n])
        place(1, n) = 4
        call new%restore(2, [2, 1, 1], [no, no, no], level, place, error)
        call expect_failed(error, 'a leaf outside', [n])
        ! Its last leaf twice refined and nothing else: complete, not nested.
        call tree%start(2, [2, 1, 1], [no, no, no], 0, error)
        call adapt_tree(tree, [1, 0], 0, 1, new, kind, origin)
        level = [new%level(:1), 2, 2, 2, 2, new%level(3:)]
        place = reshape([new%place(:, :1), 2, 0, 0, 3, 0, 0, 2, 1, 0, 3, 1, 0, new%place(:, 3:)], [3, 8])
        call new%restore(2, [2, 1, 1], [no, no, no], level, place, error)
        call expect_failed(error, 'leaves not nested', [size(level)])
    end subroutine broken_restores

    !> A refusal with a message, after which `error` can be reused.
    subroutine expect_failed(error, label, values)
        type(error_t), intent(inout) :: error
        character(*), intent(in) :: label
        integer, intent(in) :: values(:)

        call expect(error%failed(), 'refused: '//label, values)
        if (error%failed()) call expect(len(error%message) > 0 .and. len(error%remedy) > 0, 'explained: '//label, values)
        error = error_t()
    end subroutine expect_failed

end program test_tree
