!> The Riemann problem of a gas with any equation of state, by two shocks: P. Colella, H. M. Glaz, J. Comput. Phys. 59
!> (1985) 264, whose equation numbers are given below ("CG").
!>
!> Both waves are taken as shocks, also rarefactions. What a gas with any equation of state needs is in its two adiabatic indices
!> gamc (of the sound speed) and game (p/(rho e) + 1): CG (31) gives the game behind a wave from the jump of the pressure.
!> With one constant index this is the two-shock solver of B. van Leer, J. Comput. Phys. 32 (1979) 101.
module ember_ppm_riemann
    use ember_ppm, only: n_w, pencil_first, pencil_last, w_along, w_dens, w_game, w_gamc, w_pres, w_side1, w_side2
    use pw_kinds, only: r8
    implicit none
    private

    !> Fluxes through a face: of mass, of momentum along the pencil (with the pressure) and across it, and of energy; and the
    !> pressure there.
    integer, parameter, public :: f_dens = 1, f_along = 2, f_side1 = 3, f_side2 = 4, f_ener = 5, f_pres = 6, n_f = 6

    !> Newton's method ends when no pressure of the pencil changes by more than this share, or after this many steps:
    !> blasts into cold gas need six.
    real(r8), parameter :: converged = 1.0e-8_r8
    integer, parameter :: most_steps = 20
    !> The lowest pressure between the waves, as a share of the larger one next to them: a flow apart leaves none.
    real(r8), parameter :: least_pressure = 1.0e-10_r8
    !> Bound of CG (31)'s term in the denominator of the mass flux, which is 1 - gamc/game for weak waves.
    real(r8), parameter :: most_bend = 0.5_r8
    !> A shock has no width: the smallest divisor, below all differences of speeds.
    real(r8), parameter :: least_width = 1.0e-70_r8

    !> Work space of a pencil: (face), between the waves; by side 1 (lower) and 2.
    type, public :: star_t
        real(r8) :: pres(0:pencil_last) = 1.0_r8, velocity(0:pencil_last) = 0.0_r8
        real(r8) :: flow(0:pencil_last, 2) = 1.0_r8          !< mass that enters each wave, by area and time
        real(r8) :: bend(0:pencil_last) = 0.0_r8             !< 2 (1 - game/gamc)(game - 1), of the mean indices
    end type star_t

    public :: solve_faces

contains

    !> The fluxes through the faces 0 to n of a pencil, where face i is between the zones i and i + 1: from the states of zones
    !> at their upper faces and at their lower ones.
    pure subroutine solve_faces(n, at_upper, at_lower, star, flux)
        integer, intent(in) :: n
        real(r8), intent(in), dimension(pencil_first:pencil_last, n_w) :: at_upper, at_lower
        type(star_t), intent(inout) :: star
        real(r8), intent(inout) :: flux(0:pencil_last, n_f)
        real(r8) :: change
        integer :: steps

        call first_guess(n, at_upper, at_lower, star)
        do steps = 1, most_steps
            call improve(n, at_upper, at_lower, star, change)
            if (.not. change > converged) exit
        end do
        call sample(n, at_upper, at_lower, star, flux)
    end subroutine solve_faces

    !> The pressure between two sound waves.
    pure subroutine first_guess(n, at_upper, at_lower, star)
        integer, intent(in) :: n
        real(r8), intent(in), dimension(pencil_first:pencil_last, n_w) :: at_upper, at_lower
        type(star_t), intent(inout) :: star
        real(r8) :: gamc, game, c1, c2
        integer :: i

        !$omp simd private(gamc, game, c1, c2)
        do i = 0, n
            gamc = 0.5_r8*(at_upper(i, w_gamc) + at_lower(i + 1, w_gamc))
            game = 0.5_r8*(at_upper(i, w_game) + at_lower(i + 1, w_game))
            star%bend(i) = 2.0_r8*(1.0_r8 - game/gamc)*(game - 1.0_r8)
            c1 = sqrt(at_upper(i, w_gamc)*at_upper(i, w_pres)*at_upper(i, w_dens))
            c2 = sqrt(at_lower(i + 1, w_gamc)*at_lower(i + 1, w_pres)*at_lower(i + 1, w_dens))
            star%pres(i) = max(least_pressure*max(at_upper(i, w_pres), at_lower(i + 1, w_pres)), &
                               ((at_upper(i, w_pres)/c1 + at_lower(i + 1, w_pres)/c2) &
                                + (at_upper(i, w_along) - at_lower(i + 1, w_along)))/(1.0_r8/c1 + 1.0_r8/c2))
        end do
    end subroutine first_guess

    !> A step of Newton's method for the pressure between the waves: CG (18), (19). `change`: the largest relative one.
    pure subroutine improve(n, at_upper, at_lower, star, change)
        integer, intent(in) :: n
        real(r8), intent(in), dimension(pencil_first:pencil_last, n_w) :: at_upper, at_lower
        type(star_t), intent(inout) :: star
        real(r8), intent(out) :: change
        real(r8) :: flow1, flow2, velocity1, velocity2, slope1, slope2, old, new
        integer :: i

        change = 0.0_r8
        !$omp simd private(flow1, flow2, velocity1, velocity2, slope1, slope2, old, new) reduction(max: change)
        do i = 0, n
            old = star%pres(i)
            flow1 = wave(at_upper(i, w_dens), at_upper(i, w_pres), at_upper(i, w_game), star%bend(i), old)
            flow2 = wave(at_lower(i + 1, w_dens), at_lower(i + 1, w_pres), at_lower(i + 1, w_game), star%bend(i), old)
            velocity1 = at_upper(i, w_along) - (old - at_upper(i, w_pres))/flow1
            velocity2 = at_lower(i + 1, w_along) + (old - at_lower(i + 1, w_pres))/flow2
            ! How the velocities behind the waves change with the pressure: exact if both indices are one constant.
            slope1 = (1.0_r8 + at_upper(i, w_gamc)*at_upper(i, w_pres)*at_upper(i, w_dens)/flow1**2)/flow1
            slope2 = (1.0_r8 + at_lower(i + 1, w_gamc)*at_lower(i + 1, w_pres)*at_lower(i + 1, w_dens)/flow2**2)/flow2
            new = max(old - 2.0_r8*(velocity2 - velocity1)/(slope1 + slope2), &
                      least_pressure*max(at_upper(i, w_pres), at_lower(i + 1, w_pres)))
            change = max(change, abs(new - old)/old)
            star%pres(i) = new
            star%flow(i, 1) = flow1
            star%flow(i, 2) = flow2
            star%velocity(i) = 0.5_r8*((velocity1 - 0.5_r8*slope1*(new - old)) + (velocity2 + 0.5_r8*slope2*(new - old)))
        end do
    end subroutine improve

    !> The mass that enters a wave into the state (dens, pres, game), by area and time, with the pressure `behind` it:
    !> CG (34) after division by the jump of the pressure, so that it holds for weak waves too.
    pure real(r8) function wave(dens, pres, game, bend, behind)
        real(r8), intent(in) :: dens, pres, game, bend, behind
        real(r8) :: game_behind

        game_behind = max(1.0_r8, game + bend*((behind - pres)/(behind + pres)))
        wave = sqrt(dens*(behind + 0.5_r8*(game_behind - 1.0_r8)*(behind + pres)) &
                    /(1.0_r8 - min(most_bend, bend*(pres/((game - 1.0_r8)*(behind + pres))))))
    end function wave

    !> The state at the face from the one next to the contact and the undisturbed one, and its fluxes: CG (36) to (38). Within a
    !> rarefaction it is interpolated.
    pure subroutine sample(n, at_upper, at_lower, star, flux)
        integer, intent(in) :: n
        real(r8), intent(in), dimension(pencil_first:pencil_last, n_w) :: at_upper, at_lower
        type(star_t), intent(in) :: star
        real(r8), intent(inout) :: flux(0:pencil_last, n_f)
        real(r8) :: side, dens, along, pres, gamc, game, flow, star_dens, outer, inner, share, middle, jump, side1, side2
        real(r8) :: least, most
        logical :: left
        integer :: i

        !$omp simd private(side, dens, along, pres, gamc, game, flow, star_dens, outer, inner, share, middle, jump, side1, &
        !$omp& side2, left, least, most)
        do i = 0, n
            left = star%velocity(i) > 0.0_r8
            side = merge(1.0_r8, -1.0_r8, left)
            dens = merge(at_upper(i, w_dens), at_lower(i + 1, w_dens), left)
            along = merge(at_upper(i, w_along), at_lower(i + 1, w_along), left)
            side1 = merge(at_upper(i, w_side1), at_lower(i + 1, w_side1), left)
            side2 = merge(at_upper(i, w_side2), at_lower(i + 1, w_side2), left)
            pres = merge(at_upper(i, w_pres), at_lower(i + 1, w_pres), left)
            gamc = merge(at_upper(i, w_gamc), at_lower(i + 1, w_gamc), left)
            game = merge(at_upper(i, w_game), at_lower(i + 1, w_game), left)
            flow = merge(star%flow(i, 1), star%flow(i, 2), left)
            middle = star%pres(i)
            jump = middle - pres
            star_dens = dens/(1.0_r8 - dens*jump/flow**2)
            star_dens = merge(star_dens, dens, star_dens > 0.0_r8)
            ! The speeds of the wave's edges, away from the contact.
            outer = merge(flow/dens, sqrt(gamc*pres/dens), jump > 0.0_r8) - side*along
            inner = merge(outer, sqrt(gamc*middle/star_dens) - side*star%velocity(i), jump > 0.0_r8)
            share = 0.5_r8*(1.0_r8 + (outer + inner)/max(outer - inner, least_width))
            share = max(0.0_r8, min(1.0_r8, share))
            least = min(at_upper(i, w_game), at_lower(i + 1, w_game))
            most = max(at_upper(i, w_game), at_lower(i + 1, w_game))
            game = game + share*(max(least, min(most, game + star%bend(i)*(jump/(middle + pres)))) - game)
            dens = dens + share*(star_dens - dens)
            pres = pres + share*jump
            along = along + share*(star%velocity(i) - along)
            flux(i, f_dens) = dens*along
            flux(i, f_along) = dens*along*along + pres
            flux(i, f_side1) = dens*along*side1
            flux(i, f_side2) = dens*along*side2
            flux(i, f_ener) = along*(pres + pres/(game - 1.0_r8) + 0.5_r8*dens*(along*along + (side1*side1 + side2*side2)))
            flux(i, f_pres) = pres
        end do
    end subroutine sample

end module ember_ppm_riemann
