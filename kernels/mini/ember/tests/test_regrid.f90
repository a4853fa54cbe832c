!> Regridding: new leaves equal a direct copy, mean or prolongation of the old ones, to the last bit and on any
!> number of ranks, with just enough slots; sums and linear data are preserved, refining and coarsening is reversible; too
!> few slots change nothing.
program test_regrid
    use ember_mesh, only: cartesian, cylindrical, mesh_t
    use ember_parallel, only: comm_t
    use ember_prolongation, only: pack_star, prolong_star, star_size
    use ember_regrid, only: regrid
    use ember_restriction, only: restrict_box
    use ember_test_fields, only: block_shape, fill_block, fill_leaves, largest_error, linear, make_mesh, n_variables, &
        noise, scratch, totals
    use ember_test_meshes, only: discard, get_value, put_value
    use ember_testing, only: expect, expect_success, finish, random_below, start_pages
    use ember_tree, only: child, kept, parent, tree_t
    use ember_tree_adapt, only: adapt_tree
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    type(comm_t) :: comm
    type(error_t) :: error
    integer :: n_seen(3) = 0, n_moved(3) = 0, n_refused = 0, v

    call comm%begin(error)
    call expect_success(error, 'begin')
    call start_pages()
    do v = 0, 1
        call random_rounds(2, cartesian, v == 1, [2, 1, 1], 3, 600)
        call random_rounds(2, cylindrical, v == 1, [1, 2, 1], 3, 600)
        call random_rounds(3, cartesian, v == 1, [1, 1, 2], 2, 130)
        call there_and_back(2, cylindrical, v == 1, [2, 2, 1], 600)
        call there_and_back(3, cartesian, v == 1, [1, 1, 2], 130)
        call deal_out(v == 1)
        call scarce_slots(v == 1)
        call too_few_slots(2, v == 1)
    end do
    block_shape = [8, 4]
    call random_rounds(3, cartesian, .false., [1, 1, 2], 2, 130)
    block_shape = [32, 4]
    call random_rounds(2, cylindrical, .true., [1, 1, 1], 2, 130)

    ! A test that had nothing to examine has failed.
    call expect(all(n_seen > 50), 'kept, children, parents were met', n_seen)
    call expect(n_refused > 0, 'too few slots were met', [n_refused])
    if (comm%n_ranks > 1) call expect(all(n_moved > 5), 'all kinds went between ranks', n_moved)
    if (comm%rank == 0) print '(4(a,i0))', 'test_regrid on ', comm%n_ranks, ' ranks: kept ', n_seen(kept), ', children ', &
        n_seen(child), ', parents ', n_seen(parent)
    call finish(comm)

contains

    !> Random marks repeatedly; sometimes with only the slots that the old or the new leaves need.
    subroutine random_rounds(dims, geometry, variable_last, roots, highest, slots)
        integer, intent(in) :: dims, geometry, roots(3), highest, slots
        logical, intent(in) :: variable_last
        type(mesh_t) :: mesh
        integer, allocatable :: mark(:)
        integer :: round, leaf, draw

        call make_mesh(mesh, comm, dims, geometry, variable_last, roots, 1, slots)
        mesh%highest_level = highest
        do round = 1, merge(6, 3, dims == 2)
            if (allocated(mark)) deallocate (mark)
            allocate (mark(mesh%tree%n_leaves))
            do leaf = 1, mesh%tree%n_leaves
                draw = random_below(8)
                mark(leaf) = merge(1, merge(-1, 0, draw > 4), draw < 2)
                if (mod(round, 3) == 0) mark(leaf) = merge(-1, draw, draw > 0)
            end do
            call change_noise(mesh, mark, tight=mod(round, 2) == 0)
            call change_linear(mesh, mark)
        end do
        call expect(mesh%tree%nested(), 'nested', [mesh%tree%n_leaves])
        call discard(mesh)
    end subroutine random_rounds

    !> Regrid a mesh of noise and compare each zone with what one step from the old leaves gives.
    subroutine change_noise(mesh, mark, tight)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: mark(:)
        logical, intent(in) :: tight
        type(tree_t) :: old, new
        integer, allocatable :: kind(:), origin(:), owner(:), hidden(:)
        real(r8) :: before(n_variables), after(n_variables), size_of(n_variables)
        integer :: free_then, needed, leaf, first
        logical :: changed

        call fill_leaves(mesh, noise)
        call totals(mesh, comm, before, size_of)
        old = mesh%tree
        call adapt_tree(old, mark, mesh%lowest_level, mesh%highest_level, new, kind, origin)
        call new%partition(comm%n_ranks, owner)
        allocate (hidden(0))
        if (tight) then
            needed = max(count(owner == mesh%rank), size(mesh%local))
            free_then = needed - size(mesh%local)
            hidden = mesh%free(free_then + 1:mesh%n_free)
            mesh%n_free = free_then
        end if
        call regrid(mesh, mark, comm, error, changed)
        call expect_success(error, 'regrid')
        call expect(changed .eqv. any(kind /= kept), 'changed', [mesh%tree%n_leaves])
        call expect(mesh%tree%n_leaves == new%n_leaves, 'leaves', [mesh%tree%n_leaves, new%n_leaves])
        call expect(all(mesh%tree%key == new%key) .and. all(mesh%tree%owner == owner), 'keys, owners', [new%n_leaves])
        if (tight) call expect(mesh%n_free == needed - count(owner == mesh%rank), 'free slots', [mesh%n_free, needed])
        do leaf = 1, size(hidden)
            call mesh%give_slot(hidden(leaf))
        end do
        call check_slots(mesh)
        do leaf = 1, new%n_leaves
            n_seen(kind(leaf)) = n_seen(kind(leaf)) + 1
            first = origin(leaf)
            if (any(old%owner(first:merge(first + 2**mesh%dims - 1, first, kind(leaf) == parent)) /= owner(leaf))) &
                n_moved(kind(leaf)) = n_moved(kind(leaf)) + 1
            if (owner(leaf) == mesh%rank) call check_leaf(mesh, leaf, kind(leaf), old, first)
        end do
        call totals(mesh, comm, after, size_of)
        call expect(all(abs(after - before) <= 1.0e-14_r8*size_of), 'sums stay', abs(after - before)/size_of)
    end subroutine change_noise

    !> A new leaf against a copy, a mean or a prolongation of noise, to the last bit.
    subroutine check_leaf(mesh, leaf, kind, old, origin)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf, kind, origin
        type(tree_t), intent(in) :: old
        integer :: i, j, k, v, n(3), wrong
        real(r8) :: difference

        select case (kind)
        case (kept)
            call fill_block(mesh, scratch(2), old%level(origin), old%place(:, origin), noise)
        case (child)
            call prolong_noise(mesh, leaf, old, origin)
        case (parent)
            call restrict_noise(mesh, old, origin)
        end select
        n = mesh%zones()
        wrong = 0
        do k = 1, n(3)
            do j = 1, n(2)
                do i = 1, n(1)
                    do v = 1, n_variables
                        difference = get_value(mesh, mesh%slot(leaf), v, i, j, k) - get_value(mesh, scratch(2), v, i, j, k)
                        ! True for NaN too.
                        if (.not. abs(difference) <= 0.0_r8) wrong = wrong + 1
                    end do
                end do
            end do
        end do
        call expect(wrong == 0, 'zones of a leaf (kind, leaf, origin, wrong values)', [kind, leaf, origin, wrong])
    end subroutine check_leaf

    !> A leaf from the old one that it is a child of, in the second scratch slot.
    subroutine prolong_noise(mesh, leaf, old, origin)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf, origin
        type(tree_t), intent(in) :: old
        real(r8), allocatable :: star(:)
        integer :: d, n(3), box(2, 3)

        n = mesh%zones()
        box(1, :) = 1
        box(2, :) = max(1, n/2)
        do d = 1, mesh%dims
            box(:, d) = box(:, d) + merge(n(d)/2, 0, mod(mesh%tree%place(d, leaf), 2) == 1)
        end do
        call fill_block(mesh, scratch(1), old%level(origin), old%place(:, origin), noise)
        allocate (star(star_size(mesh, box)))
        call pack_star(mesh, scratch(1), box, star)
        box(1, :) = 1
        box(2, :) = n
        call prolong_star(mesh, star, mesh%zone_volumes(leaf), scratch(2), box)
    end subroutine prolong_noise

    !> The parent of the old leaves from `origin` on, in the second scratch slot.
    subroutine restrict_noise(mesh, old, origin)
        type(mesh_t), intent(inout) :: mesh
        type(tree_t), intent(in) :: old
        integer, intent(in) :: origin
        type(mesh_t) :: old_mesh
        real(r8), allocatable :: means(:, :, :, :)
        real(r8) :: buffer(n_variables*product(max(1, mesh%zones()/2)))
        integer :: c, i, j, k, v, half(3), box(2, 3)

        half = max(1, mesh%zones()/2)
        box(1, :) = 1
        box(2, :) = half
        old_mesh = mesh
        old_mesh%tree = old
        do c = 0, 2**mesh%dims - 1
            call fill_block(mesh, scratch(1), old%level(origin + c), old%place(:, origin + c), noise)
            call restrict_box(mesh, scratch(1), old_mesh%zone_volumes(origin + c), box, buffer)
            means = reshape(buffer, [n_variables, half])
            do k = 1, half(3)
                do j = 1, half(2)
                    do i = 1, half(1)
                        do v = 1, n_variables
                            call put_value(mesh, scratch(2), v, i + half(1)*mod(c, 2), j + half(2)*mod(c/2, 2), k + half(3)*(c/4), &
                                           means(v, i, j, k))
                        end do
                    end do
                end do
            end do
        end do
    end subroutine restrict_noise

    !> The same marks and their opposite with linear data: they stay linear.
    subroutine change_linear(mesh, mark)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: mark(:)
        real(r8) :: error_of
        integer :: i, back(mesh%tree%n_leaves)
        logical :: changed

        do i = 1, mesh%tree%n_leaves
            back(i) = -mark(1 + mod(i, size(mark)))
        end do
        call fill_leaves(mesh, linear)
        call regrid(mesh, back, comm, error, changed)
        call expect_success(error, 'regrid linear data')
        error_of = largest_error(mesh, linear)
        call expect(error_of < 2.0e-13_r8, 'linear data stay (largest error)', [error_of])
        call check_slots(mesh)
    end subroutine change_linear

    !> Refine all leaves, then coarsen all: the zones are unchanged, to round-off.
    subroutine there_and_back(dims, geometry, variable_last, roots, slots)
        integer, intent(in) :: dims, geometry, roots(3), slots
        logical, intent(in) :: variable_last
        type(mesh_t) :: mesh
        integer, allocatable :: mark(:)
        real(r8) :: error_of, before(n_variables), after(n_variables), size_of(n_variables)
        integer :: i, first_leaves
        logical :: changed

        call make_mesh(mesh, comm, dims, geometry, variable_last, roots, 0, slots)
        mesh%highest_level = 2
        if (dims == 2) call change_noise(mesh, [(mod(i, 2), i=1, mesh%tree%n_leaves)], tight=.false.)
        first_leaves = mesh%tree%n_leaves
        call fill_leaves(mesh, noise)
        call totals(mesh, comm, before, size_of)
        allocate (mark(first_leaves), source=1)
        call regrid(mesh, mark, comm, error, changed)
        call expect(changed .and. mesh%tree%n_leaves == first_leaves*2**dims, 'all refined', [mesh%tree%n_leaves])
        call totals(mesh, comm, after, size_of)
        call expect(all(abs(after - before) <= 1.0e-14_r8*size_of), 'sums stay, refined', abs(after - before)/size_of)
        deallocate (mark)
        allocate (mark(mesh%tree%n_leaves), source=-1)
        call regrid(mesh, mark, comm, error, changed)
        call expect(changed .and. mesh%tree%n_leaves == first_leaves, 'all coarsened', [mesh%tree%n_leaves])
        call totals(mesh, comm, after, size_of)
        call expect(all(abs(after - before) <= 1.0e-14_r8*size_of), 'sums stay, coarsened', abs(after - before)/size_of)
        error_of = largest_error(mesh, noise)
        call expect(error_of < 1.0e-14_r8, 'there and back (largest error)', [error_of])
        call check_slots(mesh)
        call discard(mesh)
    end subroutine there_and_back

    !> All leaves on one rank, then on all.
    subroutine deal_out(variable_last)
        logical, intent(in) :: variable_last
        type(mesh_t) :: mesh
        integer :: mark(16), leaf
        logical :: changed

        call make_mesh(mesh, comm, 2, cartesian, variable_last, [1, 1, 1], 2, 20)
        mesh%highest_level = 2
        mark = 0
        do leaf = 1, mesh%tree%n_leaves
            if (mesh%slot(leaf) /= 0) call mesh%give_slot(mesh%slot(leaf))
        end do
        mesh%slot = 0
        mesh%tree%owner = comm%n_ranks - 1
        if (mesh%rank == comm%n_ranks - 1) mesh%slot = [(mesh%take_slot(), leaf=1, mesh%tree%n_leaves)]
        call mesh%note_owners()
        call fill_leaves(mesh, noise)
        call regrid(mesh, mark, comm, error, changed)
        call expect(.not. error%failed() .and. (changed .eqv. comm%n_ranks > 1), 'dealing out')
        call check_slots(mesh)
        do leaf = 1, mesh%tree%n_leaves
            call expect(mesh%tree%owner(leaf) == ((leaf - 1)*comm%n_ranks)/16, 'dealt out', [leaf, mesh%tree%owner(leaf)])
            if (mesh%slot(leaf) /= 0) call check_leaf(mesh, leaf, kept, mesh%tree, leaf)
        end do
        call regrid(mesh, mark, comm, error, changed)
        call expect(.not. changed, 'dealing out again')
        call check_slots(mesh)
        call discard(mesh)
    end subroutine deal_out

    !> Three ranks, one root each: the last leaves of the second are refined and their children move to the third, half of
    !> which becomes coarser; the second also gets leaves of the first, but has no slots for them until it has sent enough.
    subroutine scarce_slots(variable_last)
        logical, intent(in) :: variable_last
        type(mesh_t) :: mesh
        integer :: mark(192)

        call make_mesh(mesh, comm, 2, cartesian, variable_last, [1, 3, 1], 3, 200)
        mesh%highest_level = 4
        mark = 0
        mark(123:128) = 1
        mark(161:192) = -1
        call change_noise(mesh, mark, tight=.true.)
        call expect(mesh%tree%n_leaves == 186, 'leaves of three roots', [mesh%tree%n_leaves])
        call discard(mesh)
    end subroutine scarce_slots

    !> One slot too few on the last rank: all ranks report it, and the mesh is unchanged.
    subroutine too_few_slots(dims, variable_last)
        integer, intent(in) :: dims
        logical, intent(in) :: variable_last
        type(mesh_t) :: mesh
        type(tree_t) :: old
        integer, allocatable :: mark(:), slot(:)
        integer :: leaf, needed, n_free
        logical :: changed

        call make_mesh(mesh, comm, dims, cartesian, variable_last, [1, 1, 1], 2, 80)
        mesh%highest_level = 5
        old = mesh%tree
        allocate (slot, source=mesh%slot)
        allocate (mark(mesh%tree%n_leaves), source=1)
        call fill_leaves(mesh, noise)
        ! 64 leaves are to come.
        needed = count([(((leaf - 1)*comm%n_ranks)/64 == comm%n_ranks - 1, leaf=1, 64)])
        if (mesh%rank == comm%n_ranks - 1) mesh%n_free = needed - 1 - size(mesh%local)
        n_free = mesh%n_free
        call regrid(mesh, mark, comm, error, changed)
        call expect(error%failed() .and. .not. changed .and. error%code == exit_usage, 'too few slots', &
                    [needed, error%code])
        if (error%failed()) then
            n_refused = n_refused + 1
            call expect(index(error%message, ' '//to_text(needed)//' ') > 0 .and. index(error%message, to_text(needed - 1)) > 0 &
                        .and. index(error%remedy, '--memory') > 0, 'error '//error%message, [needed])
        end if
        error = error_t()
        call expect(mesh%n_free == n_free .and. all(mesh%slot == slot), 'slots unchanged', [n_free, mesh%n_free])
        call expect(mesh%tree%n_leaves == 16 .and. all(mesh%tree%owner == old%owner), 'tree unchanged', &
                    [mesh%tree%n_leaves])
        do leaf = 1, mesh%tree%n_leaves
            if (mesh%slot(leaf) /= 0) call check_leaf(mesh, leaf, kept, old, leaf)
        end do
        ! With one more it fits.
        if (mesh%rank == comm%n_ranks - 1) mesh%n_free = mesh%n_free + 1
        call regrid(mesh, mark, comm, error, changed)
        call expect(.not. error%failed() .and. changed, 'just enough slots', [needed, mesh%tree%n_leaves])
        mesh%highest_level = 22
        call regrid(mesh, spread(0, 1, mesh%tree%n_leaves), comm, error, changed)
        call expect(error%failed(), 'level 22 refused')
        error = error_t()
        call discard(mesh)
    end subroutine too_few_slots

    !> Every slot is either free or one leaf's, and leaves of this rank have theirs.
    subroutine check_slots(mesh)
        type(mesh_t), intent(in) :: mesh
        integer :: times(mesh%capacity), leaf, n

        times = 0
        times(scratch) = 1
        n = 0
        do leaf = 1, mesh%n_free
            times(mesh%free(leaf)) = times(mesh%free(leaf)) + 1
        end do
        do leaf = 1, mesh%tree%n_leaves
            call expect((mesh%slot(leaf) /= 0) .eqv. mesh%tree%owner(leaf) == mesh%rank, 'slot of a leaf', &
                        [leaf, mesh%slot(leaf)])
            if (mesh%slot(leaf) == 0) cycle
            times(mesh%slot(leaf)) = times(mesh%slot(leaf)) + 1
            n = n + 1
            if (n <= size(mesh%local)) call expect(mesh%local(n) == leaf, 'local leaf', [n, leaf])
        end do
        call expect(n == size(mesh%local) .and. size(mesh%slot) == mesh%tree%n_leaves, 'local leaves', &
                    [n, size(mesh%local)])
        call expect(all(times == 1), 'each slot has one use', [minval(times), maxval(times)])
    end subroutine check_slots

end program test_regrid
