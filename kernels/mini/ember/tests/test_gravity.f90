!> Gravity of spheres whose field is known, on a mesh with refinement, the same to the last bit on any number of ranks; and
!> the effect of half a step ahead.
program test_gravity
    use ember_container, only: container_create, container_touch
    use ember_gravity, only: gravity_t, newton
    use ember_mesh, only: block_zones, cylindrical, first_guard, last_guard, mesh_t, outflow, reflecting, v_dens, v_momx, v_momy
    use ember_parallel, only: comm_t
    use ember_testing, only: expect, failures
    use ember_tree, only: tree_t
    use ember_tree_adapt, only: adapt_tree
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_begin, pages_none
    use pw_text, only: to_text
    implicit none
    real(r8), parameter :: pi = acos(-1.0_r8)
    real(r8), parameter :: reach = 1.0e9_r8, radius = 0.6e9_r8, centre = 2.0_r8
    integer, parameter :: constant = 1, parabola = 2
    type(mesh_t) :: mesh
    type(comm_t) :: comm
    type(gravity_t) :: gravity
    type(error_t) :: error
    real(r8), allocatable :: pull(:, :, :, :), again(:, :, :, :)
    real(r8) :: before, after

    call comm%begin(error)
    if (.not. error%failed()) call pages_begin(pages_none, error)
    call expect(.not. error%failed(), 'begin')
    call make_mesh(comm%rank, comm%n_ranks)
    call gravity%start(mesh, 0.0_r8, 1.0e3_r8, 1.0e10_r8)
    call expect(gravity%on, 'on')

    ! To second order of the zones, which are up to 1/16 of the radius wide at its edge, and far better inside.
    call fill(constant, 0.0_r8)
    call gravity%measure(mesh, comm, 0.0_r8)
    call check_pull(constant, 0.0_r8, 0.7_r8*radius, 1.0e-3_r8)
    call check_pull(constant, 0.7_r8*radius, 2.0_r8*reach, 1.0e-2_r8)
    call near(gravity%energy(), -0.6_r8*newton*(4.0_r8*pi/3.0_r8*centre*radius**3)**2/radius, 1.0e-2_r8, 'energy')
    call fill(parabola, 0.0_r8)
    call gravity%measure(mesh, comm, 0.0_r8)
    call check_pull(parabola, 0.0_r8, 0.7_r8*radius, 3.0e-4_r8)
    call check_pull(parabola, 0.7_r8*radius, 2.0_r8*reach, 2.0e-3_r8)

    ! Collapse in proportion to the radius: a mass M within r grows by 4 pi r^2 rho |v| per time.
    before = pull_at()
    call fill(parabola, -1.0e-3_r8)
    call gravity%measure(mesh, comm, 10.0_r8)
    after = pull_at()
    call near(after/before - 1.0_r8, 10.0_r8*1.0e-3_r8*growth(), 3.0e-2_r8, 'ahead')

    ! The same from only one rank.
    call all_pulls(pull)
    call make_mesh(0, 1)
    call fill(parabola, -1.0e-3_r8)
    call gravity%measure(mesh, comm_t(), 10.0_r8)
    call all_pulls(again)
    call expect(all(transfer(pull, [0_i8]) == transfer(again, [0_i8])), 'ranks change bits')

    call comm%barrier()
    if (failures > 0) call comm%abort(1)
    if (comm%rank == 0) print '(a)', 'test_gravity on '//to_text(comm%n_ranks)//' ranks'
    call comm%end()

contains

    !> A cylinder around the origin, finer in its middle; this rank's part of it.
    subroutine make_mesh(rank, n_ranks)
        integer, intent(in) :: rank, n_ranks
        type(tree_t) :: finer
        integer, allocatable :: mark(:), kind(:), origin(:)
        integer :: i

        call forget(mesh)
        mesh%dims = 2
        mesh%geometry = cylindrical
        mesh%n_variables = 8
        mesh%lowest_level = 1
        mesh%highest_level = 3
        mesh%boundary = outflow
        mesh%boundary(1, 1) = reflecting
        mesh%lower = [0.0_r8, -reach, 0.0_r8]
        mesh%upper = [reach, reach, 1.0_r8]
        mesh%rank = rank
        mesh%n_ranks = n_ranks
        call mesh%tree%start(2, [1, 2, 1], [.false., .false., .false.], 2, error)
        allocate (mark(mesh%tree%n_leaves))
        do i = 1, mesh%tree%n_leaves
            mark(i) = merge(1, 0, mesh%tree%place(1, i) < 2 .and. abs(2*mesh%tree%place(2, i) - 7) < 4)
        end do
        call adapt_tree(mesh%tree, mark, 1, 3, finer, kind, origin)
        mesh%tree = finer
        call mesh%tree%partition(n_ranks, mark)
        mesh%tree%owner = mark
        call mesh%note_owners()
        call container_create(mesh, 8_i8*1024**2, pages_none, error)
        call expect(.not. error%failed(), 'container')
        call container_touch(mesh)
        allocate (mesh%slot(mesh%tree%n_leaves), source=0)
        do i = 1, size(mesh%local)
            mesh%slot(mesh%local(i)) = mesh%take_slot()
        end do
    end subroutine make_mesh

    subroutine forget(old)
        type(mesh_t), intent(out) :: old

        old%n_free = 0
    end subroutine forget

    !> A sphere, with a velocity in proportion to the radius.
    subroutine fill(profile, rate)
        integer, intent(in) :: profile
        real(r8), intent(in) :: rate
        real(r8) :: corner(3), width(3), x, y
        integer :: n, i, j

        do n = 1, size(mesh%local)
            corner = mesh%block_corner(mesh%local(n))
            width = mesh%zone_size(mesh%tree%level(mesh%local(n)))
            do j = 1, block_zones
                do i = 1, block_zones
                    x = corner(1) + (i - 0.5_r8)*width(1)
                    y = corner(2) + (j - 0.5_r8)*width(2)
                    associate (zone => mesh%aos(:, i, j, 1, mesh%slot(mesh%local(n))))
                        zone = 0.0_r8
                        zone(v_dens) = density(profile, hypot(x, y))
                        zone(v_momx) = zone(v_dens)*rate*x
                        zone(v_momy) = zone(v_dens)*rate*y
                    end associate
                end do
            end do
        end do
    end subroutine fill

    pure real(r8) function density(profile, r)
        integer, intent(in) :: profile
        real(r8), intent(in) :: r

        density = 0.0_r8
        if (r >= radius) return
        density = centre
        if (profile == parabola) density = centre*(1.0_r8 - (r/radius)**2)
    end function density

    !> Mass within r.
    pure real(r8) function mass(profile, r)
        integer, intent(in) :: profile
        real(r8), intent(in) :: r
        real(r8) :: x

        x = min(r/radius, 1.0_r8)
        mass = 4.0_r8*pi*centre*radius**3*x**3/3.0_r8
        if (profile == parabola) mass = 4.0_r8*pi*centre*radius**3*(x**3/3.0_r8 - x**5/5.0_r8)
    end function mass

    !> All zones between two radii against the field of the sphere.
    subroutine check_pull(profile, from, to, tolerance)
        integer, intent(in) :: profile
        real(r8), intent(in) :: from, to, tolerance
        real(r8) :: acceleration(first_guard:last_guard, 2, first_guard:last_guard), corner(3), width(3), x, y, r, worst
        integer :: n, i, j, seen

        worst = 0.0_r8
        seen = 0
        do n = 1, size(mesh%local)
            corner = mesh%block_corner(mesh%local(n))
            width = mesh%zone_size(mesh%tree%level(mesh%local(n)))
            call gravity%pull_block(mesh, mesh%local(n), first_guard, acceleration)
            do j = first_guard, last_guard
                do i = first_guard, last_guard
                    x = corner(1) + (i - 0.5_r8)*width(1)
                    y = corner(2) + (j - 0.5_r8)*width(2)
                    r = hypot(x, y)
                    if (r < from .or. r > to) cycle
                    seen = seen + 1
                    worst = max(worst, norm2(acceleration(i, :, j) + newton*mass(profile, r)/r**3*[x, y]) &
                                /(newton*mass(profile, r)/r**2))
                end do
            end do
        end do
        call expect(worst <= tolerance, 'pull of profile '//to_text(profile)//' from '//to_text(from, 'es9.2')//': '// &
                    to_text(worst, 'es9.2'))
        if (comm%n_ranks == 1) call expect(seen > 100, 'zones were examined')
    end subroutine check_pull

    !> The acceleration's size at half the radius, from any block.
    real(r8) function pull_at()
        real(r8) :: acceleration(first_guard:last_guard, 2, first_guard:last_guard), all(3)

        call gravity%pull_block(mesh, inner_leaf(), first_guard, acceleration)
        all = [acceleration(5, :, 7), 0.0_r8]
        pull_at = norm2(all)
    end function pull_at

    !> The leaf above the origin.
    integer function inner_leaf() result(leaf)
        real(r8) :: corner(3)

        do leaf = 1, mesh%tree%n_leaves
            corner = mesh%block_corner(leaf)
            if (all(abs(corner(:2)) < 1.0_r8)) return
        end do
    end function inner_leaf

    !> Of that place: 4 pi r^3 rho/M.
    real(r8) function growth()
        real(r8) :: corner(3), width(3), r

        corner = mesh%block_corner(inner_leaf())
        width = mesh%zone_size(mesh%tree%level(inner_leaf()))
        r = norm2(corner(:2) + ([5, 7] - 0.5_r8)*width(:2))
        growth = 4.0_r8*pi*r**3*density(parabola, r)/mass(parabola, r)
    end function growth

    !> Over all leaves of all ranks.
    subroutine all_pulls(all)
        real(r8), allocatable, intent(out) :: all(:, :, :, :)
        integer :: leaf

        allocate (all(first_guard:last_guard, 2, first_guard:last_guard, mesh%tree%n_leaves))
        do leaf = 1, mesh%tree%n_leaves
            call gravity%pull_block(mesh, leaf, first_guard, all(:, :, :, leaf))
        end do
    end subroutine all_pulls

    subroutine near(got, wanted, tolerance, what)
        real(r8), intent(in) :: got, wanted, tolerance
        character(*), intent(in) :: what

        call expect(abs(got/wanted - 1.0_r8) <= tolerance, what//': '//to_text(got, 'es14.6')//', not '//to_text(wanted, 'es14.6'))
    end subroutine near

end program test_gravity
