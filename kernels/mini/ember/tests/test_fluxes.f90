!> Flux registers on random nested meshes: zones change by amounts through their faces, registers correct the coarser side,
!> and then every zone agrees with the finest amounts, and the domain with the fluxes through its boundary; layouts, threads
!> and ranks agree.
program test_fluxes
    !$ use omp_lib, only: omp_set_num_threads
    use ember_fluxes, only: registers_t
    use ember_mesh, only: block_zones, cartesian, cylindrical, first_species, guard_zones, mesh_t, n_conserved
    use ember_parallel, only: comm_t
    use ember_test_meshes, only: child_zone, discard, expect_same_zones, give_container, mixed, put_value, share_out, take_slots, &
        zones_of
    use ember_testing, only: expect, expect_success, finish, random_tree, start_pages
    use ember_tree, only: tree_t
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    implicit none
    integer, parameter :: n_species = 2, n_amounts = n_conserved + n_species
    integer :: block = block_zones, guards = guard_zones
    type(comm_t) :: comm
    type(error_t) :: error
    type(tree_t) :: tree

    call comm%begin(error)
    call expect_success(error, 'begin')
    call start_pages()

    call random_tree(tree, 2, [2, 1, 1], [.true., .true., .false.], 1, 4, 0.3_r8)
    call check(cartesian)
    call random_tree(tree, 2, [1, 2, 1], [.false., .true., .false.], 1, 4, 0.3_r8)
    call check(cartesian)
    call check(cylindrical)
    call random_tree(tree, 2, [1, 1, 1], [.true., .true., .false.], 1, 1, 0.0_r8)
    call check(cartesian)
    call random_tree(tree, 3, [1, 1, 1], [.true., .true., .true.], 1, 3, 0.1_r8)
    call check(cartesian)
    call random_tree(tree, 3, [1, 2, 1], [.false., .true., .false.], 0, 2, 0.3_r8)
    call check(cartesian)
    block = 8
    guards = 4
    call check(cartesian)

    call finish(comm)

contains

    subroutine check(geometry)
        integer, intent(in) :: geometry
        type(mesh_t) :: reference, mesh
        type(comm_t) :: alone
        integer :: last, threads, interior(2, 3)

        call make(reference, geometry, .false., 0, 1)
        interior(1, :) = 1
        interior(2, :) = reference%zones()
        call change(reference, alone, 1)
        call compare_by_position(reference)
        call compare_sums(reference)
        do last = 0, 1
            do threads = 1, 4, 3
                call make(mesh, geometry, last == 1, comm%rank, comm%n_ranks)
                call change(mesh, comm, threads)
                call expect_same_zones(mesh, reference, interior)
                call discard(mesh)
            end do
        end do
        call discard(reference)
    end subroutine check

    subroutine make(mesh, geometry, last, rank, n_ranks)
        type(mesh_t), intent(out) :: mesh
        integer, intent(in) :: geometry, rank, n_ranks
        logical, intent(in) :: last

        call mesh%set_shape(block, guards)
        mesh%dims = tree%dims
        mesh%geometry = geometry
        mesh%variable_last = last
        mesh%n_species = n_species
        mesh%n_variables = first_species + n_species - 1
        mesh%tree = tree
        mesh%lower = [0.0_r8, 2.0_r8, 0.5_r8]
        mesh%upper = mesh%lower + [1.5_r8, 1.0_r8, 2.0_r8]
        call share_out(mesh, rank, n_ranks)
        call give_container(mesh, size(mesh%local))
        call take_slots(mesh)
    end subroutine make

    !> A random number for (v, direction, level, place): between -1 and 1.
    pure real(r8) function hash(v, direction, level, place)
        integer, intent(in) :: v, direction, level, place(3)

        hash = mixed(v + 31_i8*(direction + 5_i8*(level + 31_i8*(place(1) + 1021_i8*(place(2) + 1021_i8*place(3))))))
        hash = 2.0_r8*hash - 1.0_r8
    end function hash

    !> The flux through the lower face in `direction` of a zone, or with `side` 2 its upper one; zones are counted from 0
    !> over the domain. Zones of one level share their faces.
    pure real(r8) function amount_of(mesh, v, level, zone, direction, side) result(amount)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: v, level, zone(3), direction, side
        integer :: place(3), n(3)

        n = zones_of(mesh, level)
        place = zone
        place(direction) = place(direction) + side - 1
        if (tree%periodic(direction)) place(direction) = modulo(place(direction), n(direction))
        amount = 1.0e-3_r8*hash(v, direction, level, place)
    end function amount_of

    !> The variable that amount v belongs to.
    pure integer function variable_of(v)
        integer, intent(in) :: v

        variable_of = merge(v, first_species + v - n_conserved - 1, v <= n_conserved)
    end function variable_of

    !> Set all zones, change them by the fluxes at their level, store these in registers, and correct.
    subroutine change(mesh, ranks, threads)
        type(mesh_t), intent(inout) :: mesh
        type(comm_t), intent(inout) :: ranks
        integer, intent(in) :: threads
        type(registers_t) :: registers
        logical, allocatable :: touched(:)
        real(r8) :: volume(mesh%first:mesh%last), u, amount(2, 3)
        integer :: l, leaf, i, j, k, v, d, side, zone(3), edge(3)

        associate (unused => threads)
        end associate
        !$ call omp_set_num_threads(threads)
        call registers%build(mesh)
        call registers%build(mesh)
        call check_new(mesh, registers)
        call registers%clear()
        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            volume = mesh%zone_volumes(leaf)
            edge = mesh%zones()
            do k = 1, edge(3)
                do j = 1, edge(2)
                    do i = 1, edge(1)
                        zone = mesh%block*tree%place(:, leaf) + [i, j, k] - 1
                        do v = 1, n_amounts
                            u = 10.0_r8 + hash(v, 4, tree%level(leaf), zone)
                            do d = 1, mesh%dims
                                do side = 1, 2
                                    amount(side, d) = amount_of(mesh, v, tree%level(leaf), zone, d, side)
                                    u = u - (2*side - 3)*amount(side, d)/volume(i)
                                end do
                            end do
                            call put_value(mesh, mesh%slot(leaf), variable_of(v), i, j, k, u)
                            if (i == 1) call add(registers, leaf, 1, 1, j, k, v, amount(1, 1))
                            if (i == edge(1)) call add(registers, leaf, 1, 2, j, k, v, amount(2, 1))
                            if (j == 1) call add(registers, leaf, 2, 1, i, k, v, amount(1, 2))
                            if (j == edge(2)) call add(registers, leaf, 2, 2, i, k, v, amount(2, 2))
                            if (mesh%dims == 2) cycle
                            if (k == 1) call add(registers, leaf, 3, 1, i, j, v, amount(1, 3))
                            if (k == edge(3)) call add(registers, leaf, 3, 2, i, j, v, amount(2, 3))
                        end do
                    end do
                end do
            end do
        end do
        allocate (touched(tree%n_leaves))
        call registers%correct(mesh, ranks, touched)
        do leaf = 1, tree%n_leaves
            call expect(touched(leaf) .eqv. (mesh%slot(leaf) > 0 .and. any_finer(mesh, leaf)), 'touched leaves')
        end do
    end subroutine change

    !> New registers are zero and stand where levels meet; they end with other values, to be cleared.
    subroutine check_new(mesh, registers)
        type(mesh_t), intent(in) :: mesh
        type(registers_t), intent(inout) :: registers
        real(r8), pointer, contiguous :: p(:, :, :)
        integer :: l, d, side

        do l = 1, size(mesh%local)
            do d = 1, mesh%dims
                do side = 1, 2
                    p => registers%face(mesh%local(l), d, side)
                    call expect(associated(p) .eqv. meets(mesh, mesh%local(l), d, side) /= 0, 'registers stand where levels meet')
                    if (.not. associated(p)) cycle
                    call expect(size(p, 1) == n_amounts .and. size(p, 2) == mesh%block &
                                .and. size(p, 3) == merge(mesh%block, 1, mesh%dims == 3), 'shape of a register')
                    call expect(all(abs(p) <= 0.0_r8), 'a new register')
                    p = 1.0_r8
                end do
            end do
        end do
    end subroutine check_new

    !> Add an amount to a register, if there is one, in two parts, like two stages of a step.
    subroutine add(registers, leaf, d, side, a, b, v, amount)
        type(registers_t), intent(inout) :: registers
        integer, intent(in) :: leaf, d, side, a, b, v
        real(r8), intent(in) :: amount
        real(r8), pointer, contiguous :: p(:, :, :)

        p => registers%face(leaf, d, side)
        if (.not. associated(p)) return
        p(v, a, b) = p(v, a, b) + 0.5_r8*amount
        p(v, a, b) = p(v, a, b) + 0.5_r8*amount
    end subroutine add

    !> The level across a face of `leaf` minus its own; 0 at the boundary of the domain. By position.
    pure integer function meets(mesh, leaf, d, side)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf, d, side
        integer :: zone(3), n(3), level

        level = tree%level(leaf) + 1
        n = zones_of(mesh, level)
        zone = mesh%block*tree%place(:, leaf)
        zone(:mesh%dims) = 2*zone(:mesh%dims)
        zone(d) = zone(d) + merge(-1, 2*mesh%block, side == 1)
        if (tree%periodic(d)) zone(d) = modulo(zone(d), n(d))
        meets = 0
        if (zone(d) < 0 .or. zone(d) >= n(d)) return
        meets = tree%level(tree%find(level, zone/mesh%zones())) - tree%level(leaf)
    end function meets

    pure logical function any_finer(mesh, leaf)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        integer :: d, side

        any_finer = .false.
        do d = 1, mesh%dims
            do side = 1, 2
                if (meets(mesh, leaf, d, side) > 0) any_finer = .true.
            end do
        end do
    end function any_finer

    !> Every zone against the fluxes through its faces, from the finer side.
    subroutine compare_by_position(mesh)
        type(mesh_t), intent(in) :: mesh
        integer :: leaf, i, j, k, v, d, side, zone(3), edge(3), at(3)
        real(r8) :: volume(mesh%first:mesh%last), u, amount

        edge = mesh%zones()
        do leaf = 1, tree%n_leaves
            volume = mesh%zone_volumes(leaf)
            do k = 1, edge(3)
                do j = 1, edge(2)
                    do i = 1, edge(1)
                        at = [i, j, k]
                        zone = mesh%block*tree%place(:, leaf) + at - 1
                        do v = 1, n_amounts
                            u = 10.0_r8 + hash(v, 4, tree%level(leaf), zone)
                            do d = 1, mesh%dims
                                do side = 1, 2
                                    amount = amount_of(mesh, v, tree%level(leaf), zone, d, side)
                                    if (at(d) == merge(1, mesh%block, side == 1)) then
                                        if (meets(mesh, leaf, d, side) > 0) &
                                            amount = fine_amount(mesh, v, tree%level(leaf), zone, d, side)
                                    end if
                                    u = u - (2*side - 3)*amount/volume(i)
                                end do
                            end do
                            call expect(near(mesh%aos(variable_of(v), i, j, k, mesh%slot(leaf)), u), 'a corrected zone')
                        end do
                        call expect(all(abs(mesh%aos(n_conserved + 1:first_species - 1, i, j, k, mesh%slot(leaf))) <= 0.0_r8), &
                                    'derived variables stay')
                    end do
                end do
            end do
        end do
    end subroutine compare_by_position

    !> The sum of the finer level's fluxes through a face of a zone.
    pure real(r8) function fine_amount(mesh, v, level, zone, d, side) result(amount)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: v, level, zone(3), d, side
        integer :: m

        amount = 0.0_r8
        do m = 0, 2**mesh%dims - 1
            if (ibits(m, d - 1, 1) /= side - 1) cycle
            amount = amount + amount_of(mesh, v, level + 1, child_zone(mesh, zone, m), d, side)
        end do
    end function fine_amount

    !> Sums over the domain against the fluxes through its boundary.
    subroutine compare_sums(mesh)
        type(mesh_t), intent(in) :: mesh
        integer :: leaf, i, j, k, v, d, side, zone(3), edge(3), n(3)
        real(r8) :: volume(mesh%first:mesh%last), before, after, passed

        edge = mesh%zones()
        do v = 1, n_amounts
            before = 0.0_r8
            after = 0.0_r8
            passed = 0.0_r8
            do leaf = 1, tree%n_leaves
                volume = mesh%zone_volumes(leaf)
                n = zones_of(mesh, tree%level(leaf))
                do k = 1, edge(3)
                    do j = 1, edge(2)
                        do i = 1, edge(1)
                            zone = mesh%block*tree%place(:, leaf) + [i, j, k] - 1
                            before = before + volume(i)*(10.0_r8 + hash(v, 4, tree%level(leaf), zone))
                            after = after + volume(i)*mesh%aos(variable_of(v), i, j, k, mesh%slot(leaf))
                            do d = 1, mesh%dims
                                if (tree%periodic(d)) cycle
                                do side = 1, 2
                                    if (zone(d) /= merge(0, n(d) - 1, side == 1)) cycle
                                    passed = passed - (2*side - 3)*amount_of(mesh, v, tree%level(leaf), zone, d, side)
                                end do
                            end do
                        end do
                    end do
                end do
            end do
            call expect(abs(after - before - passed) < 1.0e-12_r8*abs(before), 'sums over the domain')
        end do
    end subroutine compare_sums

    !> Whether two numbers are equal to round-off: for zones whose volumes may be small compared with their fluxes.
    elemental logical function near(a, b)
        real(r8), intent(in) :: a, b

        near = abs(a - b) <= 1.0e-12_r8*max(abs(a), abs(b), 1.0e3_r8)
    end function near

end program test_fluxes
