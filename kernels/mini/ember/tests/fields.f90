!> Shared by the tests of ember that regrid: a distributed mesh and the fields on it.
module ember_test_fields
    use ember_mesh, only: block_zones, cylindrical, guard_zones, mesh_t, v_dens, v_ener
    use ember_parallel, only: comm_t
    use ember_test_meshes, only: get_value, give_container, put_value, share_out, take_slots
    use ember_testing, only: expect_success
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    implicit none
    private

    integer, parameter, public :: noise = 1, linear = 2, front = 3
    integer, parameter, public :: n_variables = 9
    !> Zones and guard cells of blocks in each direction, of the meshes that are made.
    integer, public :: block_shape(2) = [block_zones, guard_zones]
    !> Slots of the last mesh made that no leaf has.
    integer, protected, public :: scratch(2)

    public :: fill_block, fill_leaves, largest_error, make_mesh, totals

contains

    !> A mesh whose leaves are all blocks of `level`, distributed, on a container of `slots` blocks plus two for trials.
    subroutine make_mesh(mesh, comm, dims, geometry, variable_last, roots, level, slots)
        type(mesh_t), intent(out) :: mesh
        type(comm_t), intent(in) :: comm
        integer, intent(in) :: dims, geometry, roots(3), level, slots
        logical, intent(in) :: variable_last
        type(error_t) :: error

        call mesh%set_shape(block_shape(1), block_shape(2))
        mesh%dims = dims
        mesh%geometry = geometry
        mesh%variable_last = variable_last
        mesh%n_variables = n_variables
        mesh%n_species = 1
        mesh%lower = [0.0_r8, -1.0_r8, 0.25_r8]
        mesh%upper = mesh%lower + [1.5_r8, 0.75_r8, 1.25_r8]
        call mesh%tree%start(dims, roots, [.false., .true., .false.], level, error)
        call expect_success(error, 'tree')
        call share_out(mesh, comm%rank, comm%n_ranks)
        call give_container(mesh, slots + 2)
        scratch = [mesh%take_slot(), mesh%take_slot()]
        call take_slots(mesh)
    end subroutine make_mesh

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
            do j = mesh%first, mesh%last
                do i = mesh%first, mesh%last
                    do v = 1, n_variables
                        if (what == noise) then
                            call put_value(mesh, slot, v, i, j, k, noise_of(v, level, first + [i, j, k]))
                        else
                            call put_value(mesh, slot, v, i, j, k, field(mesh, what, v, width, first + [i, j, k]))
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

    !> The largest difference of a zone of this rank from a field.
    real(r8) function largest_error(mesh, what)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: what
        real(r8) :: difference
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
                                difference = abs(get_value(mesh, mesh%slot(leaf), v, i, j, k) &
                                                 - get_value(mesh, scratch(1), v, i, j, k))
                                if (.not. difference <= huge(difference)) difference = huge(difference)   ! NaN
                                largest_error = max(largest_error, difference)
                            end do
                        end do
                    end do
                end do
            end associate
        end do
    end function largest_error

    !> Sums over the domain of variable times volume, and of their sizes, by variable.
    subroutine totals(mesh, comm, total, size_of)
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        real(r8), intent(out) :: total(n_variables), size_of(n_variables)
        real(r8), allocatable :: mine(:, :), all(:)
        real(r8) :: volume(mesh%first:mesh%last), u
        integer :: l, i, j, k, v, n(3)

        allocate (mine(2*n_variables, size(mesh%local)), source=0.0_r8)
        n = mesh%zones()
        do l = 1, size(mesh%local)
            volume = mesh%zone_volumes(mesh%local(l))
            do k = 1, n(3)
                do j = 1, n(2)
                    do i = 1, n(1)
                        do v = 1, n_variables
                            u = volume(i)*get_value(mesh, mesh%slot(mesh%local(l)), v, i, j, k)
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

end module ember_test_fields
