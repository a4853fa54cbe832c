!> The marks for regridding: those of the formula written out, on any number of ranks, and estimates computed by hand.
program test_marks
    use ember_mesh, only: cartesian, mesh_t, v_dens, v_pres
    use ember_parallel, only: comm_t
    use ember_refinement, only: estimate, mark_leaves, regrid_settings_t
    use ember_regrid, only: regrid
    use ember_test_fields, only: fill_block, fill_leaves, front, linear, make_mesh, n_variables, scratch
    use ember_test_meshes, only: discard, get_value, put_value
    use ember_testing, only: expect, expect_success, finish, start_pages
    use pw_error, only: error_t
    use pw_kinds, only: r8
    implicit none
    type(comm_t) :: comm
    type(error_t) :: error
    integer :: n_marked(-1:1) = 0, v

    call comm%begin(error)
    call expect_success(error, 'begin')
    call start_pages()
    do v = 0, 1
        call marks(2, v == 1)
        call marks(3, v == 1)
    end do
    call known_estimates()
    ! A test that had nothing to examine has failed.
    call expect(all(n_marked > 5), 'every mark was met', n_marked)
    call finish(comm)

contains

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

        call make_mesh(mesh, comm, dims, cartesian, variable_last, [2, 1, 1], merge(2, 1, dims == 2), merge(600, 130, dims == 2))
        mesh%lowest_level = 1
        mesh%highest_level = merge(4, 2, dims == 2)
        do round = 1, 3
            call fill_leaves(mesh, front)
            settings%variables = [v_dens, v_pres, n_variables]
            if (round == 2) settings%variables = [v_dens]
            if (round == 3) settings%filter = 0.1_r8
            call mark_leaves(mesh, settings, comm, mark)
            call expect(size(mark) == mesh%tree%n_leaves, 'marks', [size(mark)])
            do leaf = 1, mesh%tree%n_leaves
                largest = naive_estimate(mesh, leaf, settings)
                want = 0
                if (largest > settings%refine_above .and. mesh%tree%level(leaf) < mesh%highest_level) want = 1
                if (largest < settings%coarsen_below .and. mesh%tree%level(leaf) > mesh%lowest_level) want = -1
                call expect(mark(leaf) == want, 'mark', [real(leaf, r8), largest, real(mark(leaf), r8)])
                n_marked(mark(leaf)) = n_marked(mark(leaf)) + 1
            end do
            call regrid(mesh, mark, comm, error, changed)
            call expect_success(error, 'regrid at the front')
        end do
        call expect(maxval(mesh%tree%level) > minval(mesh%tree%level), 'levels at the front', mesh%tree%level)
        ! Without a front all may be coarser, down to the lowest level.
        settings = regrid_settings_t()
        do round = 1, 4
            call fill_leaves(mesh, linear)
            call mark_leaves(mesh, settings, comm, mark)
            call expect(all(mark == merge(-1, 0, mesh%tree%level > mesh%lowest_level)), 'marks of linear data', mark)
            call regrid(mesh, mark, comm, error, changed)
        end do
        call expect(all(mesh%tree%level == mesh%lowest_level), 'coarsened to the lowest level', [mesh%tree%n_leaves])
        call expect(.not. changed, 'nothing left to change')
        ! Levels outside of the allowed range are corrected.
        mesh%lowest_level = 2
        call mark_leaves(mesh, settings, comm, mark)
        call expect(all(mark == 1), 'below the lowest level', mark)
        mesh%lowest_level = 0
        mesh%highest_level = 0
        settings%coarsen_below = 0.0_r8
        call mark_leaves(mesh, settings, comm, mark)
        call expect(all(mark == -1), 'above the highest level', mark)
        call discard(mesh)
    end subroutine marks

    !> The largest estimate of a leaf of front data.
    real(r8) function naive_estimate(mesh, leaf, settings) result(largest)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        type(regrid_settings_t), intent(in) :: settings
        real(r8), allocatable :: u(:, :, :)
        integer :: i, j, k, m, n(3)

        n = mesh%zones()
        largest = 0.0_r8
        allocate (u(mesh%first:mesh%last, mesh%first:mesh%last, mesh%first_k():mesh%last_k()))
        call fill_block(mesh, scratch(1), mesh%tree%level(leaf), mesh%tree%place(:, leaf), front)
        do m = 1, size(settings%variables)
            do k = mesh%first_k(), mesh%last_k()
                do j = mesh%first, mesh%last
                    do i = mesh%first, mesh%last
                        u(i, j, k) = get_value(mesh, scratch(1), settings%variables(m), i, j, k)
                    end do
                end do
            end do
            do k = 1, n(3)
                do j = 1, n(2)
                    do i = 1, n(1)
                        largest = max(largest, naive_estimate_at(u, [i, j, k], mesh%dims, settings%filter))
                    end do
                end do
            end do
        end do
    end function naive_estimate

    !> The estimate of a zone: double sum over directions.
    pure real(r8) function naive_estimate_at(u, zone, dims, filter) result(estimated)
        real(r8), allocatable, intent(in) :: u(:, :, :)
        integer, intent(in) :: zone(3), dims
        real(r8), intent(in) :: filter
        real(r8) :: above, below, d(-1:1, -1:1), bound
        integer :: p, q, a, b, at(3)

        above = 0.0_r8
        below = 0.0_r8
        do p = 1, dims
            do q = 1, dims
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
                            + filter*(abs(d(1, 0)) + 2.0_r8*abs(d(0, 0)) + abs(d(-1, 0)))
                    below = below + bound**2
                else
                    above = above + ((d(1, 1) - d(-1, 1) - d(1, -1) + d(-1, -1))/4.0_r8)**2
                    bound = min(abs(d(1, 1) - d(-1, 1)) + abs(d(1, -1) - d(-1, -1)), &
                                abs(d(1, 1) - d(1, -1)) + abs(d(-1, 1) - d(-1, -1)))
                    bound = bound + filter*sum(abs(d(-1:1:2, -1:1:2)))
                    below = below + (bound/4.0_r8)**2
                end if
            end do
        end do
        estimated = 0.0_r8
        if (below > 0.0_r8) estimated = sqrt(above/below)
    end function naive_estimate_at

    !> Estimates computed by hand: nothing anywhere, and a plane step from 0 to 1 and from 1 to 2, in 2-d and 3-d.
    subroutine known_estimates()
        type(mesh_t) :: mesh
        real(r8) :: got, want
        integer :: dims, i, j, k, v

        do dims = 2, 3
            do v = 0, 1
                call make_mesh(mesh, comm, dims, cartesian, v == 1, [1, 1, 1], 0, 1)
                call expect(abs(estimate(mesh, scratch(1), v_dens, 0.01_r8)) <= 0.0_r8, 'the estimate of nothing', [dims])
                do k = mesh%first_k(), mesh%last_k()
                    do j = mesh%first, mesh%last
                        do i = mesh%first, mesh%last
                            call put_value(mesh, scratch(1), v_dens, i, j, k, merge(1.0_r8, 0.0_r8, j > 7))
                            call put_value(mesh, scratch(2), v_dens, i, j, k, merge(2.0_r8, 1.0_r8, j > 7))
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
                call discard(mesh)
            end do
        end do
    end subroutine known_estimates

end program test_marks
