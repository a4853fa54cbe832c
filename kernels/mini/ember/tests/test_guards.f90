!> The fill of guard cells on random nested meshes: random data against a look-up by position, linear functions, mirrored and
!> outgoing boundaries, and the same numbers for both layouts, any number of threads and any number of ranks; with blocks of
!> both schemes.
program test_guards
    !$ use omp_lib, only: omp_set_num_threads
    use ember_guards, only: guards_t
    use ember_mesh, only: block_zones, cartesian, guard_zones, cylindrical, mesh_t, outflow, periodic, reflecting, &
        v_ener, v_momx
    use ember_parallel, only: comm_t
    use ember_parents, only: slots_needed
    use ember_test_meshes, only: beyond, child_zone, discard, expect_same_zones, give_container, mixed, put_value, share_out, &
        take_slots, zones_of
    use ember_testing, only: expect, expect_success, finish, near, random_tree, start_pages
    use ember_tree, only: tree_t
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    implicit none
    integer, parameter :: random = 1, linear = 2
    integer :: block = block_zones, guards = guard_zones
    type(comm_t) :: comm
    type(error_t) :: error
    type(tree_t) :: tree

    call comm%begin(error)
    call expect_success(error, 'begin')
    call start_pages()

    call random_tree(tree, 2, [1, 1, 1], [.true., .true., .false.], 0, 0, 0.0_r8)
    call check(cartesian, [periodic, periodic])
    call random_tree(tree, 2, [2, 1, 1], [.true., .true., .false.], 1, 4, 0.3_r8)
    call check(cartesian, [periodic, periodic])
    call random_tree(tree, 2, [1, 2, 1], [.false., .false., .false.], 1, 4, 0.3_r8)
    call check(cartesian, [reflecting, outflow])
    call check(cartesian, [outflow, outflow])
    call check(cylindrical, [reflecting, outflow])
    call random_tree(tree, 2, [1, 2, 1], [.false., .true., .false.], 1, 4, 0.3_r8)
    call check(cylindrical, [reflecting, outflow])
    call random_tree(tree, 3, [1, 1, 1], [.true., .true., .true.], 0, 0, 0.0_r8)
    call check(cartesian, [periodic, periodic])
    call random_tree(tree, 3, [1, 1, 1], [.true., .true., .true.], 1, 3, 0.1_r8)
    call check(cartesian, [periodic, periodic])
    call random_tree(tree, 3, [1, 2, 1], [.false., .true., .false.], 0, 3, 0.15_r8)
    call check(cartesian, [outflow, reflecting])
    call random_tree(tree, 3, [1, 1, 1], [.false., .false., .false.], 1, 3, 0.1_r8)
    call check(cartesian, [reflecting, reflecting])

    guards = 4
    block = 32
    call random_tree(tree, 2, [1, 2, 1], [.false., .true., .false.], 0, 3, 0.3_r8)
    call check(cylindrical, [reflecting, outflow])
    block = 8
    call random_tree(tree, 2, [1, 2, 1], [.false., .false., .false.], 1, 4, 0.3_r8)
    call check(cartesian, [outflow, reflecting])
    call random_tree(tree, 3, [1, 2, 1], [.false., .true., .false.], 0, 3, 0.15_r8)
    call check(cartesian, [reflecting, outflow])
    call random_tree(tree, 3, [1, 1, 1], [.false., .false., .false.], 1, 2, 0.3_r8)
    call check(cartesian, [reflecting, outflow])

    call finish(comm)

contains

    !> All checks for the current tree; `boundary` at the lower and the upper end of directions that are not periodic.
    subroutine check(geometry, boundary)
        integer, intent(in) :: geometry, boundary(2)
        type(mesh_t) :: reference, mesh, new
        type(comm_t) :: alone
        integer :: last, threads, data, parents

        call make(reference, geometry, boundary, 0, 1)
        do data = random, linear
            if (data == linear .and. any(tree%periodic)) cycle
            call set_all(reference, data)
            call fill(reference, alone, 1)
            call compare_by_position(reference, data)
            if (data == linear) call compare_linear(reference)
            call compare_boundaries(reference)
            do last = 0, 1
                do threads = 1, 4, 3
                    do parents = 0, merge(1, 0, guards > guard_zones)
                        mesh = new
                        mesh%variable_last = last == 1
                        mesh%parents = parents == 1
                        call make(mesh, geometry, boundary, comm%rank, comm%n_ranks)
                        call set_all(mesh, data)
                        call fill(mesh, comm, threads)
                        call expect_same_zones(mesh, reference, mesh%bounds())
                        call discard(mesh)
                    end do
                end do
            end do
        end do
        call discard(reference)
    end subroutine check

    !> The mesh of the current tree; its layout and whether parents have data are already set.
    subroutine make(mesh, geometry, boundary, rank, n_ranks)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: geometry, boundary(2), rank, n_ranks
        integer :: needed(0:n_ranks - 1), d

        call mesh%set_shape(block, guards)
        mesh%dims = tree%dims
        mesh%geometry = geometry
        mesh%n_species = 1
        ! The last one is padding.
        mesh%n_variables = 10
        mesh%tree = tree
        mesh%lower = [merge(0.0_r8, -1.0_r8, geometry == cylindrical), 2.0_r8, 0.5_r8]
        mesh%upper = mesh%lower + [1.5_r8, 1.0_r8, 2.0_r8]
        do d = 1, 3
            mesh%boundary(:, d) = boundary
            if (tree%periodic(d)) mesh%boundary(:, d) = periodic
        end do
        call share_out(mesh, rank, n_ranks)
        needed = slots_needed(mesh%tree, mesh%parents, n_ranks)
        call give_container(mesh, needed(rank))
        call take_slots(mesh)
    end subroutine make

    subroutine fill(mesh, ranks, threads)
        type(mesh_t), intent(inout) :: mesh
        type(comm_t), intent(inout) :: ranks
        integer, intent(in) :: threads
        type(guards_t) :: cells

        associate (unused => threads)
        end associate
        !$ call omp_set_num_threads(threads)
        call cells%build(mesh)
        call cells%fill(mesh, ranks)
        call expect(mesh%n_free == 0 .or. size(mesh%local) == 0, 'slots of leaves and parents')
        call expect(mesh%n_parents() > 0 .or. .not. mesh%parents .or. mesh%n_ranks > 1, 'parents have data')
        ! Again: filled guard cells stay unchanged, and lists can be rebuilt.
        call cells%build(mesh)
        call cells%fill(mesh, ranks)
    end subroutine fill

    !> The value of variable v in a zone of `level`, `zone` counted from 0 over the domain.
    real(r8) function value_of(mesh, data, level, zone, v) result(value)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: data, level, zone(3), v
        real(r8) :: width(3), x(3)

        if (data == random) then
            value = 1.0_r8 + mixed(v + 31_i8*(level + 31_i8*(zone(1) + 1021_i8*(zone(2) + 1021_i8*zone(3)))))
        else
            width = mesh%zone_size(level)
            x = mesh%lower + (zone + 0.5_r8)*width
            ! Means over zones are values at centroids.
            if (mesh%geometry == cylindrical) x(1) = x(1) + width(1)**2/(12.0_r8*x(1))
            value = 10.0_r8 + (v - 4.5_r8)*x(1) + 0.5_r8*(3.25_r8 - v)*x(2)
            if (mesh%dims == 3) value = value + 0.75_r8*(v - 6.125_r8)*x(3)
        end if
        if (v >= v_momx .and. v < v_ener) value = 0.01_r8*value
        if (v == v_ener) value = 100.0_r8*value
    end function value_of

    !> Set the zones of all leaves here; guard cells get values that every fill must replace.
    subroutine set_all(mesh, data)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: data
        real(r8) :: value
        integer :: l, leaf, i, j, k, v

        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            do k = mesh%first_k(), mesh%last_k()
                do j = mesh%first, mesh%last
                    do i = mesh%first, mesh%last
                        do v = 1, mesh%n_variables
                            value = -1.0e6_r8
                            if (beyond([i, j, k], mesh) == 0) &
                                value = value_of(mesh, data, tree%level(leaf), mesh%block*tree%place(:, leaf) + [i, j, k] - 1, v)
                            call put_value(mesh, mesh%slot(leaf), v, i, j, k, value)
                        end do
                    end do
                end do
            end do
        end do
    end subroutine set_all

    !> Guard cells inside the domain against the zones at their positions.
    subroutine compare_by_position(mesh, data)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: data
        integer :: leaf, i, j, k, v, level, zone(3), n(3), covering, seen(3), m
        real(r8) :: expected, weight, total, x

        seen = 0
        do leaf = 1, tree%n_leaves
            level = tree%level(leaf)
            n = zones_of(mesh, level)
            do k = mesh%first_k(), mesh%last_k()
                do j = mesh%first, mesh%last
                    do i = mesh%first, mesh%last
                        if (beyond([i, j, k], mesh) == 0 .or. beyond([i, j, k], mesh) == 3) cycle
                        zone = mesh%block*tree%place(:, leaf) + [i, j, k] - 1
                        where (tree%periodic) zone = modulo(zone, n)
                        if (any(zone < 0 .or. zone >= n)) cycle
                        covering = tree%find(level, zone/mesh%zones())
                        associate (got => mesh%aos(:, i, j, k, mesh%slot(leaf)))
                            if (tree%level(covering) == level) then
                                seen(1) = seen(1) + 1
                                do v = 1, mesh%n_variables
                                    call expect(abs(got(v) - value_of(mesh, data, level, zone, v)) <= 0.0_r8, 'a copied guard cell')
                                end do
                            else if (tree%level(covering) > level) then
                                seen(2) = seen(2) + 1
                                do v = 1, mesh%n_variables
                                    total = 0.0_r8
                                    expected = 0.0_r8
                                    do m = 0, 2**mesh%dims - 1
                                        weight = 1.0_r8
                                        ! Means by volume: rings by their radii.
                                        if (mesh%geometry == cylindrical) weight = 2*zone(1) + ibits(m, 0, 1) + 0.5_r8
                                        x = value_of(mesh, data, level + 1, child_zone(mesh, zone, m), v)
                                        expected = expected + weight*x
                                        total = total + weight
                                    end do
                                    call expect(near(got(v), expected/total), 'a mean in a guard cell')
                                end do
                            end if
                        end associate
                        if (tree%level(covering) < level) then
                            seen(3) = seen(3) + 1
                            call compare_parent(mesh, data, leaf, [i, j, k], zone)
                        end if
                    end do
                end do
            end do
        end do
        call expect(seen(1) > 0, 'copies were seen')
        if (minval(tree%level) < maxval(tree%level)) call expect(all(seen > 0), 'means and prolongation were seen')
    end subroutine compare_by_position

    !> The mean of all guard cells in a coarser zone, against that zone.
    subroutine compare_parent(mesh, data, leaf, guard, zone)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: data, leaf, guard(3), zone(3)
        integer :: parent(3), first(3), m, v, at(3)
        real(r8) :: weight, total, mean(mesh%n_variables)

        parent = zone
        parent(:mesh%dims) = zone(:mesh%dims)/2
        first = guard
        first(:mesh%dims) = guard(:mesh%dims) - modulo(zone(:mesh%dims), 2)
        total = 0.0_r8
        mean = 0.0_r8
        do m = 0, 2**mesh%dims - 1
            weight = 1.0_r8
            if (mesh%geometry == cylindrical) weight = 2*parent(1) + ibits(m, 0, 1) + 0.5_r8
            at = first + [ibits(m, 0, 1), ibits(m, 1, 1), ibits(m, 2, 1)]
            total = total + weight
            mean = mean + weight*mesh%aos(:, at(1), at(2), at(3), mesh%slot(leaf))
        end do
        do v = 1, mesh%n_variables
            call expect(near(mean(v)/total, value_of(mesh, data, tree%level(leaf) - 1, parent, v)), 'the mean of guard cells')
        end do
    end subroutine compare_parent

    !> Guard cells against a linear function, unless a boundary affects them.
    subroutine compare_linear(mesh)
        type(mesh_t), intent(in) :: mesh
        integer :: leaf, i, j, k, v, level, zone(3), n(3), covering, margin

        do leaf = 1, tree%n_leaves
            level = tree%level(leaf)
            n = zones_of(mesh, level)
            do k = mesh%first_k(), mesh%last_k()
                do j = mesh%first, mesh%last
                    do i = mesh%first, mesh%last
                        if (beyond([i, j, k], mesh) == 3) cycle
                        zone = mesh%block*tree%place(:, leaf) + [i, j, k] - 1
                        if (any(zone < 0 .or. zone >= n)) cycle
                        covering = tree%find(level, zone/mesh%zones())
                        ! A coarser zone on the boundary takes its slope across it.
                        margin = merge(2, 0, tree%level(covering) < level)
                        if (any(zone(:mesh%dims) < margin .or. zone(:mesh%dims) >= n(:mesh%dims) - margin)) cycle
                        do v = 1, mesh%n_variables
                            call expect(near(mesh%aos(v, i, j, k, mesh%slot(leaf)), value_of(mesh, linear, level, zone, v)), &
                                        'a linear function')
                        end do
                    end do
                end do
            end do
        end do
    end subroutine compare_linear

    !> Guard cells beyond the boundary against the zones or guard cells of the block that they mirror or follow.
    subroutine compare_boundaries(mesh)
        type(mesh_t), intent(in) :: mesh
        integer :: leaf, i, j, k, v, d, side, zone(3), n(3), at(3), seen
        real(r8) :: factor(mesh%n_variables)

        seen = 0
        do leaf = 1, tree%n_leaves
            n = zones_of(mesh, tree%level(leaf))
            do k = mesh%first_k(), mesh%last_k()
                do j = mesh%first, mesh%last
                    do i = mesh%first, mesh%last
                        if (beyond([i, j, k], mesh) == 3) cycle
                        zone = mesh%block*tree%place(:, leaf) + [i, j, k] - 1
                        at = [i, j, k]
                        factor = 1.0_r8
                        do d = 1, mesh%dims
                            if (tree%periodic(d)) cycle
                            if (zone(d) >= 0 .and. zone(d) < n(d)) cycle
                            side = merge(1, 2, zone(d) < 0)
                            if (mesh%boundary(side, d) == outflow) then
                                at(d) = merge(1, mesh%block, side == 1)
                            else
                                at(d) = merge(1, 2*mesh%block + 1, side == 1) - at(d)
                                factor(v_momx + d - 1) = -1.0_r8
                            end if
                        end do
                        if (all(at == [i, j, k])) cycle
                        seen = seen + 1
                        do v = 1, mesh%n_variables
                            call expect(abs(mesh%aos(v, i, j, k, mesh%slot(leaf)) &
                                            - factor(v)*mesh%aos(v, at(1), at(2), at(3), mesh%slot(leaf))) <= 0.0_r8, 'a boundary')
                        end do
                    end do
                end do
            end do
        end do
        call expect(seen > 0 .or. all(tree%periodic(:tree%dims)), 'boundaries were seen')
    end subroutine compare_boundaries

end program test_guards
