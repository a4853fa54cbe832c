!> Problem snia2d: a white dwarf of carbon and oxygen that starts to burn off its centre.
!>
!> The star (ember_white_dwarf) is at the origin, in an ambient gas of its temperature. A ball on the axis, in pressure
!> equilibrium with the surrounding star, has already burnt, and the model flame (ember_flame) starts from it. Fuel is
!> carbon and oxygen of equal masses; ash is nickel 56.
module ember_snia2d
    use ember_flame, only: flame_t
    use ember_gravity, only: gravity_t
    use ember_helmholtz_eos, only: helmholtz_eos_t
    use ember_mesh, only: mesh_t, n_conserved, v_dens, v_ener
    use ember_parameters, only: parameters_t
    use ember_problem, only: problem_t, put
    use ember_white_dwarf, only: white_dwarf_t
    use pw_error, only: error_t
    use pw_kinds, only: r8
    implicit none
    private

    !> Number of points of the table of ash by the density of the fuel.
    integer, parameter :: n_ash = 121
    real(r8), parameter :: first_ash = log(1.0e4_r8), last_ash = log(2.0e10_r8)

    integer, parameter :: points = 8                  ! per zone in each direction, for the ball

    real(r8), parameter :: speed_of_light = 2.99792458e10_r8

    type, extends(problem_t), public :: snia2d_problem_t
        type(white_dwarf_t) :: star
        type(helmholtz_eos_t), private :: eos
        type(flame_t), private :: flame
        real(r8), private :: ball = 0.0_r8, offset = 0.0_r8   ! radius and position on the axis of the burnt ball [cm]
        real(r8), private :: ash_energy(n_ash) = 0.0_r8, ash_temp(n_ash) = 0.0_r8, fuel_energy(n_ash) = 0.0_r8
    contains
        procedure :: start
        procedure :: equip
        procedure :: fill => fill_star
        procedure, private :: tabulate_ash
    end type snia2d_problem_t

contains

    !> Set up the star and the state of its ash. `eos` has the species fuel and ash. Errors: those of the equation of state.
    subroutine start(self, given, eos, error)
        class(snia2d_problem_t), intent(inout) :: self
        type(parameters_t), intent(in) :: given
        type(helmholtz_eos_t), intent(in) :: eos
        type(error_t), intent(inout) :: error

        call self%describe(given)
        self%eos = eos
        call self%star%start(eos, [1.0_r8, 0.0_r8], given%star_density, given%star_temperature, given%ambient_density, error)
        if (error%failed()) return
        self%ball = given%ignition_radius
        self%offset = given%ignition_offset
        self%flame%on = self%ball > 0.0_r8
        self%flame%release = given%flame_release
        self%flame%speed = given%flame_speed
        self%flame%quench = given%flame_quench
        call self%tabulate_ash(error)
    end subroutine start

    !> The ash of fuel at the star's temperature, burnt at constant pressure: its enthalpy is that of the fuel plus the
    !> released energy.
    subroutine tabulate_ash(self, error)
        class(snia2d_problem_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        real(r8), dimension(n_ash) :: dens, temp, pres, gamc, low, high, middle, energy, hot, got
        real(r8) :: fuel(n_ash, 2), ash(n_ash, 2)
        integer :: i

        dens = [(exp(first_ash + (i - 1)*(last_ash - first_ash)/(n_ash - 1)), i=1, n_ash)]
        temp = self%star%temperature
        fuel(:, 1) = 1.0_r8
        fuel(:, 2) = 0.0_r8
        ash(:, 1) = 0.0_r8
        ash(:, 2) = 1.0_r8
        call self%eos%at_temperature(n_ash, dens, fuel, temp, self%fuel_energy, pres, gamc, error)
        if (error%failed()) return
        ! The density of ash as a share of the fuel's, by bisection; below `low` it would have no energy.
        low = 1.001_r8*pres/dens/(self%fuel_energy + pres/dens + self%flame%release)
        high = 1.0_r8
        hot = 3.0e9_r8
        do i = 1, 50
            middle = 0.5_r8*(low + high)
            energy = self%fuel_energy + self%flame%release + pres/dens*(1.0_r8 - 1.0_r8/middle)
            call self%eos%rows(n_ash, middle*dens, ash, energy, hot, got, gamc, error)
            if (error%failed()) return
            where (got > pres)
                high = middle
            else where
                low = middle
            end where
        end do
        self%ash_energy = energy
        self%ash_temp = hot
        self%flame%first_log = first_ash
        self%flame%step_log = (last_ash - first_ash)/(n_ash - 1)
        self%flame%atwood = (1.0_r8 - middle)/(1.0_r8 + middle)
    end subroutine tabulate_ash

    !> As problem_t%equip.
    subroutine equip(self, mesh, gravity, flame)
        class(snia2d_problem_t), intent(in) :: self
        type(mesh_t), intent(in) :: mesh
        type(gravity_t), intent(inout) :: gravity
        type(flame_t), intent(inout) :: flame
        real(r8) :: width(3)

        width = mesh%zone_size(mesh%highest_level)
        flame = self%flame
        flame%zone = maxval(width(:2))
        call gravity%start(mesh, self%star%ambient, 1.0e3_r8*self%star%central_density, speed_of_light)
    end subroutine equip

    !> As problem_t%fill: the density in the centre of each zone, with the star's temperature or, for ash, that after
    !> burning.
    subroutine fill_star(self, mesh, leaf)
        class(snia2d_problem_t), intent(in) :: self
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        real(r8), dimension(mesh%block) :: dens, temp, eint, pres, gamc
        real(r8) :: state(n_conserved), width(3), corner(3), fraction(mesh%block, 2), burnt, volume
        type(error_t) :: error
        integer :: i, j

        width = mesh%zone_size(mesh%tree%level(leaf))
        corner = mesh%block_corner(leaf)
        fraction(:, 1) = 1.0_r8
        fraction(:, 2) = 0.0_r8
        temp = self%star%temperature
        do j = 1, mesh%block
            do i = 1, mesh%block
                dens(i) = self%star%density(hypot(corner(1) + (i - 0.5_r8)*width(1), corner(2) + (j - 0.5_r8)*width(2)))
            end do
            call self%eos%at_temperature(mesh%block, dens, fraction, temp, eint, pres, gamc, error)
            do i = 1, mesh%block
                burnt = ball_share(self, corner + width*[i - 1, j - 1, 0], width)
                state = 0.0_r8
                state(v_dens) = dens(i)
                state(v_ener) = dens(i)*eint(i)
                if (burnt > 0.0_r8) then
                    ! Volumes and energies of fuel and ash at the same pressure add up.
                    associate (atwood => looked_up(self, dens(i), self%flame%atwood))
                        volume = (1.0_r8 - burnt + burnt*(1.0_r8 + atwood)/(1.0_r8 - atwood))/dens(i)
                    end associate
                    state(v_dens) = 1.0_r8/volume
                    state(v_ener) = state(v_dens)*(eint(i) + burnt*self%flame%release - pres(i)*(volume - 1.0_r8/dens(i)))
                end if
                call put(mesh, leaf, [i, j, 1], state, [1.0_r8 - burnt, burnt], &
                         (1.0_r8 - burnt)*temp(i) + burnt*looked_up(self, dens(i), self%ash_temp))
            end do
        end do
    end subroutine fill_star

    !> Interpolate in the tables of ash, by the density of the fuel.
    pure real(r8) function looked_up(self, dens, table)
        class(snia2d_problem_t), intent(in) :: self
        real(r8), intent(in) :: dens, table(n_ash)
        real(r8) :: place
        integer :: k

        place = min(max((log(dens) - self%flame%first_log)/self%flame%step_log, 0.0_r8), n_ash - 1.0_r8)
        k = min(int(place), n_ash - 2)
        place = place - k
        looked_up = (1.0_r8 - place)*table(k + 1) + place*table(k + 2)
    end function looked_up

    !> The share of a zone inside the ball, by points; from its lower corner and widths.
    pure real(r8) function ball_share(self, lower, width)
        class(snia2d_problem_t), intent(in) :: self
        real(r8), intent(in) :: lower(3), width(3)
        real(r8) :: place(2), inside, all
        integer :: i, j

        ball_share = 0.0_r8
        if (.not. self%flame%on) return
        if (lower(1) > self%ball .or. lower(2) > self%offset + self%ball .or. lower(2) + width(2) < self%offset - self%ball) return
        inside = 0.0_r8
        all = 0.0_r8
        do j = 1, points
            do i = 1, points
                place = lower(:2) + width(:2)*(real([i, j], r8) - 0.5_r8)/points
                all = all + place(1)
                if (place(1)**2 + (place(2) - self%offset)**2 <= self%ball**2) inside = inside + place(1)
            end do
        end do
        ball_share = inside/all
    end function ball_share

end module ember_snia2d
