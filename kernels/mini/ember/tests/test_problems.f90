!> Initial states have exact totals on any mesh, and exact solutions are correct.
program test_problems
    use ember_container, only: container_create, container_free, container_touch
    use ember_mesh, only: cylindrical, mesh_t, periodic, v_dens, v_ener, v_momx, v_momy, v_momz
    use ember_parameters, only: parameters_t
    use ember_problems, only: new_problem, problem_t, sedov_problem_t
    use ember_tree, only: tree_t
    use ember_tree_adapt, only: adapt_tree
    use pw_error, only: error_t, exit_usage, stop_on
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_none
    implicit none
    integer :: failures = 0
    real(r8), parameter :: pi = acos(-1.0_r8)
    type(parameters_t) :: given
    type(mesh_t) :: mesh
    class(problem_t), allocatable :: problem
    type(error_t) :: error

    call explosion_energy()
    call explosion_symmetry()
    call explosion_solution()
    call no_room()
    call tube()
    call wave()
    if (failures > 0) error stop 'test_problems: failures'

contains

    !> The whole energy, in each geometry, on uniform meshes of several levels, and on one with leaves of two levels.
    subroutine explosion_energy()
        integer :: level, leaf

        do level = 0, 2
            call fresh('sedov', 2, 3)
            call place(level, .false.)
            call expect_near('energy in 3-d', total(v_ener), 2.5_r8 + ambient(1.0_r8), 1.0e-13_r8)
            call expect_near('mass in 3-d', total(v_dens), 0.7_r8, 1.0e-13_r8)
        end do
        call fresh('sedov', 2, 3)
        call place(1, .true.)
        call expect_near('energy on two levels', total(v_ener), 2.5_r8 + ambient(1.0_r8), 1.0e-13_r8)

        call fresh('sedov', 2, 3)
        given%octant = .true.
        given%variable_last = .true.
        given%n_species = 2
        call place(1, .true.)
        call expect_near('energy of the octant', total(v_ener), 2.5_r8/8.0_r8 + ambient(1.0_r8), 1.0e-13_r8)
        call expect_near('species', total(10), 0.35_r8, 1.0e-13_r8)

        call fresh('sedov', 3, 2)
        given%upper(1) = 2.0_r8
        given%n_species = 1
        call place(2, .true.)
        call expect_near('energy in 2-d', total(v_ener), 2.5_r8 + ambient(2.0_r8), 1.0e-13_r8)
        call expect_near('a species', total(9), 1.4_r8, 1.0e-13_r8)

        call fresh('sedov', 3, 2)
        given%geometry = cylindrical
        call place(2, .true.)
        call expect_near('energy of the cylinder', total(v_ener), 2.5_r8 + ambient(pi), 1.0e-13_r8)
        call place(3, .false.)
        leaf = mesh%tree%find(3, [0, 4, 0])
        associate (heat => mesh%aos(v_ener, :, 1, 1, mesh%slot(leaf)))
            ! From its lower bound: zones 1 and 2, both completely in the ball, after two guard cells.
            call expect_near('heat is even across the radius', heat(3), heat(4), 1.0e-13_r8)
        end associate
        given%octant = .true.
        call place(2, .false.)
        call expect_near('energy of its upper half', total(v_ener), 1.25_r8 + ambient(pi), 1.0e-13_r8)
    end subroutine explosion_energy

    !> Mirror images and rotated ones have the same bits.
    subroutine explosion_symmetry()
        real(r8) :: all_zones(32, 32, 32)
        integer :: leaf, low(3), high(3)

        call fresh('sedov', 1, 3)
        given%sedov_radius = 4.3_r8
        call place(1, .false.)
        do leaf = 1, mesh%tree%n_leaves
            low = 16*mesh%tree%place(:, leaf) + 1
            high = low + 15
            all_zones(low(1):high(1), low(2):high(2), low(3):high(3)) = mesh%aos(v_ener, 1:16, 1:16, 1:16, mesh%slot(leaf))
        end do
        call expect('the explosion is somewhere', count(all_zones > 1.0e-3_r8) > 300)
        call expect('mirrored by x', all(same(all_zones, all_zones(32:1:-1, :, :))))
        call expect('mirrored by y', all(same(all_zones, all_zones(:, 32:1:-1, :))))
        call expect('mirrored by z', all(same(all_zones, all_zones(:, :, 32:1:-1))))
        call expect('turned', all(same(all_zones, reshape(all_zones, [32, 32, 32], order=[2, 3, 1]))))
        call expect('swapped', all(same(all_zones, reshape(all_zones, [32, 32, 32], order=[2, 1, 3]))))
    end subroutine explosion_symmetry

    !> The exact solution's zone averages conserve mass and energy as accurately as their points.
    subroutine explosion_solution()
        real(r8) :: mass, energy, dens, velocity(3), pres, width, volume, point(3)
        integer :: i, j, k
        integer, parameter :: n = 32

        call fresh('sedov', 1, 3)
        given%octant = .true.
        given%sedov_pressure = 1.0e-10_r8
        call new_problem(given, problem, error)
        call stop_on('test_problems', error)
        mass = 0.0_r8
        energy = 0.0_r8
        width = 1.0_r8/n
        volume = width**3
        do k = 1, n
            do j = 1, n
                do i = 1, n
                    call problem%exact(0.2_r8, width*[i - 1, j - 1, k - 1], width*[i, j, k], dens, velocity, pres)
                    mass = mass + volume*dens
                    energy = energy + volume*(pres/0.4_r8 + 0.5_r8*dens*sum(velocity**2))
                end do
            end do
        end do
        call expect_near('exact mass', mass, 0.7_r8, 1.0e-2_r8)
        call expect_near('exact energy', energy, 2.5_r8/8.0_r8, 1.0e-2_r8)
        call problem%exact(0.2_r8, [0.1_r8, 0.2_r8, 0.3_r8], [0.11_r8, 0.21_r8, 0.31_r8], dens, velocity, pres)
        call expect_near('away from the centre', velocity(3)/velocity(1), 0.305_r8/0.105_r8, 1.0e-3_r8)
        call problem%exact(0.0_r8, [0.0_r8, 0.0_r8, 0.0_r8], [0.1_r8, 0.1_r8, 0.1_r8], dens, velocity, pres)
        call expect_near('at the beginning', dens + sum(velocity) + pres, 0.7_r8 + 1.0e-10_r8, 1.0e-15_r8)
        select type (problem)
        type is (sedov_problem_t)
            do i = 1, 400
                width = 0.7_r8*i/400
                call problem%exact(0.2_r8, [0.0_r8, 0.0_r8, width], [1.0e-9_r8, 1.0e-9_r8, width + 1.0e-9_r8], dens, velocity, pres)
                call problem%blast%profile(width + 0.5e-9_r8, 0.2_r8, point(1), point(2), point(3))
                call expect_near('density at a point', dens, point(1), 2.0e-6_r8)
                call expect_near('velocity at a point', velocity(3), point(2), 2.0e-6_r8)
                call expect_near('pressure at a point', pres, max(point(3), 1.0e-10_r8), 2.0e-6_r8)
            end do
            call expect_near('the centre of an octant', norm2(problem%centre), 0.0_r8, 1.0e-15_r8)
            call expect_near('its share', problem%share, 0.125_r8, 1.0e-15_r8)
        end select
    end subroutine explosion_solution

    subroutine no_room()
        type(error_t) :: refusal

        call fresh('sedov', 0, 3)
        given%sedov_radius = 8.5_r8
        call new_problem(given, problem, refusal)
        call expect('a large ball is refused', refusal%code == exit_usage)
        given%octant = .true.
        refusal = error_t()
        call new_problem(given, problem, refusal)
        call expect('it fits into the octant', .not. refusal%failed())
    end subroutine no_room

    !> The tube in each direction: its masses, and, later, that mass and energy are conserved and momentum follows from the
    !> pressures.
    subroutine tube()
        real(r8) :: sums(3), dens, velocity(3), pres, lower(3), upper(3)
        integer :: direction, i

        do direction = 1, 3
            call fresh('sod', 1, 3)
            given%sod_direction = direction
            call place(1, .true.)
            call expect_near('mass of the tube', total(v_dens), 0.5625_r8, 1.0e-14_r8)
            call expect_near('energy of the tube', total(v_ener), 1.375_r8, 1.0e-14_r8)
            sums = 0.0_r8
            lower = 0.0_r8
            upper = 1.0_r8
            do i = 1, 50
                lower(direction) = 0.02_r8*(i - 1)
                upper(direction) = 0.02_r8*i
                call problem%exact(0.2_r8, lower, upper, dens, velocity, pres)
                sums = sums + 0.02_r8*[dens, dens*velocity(direction), dens*(sum(velocity) - velocity(direction))]
            end do
            call expect_near('mass later', sums(1), 0.5625_r8, 1.0e-7_r8)
            call expect_near('momentum later', sums(2), 0.9_r8*0.2_r8, 1.0e-7_r8)
            call expect_near('none across', sums(3), 0.0_r8, 0.0_r8)
        end do
    end subroutine tube

    !> The wave: averages of zones are those of their children, and it returns.
    subroutine wave()
        real(r8) :: dens, velocity(3), pres, children, child, lower(3), upper(3), half(3), later
        integer :: i, j

        call fresh('wave', 1, 2)
        given%boundary = periodic
        given%upper(1) = 3.0_r8
        given%wave_speed = 0.5_r8
        call place(1, .true.)
        call expect_near('mass of the wave', total(v_dens), 3.0_r8, 1.0e-14_r8)
        call expect_near('momentum x', total(v_momx), 4.5_r8, 1.0e-14_r8)
        call expect_near('momentum y', total(v_momy), 1.5_r8, 1.0e-14_r8)
        call expect_near('momentum z', total(v_momz), 0.0_r8, 0.0_r8)
        call expect_near('energy', total(v_ener), 7.5_r8 + 0.5_r8*3.0_r8*(1.5_r8**2 + 0.5_r8**2), 1.0e-13_r8)
        lower = [0.3_r8, 0.5_r8, 0.0_r8]
        upper = [0.7_r8, 0.8_r8, 1.0_r8]
        call problem%exact(0.3_r8, lower, upper, dens, velocity, pres)
        children = 0.0_r8
        do j = 0, 1
            do i = 0, 1
                half = 0.5_r8*(upper - lower)
                call problem%exact(0.3_r8, lower + half*[i, j, 0], lower + half*[i + 1, j + 1, 2], child, velocity, pres)
                children = children + 0.25_r8*child
            end do
        end do
        call expect_near('the children''s average', children, dens, 1.0e-15_r8)
        call problem%exact(2.3_r8, lower, upper, later, velocity, pres)
        call expect_near('a period later', later, dens, 1.0e-14_r8)
        call expect_near('velocity', velocity(1)*velocity(2), 0.75_r8, 1.0e-15_r8)
    end subroutine wave

    subroutine fresh(name, highest_level, dims)
        character(*), intent(in) :: name
        integer, intent(in) :: highest_level, dims

        call forget(given)
        given%problem = name
        given%dims = dims
        given%highest_level = highest_level
        given%sedov_energy = 2.5_r8
        given%sedov_density = 0.7_r8
        given%sedov_pressure = 1.0e-3_r8
    end subroutine fresh

    !> Reset all components to their state without a value.
    subroutine forget(parameters)
        type(parameters_t), intent(out) :: parameters

        parameters%problem = ''
    end subroutine forget

    subroutine forget_mesh(old)
        type(mesh_t), intent(out) :: old

        old%n_free = 0
    end subroutine forget_mesh

    !> Heat of the surrounding gas in a volume.
    pure real(r8) function ambient(volume)
        real(r8), intent(in) :: volume

        ambient = volume*1.0e-3_r8/0.4_r8
    end function ambient

    !> Put the problem on a mesh whose leaves have the `level`, or, with `mixed`, one of them one level higher.
    subroutine place(level, mixed)
        integer, intent(in) :: level
        logical, intent(in) :: mixed
        type(tree_t) :: finer
        integer, allocatable :: mark(:), kind(:), origin(:)
        integer :: leaf

        if (associated(mesh%aos) .or. associated(mesh%soa)) call container_free(mesh, error)
        call forget_mesh(mesh)
        call given%set_up_mesh(mesh)
        call mesh%tree%start(given%dims, given%roots, mesh%boundary(1, :) == periodic, level, error)
        call stop_on('test_problems', error)
        if (mixed) then
            allocate (mark(mesh%tree%n_leaves), source=0)
            mark(1) = 1
            call adapt_tree(mesh%tree, mark, 0, given%highest_level, finer, kind, origin)
            mesh%tree = finer
        end if
        call container_create(mesh, 64_i8*1024**2, pages_none, error)
        call stop_on('test_problems', error)
        call container_touch(mesh)
        call new_problem(given, problem, error)
        call stop_on('test_problems', error)
        allocate (mesh%slot(mesh%tree%n_leaves))
        do leaf = 1, mesh%tree%n_leaves
            mesh%slot(leaf) = mesh%take_slot()
        end do
        !$omp parallel do
        do leaf = 1, mesh%tree%n_leaves
            call problem%fill(mesh, leaf)
        end do
    end subroutine place

    !> Integral of a variable over the domain.
    real(r8) function total(v)
        integer, intent(in) :: v
        real(r8) :: volume(-1:18)
        integer :: leaf, i, zones(3)

        zones = mesh%zones()
        total = 0.0_r8
        do leaf = 1, mesh%tree%n_leaves
            volume = mesh%zone_volumes(leaf)
            do i = 1, zones(1)
                if (mesh%variable_last) then
                    total = total + volume(i)*sum(mesh%soa(i, 1:zones(2), 1:zones(3), v, mesh%slot(leaf)))
                else
                    total = total + volume(i)*sum(mesh%aos(v, i, 1:zones(2), 1:zones(3), mesh%slot(leaf)))
                end if
            end do
        end do
        if (mesh%geometry == cylindrical) total = 2.0_r8*pi*total
    end function total

    pure elemental logical function same(a, b)
        real(r8), intent(in) :: a, b

        same = transfer(a, 0_i8) == transfer(b, 0_i8)
    end function same

    subroutine expect(what, holds)
        character(*), intent(in) :: what
        logical, intent(in) :: holds

        if (holds) return
        failures = failures + 1
        print *, 'wrong: ', what
    end subroutine expect

    subroutine expect_near(what, got, wanted, tolerance)
        character(*), intent(in) :: what
        real(r8), intent(in) :: got, wanted, tolerance

        if (abs(got - wanted) <= tolerance*max(1.0_r8, abs(wanted))) return
        failures = failures + 1
        print *, what, ': ', got, ' is not ', wanted
    end subroutine expect_near

end program test_problems
