!> The Riemann problem of a gas that obeys the gamma law: the exact solution.
!>
!> Two states meet at x = 0 at time 0; the result is a function of x/t: a wave (shock or rarefaction), a contact, a
!> wave. The pressure p between the waves is the root of f_L(p) + f_R(p) + u_R - u_L = 0. E. F. Toro, Riemann solvers and
!> numerical methods for fluid dynamics (3rd edition, 2009), chapter 4, whose equation numbers are given below.
module riemann_exact
    use pw_error, only: error_t, exit_check, exit_usage
    use pw_kinds, only: r8
    implicit none
    private

    !> A gas on one side.
    type, public :: gas_t
        real(r8) :: dens = 1.0_r8, velocity = 0.0_r8, pres = 1.0_r8   !< velocity to the right
    end type gas_t

    !> A solution: `start` makes it.
    type, public :: riemann_t
        real(r8) :: gamma = 1.4_r8
        type(gas_t) :: left, right
        real(r8) :: velocity = 0.0_r8, pres = 0.0_r8                  !< between the waves
    contains
        procedure :: start
        procedure :: sample
        procedure :: average
        procedure, private :: breaks
    end type riemann_t

contains

    !> Set up the solution for the states `left` and `right`. Errors: exit_usage if gamma, a density or a pressure is not
    !> above its bound (1, 0, 0); exit_check if the gases separate so fast that a vacuum forms between them.
    subroutine start(self, gamma, left, right, error)
        class(riemann_t), intent(out) :: self
        real(r8), intent(in) :: gamma
        type(gas_t), intent(in) :: left, right
        type(error_t), intent(inout) :: error

        self%gamma = gamma
        self%left = left
        self%right = right
        if (.not. (gamma > 1.0_r8 .and. min(left%dens, right%dens) > 0.0_r8 .and. min(left%pres, right%pres) > 0.0_r8)) then
            call error%raise(exit_usage, 'a Riemann problem needs gamma above 1, densities and pressures above 0', &
                             'riemann_exact', 'choose other values')
            return
        end if
        ! (4.40)
        if (2.0_r8/(gamma - 1.0_r8)*(sound(gamma, left) + sound(gamma, right)) <= right%velocity - left%velocity) then
            call error%raise(exit_check, 'the gases of the Riemann problem separate so fast that a vacuum forms', &
                             'riemann_exact', 'choose a smaller difference of velocities')
            return
        end if
        self%pres = star_pressure(gamma, left, right)
        self%velocity = 0.5_r8*(left%velocity + right%velocity + change(gamma, right, self%pres) &
                                - change(gamma, left, self%pres))
    end subroutine start

    !> Density, velocity and pressure at `speed` = x/t.
    pure elemental subroutine sample(self, speed, dens, velocity, pres)
        class(riemann_t), intent(in) :: self
        real(r8), intent(in) :: speed
        real(r8), intent(out) :: dens, velocity, pres
        type(gas_t) :: state

        if (speed <= self%velocity) then
            state = state_left(self%gamma, self%left, self%velocity, self%pres, speed)
        else
            ! The right side is the mirror image of the left one.
            state = mirrored(state_left(self%gamma, mirrored(self%right), -self%velocity, self%pres, -speed))
        end if
        dens = state%dens
        velocity = state%velocity
        pres = state%pres
    end subroutine sample

    !> Averages over x/t from `lower` to `upper` of density, momentum and pressure: exact to rounding outside of
    !> rarefactions; in these by a Gauss rule of fifth order.
    pure subroutine average(self, lower, upper, dens, momentum, pres)
        class(riemann_t), intent(in) :: self
        real(r8), intent(in) :: lower, upper
        real(r8), intent(out) :: dens, momentum, pres
        real(r8), parameter :: node(3) = [-sqrt(0.6_r8), 0.0_r8, sqrt(0.6_r8)]
        real(r8), parameter :: weight(3) = [5.0_r8, 8.0_r8, 5.0_r8]/18.0_r8
        real(r8) :: edge(7), share, rho, u, p
        integer :: i, k

        edge(1) = lower
        edge(2:6) = min(max(self%breaks(), lower), upper)
        edge(7) = upper
        dens = 0.0_r8
        momentum = 0.0_r8
        pres = 0.0_r8
        do i = 1, 6
            if (.not. edge(i + 1) > edge(i)) cycle
            share = (edge(i + 1) - edge(i))/(upper - lower)
            do k = 1, 3
                call self%sample(0.5_r8*(edge(i) + edge(i + 1) + node(k)*(edge(i + 1) - edge(i))), rho, u, p)
                dens = dens + share*weight(k)*rho
                momentum = momentum + share*weight(k)*rho*u
                pres = pres + share*weight(k)*p
            end do
        end do
    end subroutine average

    !> Speeds at which the solution is not smooth, ascending: head and tail of the left wave (of a shock twice the same),
    !> contact, tail and head of the right wave.
    pure function breaks(self) result(speed)
        class(riemann_t), intent(in) :: self
        real(r8) :: speed(5)

        call wave_edges(self%gamma, self%left, self%velocity, self%pres, speed(1), speed(2))
        speed(3) = self%velocity
        call wave_edges(self%gamma, mirrored(self%right), -self%velocity, self%pres, speed(5), speed(4))
        speed(4:5) = -speed(4:5)
    end function breaks

    !> Speeds of head and tail of the left wave.
    pure subroutine wave_edges(gamma, left, velocity, pres, head, tail)
        real(r8), intent(in) :: gamma, velocity, pres
        type(gas_t), intent(in) :: left
        real(r8), intent(out) :: head, tail
        real(r8) :: c

        c = sound(gamma, left)
        if (pres > left%pres) then
            ! (4.52)
            head = left%velocity - c*sqrt((gamma + 1.0_r8)/(2.0_r8*gamma)*pres/left%pres + (gamma - 1.0_r8)/(2.0_r8*gamma))
            tail = head
        else
            ! (4.54), (4.55)
            head = left%velocity - c
            tail = velocity - c*(pres/left%pres)**((gamma - 1.0_r8)/(2.0_r8*gamma))
        end if
    end subroutine wave_edges

    !> The state at `speed`, left of the contact, whose velocity and pressure are given.
    pure type(gas_t) function state_left(gamma, left, star_velocity, star_pres, speed) result(state)
        real(r8), intent(in) :: gamma, star_velocity, star_pres, speed
        type(gas_t), intent(in) :: left
        real(r8) :: head, tail, ratio, g, c, fan

        call wave_edges(gamma, left, star_velocity, star_pres, head, tail)
        ratio = star_pres/left%pres
        g = (gamma - 1.0_r8)/(gamma + 1.0_r8)
        if (speed <= head) then
            state = left
        else if (speed >= tail) then
            state%velocity = star_velocity
            state%pres = star_pres
            if (ratio > 1.0_r8) then
                state%dens = left%dens*(ratio + g)/(g*ratio + 1.0_r8)   ! (4.50)
            else
                state%dens = left%dens*ratio**(1.0_r8/gamma)            ! (4.53)
            end if
        else
            ! Inside the rarefaction, (4.56).
            c = sound(gamma, left)
            fan = 2.0_r8/(gamma + 1.0_r8) + g/c*(left%velocity - speed)
            state%dens = left%dens*fan**(2.0_r8/(gamma - 1.0_r8))
            state%velocity = 2.0_r8/(gamma + 1.0_r8)*(c + 0.5_r8*(gamma - 1.0_r8)*left%velocity + speed)
            state%pres = left%pres*fan**(2.0_r8*gamma/(gamma - 1.0_r8))
        end if
    end function state_left

    !> The root p: Newton's steps, from the pressure of two rarefactions. f grows and is concave, so that steps from below
    !> converge; bounds limit the others.
    pure real(r8) function star_pressure(gamma, left, right) result(p)
        real(r8), intent(in) :: gamma
        type(gas_t), intent(in) :: left, right
        real(r8) :: z, low, high, f, step
        integer :: i

        ! (4.46)
        z = (gamma - 1.0_r8)/(2.0_r8*gamma)
        p = (sound(gamma, left) + sound(gamma, right) - 0.5_r8*(gamma - 1.0_r8)*(right%velocity - left%velocity)) &
            /(sound(gamma, left)/left%pres**z + sound(gamma, right)/right%pres**z)
        p = p**(1.0_r8/z)
        p = max(p, tiny(p))
        low = 0.0_r8
        high = huge(high)
        do i = 1, 200
            f = change(gamma, left, p) + change(gamma, right, p) + right%velocity - left%velocity
            if (f < 0.0_r8) then
                low = p
            else
                high = p
            end if
            step = -f/(slope(gamma, left, p) + slope(gamma, right, p))
            if (p + step <= low .or. p + step >= high) then
                step = merge(0.5_r8*(low + high), 2.0_r8*p, high < 0.5_r8*huge(high)) - p
            end if
            p = p + step
            if (abs(step) <= 2.0_r8*epsilon(p)*p) exit
        end do
    end function star_pressure

    !> f_L or f_R: change of velocity through the wave that brings `gas` to the pressure `p`; (4.6), (4.7).
    pure real(r8) function change(gamma, gas, p)
        real(r8), intent(in) :: gamma, p
        type(gas_t), intent(in) :: gas

        if (p > gas%pres) then
            change = (p - gas%pres)*sqrt(2.0_r8/(gas%dens*((gamma + 1.0_r8)*p + (gamma - 1.0_r8)*gas%pres)))
        else
            change = 2.0_r8*sound(gamma, gas)/(gamma - 1.0_r8)*((p/gas%pres)**((gamma - 1.0_r8)/(2.0_r8*gamma)) - 1.0_r8)
        end if
    end function change

    !> Its derivative with respect to p; (4.37).
    pure real(r8) function slope(gamma, gas, p)
        real(r8), intent(in) :: gamma, p
        type(gas_t), intent(in) :: gas
        real(r8) :: b

        if (p > gas%pres) then
            b = (gamma - 1.0_r8)/(gamma + 1.0_r8)*gas%pres
            slope = sqrt(2.0_r8/((gamma + 1.0_r8)*gas%dens*(p + b)))*(1.0_r8 - 0.5_r8*(p - gas%pres)/(p + b))
        else
            slope = (p/gas%pres)**(-(gamma + 1.0_r8)/(2.0_r8*gamma))/(gas%dens*sound(gamma, gas))
        end if
    end function slope

    !> Speed of sound.
    pure real(r8) function sound(gamma, gas)
        real(r8), intent(in) :: gamma
        type(gas_t), intent(in) :: gas

        sound = sqrt(gamma*gas%pres/gas%dens)
    end function sound

    pure type(gas_t) function mirrored(gas)
        type(gas_t), intent(in) :: gas

        mirrored = gas_t(gas%dens, -gas%velocity, gas%pres)
    end function mirrored

end module riemann_exact
