!> The piecewise parabolic method on a pencil of equal zones: parabolas, and the states at the zones' faces.
!>
!> P. Colella, P. R. Woodward, J. Comput. Phys. 54 (1984) 174, whose equation numbers are given below ("CW"). Each procedure is
!> symmetric: a mirrored pencil gives the mirrored result to the last bit, so that a wall between mirror images passes nothing.
module ember_ppm
    use pw_kinds, only: r8
    implicit none
    private

    !> A parabola, the test for contacts and the test for shocks need two zones on each side, and their neighbours two more.
    integer, parameter, public :: sweep_guards = 4
    integer, parameter, public :: longest = 32                 !< zones of a pencil, without guard cells
    integer, parameter, public :: pencil_first = 1 - sweep_guards, pencil_last = longest + sweep_guards

    !> Variables of a zone in a pencil: density, velocity along the pencil and across it, pressure; then gamc, the adiabatic
    !> index d ln(p)/d ln(rho) at constant entropy, and game, p/(rho e) + 1.
    integer, parameter, public :: w_dens = 1, w_along = 2, w_side1 = 3, w_side2 = 4, w_pres = 5, w_gamc = 6, w_game = 7
    integer, parameter, public :: n_w = 7

    !> Steepening of contacts: CW (1.15) to (1.17) and (3.2).
    real(r8), parameter :: eta1 = 20.0_r8, eta2 = 0.05_r8, least_jump = 0.01_r8, k0 = 0.1_r8
    !> Flattening: CW, appendix.
    real(r8), parameter :: omega1 = 0.75_r8, omega2 = 10.0_r8, shock_jump = 1.0_r8/3.0_r8

    public :: face_values, steepen, flatten, monotonise, flatness, trace

contains

    !> The values at the faces of the zones -1 to n + 2, before they are limited, CW (1.6) to (1.8); and the limited `slope` of
    !> the zones -2 to n + 3.
    pure subroutine face_values(n, zone, slope, lower, upper)
        integer, intent(in) :: n
        real(r8), intent(in) :: zone(pencil_first:pencil_last)
        real(r8), intent(inout), dimension(pencil_first:pencil_last) :: slope, lower, upper
        real(r8) :: below, above, central, limited
        integer :: i

        !$omp simd private(below, above, central, limited)
        do i = -2, n + 3
            below = zone(i) - zone(i - 1)
            above = zone(i + 1) - zone(i)
            central = 0.5_r8*(zone(i + 1) - zone(i - 1))
            limited = sign(min(abs(central), 2.0_r8*abs(below), 2.0_r8*abs(above)), central)
            slope(i) = merge(limited, 0.0_r8, below*above > 0.0_r8)
        end do
        !$omp simd
        do i = -2, n + 2
            upper(i) = 0.5_r8*(zone(i) + zone(i + 1)) - (slope(i + 1) - slope(i))/6.0_r8
        end do
        !$omp simd
        do i = -1, n + 2
            lower(i) = upper(i - 1)
        end do
    end subroutine face_values

    !> Steepen the density where it has a contact: CW (1.14) to (1.17), with the test (3.2) of what is one.
    pure subroutine steepen(n, pencil, slope, lower, upper)
        integer, intent(in) :: n
        real(r8), intent(in) :: pencil(pencil_first:pencil_last, n_w), slope(pencil_first:pencil_last)
        real(r8), intent(inout), dimension(pencil_first:pencil_last) :: lower, upper
        real(r8) :: bend(pencil_first:pencil_last), jump, share, least, lowest
        logical :: contact
        integer :: i

        !$omp simd
        do i = -1, n + 2
            bend(i) = ((pencil(i + 1, w_dens) - pencil(i, w_dens)) - (pencil(i, w_dens) - pencil(i - 1, w_dens)))/6.0_r8
        end do
        !$omp simd private(jump, share, least, lowest, contact)
        do i = 0, n + 1
            jump = pencil(i + 1, w_dens) - pencil(i - 1, w_dens)
            least = min(pencil(i + 1, w_dens), pencil(i - 1, w_dens))
            lowest = min(pencil(i + 1, w_pres), pencil(i - 1, w_pres))
            contact = bend(i + 1)*bend(i - 1) < 0.0_r8 .and. abs(jump) > least_jump*least &
                .and. k0*pencil(i, w_gamc)*abs(jump)*lowest >= abs(pencil(i + 1, w_pres) - pencil(i - 1, w_pres))*least
            share = merge((bend(i - 1) - bend(i + 1))/merge(jump, 1.0_r8, abs(jump) > 0.0_r8), 0.0_r8, contact)
            share = max(0.0_r8, min(1.0_r8, eta1*(share - eta2)))
            lower(i) = lower(i) + share*((pencil(i - 1, w_dens) + 0.5_r8*slope(i - 1)) - lower(i))
            upper(i) = upper(i) + share*((pencil(i + 1, w_dens) - 0.5_r8*slope(i + 1)) - upper(i))
        end do
    end subroutine steepen

    !> The share of each of the zones 0 to n + 1 that is flattened, because a shock is narrow there: CW (A.1) and (A.2). The
    !> difference of the pressure over two zones is compared with its range over five, which behind a blast is more than the
    !> difference of the outer two; and a zone's neighbours are left out: both would smear blasts over more zones.
    pure subroutine flatness(n, pencil, share)
        integer, intent(in) :: n
        real(r8), intent(in) :: pencil(pencil_first:pencil_last, n_w)
        real(r8), intent(inout) :: share(pencil_first:pencil_last)
        real(r8) :: near, least, most, closing
        logical :: shock
        integer :: i

        !$omp simd private(near, least, most, closing, shock)
        do i = 0, n + 1
            near = pencil(i + 1, w_pres) - pencil(i - 1, w_pres)
            least = min(pencil(i - 2, w_pres), pencil(i - 1, w_pres), pencil(i, w_pres), pencil(i + 1, w_pres), &
                        pencil(i + 2, w_pres))
            most = max(pencil(i - 2, w_pres), pencil(i - 1, w_pres), pencil(i, w_pres), pencil(i + 1, w_pres), &
                       pencil(i + 2, w_pres))
            closing = pencil(i - 1, w_along) - pencil(i + 1, w_along)
            shock = abs(near) > shock_jump*min(pencil(i + 1, w_pres), pencil(i - 1, w_pres)) .and. closing > 0.0_r8
            near = abs(near)/max(most - least, tiny(1.0_r8))
            share(i) = merge(max(0.0_r8, min(1.0_r8, omega2*(near - omega1))), 0.0_r8, shock)
        end do
    end subroutine flatness

    !> Move the face values of the zones 0 to n + 1 to the mean by `share`: CW (4.1).
    pure subroutine flatten(n, zone, share, lower, upper)
        integer, intent(in) :: n
        real(r8), intent(in), dimension(pencil_first:pencil_last) :: zone, share
        real(r8), intent(inout), dimension(pencil_first:pencil_last) :: lower, upper
        integer :: i

        !$omp simd
        do i = 0, n + 1
            lower(i) = zone(i) + (1.0_r8 - share(i))*(lower(i) - zone(i))
            upper(i) = zone(i) + (1.0_r8 - share(i))*(upper(i) - zone(i))
        end do
    end subroutine flatten

    !> Make the parabolas of the zones 0 to n + 1 monotonic: CW (1.10).
    pure subroutine monotonise(n, zone, lower, upper)
        integer, intent(in) :: n
        real(r8), intent(in) :: zone(pencil_first:pencil_last)
        real(r8), intent(inout), dimension(pencil_first:pencil_last) :: lower, upper
        real(r8) :: below, above, new_lower, new_upper
        integer :: i

        ! With the distances of both face values from the mean, the parabola has its extremum in the zone if one is more than
        ! twice the other.
        !$omp simd private(below, above, new_lower, new_upper)
        do i = 0, n + 1
            below = zone(i) - lower(i)
            above = upper(i) - zone(i)
            new_lower = merge(zone(i) - 2.0_r8*above, lower(i), abs(below) > 2.0_r8*abs(above))
            new_upper = merge(zone(i) + 2.0_r8*below, upper(i), abs(above) > 2.0_r8*abs(below))
            lower(i) = merge(new_lower, zone(i), below*above > 0.0_r8)
            upper(i) = merge(new_upper, zone(i), below*above > 0.0_r8)
        end do
    end subroutine monotonise

    !> The states of the zones 0 to n + 1 at their upper (`towards` 1) or lower (-1) faces, averaged over a time step by
    !> characteristics: CW (3.3) to (3.7). `near`, `far`: the parabolas' values at that face and at the other one;
    !> `dt_by_width`: the time step over the width of a zone; `half_by_radius`: half of it over the radius of each zone in
    !> cylindrical geometry, 0 otherwise. A zone whose density or pressure
    !> would not be positive has its mean density, velocity along the pencil and pressure at the face.
    pure subroutine trace(n, towards, pencil, near, far, dt_by_width, half_by_radius, state)
        integer, intent(in) :: n
        real(r8), intent(in) :: towards, dt_by_width, half_by_radius(pencil_first:pencil_last)
        real(r8), intent(in), dimension(pencil_first:pencil_last, n_w) :: pencil, near, far
        real(r8), intent(inout) :: state(pencil_first:pencil_last, n_w)
        real(r8) :: speed, sound, fast, middle, slow, dens, along, pres, square, impedance, volume, weak, entropy, shrink
        logical :: usable
        integer :: i, v

        !$omp simd private(speed, sound, fast, middle, slow, dens, along, pres, square, impedance, volume, weak, entropy, &
        !$omp& shrink, usable)
        do i = 0, n + 1
            speed = towards*pencil(i, w_along)
            sound = sqrt(pencil(i, w_gamc)*pencil(i, w_pres)/pencil(i, w_dens))
            fast = part_of_zone(speed + sound, dt_by_width)
            middle = part_of_zone(speed, dt_by_width)
            slow = part_of_zone(speed - sound, dt_by_width)
            ! The mean of what the fastest wave brings is the reference.
            dens = mean(near(i, w_dens), far(i, w_dens), pencil(i, w_dens), fast)
            along = towards*mean(near(i, w_along), far(i, w_along), pencil(i, w_along), fast)
            pres = mean(near(i, w_pres), far(i, w_pres), pencil(i, w_pres), fast)
            square = pencil(i, w_gamc)*pres*dens
            impedance = sqrt(square)
            ! The amplitudes of what the slower ones bring instead.
            weak = 0.5_r8*((pres - mean(near(i, w_pres), far(i, w_pres), pencil(i, w_pres), slow))/square &
                           - (along - towards*mean(near(i, w_along), far(i, w_along), pencil(i, w_along), slow))/impedance)
            weak = merge(weak, 0.0_r8, speed > sound)
            entropy = (1.0_r8/dens - 1.0_r8/mean(near(i, w_dens), far(i, w_dens), pencil(i, w_dens), middle)) &
                      + (pres - mean(near(i, w_pres), far(i, w_pres), pencil(i, w_pres), middle))/square
            entropy = merge(entropy, 0.0_r8, speed > 0.0_r8)
            volume = 1.0_r8 + dens*(weak - entropy)
            along = along + impedance*weak
            pres = pres - square*weak
            ! What cylindrical geometry takes from a flow outwards.
            shrink = half_by_radius(i)*pencil(i, w_along)
            pres = pres - shrink*(pencil(i, w_gamc)*pencil(i, w_pres))
            dens = dens/volume - shrink*pencil(i, w_dens)
            usable = volume > 0.0_r8 .and. dens > 0.0_r8 .and. pres > 0.0_r8
            state(i, w_dens) = merge(dens, pencil(i, w_dens), usable)
            state(i, w_along) = merge(towards*along, pencil(i, w_along), usable)
            state(i, w_pres) = merge(pres, pencil(i, w_pres), usable)
        end do
        do v = w_side1, w_game
            if (v == w_pres) cycle
            !$omp simd private(middle)
            do i = 0, n + 1
                middle = part_of_zone(towards*pencil(i, w_along), dt_by_width)
                state(i, v) = mean(near(i, v), far(i, v), pencil(i, v), middle)
            end do
        end do
    end subroutine trace

    !> The part of a zone that a wave of this speed crosses in a time step.
    pure real(r8) function part_of_zone(speed, dt_by_width)
        real(r8), intent(in) :: speed, dt_by_width

        part_of_zone = min(1.0_r8, max(0.0_r8, speed)*dt_by_width)
    end function part_of_zone

    !> The mean of a parabola over the part `share` of a zone next to a face: CW (1.12).
    pure real(r8) function mean(near, far, zone, share)
        real(r8), intent(in) :: near, far, zone, share
        real(r8) :: sixth

        sixth = 3.0_r8*((zone - near) + (zone - far))
        mean = near - 0.5_r8*share*((near - far) - (1.0_r8 - share*(2.0_r8/3.0_r8))*sixth)
    end function mean

end module ember_ppm
