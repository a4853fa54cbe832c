!> A white dwarf at rest: spheres of one temperature and composition in hydrostatic equilibrium,
!>     dp/dr = -(rho - ambient) G m/r^2,    dm/dr = 4 pi r^2 rho,
!> integrated from the centre by the classical Runge-Kutta method of fourth order, in steps of a small fraction of the scale
!> height, with the density from the pressure by the secant method. The surface is where the density has fallen to that of
!> an ambient gas without weight (ember_gravity), which continues beyond it.
module ember_white_dwarf
    use ember_gravity, only: newton
    use ember_helmholtz_eos, only: helmholtz_eos_t
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: r8
    use pw_text, only: to_text
    implicit none
    private

    real(r8), parameter :: pi = acos(-1.0_r8)
    real(r8), parameter :: part = 0.005_r8            ! of a scale height per step
    real(r8), parameter :: longest = 0.5e5_r8         ! step [cm]
    integer, parameter :: most_steps = 20000
    real(r8), parameter :: close = 1.0e-3_r8          ! relative distance to the ambient density at the surface

    !> The star's matter, at one temperature [K].
    type :: matter_t
        real(r8), allocatable :: row(:, :)              ! (1, species): mass fractions
        real(r8) :: temperature = 0.0_r8
        real(r8) :: ambient = 0.0_r8, p_ambient = 0.0_r8   ! density and pressure of the ambient gas
        real(r8) :: stiffness = 4.0_r8/3.0_r8           ! d ln(p)/d ln(rho) of the last density
    contains
        procedure :: pressure
        procedure :: density => density_at
    end type matter_t

    type, public :: white_dwarf_t
        real(r8) :: central_density = 0.0_r8, temperature = 0.0_r8, ambient = 0.0_r8   !< [g/cm^3], [K], [g/cm^3]
        real(r8) :: mass = 0.0_r8, radius = 0.0_r8    !< of the whole star [g], [cm]
        integer, private :: n = 0
        real(r8), allocatable, private :: r(:), log_dens(:)
    contains
        procedure :: start
        procedure :: density
    end type white_dwarf_t

contains

    !> Integrate the star. `fraction`: mass fractions of its matter. Errors: those of the equation of state; exit_check if
    !> the star has no surface.
    subroutine start(self, eos, fraction, central_density, temperature, ambient, error)
        class(white_dwarf_t), intent(inout) :: self
        type(helmholtz_eos_t), intent(in) :: eos
        real(r8), intent(in) :: fraction(:), central_density, temperature, ambient
        type(error_t), intent(inout) :: error
        type(matter_t) :: matter
        real(r8) :: r, m, p, rho

        self%central_density = central_density
        self%temperature = temperature
        self%ambient = ambient
        allocate (self%r(0:most_steps), self%log_dens(0:most_steps), source=0.0_r8)
        allocate (matter%row(1, size(fraction)))
        matter%row(1, :) = fraction
        matter%temperature = temperature
        matter%ambient = ambient
        p = matter%pressure(eos, central_density, error)
        if (error%failed()) return
        matter%p_ambient = matter%pressure(eos, ambient, error)
        self%n = 0
        self%log_dens(0) = log(central_density)
        ! The first step by the series about the centre.
        r = 0.1_r8*longest
        m = 4.0_r8*pi/3.0_r8*central_density*r**3
        p = p - 2.0_r8*pi/3.0_r8*newton*central_density**2*r**2
        rho = central_density
        do while (.not. error%failed())
            rho = matter%density(eos, p, rho, error)
            if (error%failed()) return
            self%n = self%n + 1
            self%r(self%n) = r
            self%log_dens(self%n) = log(rho)
            if (rho <= (1.0_r8 + close)*ambient) exit
            if (self%n == most_steps) then
                call error%raise(exit_check, 'the star has no surface: its density is still '//to_text(rho, 'es10.3')// &
                                 ' g/cm^3 at a radius of '//to_text(r, 'es10.3')//' cm', 'white_dwarf_t', &
                                 'choose a lower temperature, or a higher ambient density')
                return
            end if
            call next_shell(matter, eos, rho, r, p, m, error)
        end do
        self%mass = m
        self%radius = r
    end subroutine start

    !> A step outwards from radius r, pressure p and mass m, where the density is `rho`.
    subroutine next_shell(matter, eos, rho, r, p, m, error)
        type(matter_t), intent(inout) :: matter
        type(helmholtz_eos_t), intent(in) :: eos
        real(r8), intent(in) :: rho
        real(r8), intent(inout) :: r, p, m
        type(error_t), intent(inout) :: error
        real(r8) :: step, k1(2), k2(2), k3(2), k4(2)

        step = min(longest, part*p*r**2/(newton*m*(rho - matter%ambient)))
        k1 = slopes(r, p, m)
        k2 = slopes(r + 0.5_r8*step, p + 0.5_r8*step*k1(1), m + 0.5_r8*step*k1(2))
        k3 = slopes(r + 0.5_r8*step, p + 0.5_r8*step*k2(1), m + 0.5_r8*step*k2(2))
        k4 = slopes(r + step, p + step*k3(1), m + step*k3(2))
        p = max(p + step*(k1(1) + 2.0_r8*(k2(1) + k3(1)) + k4(1))/6.0_r8, matter%p_ambient)
        m = m + step*(k1(2) + 2.0_r8*(k2(2) + k3(2)) + k4(2))/6.0_r8
        r = r + step

    contains

        !> dp/dr and dm/dr.
        function slopes(r, p, m) result(slope)
            real(r8), intent(in) :: r, p, m
            real(r8) :: slope(2), dens

            dens = matter%density(eos, max(p, matter%p_ambient), rho, error)
            slope = [-max(dens - matter%ambient, 0.0_r8)*newton*m/r**2, 4.0_r8*pi*r**2*dens]
        end function slopes

    end subroutine next_shell

    real(r8) function pressure(self, eos, dens, error)
        class(matter_t), intent(in) :: self
        type(helmholtz_eos_t), intent(in) :: eos
        real(r8), intent(in) :: dens
        type(error_t), intent(inout) :: error
        real(r8) :: eint(1), pres(1), gamc(1)

        call eos%at_temperature(1, [dens], self%row, [self%temperature], eint, pres, gamc, error)
        pressure = pres(1)
    end function pressure

    !> The density of a pressure; `guess` is near it. d ln(p)/d ln(rho) is updated from step to step.
    real(r8) function density_at(self, eos, pres, guess, error)
        class(matter_t), intent(inout) :: self
        type(helmholtz_eos_t), intent(in) :: eos
        real(r8), intent(in) :: pres, guess
        type(error_t), intent(inout) :: error
        real(r8) :: x, last_x, off, last_off
        integer :: i

        x = log(guess)
        last_x = x
        last_off = 0.0_r8
        do i = 1, 100
            off = log(self%pressure(eos, exp(x), error)/pres)
            if (error%failed() .or. abs(off) < 1.0e-13_r8) exit
            if (abs(x - last_x) > 1.0e-9_r8) self%stiffness = min(max((off - last_off)/(x - last_x), 0.3_r8), 5.0_r8)
            last_x = x
            last_off = off
            x = x - off/self%stiffness
            if (abs(off/self%stiffness) < 1.0e-14_r8) exit
        end do
        density_at = exp(x)
    end function density_at

    !> The density at a distance from the centre.
    pure elemental real(r8) function density(self, radius)
        class(white_dwarf_t), intent(in) :: self
        real(r8), intent(in) :: radius
        real(r8) :: x
        integer :: low, high, middle

        density = self%ambient
        if (radius >= self%radius) return
        low = 0
        high = self%n
        do while (high - low > 1)
            middle = (low + high)/2
            if (self%r(middle) <= radius) then
                low = middle
            else
                high = middle
            end if
        end do
        x = (radius - self%r(low))/(self%r(high) - self%r(low))
        ! Zero slope in the centre.
        if (low == 0) x = x*x
        density = exp((1.0_r8 - x)*self%log_dens(low) + x*self%log_dens(high))
    end function density

end module ember_white_dwarf
