!> An independent evaluation of the equation of state, for checks: one zone, directly from the table's file, sharing only
!> the formulas with rows.c.
module helmholtz_reference
    use helmholtz_constants, only: avogadro, boltzmann, elementary_charge, gas_constant, pi, planck, radiation_constant
    use pw_error, only: error_t
    use pw_hdf5, only: file_t
    use pw_kinds, only: i8, r8
    implicit none
    private

    !> The table as stored in the file.
    type, public :: reference_t
        real(r8), allocatable :: dye(:), temperature(:), cold(:, :), thermal(:, :, :)
        logical :: coulomb = .true.
    contains
        procedure :: load
        procedure :: state
    end type reference_t

    ! Coefficients of Yakovlev & Shalybkov's fits: see rows.c.
    real(r8), parameter :: a1 = -0.898004_r8, b1 = 0.96786_r8, c1 = 0.220703_r8, a2 = 0.29561_r8, b2 = 1.9885_r8, c2 = 0.288675_r8
    real(r8), parameter :: d1 = -3.0_r8*c2 + a2 - a1 - b1 - c1, e1 = -2.0_r8*c2 + a2/b2 - a1 - 4.0_r8*(b1 - c1)

contains

    !> Read the table. Errors: those of the file.
    subroutine load(self, path, error)
        class(reference_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(error_t), intent(inout) :: error
        type(file_t) :: file
        integer(i8), allocatable :: shape(:)
        integer :: nx, nt

        call file%open(path, error)
        call file%shape('thermal', shape, error)
        if (error%failed()) return
        nt = int(shape(2))
        nx = int(shape(3))
        if (allocated(self%dye)) deallocate (self%dye, self%temperature, self%cold, self%thermal)
        allocate (self%dye(nx), self%temperature(nt), self%cold(nx, 3), self%thermal(9, nt, nx))
        call file%read_reals('dye', 1, nx, 1, self%dye, error)
        call file%read_reals('temperature', 1, nt, 1, self%temperature, error)
        call file%read_reals('cold', 1, 3, nx, self%cold, error)
        call file%read_reals('thermal', 1, nx, 9*nt, self%thermal, error)
        call file%close()
    end subroutine load

    !> Pressure [erg/cm^3], specific internal energy [erg/g] and entropy [erg/(g K)] at rho [g/cm^3], t [K]. `scale`: the sums of
    !> the absolute values of their parts, to which rounding errors are proportional.
    pure subroutine state(self, rho, t, abar, zbar, pres, eint, entr, scale)
        class(reference_t), intent(in) :: self
        real(r8), intent(in) :: rho, t, abar, zbar
        real(r8), intent(out) :: pres, eint, entr
        real(r8), intent(out), optional :: scale(3)
        real(r8) :: x, ye, u, v, g(3), cold(2), weights_u(6, 2), weights_v(6, 2), a, gamma, root, energy, bound, rt
        real(r8) :: with_pres, with_eint
        integer :: i, j, k, l

        ye = zbar/abar
        x = rho*ye
        call place(self%dye, x, i, u)
        call place(self%temperature, t, j, v)
        call weigh(u, log(self%dye(i + 1)/self%dye(i)), weights_u)
        call weigh(v, log(self%temperature(j + 1)/self%temperature(j)), weights_v)
        g = 0.0_r8
        cold = 0.0_r8
        do k = 0, 1
            cold = cold + matmul(transpose(weights_u(3*k + 1:3*k + 3, :)), by_logarithm(self%dye(i + k), self%cold(i + k, :)))
            do l = 0, 1
                associate (node => logarithmic(self%dye(i + k), self%temperature(j + l), self%thermal(:, j + l, i + k)), &
                           at_u => weights_u(3*k + 1:3*k + 3, :), at_v => weights_v(3*l + 1:3*l + 3, :))
                    g(1) = g(1) + dot_product(at_u(:, 1), matmul(node, at_v(:, 1)))
                    g(2) = g(2) + dot_product(at_u(:, 2), matmul(node, at_v(:, 1)))
                    g(3) = g(3) + dot_product(at_u(:, 1), matmul(node, at_v(:, 2)))
                end associate
            end do
        end do
        a = gas_constant*t*exp(g(1))
        rt = gas_constant*t/abar
        pres = x*(cold(2) - a*g(2)) + rho*rt + radiation_constant*t**4/3.0_r8
        eint = ye*(cold(1) + a*g(3)) + 1.5_r8*rt + radiation_constant*t**4/rho
        entr = ye*a*(1.0_r8 + g(3))/t + 4.0_r8*radiation_constant*t**3/(3.0_r8*rho) + gas_constant/abar*(2.5_r8 + &
            log(abar**2.5_r8/(rho*avogadro)*(2.0_r8*pi*boltzmann*t/(avogadro*planck**2))**1.5_r8))
        if (present(scale)) scale = [pres, eint, abs(entr) + 10.0_r8*rt/t]
        if (.not. self%coulomb) return

        gamma = (zbar*elementary_charge)**2/(boltzmann*t)*(4.0_r8*pi*avogadro*rho/(3.0_r8*abar))**(1.0_r8/3.0_r8)
        if (gamma >= 1.0_r8) then
            root = sqrt(sqrt(gamma))
            energy = a1*gamma + b1*root + c1/root + d1
            bound = b1*root + c1/root + d1 - (4.0_r8*(b1*root - c1/root) + d1*log(gamma) + e1)
        else
            energy = -3.0_r8*c2*sqrt(gamma)**3 + a2*gamma**b2
            bound = energy - (-2.0_r8*c2*sqrt(gamma)**3 + a2/b2*gamma**b2)
        end if
        if (present(scale)) scale = scale + rt*[rho, 1.0_r8, 1.0_r8/t]*abs(a1*gamma)*[1.0_r8, 1.0_r8, 0.0_r8]
        with_pres = pres + rho*rt*energy/3.0_r8
        with_eint = eint + rt*energy
        if (.not. (with_pres > 0.0_r8 .and. with_eint > 0.0_r8)) return
        pres = with_pres
        eint = with_eint
        entr = entr + rt/t*bound
    end subroutine state

    !> The cell of `points` that contains x, and the position in it, from 0 to 1 in the logarithm.
    pure subroutine place(points, x, i, part)
        real(r8), intent(in) :: points(:), x
        integer, intent(out) :: i
        real(r8), intent(out) :: part
        integer :: high, middle

        i = 1
        high = size(points)
        do while (high - i > 1)
            middle = (i + high)/2
            if (points(middle) <= x) then
                i = middle
            else
                high = middle
            end if
        end do
        part = min(1.0_r8, max(0.0_r8, log(x/points(i))/log(points(i + 1)/points(i))))
    end subroutine place

    !> Quintic Hermite weights of value, first and second derivative at both ends of a cell of length `step`, and of the
    !> interpolant's derivative (:, 2).
    pure subroutine weigh(t, step, weights)
        real(r8), intent(in) :: t, step
        real(r8), intent(out) :: weights(6, 2)
        real(r8) :: s

        s = 1.0_r8 - t
        weights(:3, 1) = [1.0_r8 - t**3*(10.0_r8 - 15.0_r8*t + 6.0_r8*t**2), t - t**3*(6.0_r8 - 8.0_r8*t + 3.0_r8*t**2), &
                          0.5_r8*t**2 - 0.5_r8*t**3*(3.0_r8 - 3.0_r8*t + t**2)]
        weights(4:, 1) = [t**3*(10.0_r8 - 15.0_r8*t + 6.0_r8*t**2), -s + s**3*(6.0_r8 - 8.0_r8*s + 3.0_r8*s**2), &
                          0.5_r8*s**2 - 0.5_r8*s**3*(3.0_r8 - 3.0_r8*s + s**2)]
        weights(:3, 2) = [-30.0_r8*t**2*s**2, 1.0_r8 - t**2*(18.0_r8 - 32.0_r8*t + 15.0_r8*t**2), &
                          t - 0.5_r8*t**2*(9.0_r8 - 12.0_r8*t + 5.0_r8*t**2)]
        weights(4:, 2) = [30.0_r8*t**2*s**2, 1.0_r8 - s**2*(18.0_r8 - 32.0_r8*s + 15.0_r8*s**2), &
                          -s + 0.5_r8*s**2*(9.0_r8 - 12.0_r8*s + 5.0_r8*s**2)]
        weights(:, 1) = weights(:, 1)*[1.0_r8, step, step**2, 1.0_r8, step, step**2]
        weights(:, 2) = weights(:, 2)*[1.0_r8, step, step**2, 1.0_r8, step, step**2]/step
    end subroutine weigh

    !> f, f_x, f_xx to f, f_u, f_uu with u = ln(x).
    pure function by_logarithm(x, f) result(g)
        real(r8), intent(in) :: x, f(3)
        real(r8) :: g(3)

        g = [f(1), x*f(2), x*(x*f(3) + f(2))]
    end function by_logarithm

    !> Convert f and its derivatives with respect to x and T, in the file's order, to G = ln(-f/(R T)) and its derivatives
    !> (u, v) of orders 0 to
    !> 2: those of a logarithm of a product of exponentials, by the recursion g' = f'/f.
    pure function logarithmic(x, t, f) result(g)
        real(r8), intent(in) :: x, t, f(9)
        real(r8) :: g(0:2, 0:2)
        real(r8) :: d(0:2, 0:2), column(3)
        integer :: k

        ! With respect to x and T.
        d(:, 0) = [f(1), f(2), f(4)]
        d(:, 1) = [f(3), f(6), f(7)]
        d(:, 2) = [f(5), f(8), f(9)]
        do k = 0, 2
            d(:, k) = by_logarithm(x, d(:, k))
        end do
        do k = 0, 2
            column = by_logarithm(t, d(k, :))
            d(k, :) = column
        end do
        ! f_u = f g_u, differentiated further.
        g(0, 0) = log(-f(1)/(gas_constant*t))
        g(1, 0) = d(1, 0)/d(0, 0)
        g(2, 0) = (d(2, 0) - d(1, 0)*g(1, 0))/d(0, 0)
        g(0, 1) = d(0, 1)/d(0, 0)
        g(0, 2) = (d(0, 2) - d(0, 1)*g(0, 1))/d(0, 0)
        g(1, 1) = (d(1, 1) - d(0, 1)*g(1, 0))/d(0, 0)
        g(2, 1) = (d(2, 1) - d(1, 1)*g(1, 0) - d(1, 0)*g(1, 1) - d(0, 1)*g(2, 0))/d(0, 0)
        g(1, 2) = (d(1, 2) - d(1, 1)*g(0, 1) - d(0, 1)*g(1, 1) - d(1, 0)*g(0, 2))/d(0, 0)
        g(2, 2) = (d(2, 2) - d(1, 2)*g(1, 0) - 2.0_r8*(d(1, 1)*g(1, 1)) - d(1, 0)*g(1, 2) - d(0, 2)*g(2, 0) - &
                   2.0_r8*d(0, 1)*g(2, 1))/d(0, 0)
        g(0, 1) = g(0, 1) - 1.0_r8
    end function logarithmic

end module helmholtz_reference
