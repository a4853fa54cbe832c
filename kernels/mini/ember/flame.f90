!> A model flame: fuel becomes ash in a front that diffuses, reacts and moves with a given speed.
!>
!> The mass fraction phi of the ash, one of the mesh's species, obeys
!>     rho (d/dt + v grad) phi = rho_f (div(kappa grad phi) + R(phi)/tau),    R = f/4 (phi - e)(1 - phi + e),    0 <= phi <= 1,
!>     kappa = s b d/16,    tau = b d/(16 s):
!> the diffusion and reaction of Vladimirova, Weirs & Ryzhik (Combust. Theory Modelling 10 (2006) 727), with the sharpened
!> reaction, e = 1e-3 and f = 1.309, of Townsley et al. (Astrophys. J. 668 (2007) 1118). d is the width of the finest zones,
!> everywhere. With b = 4 the front is about five zones wide and moves with the speed s, 1 % faster along an axis of the mesh
!> and 1 % slower along its diagonals. With the density rho_f of the fuel ahead on the right-hand side the front consumes
!> the mass rho_f s of fuel per area and time, however much ash expands. New ash releases the energy q per mass; diffusing
!> ash carries it along, so that the energy in a volume changes by q times the ash in it. A flow advects such a narrow front
!> with some error: fuel that flows towards the front with the speed s makes it 14 % faster, fuel that flows away 5 % slower.
!>
!> The speed is constant, or that of a laminar flame in carbon and oxygen of equal masses,
!>     92 km/s (rho/2e9 g/cm^3)^0.805 (Timmes & Woosley, Astrophys. J. 396 (1992) 649, eq. 43),
!> or, if larger, the speed due to wrinkling by buoyancy on scales below the mesh, 0.5 sqrt(A g m d) with
!> m = 0.04 (Townsley et al.): A, the Atwood number of ash below fuel, comes from the equation of state. rho is the density of
!> the fuel ahead, estimated from that of a zone that has burnt in part. Below a density the flame is quenched.
module ember_flame
    use ember_godunov, only: row_first, row_last
    use ember_mesh, only: block_zones, first_guard, last_guard, n_conserved, v_ener
    use pw_kinds, only: r8
    implicit none
    private

    real(r8), parameter :: sharpness = 1.0e-3_r8      ! e
    real(r8), parameter :: strength = 1.309_r8        ! f
    real(r8), parameter :: thickness = 4.0_r8         ! b
    real(r8), parameter :: wrinkling = 0.04_r8        ! m

    !> Zones whose fractions differ by less do not exchange ash, so that it does not matter whether a block counts as
    !> burning.
    real(r8), parameter :: nothing = 1.0e-10_r8

    type, public :: flame_t
        logical :: on = .false.
        integer :: fuel = 1, ash = 2            !< species
        real(r8) :: release = 0.0_r8            !< q [erg/g]
        real(r8) :: speed = 0.0_r8              !< s if it is constant; 0: that of carbon and oxygen [cm/s]
        real(r8) :: zone = 1.0_r8               !< d [cm]
        real(r8) :: quench = 0.0_r8             !< the density below which nothing burns [g/cm^3]
        !> Atwood numbers by density of the fuel, in even steps of its logarithm.
        real(r8) :: first_log = 0.0_r8, step_log = 1.0_r8
        real(r8), allocatable :: atwood(:)
    contains
        procedure :: burns
        procedure :: burning
        procedure :: diffuse
        procedure :: react
    end type flame_t

contains

    !> Whether there is a front in a plane, (zone, species, row), one layer of guard cells included.
    pure logical function burns(self, fraction)
        class(flame_t), intent(in) :: self
        real(r8), contiguous, intent(in) :: fraction(row_first:, :, first_guard:)

        burns = .false.
        if (.not. self%on) return
        associate (ash => fraction(first_guard + 1:last_guard - 1, self%ash, first_guard + 1:last_guard - 1))
            burns = any(ash > nothing .and. ash < 1.0_r8 - nothing) .or. maxval(ash) - minval(ash) > 0.5_r8
        end associate
    end function burns

    !> The mass of fuel that the flame consumes per area and time in the zones of a row, density of the fuel times speed
    !> [g/(cm^2 s)], from density, mass fractions (zone, species) and acceleration (zone, direction) [cm/s^2].
    pure subroutine burning(self, dens, fraction, pull, rate)
        class(flame_t), intent(in) :: self
        real(r8), intent(in) :: dens(row_first:row_last)
        real(r8), contiguous, intent(in) :: fraction(row_first:, :), pull(row_first:, :)
        real(r8), intent(inout) :: rate(row_first:row_last)
        real(r8) :: place, share, atwood, fuel, speed
        integer :: i, k

        do i = first_guard, last_guard
            fuel = dens(i)
            atwood = 0.0_r8
            if (allocated(self%atwood)) then
                place = min(max((log(dens(i)) - self%first_log)/self%step_log, 0.0_r8), size(self%atwood) - 1.0_r8)
                k = min(int(place), size(self%atwood) - 2)
                share = place - k
                atwood = (1.0_r8 - share)*self%atwood(k + 1) + share*self%atwood(k + 2)
                fuel = dens(i)*(1.0_r8 + min(max(fraction(i, self%ash), 0.0_r8), 1.0_r8)*2.0_r8*atwood/(1.0_r8 - atwood))
            end if
            speed = self%speed
            if (fuel < self%quench) then
                speed = 0.0_r8
            else if (.not. self%speed > 0.0_r8) then
                speed = max(laminar(fuel), 0.5_r8*sqrt(atwood*norm2(pull(i, :))*wrinkling*self%zone))
            end if
            rate(i) = fuel*speed
        end do
    end subroutine burning

    !> The speed of a laminar flame in carbon and oxygen of equal masses [cm/s] at a density [g/cm^3].
    pure elemental real(r8) function laminar(dens)
        real(r8), intent(in) :: dens

        laminar = 92.0e5_r8*(dens/2.0e9_r8)**0.805_r8
    end function laminar

    !> Add diffusion to the fluxes of energy and species in `flux`, (face, conserved variable or species). Arguments as those
    !> of hllc_row: mass fractions on both sides. `width`: from centre to centre; `rate`: the mean of the results of `burning` on
    !> both sides.
    pure subroutine diffuse(self, direction, width, left, right, rate, flux)
        class(flame_t), intent(in) :: self
        integer, intent(in) :: direction
        real(r8), intent(in) :: width
        real(r8), contiguous, intent(in) :: left(row_first:, :), right(row_first:, :)
        real(r8), intent(in) :: rate(0:block_zones)
        real(r8), contiguous, intent(inout) :: flux(row_first:, :)
        real(r8) :: difference, passes, factor
        integer :: i, shift, ash, fuel

        factor = thickness*self%zone/16.0_r8/width
        shift = merge(1, 0, direction == 1)
        ash = n_conserved + self%ash
        fuel = n_conserved + self%fuel
        do i = 1 - shift, block_zones
            difference = left(i, self%ash) - right(i + shift, self%ash)
            passes = merge(0.0_r8, factor*rate(i)*difference, abs(difference) <= 2.0_r8*nothing)
            flux(i, ash) = flux(i, ash) + passes
            flux(i, fuel) = flux(i, fuel) - passes
            flux(i, v_ener) = flux(i, v_ener) + self%release*passes
        end do
    end subroutine diffuse

    !> The mass of a zone [g/cm^3] that becomes ash in `dt`, from its density, that of its ash, and the result of `burning`.
    pure elemental real(r8) function react(self, dt, dens, ash, rate)
        class(flame_t), intent(in) :: self
        real(r8), intent(in) :: dt, dens, ash, rate
        real(r8) :: phi

        react = 0.0_r8
        if (.not. rate > 0.0_r8) return
        phi = ash/dens
        phi = phi + dt*16.0_r8*rate/(thickness*self%zone*dens)*0.25_r8*strength*(phi - sharpness)*(1.0_r8 - phi + sharpness)
        if (phi >= 1.0_r8) then
            react = dens - ash
        else if (phi <= 0.0_r8) then
            react = -ash
        else
            react = dens*phi - ash
        end if
    end function react

end module ember_flame
