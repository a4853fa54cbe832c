!> The tree of blocks: its leaves, their neighbours, and their refinement, coarsening and distribution over ranks.
!>
!> Integers only; other modules hold the data. Leaves are in Morton order, ascending by `key`: the bits of the lower corner's
!> position among the blocks of the deepest possible level, the first direction's lowest (G. M. Morton, A computer oriented
!> geodetic data base and a new technique in file sequencing, IBM 1966). Positions count over all roots, so that roots need
!> no separate numbers. A block covers an aligned range of keys: bisection locates the leaf that contains a point.
!> Blocks that touch by a face, an edge or a corner differ by at most one level.
module ember_tree
    use ember_morton, only: apart_by_1, apart_by_2, octant
    use pw_error, only: error_t, exit_system, exit_usage
    use pw_kinds, only: i8, r8
    use pw_text, only: to_text
    implicit none
    private

    !> Neighbours beyond a side of a leaf.
    integer, parameter, public :: outside = 0, equal = 1, finer = 2, coarser = 3
    !> Origins of a leaf of an adapted tree.
    integer, parameter, public :: kept = 1, child = 2, parent = 3

    integer, parameter :: key_bits = 21   !< of a position in one direction: three of them fit into a key

    type, public :: tree_t
        integer :: dims = 3
        integer :: roots(3) = 1                    !< blocks of level 0 in each direction
        logical :: periodic(3) = .false.
        integer :: n_leaves = 0
        integer :: deepest = key_bits              !< no leaf can have a higher level
        integer, allocatable :: level(:)           !< (leaf)
        integer, allocatable :: place(:, :)        !< (3, leaf) position among the blocks of its level, from 0
        integer(i8), allocatable :: key(:)         !< (leaf) ascending
        integer, allocatable :: owner(:)           !< (leaf) rank, from 0
    contains
        procedure :: start
        procedure :: restore
        procedure :: check_level
        procedure :: find
        procedure :: neighbour
        procedure :: siblings
        procedure :: partition
        procedure :: nested
    end type tree_t

    public :: down, key_of, make_room, up   ! for ember_tree_adapt

contains

    !> Make all blocks of one `level` the leaves, owned by rank 0, of a domain of `roots` blocks of level 0; `periodic`
    !> marks the periodic directions. A 2-d tree has one root in the third direction. Errors: exit_usage if a
    !> number is invalid or the level is too deep, exit_system if memory runs out.
    subroutine start(self, dims, roots, periodic, level, error)
        class(tree_t), intent(out) :: self
        integer, intent(in) :: dims, roots(3), level
        logical, intent(in) :: periodic(3)
        type(error_t), intent(inout) :: error
        integer :: extent(3), n, size, status

        call describe(self, dims, roots, periodic, error)
        if (error%failed()) return
        call self%check_level(level, error)
        if (error%failed()) return
        extent = blocks(self, level)
        if (product(int(extent(:2), i8)) > huge(n)/extent(3)) then
            call error%raise(exit_usage, 'level '//to_text(level)//' of a mesh of '//roots_text(roots)//' root blocks has more '// &
                             'than '//to_text(huge(n))//' blocks', 'tree%start', 'start from a lower level')
            return
        end if
        n = product(extent)
        call make_room(self, n, status)
        if (status /= 0) then
            call error%raise(exit_system, 'no memory for a tree of '//to_text(n)//' leaves', 'tree%start', &
                             'start from a lower level')
            return
        end if
        self%level = level
        self%owner = 0
        size = 1
        do while (size < maxval(extent))
            size = 2*size
        end do
        n = 0
        call visit([0, 0, 0], size)

    contains

        !> Store the blocks inside the cube of `size` blocks at `corner`, in Morton order.
        recursive subroutine visit(corner, size)
            integer, intent(in) :: corner(3), size
            integer :: c

            if (any(corner >= extent)) return
            if (size == 1) then
                n = n + 1
                self%place(:, n) = corner
                self%key(n) = key_of(self, level, corner)
                return
            end if
            do c = 0, 2**dims - 1
                call visit(corner + size/2*octant(c), size/2)
            end do
        end subroutine visit

    end subroutine start

    !> Build a tree from the leaves with `level(:)` and `place(3, :)`, as in a checkpoint, owned by rank 0. Errors
    !> (exit_usage) if they are not in Morton order, do not cover the domain exactly once or are not nested.
    subroutine restore(self, dims, roots, periodic, level, place, error)
        class(tree_t), intent(out) :: self
        integer, intent(in) :: dims, roots(3), level(:), place(:, :)
        logical, intent(in) :: periodic(3)
        type(error_t), intent(inout) :: error
        integer :: at_level(0:key_bits), leaf, l, status
        integer(i8) :: last
        character(:), allocatable :: fault

        call describe(self, dims, roots, periodic, error)
        if (error%failed()) return
        call self%check_level(max(0, maxval(level)), error)
        if (error%failed()) return
        call make_room(self, size(level), status)
        if (status /= 0) then
            call error%raise(exit_system, 'no memory for a tree of '//to_text(size(level))//' leaves', 'tree%restore', &
                             'use a machine with more memory')
            return
        end if
        self%level = level
        self%place = place
        self%owner = 0
        at_level = 0
        last = -1
        do leaf = 1, self%n_leaves
            call place_leaf(self, leaf, last, fault)
            if (len(fault) > 0) then
                call error%raise(exit_usage, 'leaf '//to_text(leaf)//' of a tree has '//fault, 'tree%restore', &
                                 'use another checkpoint')
                return
            end if
            at_level(level(leaf)) = at_level(level(leaf)) + 1
        end do
        ! The covered part, in blocks of ever lower levels; it cannot exceed the domain.
        do l = self%deepest, 1, -1
            at_level(l - 1) = at_level(l - 1) + at_level(l)/2**dims
        end do
        if (real(at_level(0), r8) < product(real(roots, r8))) then
            call error%raise(exit_usage, 'the '//to_text(self%n_leaves)//' leaves of a tree do not cover its domain', &
                             'tree%restore', 'use another checkpoint')
        else if (.not. self%nested()) then
            call error%raise(exit_usage, 'leaves of a tree that touch differ by more than one level', 'tree%restore', &
                             'use another checkpoint')
        end if
    end subroutine restore

    !> Set the key of a leaf from its level and place. `last`: the last key covered before, then by this leaf. `fault`: why the
    !> leaf is impossible.
    pure subroutine place_leaf(self, leaf, last, fault)
        class(tree_t), intent(inout) :: self
        integer, intent(in) :: leaf
        integer(i8), intent(inout) :: last
        character(:), allocatable, intent(out) :: fault

        fault = ''
        associate (level => self%level(leaf), place => self%place(:, leaf))
            if (level < 0) then
                fault = 'a negative level'
            else if (any(place < 0) .or. any(place >= blocks(self, level))) then
                fault = 'a place outside of the domain'
            else
                self%key(leaf) = key_of(self, level, place)
                if (self%key(leaf) <= last) fault = 'a key out of order'
                last = ior(self%key(leaf), covered_keys(self, level))
            end if
        end associate
    end subroutine place_leaf

    !> Set the description of a tree's domain.
    subroutine describe(self, dims, roots, periodic, error)
        class(tree_t), intent(inout) :: self
        integer, intent(in) :: dims, roots(3)
        logical, intent(in) :: periodic(3)
        type(error_t), intent(inout) :: error

        if (dims < 2 .or. dims > 3) then
            call error%raise(exit_usage, 'a mesh of '//to_text(dims)//' dimensions', 'tree%start', 'choose 2 or 3')
        else if (any(roots < 1) .or. any(roots > 2**key_bits) .or. (dims == 2 .and. roots(3) /= 1)) then
            call error%raise(exit_usage, 'a '//to_text(dims)//'-d mesh of '//roots_text(roots)//' root blocks', 'tree%start', &
                             'choose 1 to '//to_text(2**key_bits)//' in each direction, and 1 in the third of a 2-d mesh')
        else
            self%dims = dims
            self%roots = roots
            self%periodic = periodic
            self%deepest = 0
            do while (maxval(roots) <= 2**(key_bits - self%deepest - 1))
                self%deepest = self%deepest + 1
                if (self%deepest == key_bits) exit
            end do
        end if
    end subroutine describe

    !> An error (exit_usage) if keys cannot distinguish leaves of `level`, or the level is negative.
    subroutine check_level(self, level, error)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: level
        type(error_t), intent(inout) :: error

        if (level >= 0 .and. level <= self%deepest) return
        call error%raise(exit_usage, 'level '//to_text(level)//' of a mesh of '//roots_text(self%roots)//' root blocks: the '// &
                         'root blocks times 2**level must not exceed 2**'//to_text(key_bits)//' in a direction', &
                         'tree%check_level', 'choose levels from 0 to '//to_text(self%deepest)//', or fewer root blocks')
    end subroutine check_level

    !> The leaf that contains the lower corner of the block at `place` among the blocks of `level` (inside the domain).
    pure integer function find(self, level, place) result(leaf)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: level, place(3)
        integer(i8) :: key
        integer :: above, middle

        key = key_of(self, level, place)
        leaf = 1
        above = self%n_leaves + 1
        do while (above - leaf > 1)
            middle = leaf + (above - leaf)/2
            if (self%key(middle) <= key) then
                leaf = middle
            else
                above = middle
            end if
        end do
    end function find

    !> The neighbours of `leaf` in `direction`, each component -1, 0 or 1 (the third 0 in 2-d): outside, with n = 0; the one
    !> leaf of equal or lower level; or those `n` of the next level that touch it, by place, the first direction fastest.
    pure subroutine neighbour(self, leaf, direction, relation, leaves, n)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: leaf, direction(3)
        integer, intent(out) :: relation, leaves(4), n
        integer :: place(3), extent(3), low(3), high(3), level, i, j, k

        level = self%level(leaf)
        extent = blocks(self, level)
        place = self%place(:, leaf) + direction
        where (self%periodic) place = modulo(place, extent)
        leaves = 0
        n = 0
        relation = outside
        if (any(place < 0) .or. any(place >= extent)) return
        n = 1
        leaves(1) = self%find(level, place)
        if (self%level(leaves(1)) == level) then
            relation = equal
        else if (self%level(leaves(1)) < level) then
            relation = coarser
        else
            relation = finer
            low = merge(1, 0, direction < 0)
            high = merge(0, 1, direction > 0)
            place(:self%dims) = 2*place(:self%dims)
            if (self%dims == 2) high(3) = 0
            n = 0
            do k = low(3), high(3)
                do j = low(2), high(2)
                    do i = low(1), high(1)
                        n = n + 1
                        leaves(n) = self%find(level + 1, place + [i, j, k])
                    end do
                end do
            end do
        end if
    end subroutine neighbour

    !> Whether `leaf` and the leaves after it are all the children of one block, `leaf` the first.
    pure logical function siblings(self, leaf)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: leaf
        integer :: last

        last = leaf + 2**self%dims - 1
        siblings = .false.
        if (self%level(leaf) == 0 .or. last > self%n_leaves) return
        if (any(iand(self%place(:self%dims, leaf), 1) /= 0)) return
        siblings = all(self%level(leaf:last) == self%level(leaf))
    end function siblings

    !> Distribute the leaves over `n_ranks` in contiguous ranges whose sizes differ by at most one: `owner(leaf)`, from 0.
    subroutine partition(self, n_ranks, owner)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: n_ranks
        integer, allocatable, intent(out) :: owner(:)
        integer :: leaf

        allocate (owner(self%n_leaves))
        do leaf = 1, self%n_leaves
            owner(leaf) = int(int(leaf - 1, i8)*n_ranks/self%n_leaves)
        end do
    end subroutine partition

    !> Whether all leaves that touch differ by at most one level.
    pure logical function nested(self)
        class(tree_t), intent(in) :: self
        integer :: leaf, i, j, k, relation, leaves(4), n

        nested = .false.
        do leaf = 1, self%n_leaves
            do k = merge(-1, 0, self%dims == 3), merge(1, 0, self%dims == 3)
                do j = -1, 1
                    do i = -1, 1
                        call self%neighbour(leaf, [i, j, k], relation, leaves, n)
                        if (relation /= coarser) cycle
                        if (self%level(leaves(1)) < self%level(leaf) - 1) return
                    end do
                end do
            end do
        end do
        nested = .true.
    end function nested

    !> Allocate space for `n` leaves; `status` is that of the allocation, which must succeed without it.
    subroutine make_room(self, n, status)
        class(tree_t), intent(inout) :: self
        integer, intent(in) :: n
        integer, intent(out), optional :: status

        self%n_leaves = n
        if (present(status)) then
            ! The caller checks it.
            ! allow(C181)
            allocate (self%level(n), self%place(3, n), self%key(n), self%owner(n), stat=status)
        else
            allocate (self%level(n), self%place(3, n), self%key(n), self%owner(n))
        end if
    end subroutine make_room

    !> Blocks of `level` in each direction of the domain.
    pure function blocks(self, level)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: level
        integer :: blocks(3)

        blocks = self%roots
        blocks(:self%dims) = shiftl(blocks(:self%dims), level)
    end function blocks

    !> The place of the child `c` (from 0, in Morton order) of the block at `place`.
    pure function down(self, place, c)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: place(3), c
        integer :: down(3)

        down = place
        down(:self%dims) = 2*place(:self%dims)
        down = down + octant(c)
    end function down

    !> The place of the parent of the block at `place`.
    pure function up(self, place)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: place(3)
        integer :: up(3)

        up = place
        up(:self%dims) = place(:self%dims)/2
    end function up

    !> Key of the lower corner of the block at `place` of `level`.
    pure integer(i8) function key_of(self, level, place) result(key)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: level, place(3)
        integer(i8) :: corner(3)

        corner = shiftl(int(place, i8), self%deepest - level)
        if (self%dims == 2) then
            key = ior(apart_by_1(corner(1)), shiftl(apart_by_1(corner(2)), 1))
        else
            key = ior(ior(apart_by_2(corner(1)), shiftl(apart_by_2(corner(2)), 1)), shiftl(apart_by_2(corner(3)), 2))
        end if
    end function key_of

    !> The bits in which the keys inside a block of `level` differ.
    pure integer(i8) function covered_keys(self, level)
        class(tree_t), intent(in) :: self
        integer, intent(in) :: level

        covered_keys = maskr(self%dims*(self%deepest - level), i8)
    end function covered_keys

    !> Root blocks as text.
    function roots_text(roots) result(words)
        integer, intent(in) :: roots(3)
        character(:), allocatable :: words

        words = to_text(roots(1))//' x '//to_text(roots(2))//' x '//to_text(roots(3))
    end function roots_text

end module ember_tree
