!> Arithmetic of Taylor polynomials in two variables: a function and its derivatives up to the second in each, computed
!> together.
!>
!> A quantity Q(x, T) about a point is represented as Q = sum c(i, j) xi**i tau**j for i, j = 0, 1, 2, where x = x0 (1 + xi)
!> and T = T0 (1 + tau). Terms of higher order in either variable are dropped; no kept coefficient depends on them.
!> Derivatives of formulas then need no separate formulas; the method is old, see Griewank and Walther, Evaluating
!> Derivatives (SIAM, 2008), chapter 13.
module eos_table_taylor
    use, intrinsic :: iso_c_binding, only: c_double
    use pw_kinds, only: r8
    implicit none
    private

    type, public :: taylor_t
        real(r8) :: c(0:2, 0:2) = 0.0_r8   !< (power of xi, power of tau)
    end type taylor_t

    interface operator(+)
        module procedure add, add_number
    end interface operator(+)

    interface operator(-)
        module procedure subtract, negate, subtract_number, subtract_from_number
    end interface operator(-)

    interface operator(*)
        module procedure multiply, scaled
    end interface operator(*)

    interface operator(/)
        module procedure divide
    end interface operator(/)

    interface
        pure real(c_double) function c_log1p(x) bind(c, name='log1p')
            import :: c_double
            real(c_double), intent(in), value :: x
        end function c_log1p

        pure real(c_double) function c_expm1(x) bind(c, name='expm1')
            import :: c_double
            real(c_double), intent(in), value :: x
        end function c_expm1
    end interface

    public :: operator(+), operator(-), operator(*), operator(/)
    public :: constant, one_plus_xi, one_plus_tau, power, power_minus_1, exponential, logarithm, logarithm_1p
    public :: log1p, expm1

contains

    !> ln(1 + x) without loss for small x.
    elemental real(r8) function log1p(x)
        real(r8), intent(in) :: x

        log1p = c_log1p(x)
    end function log1p

    !> exp(x) - 1 without loss for small x.
    elemental real(r8) function expm1(x)
        real(r8), intent(in) :: x

        expm1 = c_expm1(x)
    end function expm1

    elemental type(taylor_t) function constant(value) result(a)
        real(r8), intent(in) :: value

        a%c(0, 0) = value
    end function constant

    !> value (1 + xi): a quantity proportional to x.
    elemental type(taylor_t) function one_plus_xi(value) result(a)
        real(r8), intent(in) :: value

        a%c(0:1, 0) = value
    end function one_plus_xi

    !> value (1 + tau): a quantity proportional to T.
    elemental type(taylor_t) function one_plus_tau(value) result(a)
        real(r8), intent(in) :: value

        a%c(0, 0:1) = value
    end function one_plus_tau

    elemental type(taylor_t) function add(a, b) result(r)
        type(taylor_t), intent(in) :: a, b

        r%c = a%c + b%c
    end function add

    elemental type(taylor_t) function add_number(a, number) result(r)
        type(taylor_t), intent(in) :: a
        real(r8), intent(in) :: number

        r = a
        r%c(0, 0) = r%c(0, 0) + number
    end function add_number

    elemental type(taylor_t) function subtract(a, b) result(r)
        type(taylor_t), intent(in) :: a, b

        r%c = a%c - b%c
    end function subtract

    elemental type(taylor_t) function subtract_number(a, number) result(r)
        type(taylor_t), intent(in) :: a
        real(r8), intent(in) :: number

        r = add_number(a, -number)
    end function subtract_number

    elemental type(taylor_t) function subtract_from_number(number, a) result(r)
        real(r8), intent(in) :: number
        type(taylor_t), intent(in) :: a

        r = add_number(negate(a), number)
    end function subtract_from_number

    elemental type(taylor_t) function negate(a) result(r)
        type(taylor_t), intent(in) :: a

        r%c = -a%c
    end function negate

    elemental type(taylor_t) function scaled(factor, a) result(r)
        real(r8), intent(in) :: factor
        type(taylor_t), intent(in) :: a

        r%c = factor*a%c
    end function scaled

    elemental type(taylor_t) function multiply(a, b) result(r)
        type(taylor_t), intent(in) :: a, b
        integer :: j, k

        do j = 0, 2
            do k = 0, 2 - j
                r%c(0, j + k) = r%c(0, j + k) + a%c(0, j)*b%c(0, k)
                r%c(1, j + k) = r%c(1, j + k) + (a%c(0, j)*b%c(1, k) + a%c(1, j)*b%c(0, k))
                r%c(2, j + k) = r%c(2, j + k) + (a%c(0, j)*b%c(2, k) + a%c(1, j)*b%c(1, k) + a%c(2, j)*b%c(0, k))
            end do
        end do
    end function multiply

    elemental type(taylor_t) function divide(a, b) result(r)
        type(taylor_t), intent(in) :: a, b

        r = multiply(a, power(b, -1.0_r8))
    end function divide

    !> The function whose derivatives of order k at a's value, divided by k!, are f(k): f(0) + f(1) u + ... where u = a -
    !> value.
    pure type(taylor_t) function compose(f, a) result(r)
        real(r8), intent(in) :: f(0:4)
        type(taylor_t), intent(in) :: a
        type(taylor_t) :: u
        integer :: k

        u = a
        u%c(0, 0) = 0.0_r8
        r = scaled(f(4), u)
        ! Five factors u give at least fifth order, of which nothing is kept.
        do k = 3, 1, -1
            r%c(0, 0) = f(k)
            r = multiply(r, u)
        end do
        r%c(0, 0) = f(0)
    end function compose

    !> a**p, for a value above 0 (or any other than 0 if p is a whole number).
    elemental type(taylor_t) function power(a, p) result(r)
        type(taylor_t), intent(in) :: a
        real(r8), intent(in) :: p
        type(taylor_t) :: relative

        relative%c = a%c/a%c(0, 0)
        relative = compose(binomials(p), relative)
        if (abs(p + 1.0_r8) <= 0.0_r8) then
            r%c = relative%c/a%c(0, 0)
        else
            r%c = relative%c*a%c(0, 0)**p
        end if
    end function power

    !> (1 + a)**p - 1 without loss for small a, whose value is above -1.
    elemental type(taylor_t) function power_minus_1(a, p) result(r)
        type(taylor_t), intent(in) :: a
        real(r8), intent(in) :: p
        type(taylor_t) :: relative
        real(r8) :: value

        relative%c = a%c/(1.0_r8 + a%c(0, 0))
        relative = compose(binomials(p), relative)
        value = expm1(p*log1p(a%c(0, 0)))
        r%c = relative%c*(1.0_r8 + value)
        r%c(0, 0) = value
    end function power_minus_1

    !> The first coefficients of (1 + u)**p.
    pure function binomials(p) result(f)
        real(r8), intent(in) :: p
        real(r8) :: f(0:4)
        integer :: k

        f(0) = 1.0_r8
        do k = 1, 4
            f(k) = f(k - 1)*(p - (k - 1))/k
        end do
    end function binomials

    elemental type(taylor_t) function exponential(a) result(r)
        type(taylor_t), intent(in) :: a
        real(r8), parameter :: f(0:4) = [1.0_r8, 1.0_r8, 1.0_r8/2.0_r8, 1.0_r8/6.0_r8, 1.0_r8/24.0_r8]

        r = scaled(exp(a%c(0, 0)), compose(f, a))
    end function exponential

    !> ln a, for a value above 0.
    elemental type(taylor_t) function logarithm(a) result(r)
        type(taylor_t), intent(in) :: a

        r%c = a%c/a%c(0, 0)
        r = logarithm_of_relative(r)
        r%c(0, 0) = log(a%c(0, 0))
    end function logarithm

    !> ln(1 + a) without loss for small a, whose value is above -1.
    elemental type(taylor_t) function logarithm_1p(a) result(r)
        type(taylor_t), intent(in) :: a

        r%c = a%c/(1.0_r8 + a%c(0, 0))
        r = logarithm_of_relative(r)
        r%c(0, 0) = log1p(a%c(0, 0))
    end function logarithm_1p

    pure type(taylor_t) function logarithm_of_relative(a) result(r)
        type(taylor_t), intent(in) :: a
        real(r8), parameter :: f(0:4) = [0.0_r8, 1.0_r8, -0.5_r8, 1.0_r8/3.0_r8, -0.25_r8]

        r = compose(f, a)
    end function logarithm_of_relative

end module eos_table_taylor
