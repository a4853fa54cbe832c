!> The piecewise parabolic method on one pencil: uniform and linear states, its order, mirror images, walls, shock tube, blast;
!> and its Riemann solver against the exact one.
program test_ppm
    use ember_pencil, only: pencil_t
    use ember_ppm, only: longest, n_w, pencil_first, pencil_last, sweep_guards, w_along, w_dens, w_game, w_gamc, w_pres, w_side1, &
        w_side2
    use ember_ppm_riemann, only: f_along, f_dens, f_ener, f_pres, f_side1, n_f, solve_faces, star_t
    use ember_testing, only: expect, expect_success, failures, near, next_random, same_bits
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use riemann_exact, only: gas_t, riemann_t
    implicit none

    real(r8), parameter :: g = 1.4_r8
    integer, parameter :: n_kept = f_ener
    type(error_t) :: error

    call uniform()
    call linear()
    call order()
    call mirror()
    call tube()
    call blast()
    call two_shocks()
    call weak_waves()
    if (failures > 0) error stop 'test_ppm: failures'

contains

    !> A uniform flow has the same flux through all faces.
    subroutine uniform()
        type(pencil_t) :: pencil
        integer :: v

        do v = 1, n_w
            pencil%zone(:, v) = 0.3_r8 + 0.17_r8*v
        end do
        pencil%zone(:, w_game) = pencil%zone(1, w_gamc)
        call pencil%solve(longest, 0.21_r8, .true.)
        do v = 1, n_f
            call expect(all(same_bits(pencil%flux(0:longest, v), pencil%flux(0, v))), 'uniform flow')
        end do
        associate (z => pencil%zone(1, :))
            call expect(near(pencil%flux(1, f_dens), z(w_dens)*z(w_along)), 'uniform mass flux')
            call expect(near(pencil%flux(1, f_pres), z(w_pres)), 'uniform pressure')
            call expect(near(pencil%flux(1, f_side1), z(w_dens)*z(w_along)*z(w_side1)), 'uniform sideways momentum')
            call expect(near(pencil%flux(1, f_ener), z(w_along)*(z(w_pres)*z(w_game)/(z(w_game) - 1.0_r8) &
                             + 0.5_r8*z(w_dens)*sum(z(w_along:w_side2)**2))), 'uniform energy flux')
        end associate
    end subroutine uniform

    !> A linear density in a uniform flow: the flux is that of its exact mean over what passes the face.
    subroutine linear()
        type(pencil_t) :: pencil
        real(r8), parameter :: share = 0.3_r8
        integer :: i, sense

        do sense = -1, 1, 2
            call fill(pencil, dens=[(5.0_r8 + 0.1_r8*i, i=pencil_first, pencil_last)], along=0.5_r8*sense)
            call pencil%solve(16, share/0.5_r8, .false.)
            call expect(all(near(pencil%flux(0:16, f_dens), &
                                 0.5_r8*sense*(5.0_r8 + 0.1_r8*([(i, i=0, 16)] + 0.5_r8 - 0.5_r8*sense*share)))), 'linear density')
        end do
    end subroutine linear

    !> A smooth front, without an extremum, moved by a third of the pencil: third order.
    subroutine order()
        real(r8) :: coarse, fine

        coarse = front_error(16)
        fine = front_error(32)
        call expect(log(coarse/fine)/log(2.0_r8) > 2.8_r8, 'third order')
    end subroutine order

    real(r8) function front_error(n)
        integer, intent(in) :: n
        type(pencil_t) :: pencil
        real(r8) :: kept(pencil_first:pencil_last, n_kept), dt
        integer :: step, n_steps, i

        n_steps = n/2
        dt = 0.3_r8/n_steps
        do step = 0, n_steps
            do i = pencil_first, n + sweep_guards
                if (step > 0 .and. i >= 1 .and. i <= n) cycle
                call put_state(kept(i, :), [(front(real(i, r8)/n - step*dt) - front(real(i - 1, r8)/n - step*dt))*n, &
                                            1.0_r8, 0.0_r8, 0.0_r8, 1.0_r8])
            end do
            if (step < n_steps) call step_forward(pencil, kept, n, dt*n, .false.)
        end do
        front_error = sum([(abs(kept(i, 1) - (front(real(i, r8)/n - 0.3_r8) - front(real(i - 1, r8)/n - 0.3_r8))*n), i=1, n)])/n
    end function front_error

    !> The integral of the density of a smooth front.
    pure real(r8) function front(x)
        real(r8), intent(in) :: x

        front = 2.0_r8*x + 0.2_r8*log(cosh((x - 0.4_r8)/0.2_r8))
    end function front

    !> The mirror image of any state gives the mirrored fluxes, to the last bit; and a wall between mirror images passes nothing.
    subroutine mirror()
        type(pencil_t) :: pencil, mirrored
        integer, parameter :: n = 16
        real(r8) :: sense
        integer :: i, v, k

        do k = 1, 50
            do i = pencil_first, n + sweep_guards
                do v = 1, n_w
                    pencil%zone(i, v) = merge(2.0_r8*(next_random() - 0.5_r8), next_random() + 1.01_r8, v > 1 .and. v < w_pres)
                end do
                if (modulo(k, 2) == 0) pencil%zone(i, w_pres) = 10.0_r8**(6.0_r8*next_random())
            end do
            mirrored%zone(:n + sweep_guards, :) = pencil%zone(n + sweep_guards:pencil_first:-1, :)
            mirrored%zone(:, w_along) = -mirrored%zone(:, w_along)
            call pencil%solve(n, 0.1_r8, modulo(k, 3) == 0)
            call mirrored%solve(n, 0.1_r8, modulo(k, 3) == 0)
            do v = 1, n_f
                sense = merge(1.0_r8, -1.0_r8, v == f_along .or. v == f_pres)
                call expect(all(abs(pencil%flux(0:n, v) - sense*mirrored%flux(n:0:-1, v)) <= 0.0_r8), 'mirror image')
            end do
            mirrored%zone(n/2 + 1:n + sweep_guards, :) = mirrored%zone(n/2:pencil_first:-1, :)
            mirrored%zone(n/2 + 1:n + sweep_guards, w_along) = -mirrored%zone(n/2:pencil_first:-1, w_along)
            call mirrored%solve(n, 0.1_r8, modulo(k, 3) == 0)
            call expect(all(abs(mirrored%flux(n/2, [f_dens, f_side1, f_ener])) <= 0.0_r8), 'wall')
        end do
    end subroutine mirror

    !> Sod's shock tube on one pencil, with and without steepened contacts.
    subroutine tube()
        call expect(tube_error(16, .false.) < 0.018_r8, 'shock tube, 16 zones')
        call expect(tube_error(32, .false.) < 0.011_r8, 'shock tube, 32 zones')
        call expect(tube_error(32, .true.) < tube_error(32, .false.), 'shock tube, steepened contact')
    end subroutine tube

    !> The mean error of the density at 0.2.
    real(r8) function tube_error(n, steep)
        integer, intent(in) :: n
        logical, intent(in) :: steep
        type(pencil_t) :: pencil
        type(riemann_t) :: exact
        type(gas_t) :: left, right
        real(r8) :: kept(pencil_first:pencil_last, n_kept), dens, momentum, pres
        integer :: i, step, n_steps

        left = gas_t()
        right = gas_t(dens=0.125_r8, pres=0.1_r8)
        call exact%start(g, left, right, error)
        call expect_success(error, 'exact solution')
        do i = pencil_first, pencil_last
            call put_state(kept(i, :), merge([1.0_r8, 0.0_r8, 0.0_r8, 0.0_r8, 1.0_r8], &
                                             [0.125_r8, 0.0_r8, 0.0_r8, 0.0_r8, 0.1_r8], 2*i <= n))
        end do
        n_steps = n
        do step = 1, n_steps
            call step_forward(pencil, kept, n, 0.2_r8, steep)
        end do
        tube_error = 0.0_r8
        do i = 1, n
            call exact%average((real(i - 1, r8)/n - 0.5_r8)/0.2_r8, (real(i, r8)/n - 0.5_r8)/0.2_r8, dens, momentum, pres)
            tube_error = tube_error + abs(kept(i, f_dens) - dens)/n
        end do
    end function tube_error

    !> A blast 1e12 times the pressure of the gas around, between walls: mass and energy are kept, all stays positive.
    subroutine blast()
        type(pencil_t) :: pencil
        integer, parameter :: n = 32
        real(r8) :: kept(pencil_first:pencil_last, n_kept), first(n_kept), fastest
        integer :: i, step

        do i = 1, n
            call put_state(kept(i, :), [1.0_r8, 0.0_r8, 0.0_r8, 0.0_r8, merge(1.0e6_r8, 1.0e-6_r8, i == 7)])
        end do
        first = sum(kept(1:n, :), 1)
        do step = 1, 200
            kept(0:pencil_first:-1, :) = kept(1:sweep_guards, :)
            kept(n + 1:n + sweep_guards, :) = kept(n:n - sweep_guards + 1:-1, :)
            kept(:0, f_along) = -kept(:0, f_along)
            kept(n + 1:, f_along) = -kept(n + 1:, f_along)
            fastest = maxval([(rate(kept(i, :)), i=1, n)])
            call step_forward(pencil, kept, n, 0.8_r8/fastest, .true.)
            if (.not. all(kept(1:n, f_dens) > 0.0_r8)) exit
            if (.not. all(kept(1:n, f_ener) > 0.5_r8*kept(1:n, f_along)**2/kept(1:n, f_dens))) exit
        end do
        call expect(step > 200, 'positive density and energy')
        call expect(abs(sum(kept(1:n, f_dens)) - first(f_dens)) < 1.0e-12_r8*first(f_dens), 'mass between walls')
        call expect(abs(sum(kept(1:n, f_ener)) - first(f_ener)) < 1.0e-12_r8*first(f_ener), 'energy between walls')
        call expect(all(abs(pencil%flux([0, n], f_dens)) <= 0.0_r8), 'nothing passes a wall')
    end subroutine blast

    !> The Riemann problem: exact where both waves are shocks, close to it otherwise (Toro's tests 5 and 1, 3, 4).
    subroutine two_shocks()
        call compare(gas_t(5.99924_r8, 19.5975_r8, 460.894_r8), gas_t(5.99242_r8, -6.19633_r8, 46.0950_r8), 1.0e-10_r8)
        call compare(gas_t(1.0_r8, 0.0_r8, 1.0_r8), gas_t(0.125_r8, 0.0_r8, 0.1_r8), 0.002_r8)
        call compare(gas_t(1.0_r8, 0.0_r8, 1000.0_r8), gas_t(1.0_r8, 0.0_r8, 0.01_r8), 0.002_r8)
        call compare(gas_t(1.0_r8, 0.0_r8, 0.01_r8), gas_t(1.0_r8, 0.0_r8, 100.0_r8), 0.002_r8)
        call compare(gas_t(1.0_r8, 0.1_r8, 1.0_r8), gas_t(1.0_r8, 0.1_r8, 1.0_r8), 1.0e-14_r8)
    end subroutine two_shocks

    !> Pressure and velocity between the waves are the exact ones but for the relative error `tolerance`.
    subroutine compare(left, right, tolerance)
        type(gas_t), intent(in) :: left, right
        real(r8), intent(in) :: tolerance
        type(riemann_t) :: exact
        type(star_t) :: star
        real(r8) :: at_upper(pencil_first:pencil_last, n_w), at_lower(pencil_first:pencil_last, n_w), flux(0:pencil_last, n_f)

        call exact%start(g, left, right, error)
        call expect_success(error, 'exact solution')
        at_upper = spread([left%dens, left%velocity, 0.0_r8, 0.0_r8, left%pres, g, g], 1, size(at_upper, 1))
        at_lower = spread([right%dens, right%velocity, 0.0_r8, 0.0_r8, right%pres, g, g], 1, size(at_lower, 1))
        call solve_faces(4, at_upper, at_lower, star, flux)
        call expect(abs(star%pres(2) - exact%pres) <= tolerance*exact%pres, 'pressure between the waves')
        call expect(abs(star%velocity(2) - exact%velocity) <= tolerance*abs(exact%velocity), 'velocity between the waves')
    end subroutine compare

    !> In a gas with two different adiabatic indices a weak wave is a sound wave.
    subroutine weak_waves()
        type(star_t) :: star
        real(r8) :: state(pencil_first:pencil_last, n_w), flux(0:pencil_last, n_f)

        state = spread([2.0_r8, 0.0_r8, 0.0_r8, 0.0_r8, 3.0_r8, 1.35_r8, 1.61_r8], 1, size(state, 1))
        call solve_faces(1, state, state, star, flux)
        call expect(all(near(star%flow(0:1, :), sqrt(1.35_r8*3.0_r8*2.0_r8))), 'sound wave')
        call expect(near(flux(0, f_pres), 3.0_r8), 'pressure at rest')
    end subroutine weak_waves

    subroutine fill(pencil, dens, along)
        type(pencil_t), intent(inout) :: pencil
        real(r8), intent(in) :: dens(pencil_first:pencil_last), along

        pencil%zone(:, w_dens) = dens
        pencil%zone(:, w_along) = along
        pencil%zone(:, w_side1:w_side2) = 0.0_r8
        pencil%zone(:, w_pres) = 1.0_r8
        pencil%zone(:, w_gamc:w_game) = g
    end subroutine fill

    !> Conserved variables of a zone from density, velocities and pressure.
    pure subroutine put_state(kept, state)
        real(r8), intent(out) :: kept(n_kept)
        real(r8), intent(in) :: state(5)

        kept(f_dens) = state(1)
        kept(f_along:f_along + 2) = state(1)*state(2:4)
        kept(f_ener) = state(5)/(g - 1.0_r8) + 0.5_r8*state(1)*sum(state(2:4)**2)
    end subroutine put_state

    !> |v| + c of a zone.
    pure real(r8) function rate(kept)
        real(r8), intent(in) :: kept(n_kept)

        rate = abs(kept(f_along)/kept(f_dens)) &
               + sqrt(g*(g - 1.0_r8)*(kept(f_ener) - 0.5_r8*kept(f_along)**2/kept(f_dens))/kept(f_dens))
    end function rate

    !> Advance the conserved variables of n zones, whose guard cells are filled.
    subroutine step_forward(pencil, kept, n, dt_by_width, steep)
        type(pencil_t), intent(inout) :: pencil
        real(r8), intent(inout) :: kept(pencil_first:pencil_last, n_kept)
        integer, intent(in) :: n
        real(r8), intent(in) :: dt_by_width
        logical, intent(in) :: steep
        integer :: i

        call fill(pencil, kept(:, f_dens), 0.0_r8)
        do i = pencil_first, n + sweep_guards
            pencil%zone(i, w_along) = kept(i, f_along)/kept(i, f_dens)
            pencil%zone(i, w_pres) = (g - 1.0_r8)*(kept(i, f_ener) - 0.5_r8*kept(i, f_along)**2/kept(i, f_dens))
        end do
        call pencil%solve(n, dt_by_width, steep)
        kept(1:n, :) = kept(1:n, :) + dt_by_width*(pencil%flux(0:n - 1, :n_kept) - pencil%flux(1:n, :n_kept))
    end subroutine step_forward

end program test_ppm
