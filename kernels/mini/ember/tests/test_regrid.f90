!> Regridding: new leaves equal a direct copy, mean or prolongation of the old ones, to the last bit and on any
!> number of ranks, with just enough slots; sums and linear data are preserved, refining and coarsening is reversible; too
!> few slots change nothing; marks are those of the formula written out.
program test_regrid
    use, intrinsic :: iso_fortran_env, only: output_unit
    use ember_container, only: block_bytes, container_create, container_free, container_touch
    use ember_prolongation, only: pack_star, prolong_star, star_size
    use ember_restriction, only: restrict_box
    use ember_mesh, only: cartesian, cylindrical, first_guard, last_guard, mesh_t, v_dens, v_ener, v_pres
    use ember_parallel, only: comm_t
    use ember_refinement, only: estimate, mark_leaves, regrid_settings_t
    use ember_regrid, only: regrid
    use ember_tree, only: child, kept, parent, tree_t
    use ember_tree_adapt, only: adapt_tree
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_begin, pages_none
    use pw_text, only: to_text
    implicit none
    integer, parameter :: noise = 1, linear = 2, front = 3
    integer, parameter :: n_variables = 9
    type(comm_t) :: comm
    type(error_t) :: error
    integer(i8) :: seed = 987654321
    integer :: scratch(2), failures = 0, n_seen(3) = 0, n_moved(3) = 0, n_refused = 0, n_marked(-1:1) = 0, v

    call comm%begin(error)
    call expect(.not. error%failed(), 'begin', [0.0_r8])
    call pages_begin(pages_none, error)
    call expect(.not. error%failed(), 'pages', [0.0_r8])
    do v = 0, 1
        call random_rounds(2, cartesian, v == 1, [2, 1, 1], 3, 600)
        call random_rounds(2, cylindrical, v == 1, [1, 2, 1], 3, 600)
        call random_rounds(3, cartesian, v == 1, [1, 1, 2], 2, 130)
        call there_and_back(2, cylindrical, v == 1, [2, 2, 1], 600)
        call there_and_back(3, cartesian, v == 1, [1, 1, 2], 130)
        call deal_out(v == 1)
        call scarce_slots(v == 1)
        call too_few_slots(2, v == 1)
        call marks(2, v == 1)
        call marks(3, v == 1)
    end do
    call known_estimates()

    ! A test that had nothing to examine has failed.
    call expect(all(n_seen > 50), 'kept, children, parents were met', real(n_seen, r8))
    call expect(all(n_marked > 5), 'every mark was met', real(n_marked, r8))
    call expect(n_refused > 0, 'too few slots were met', [real(n_refused, r8)])
    if (comm%n_ranks > 1) call expect(all(n_moved > 5), 'all kinds went between ranks', real(n_moved, r8))
    call comm%barrier()
    if (failures > 0) then
        print '(a)', 'rank '//to_text(comm%rank)//': '//to_text(failures)//' failures'
        flush (output_unit)
        call comm%abort(1)
    end if
    if (comm%rank == 0) print '(4(a,i0))', 'test_regrid on ', comm%n_ranks, ' ranks: kept ', n_seen(kept), ', children ', &
        n_seen(child), ', parents ', n_seen(parent)
    call comm%end()

contains

    !> A mesh whose leaves are all blocks of `level`, distributed, on a container of `slots` blocks plus two for trials.
    subroutine make_mesh(mesh, dims, geometry, variable_last, roots, level, slots)
        type(mesh_t), intent(out) :: mesh
        integer, intent(in) :: dims, geometry, roots(3), level, slots
        logical, intent(in) :: variable_last
        integer, allocatable :: owner(:)
        integer :: leaf

        mesh%dims = dims
        mesh%geometry = geometry
        mesh%variable_last = variable_last
        mesh%n_variables = n_variables
        mesh%n_species = 1
        mesh%lower = [0.0_r8, -1.0_r8, 0.25_r8]
        mesh%upper = mesh%lower + [1.5_r8, 0.75_r8, 1.25_r8]
        mesh%rank = comm%rank
        mesh%n_ranks = comm%n_ranks
        call mesh%tree%start(dims, roots, [.false., .true., .false.], level, error)
        call expect(.not. error%failed(), 'tree', [real(level, r8)])
        call container_create(mesh, (slots + 2)*block_bytes(mesh), pages_none, error)
        call expect(.not. error%failed(), 'container', [real(slots, r8)])
        call container_touch(mesh)
        scratch = [mesh%take_slot(), mesh%take_slot()]
        call mesh%tree%partition(comm%n_ranks, owner)
        mesh%tree%owner = owner
        call mesh%note_owners()
        allocate (mesh%slot(mesh%tree%n_leaves), source=0)
        do leaf = 1, mesh%tree%n_leaves
            if (owner(leaf) == mesh%rank) mesh%slot(leaf) = mesh%take_slot()
        end do
    end subroutine make_mesh

    !> Random marks repeatedly; sometimes with only the slots that the old or the new leaves need.
    subroutine random_rounds(dims, geometry, variable_last, roots, highest, slots)
        integer, intent(in) :: dims, geometry, roots(3), highest, slots
        logical, intent(in) :: variable_last
        type(mesh_t) :: mesh
        integer, allocatable :: mark(:)
        integer :: round, leaf, draw

        call make_mesh(mesh, dims, geometry, variable_last, roots, 1, slots)
        mesh%highest_level = highest
        do round = 1, merge(6, 3, dims == 2)
            if (allocated(mark)) deallocate (mark)
            allocate (mark(mesh%tree%n_leaves))
            do leaf = 1, mesh%tree%n_leaves
                draw = random(8)
                mark(leaf) = merge(1, merge(-1, 0, draw > 4), draw < 2)
                if (mod(round, 3) == 0) mark(leaf) = merge(-1, draw, draw > 0)
            end do
            call change_noise(mesh, mark, tight=mod(round, 2) == 0)
            call change_linear(mesh, mark)
        end do
        call expect(mesh%tree%nested(), 'nested', [real(mesh%tree%n_leaves, r8)])
        call free(mesh)
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
        call totals(mesh, before, size_of)
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
        call expect(.not. error%failed(), 'regrid', real([mesh%capacity, new%n_leaves], r8))
        if (error%failed()) print '(a)', error%message
        call expect(changed .eqv. any(kind /= kept), 'changed', [real(mesh%tree%n_leaves, r8)])
        call expect(mesh%tree%n_leaves == new%n_leaves, 'leaves', real([mesh%tree%n_leaves, new%n_leaves], r8))
        call expect(all(mesh%tree%key == new%key) .and. all(mesh%tree%owner == owner), 'keys, owners', [real(new%n_leaves, r8)])
        if (tight) call expect(mesh%n_free == needed - count(owner == mesh%rank), 'free slots', real([mesh%n_free, needed], r8))
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
        call totals(mesh, after, size_of)
        call expect(all(abs(after - before) <= 1.0e-14_r8*size_of), 'sums stay', abs(after - before)/size_of)
    end subroutine change_noise

    !> A new leaf against a copy, a mean or a prolongation of noise, to the last bit.
    subroutine check_leaf(mesh, leaf, kind, old, origin)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf, kind, origin
        type(tree_t), intent(in) :: old
        real(r8), allocatable :: buffer(:)
        real(r8) :: want
        integer :: c, i, j, k, v, at, n(3), half(3), box(2, 3), wrong
        type(mesh_t) :: old_mesh

        n = mesh%zones()
        half = max(1, n/2)
        box(1, :) = 1
        box(2, :) = half
        old_mesh = mesh
        old_mesh%tree = old
        wrong = 0
        select case (kind)
        case (kept)
            call fill_block(mesh, scratch(2), old%level(origin), old%place(:, origin), noise)
        case (child)
            call fill_block(mesh, scratch(1), old%level(origin), old%place(:, origin), noise)
            do c = 1, mesh%dims
                box(:, c) = box(:, c) + merge(half(c), 0, mod(mesh%tree%place(c, leaf), 2) == 1)
            end do
            allocate (buffer(star_size(mesh, box)))
            call pack_star(mesh, scratch(1), box, buffer)
            box(1, :) = 1
            box(2, :) = n
            call prolong_star(mesh, buffer, mesh%zone_volumes(leaf), scratch(2), box)
        case (parent)
            allocate (buffer(n_variables*product(half)))
            do c = 0, 2**mesh%dims - 1
                call fill_block(mesh, scratch(1), old%level(origin + c), old%place(:, origin + c), noise)
                call restrict_box(mesh, scratch(1), old_mesh%zone_volumes(origin + c), box, buffer)
                at = 0
                do k = 1, half(3)
                    do j = 1, half(2)
                        do i = 1, half(1)
                            do v = 1, n_variables
                                at = at + 1
                                call put(mesh, scratch(2), v, i + half(1)*mod(c, 2), j + half(2)*mod(c/2, 2), k + half(3)*(c/4), &
                                         buffer(at))
                            end do
                        end do
                    end do
                end do
            end do
        end select
        do k = 1, n(3)
            do j = 1, n(2)
                do i = 1, n(1)
                    do v = 1, n_variables
                        want = get(mesh, scratch(2), v, i, j, k)
                        if (abs(get(mesh, mesh%slot(leaf), v, i, j, k) - want) > 0.0_r8) wrong = wrong + 1
                    end do
                end do
            end do
        end do
        call expect(wrong == 0, 'zones of a leaf (kind, leaf, origin, wrong values)', real([kind, leaf, origin, wrong], r8))
    end subroutine check_leaf

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
        call expect(.not. error%failed(), 'regrid linear data', [real(mesh%tree%n_leaves, r8)])
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

        call make_mesh(mesh, dims, geometry, variable_last, roots, 0, slots)
        mesh%highest_level = 2
        if (dims == 2) call change_noise(mesh, [(mod(i, 2), i=1, mesh%tree%n_leaves)], tight=.false.)
        first_leaves = mesh%tree%n_leaves
        call fill_leaves(mesh, noise)
        call totals(mesh, before, size_of)
        allocate (mark(first_leaves), source=1)
        call regrid(mesh, mark, comm, error, changed)
        call expect(changed .and. mesh%tree%n_leaves == first_leaves*2**dims, 'all refined', [real(mesh%tree%n_leaves, r8)])
        call totals(mesh, after, size_of)
        call expect(all(abs(after - before) <= 1.0e-14_r8*size_of), 'sums stay, refined', abs(after - before)/size_of)
        deallocate (mark)
        allocate (mark(mesh%tree%n_leaves), source=-1)
        call regrid(mesh, mark, comm, error, changed)
        call expect(changed .and. mesh%tree%n_leaves == first_leaves, 'all coarsened', [real(mesh%tree%n_leaves, r8)])
        call totals(mesh, after, size_of)
        call expect(all(abs(after - before) <= 1.0e-14_r8*size_of), 'sums stay, coarsened', abs(after - before)/size_of)
        error_of = largest_error(mesh, noise)
        call expect(error_of < 1.0e-14_r8, 'there and back (largest error)', [error_of])
        call check_slots(mesh)
        call free(mesh)
    end subroutine there_and_back

    !> The largest difference of a zone of this rank from a field.
    real(r8) function largest_error(mesh, what)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: what
        integer :: l, i, j, k, v, n(3)

        largest_error = 0.0_r8
        n = mesh%zones()
        do l = 1, size(mesh%local)
            associate (leaf => mesh%local(l))
                call fill_block(mesh, scratch(1), mesh%tree%level(leaf), mesh%tree%place(:, leaf), what)
                do k = 1, n(3)
                    do j = 1, n(2)
                        do i = 1, n(1)
                            do v = 1, n_variables
                                largest_error = max(largest_error, abs(get(mesh, mesh%slot(leaf), v, i, j, k) &
                                                                       - get(mesh, scratch(1), v, i, j, k)))
                            end do
                        end do
                    end do
                end do
            end associate
        end do
    end function largest_error

    !> All leaves on one rank, then on all.
    subroutine deal_out(variable_last)
        logical, intent(in) :: variable_last
        type(mesh_t) :: mesh
        integer :: mark(16), leaf
        logical :: changed

        call make_mesh(mesh, 2, cartesian, variable_last, [1, 1, 1], 2, 20)
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
        call expect(.not. error%failed() .and. (changed .eqv. comm%n_ranks > 1), 'dealing out', [0.0_r8])
        call check_slots(mesh)
        do leaf = 1, mesh%tree%n_leaves
            call expect(mesh%tree%owner(leaf) == ((leaf - 1)*comm%n_ranks)/16, 'dealt out', real([leaf, mesh%tree%owner(leaf)], r8))
            if (mesh%slot(leaf) /= 0) call check_leaf(mesh, leaf, kept, mesh%tree, leaf)
        end do
        call regrid(mesh, mark, comm, error, changed)
        call expect(.not. changed, 'dealing out again', [0.0_r8])
        call check_slots(mesh)
        call free(mesh)
    end subroutine deal_out

    !> Three ranks, one root each: the last leaves of the second are refined and their children move to the third, half of
    !> which becomes coarser; the second also gets leaves of the first, but has no slots for them until it has sent enough.
    subroutine scarce_slots(variable_last)
        logical, intent(in) :: variable_last
        type(mesh_t) :: mesh
        integer :: mark(192)

        call make_mesh(mesh, 2, cartesian, variable_last, [1, 3, 1], 3, 200)
        mesh%highest_level = 4
        mark = 0
        mark(123:128) = 1
        mark(161:192) = -1
        call change_noise(mesh, mark, tight=.true.)
        call expect(mesh%tree%n_leaves == 186, 'leaves of three roots', [real(mesh%tree%n_leaves, r8)])
        call free(mesh)
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

        call make_mesh(mesh, dims, cartesian, variable_last, [1, 1, 1], 2, 80)
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
                    real([needed, error%code], r8))
        if (error%failed()) then
            n_refused = n_refused + 1
            call expect(index(error%message, ' '//to_text(needed)//' ') > 0 .and. index(error%message, to_text(needed - 1)) > 0 &
                        .and. index(error%remedy, '--memory') > 0, 'error '//error%message, [real(needed, r8)])
        end if
        error = error_t()
        call expect(mesh%n_free == n_free .and. all(mesh%slot == slot), 'slots unchanged', real([n_free, mesh%n_free], r8))
        call expect(mesh%tree%n_leaves == 16 .and. all(mesh%tree%owner == old%owner), 'tree unchanged', &
                    [real(mesh%tree%n_leaves, r8)])
        do leaf = 1, mesh%tree%n_leaves
            if (mesh%slot(leaf) /= 0) call check_leaf(mesh, leaf, kept, old, leaf)
        end do
        ! With one more it fits.
        if (mesh%rank == comm%n_ranks - 1) mesh%n_free = mesh%n_free + 1
        call regrid(mesh, mark, comm, error, changed)
        call expect(.not. error%failed() .and. changed, 'just enough slots', real([needed, mesh%tree%n_leaves], r8))
        mesh%highest_level = 22
        call regrid(mesh, spread(0, 1, mesh%tree%n_leaves), comm, error, changed)
        call expect(error%failed(), 'level 22 refused', [0.0_r8])
        error = error_t()
        call free(mesh)
    end subroutine too_few_slots

    !> The marks of a curved front against the formula written out, and those of data without one.
    subroutine marks(dims, variable_last)
        integer, intent(in) :: dims
        logical, intent(in) :: variable_last
        type(mesh_t) :: mesh
        type(regrid_settings_t) :: settings
        integer, allocatable :: mark(:)
        real(r8) :: largest
        integer :: round, leaf, want
        logical :: changed

        call make_mesh(mesh, dims, cartesian, variable_last, [2, 1, 1], merge(2, 1, dims == 2), merge(600, 130, dims == 2))
        mesh%lowest_level = 1
        mesh%highest_level = merge(4, 2, dims == 2)
        do round = 1, 3
            call fill_leaves(mesh, front)
            settings%variables = [v_dens, v_pres, n_variables]
            if (round == 2) settings%variables = [v_dens]
            if (round == 3) settings%filter = 0.1_r8
            call mark_leaves(mesh, settings, comm, mark)
            call expect(size(mark) == mesh%tree%n_leaves, 'marks', [real(size(mark), r8)])
            do leaf = 1, mesh%tree%n_leaves
                largest = naive_estimate(mesh, leaf, settings)
                want = 0
                if (largest > settings%refine_above .and. mesh%tree%level(leaf) < mesh%highest_level) want = 1
                if (largest < settings%coarsen_below .and. mesh%tree%level(leaf) > mesh%lowest_level) want = -1
                call expect(mark(leaf) == want, 'mark', [real(leaf, r8), largest, real(mark(leaf), r8)])
                n_marked(mark(leaf)) = n_marked(mark(leaf)) + 1
            end do
            call regrid(mesh, mark, comm, error, changed)
            call expect(.not. error%failed(), 'regrid at the front', [real(mesh%tree%n_leaves, r8)])
        end do
        call expect(maxval(mesh%tree%level) > minval(mesh%tree%level), 'levels at the front', real(mesh%tree%level, r8))
        ! Without a front all may be coarser, down to the lowest level.
        settings = regrid_settings_t()
        do round = 1, 4
            call fill_leaves(mesh, linear)
            call mark_leaves(mesh, settings, comm, mark)
            call expect(all(mark == merge(-1, 0, mesh%tree%level > mesh%lowest_level)), 'marks of linear data', real(mark, r8))
            call regrid(mesh, mark, comm, error, changed)
        end do
        call expect(all(mesh%tree%level == mesh%lowest_level), 'coarsened to the lowest level', [real(mesh%tree%n_leaves, r8)])
        call expect(.not. changed, 'nothing left to change', [0.0_r8])
        ! Levels outside of the allowed range are corrected.
        mesh%lowest_level = 2
        call mark_leaves(mesh, settings, comm, mark)
        call expect(all(mark == 1), 'below the lowest level', real(mark, r8))
        mesh%lowest_level = 0
        mesh%highest_level = 0
        settings%coarsen_below = 0.0_r8
        call mark_leaves(mesh, settings, comm, mark)
        call expect(all(mark == -1), 'above the highest level', real(mark, r8))
        call free(mesh)
    end subroutine marks

    !> The largest estimate of a leaf of front data: double sum over directions.
    real(r8) function naive_estimate(mesh, leaf, settings) result(largest)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        type(regrid_settings_t), intent(in) :: settings
        real(r8), allocatable :: u(:, :, :)
        real(r8) :: above, below, d(-1:1, -1:1), bound
        integer :: zone(3), i, j, k, p, q, a, b, m, n(3), at(3)

        n = mesh%zones()
        largest = 0.0_r8
        allocate (u(first_guard:last_guard, first_guard:last_guard, mesh%first_k():mesh%last_k()))
        call fill_block(mesh, scratch(1), mesh%tree%level(leaf), mesh%tree%place(:, leaf), front)
        do m = 1, size(settings%variables)
            do k = mesh%first_k(), mesh%last_k()
                do j = first_guard, last_guard
                    do i = first_guard, last_guard
                        u(i, j, k) = get(mesh, scratch(1), settings%variables(m), i, j, k)
                    end do
                end do
            end do
            do k = 1, n(3)
                do j = 1, n(2)
                    do i = 1, n(1)
                        zone = [i, j, k]
                        above = 0.0_r8
                        below = 0.0_r8
                        do p = 1, mesh%dims
                            do q = 1, mesh%dims
                                do b = -1, 1
                                    do a = -1, 1
                                        at = zone
                                        at(p) = at(p) + a
                                        if (q /= p) at(q) = at(q) + b
                                        d(a, b) = u(at(1), at(2), at(3))
                                    end do
                                end do
                                if (p == q) then
                                    above = above + (d(1, 0) - 2.0_r8*d(0, 0) + d(-1, 0))**2
                                    bound = abs(d(1, 0) - d(0, 0)) + abs(d(0, 0) - d(-1, 0)) &
                                            + settings%filter*(abs(d(1, 0)) + 2.0_r8*abs(d(0, 0)) + abs(d(-1, 0)))
                                    below = below + bound**2
                                else
                                    above = above + ((d(1, 1) - d(-1, 1) - d(1, -1) + d(-1, -1))/4.0_r8)**2
                                    bound = min(abs(d(1, 1) - d(-1, 1)) + abs(d(1, -1) - d(-1, -1)), &
                                                abs(d(1, 1) - d(1, -1)) + abs(d(-1, 1) - d(-1, -1)))
                                    bound = bound + settings%filter*sum(abs(d(-1:1:2, -1:1:2)))
                                    below = below + (bound/4.0_r8)**2
                                end if
                            end do
                        end do
                        if (below > 0.0_r8) largest = max(largest, sqrt(above/below))
                    end do
                end do
            end do
        end do
    end function naive_estimate

    !> Estimates computed by hand: nothing anywhere, and a plane step from 0 to 1 and from 1 to 2, in 2-d and 3-d.
    subroutine known_estimates()
        type(mesh_t) :: mesh
        real(r8) :: got, want
        integer :: dims, i, j, k, v

        do dims = 2, 3
            do v = 0, 1
                call make_mesh(mesh, dims, cartesian, v == 1, [1, 1, 1], 0, 1)
                call expect(abs(estimate(mesh, scratch(1), v_dens, 0.01_r8)) <= 0.0_r8, 'the estimate of nothing', [real(dims, r8)])
                do k = mesh%first_k(), mesh%last_k()
                    do j = first_guard, last_guard
                        do i = first_guard, last_guard
                            call put(mesh, scratch(1), v_dens, i, j, k, merge(1.0_r8, 0.0_r8, j > 7))
                            call put(mesh, scratch(2), v_dens, i, j, k, merge(2.0_r8, 1.0_r8, j > 7))
                        end do
                    end do
                end do
                ! Below the step 0, 0, 1; mixed differences are 0 and so is the smaller bound, except for two values 1
                ! beside four.
                want = 1.0_r8/sqrt(1.01_r8**2 + 2*(dims - 1)*0.005_r8**2)
                got = estimate(mesh, scratch(1), v_dens, 0.01_r8)
                call expect(abs(got - want) < 1.0e-14_r8, 'a step from 0 to 1', [got, want])
                ! 1, 1, 2; in the other directions 1, 1, 1.
                want = 1.05_r8**2 + (dims - 1)*0.04_r8**2 + 2*(dims - 1)*0.015_r8**2
                if (dims == 3) want = want + 2*0.01_r8**2
                want = 1.0_r8/sqrt(want)
                got = estimate(mesh, scratch(2), v_dens, 0.01_r8)
                call expect(abs(got - want) < 1.0e-14_r8, 'a step from 1 to 2', [got, want])
                call free(mesh)
            end do
        end do
    end subroutine known_estimates

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
                        real([leaf, mesh%slot(leaf)], r8))
            if (mesh%slot(leaf) == 0) cycle
            times(mesh%slot(leaf)) = times(mesh%slot(leaf)) + 1
            n = n + 1
            if (n <= size(mesh%local)) call expect(mesh%local(n) == leaf, 'local leaf', real([n, leaf], r8))
        end do
        call expect(n == size(mesh%local) .and. size(mesh%slot) == mesh%tree%n_leaves, 'local leaves', &
                    real([n, size(mesh%local)], r8))
        call expect(all(times == 1), 'each slot has one use', real([minval(times), maxval(times)], r8))
    end subroutine check_slots

    !> Sums over the domain of variable times volume, and of their sizes, by variable.
    subroutine totals(mesh, total, size_of)
        type(mesh_t), intent(in) :: mesh
        real(r8), intent(out) :: total(n_variables), size_of(n_variables)
        real(r8), allocatable :: mine(:, :), all(:)
        real(r8) :: volume(first_guard:last_guard), u
        integer :: l, i, j, k, v, n(3)

        allocate (mine(2*n_variables, size(mesh%local)), source=0.0_r8)
        n = mesh%zones()
        do l = 1, size(mesh%local)
            volume = mesh%zone_volumes(mesh%local(l))
            do k = 1, n(3)
                do j = 1, n(2)
                    do i = 1, n(1)
                        do v = 1, n_variables
                            u = volume(i)*get(mesh, mesh%slot(mesh%local(l)), v, i, j, k)
                            mine(v, l) = mine(v, l) + u
                            mine(n_variables + v, l) = mine(n_variables + v, l) + abs(u)
                        end do
                    end do
                end do
            end do
        end do
        call comm%all_gather([mine], all)
        do v = 1, n_variables
            total(v) = sum(all(v::2*n_variables))
            size_of(v) = sum(all(n_variables + v::2*n_variables))
        end do
    end subroutine totals

    subroutine fill_leaves(mesh, what)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: what
        integer :: l

        do l = 1, size(mesh%local)
            associate (leaf => mesh%local(l))
                call fill_block(mesh, mesh%slot(leaf), mesh%tree%level(leaf), mesh%tree%place(:, leaf), what)
            end associate
        end do
    end subroutine fill_leaves

    !> Set a block, guard cells too, to a field.
    subroutine fill_block(mesh, slot, level, place, what)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot, level, place(3), what
        real(r8) :: width(3)
        integer :: first(3), i, j, k, v

        width = mesh%zone_size(level)
        first = place*mesh%zones()
        do k = mesh%first_k(), mesh%last_k()
            do j = first_guard, last_guard
                do i = first_guard, last_guard
                    do v = 1, n_variables
                        if (what == noise) then
                            call put(mesh, slot, v, i, j, k, noise_of(v, level, first + [i, j, k]))
                        else
                            call put(mesh, slot, v, i, j, k, field(mesh, what, v, width, first + [i, j, k]))
                        end if
                    end do
                end do
            end do
        end do
    end subroutine fill_block

    !> A number that depends on variable, level and zone alone; energies are more than momenta demand.
    pure real(r8) function noise_of(v, level, zone)
        integer, intent(in) :: v, level, zone(3)
        integer(i8) :: mixed
        integer :: d

        mixed = 1 + v + 100*level
        do d = 1, 3
            mixed = modulo(16807_i8*mixed + 7919*zone(d) + 104729, 2147483647_i8)
        end do
        mixed = modulo(16807_i8*mixed, 2147483647_i8)
        noise_of = 0.5_r8 + real(mixed, r8)/2147483647.0_r8
        if (v > v_dens .and. v < v_ener) noise_of = noise_of - 1.0_r8
        if (v == v_ener) noise_of = noise_of + 3.0_r8
    end function noise_of

    !> A variable's mean in a zone, counted over the domain: of a linear function, or of a curved front.
    pure real(r8) function field(mesh, what, v, width, zone)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: what, v, zone(3)
        real(r8), intent(in) :: width(3)
        real(r8) :: x(3)

        x = mesh%lower + (zone - 0.5_r8)*width
        if (what == linear) then
            ! The mean of r over a ring of width w about r is r + w**2/(12 r).
            if (mesh%geometry == cylindrical) x(1) = x(1) + width(1)**2/(12.0_r8*x(1))
            if (mesh%dims == 2) x(3) = 0.0_r8
            field = merge(30.0_r8, 5.0_r8, v == v_ener) + 0.1_r8*v + dot_product([0.3_r8, -0.2_r8, 0.25_r8]*(1.0_r8 + 0.1_r8*v), x)
        else
            if (mesh%dims == 2) x(3) = 0.25_r8
            x = x - [0.7_r8, -0.6_r8, 0.3_r8]
            field = 2.0_r8 + 0.1_r8*v + 0.8_r8*tanh((norm2(x) - 0.3_r8)/0.004_r8)
        end if
    end function field

    pure real(r8) function get(mesh, slot, v, i, j, k)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, v, i, j, k

        if (mesh%variable_last) then
            get = mesh%soa(i, j, k, v, slot)
        else
            get = mesh%aos(v, i, j, k, slot)
        end if
    end function get

    subroutine put(mesh, slot, v, i, j, k, u)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot, v, i, j, k
        real(r8), intent(in) :: u

        if (mesh%variable_last) then
            mesh%soa(i, j, k, v, slot) = u
        else
            mesh%aos(v, i, j, k, slot) = u
        end if
    end subroutine put

    subroutine free(mesh)
        type(mesh_t), intent(inout) :: mesh

        call container_free(mesh, error)
        call expect(.not. error%failed(), 'container freed', [0.0_r8])
    end subroutine free

    !> From 0 to n - 1, the same in every run and on all ranks (S. K. Park, K. W. Miller, CACM 31, 1988, p. 1192).
    integer function random(n)
        integer, intent(in) :: n

        seed = modulo(16807_i8*seed, 2147483647_i8)
        random = int(modulo(seed/64, int(n, i8)))
    end function random

    !> Note a failure, with its values.
    subroutine expect(holds, what, values)
        logical, intent(in) :: holds
        character(*), intent(in) :: what
        real(r8), intent(in) :: values(:)

        if (holds) return
        failures = failures + 1
        if (failures <= 30) print '(a,i0,a,*(1x,g0))', 'FAIL rank ', comm%rank, ', '//what//':', values
    end subroutine expect

end program test_regrid
