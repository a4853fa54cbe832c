!> Taylor arithmetic against derivatives by hand, and against its own inverses.
program test_taylor
    use eos_table_taylor, only: constant, expm1, exponential, log1p, logarithm, logarithm_1p, one_plus_tau, one_plus_xi, &
        operator(*), operator(+), operator(-), operator(/), power, power_minus_1, taylor_t
    use eos_table_testing, only: agree, expect, finish
    use pw_kinds, only: r8
    implicit none
    real(r8), parameter :: x = 1.7_r8, t = 0.6_r8, tight = 4.0e-15_r8
    type(taylor_t) :: a, b, c

    ! x^2 t^3: binomials.
    a = one_plus_xi(x)
    b = one_plus_tau(t)
    call equal('x^2 t^3', a*a*b*(b*b), reshape(x**2*t**3*[1.0_r8, 2.0_r8, 1.0_r8, 3.0_r8, 6.0_r8, 3.0_r8, 3.0_r8, 6.0_r8, 3.0_r8], &
                                               [3, 3]))
    ! exp(x t): derivatives by xi and tau of exp(x t (1 + xi)(1 + tau)).
    associate (z => x*t)
        call equal('exp(x t)', exponential(a*b), exp(z)*reshape([1.0_r8, z, z**2/2.0_r8, z, z + z**2, z**2 + z**3/2.0_r8, &
            z**2/2.0_r8, z**2 + z**3/2.0_r8, z**2/2.0_r8 + z**3 + z**4/4.0_r8], [3, 3]))
    end associate
    c = exponential(a - 2.0_r8*b)*power(a + b*b + 1.0_r8, 0.3_r8)
    c = 0.1_r8*c
    call equal('ln of exp', logarithm(exponential(c)), c%c)
    call equal('a power of a power', power(power(c, 2.5_r8), 0.4_r8), c%c)
    call equal('a quotient', c*a/c, a%c)
    call equal('an inverse', (1.0_r8 - c)*power(1.0_r8 - c, -1.0_r8) - 1.0_r8 + c, c%c)
    call equal('a difference', -(c - a) + c - 3.0_r8 + constant(3.0_r8), a%c)

    ! Small arguments keep their digits.
    c = 1.0e-20_r8*(a*b + b)
    call equal('ln(1 + small)', logarithm_1p(c), c%c)
    c = 1.0e-9_r8*c
    call equal('(1 + small)^p - 1', power_minus_1(c, 0.75_r8), 0.75_r8*c%c)
    c = a*b
    call equal('ln(1 + a)', logarithm_1p(c), logarithm_of(c + 1.0_r8))
    call equal('(1 + a)^p - 1', power_minus_1(c, 0.75_r8) + 1.0_r8, power_of(c + 1.0_r8, 0.75_r8))
    call agree('log1p', log1p(1.0e-18_r8), 1.0e-18_r8, 0.0_r8)
    call agree('expm1', expm1(1.0e-18_r8), 1.0e-18_r8, 0.0_r8)
    call finish()

contains

    function logarithm_of(c) result(coefficients)
        type(taylor_t), intent(in) :: c
        real(r8) :: coefficients(0:2, 0:2)
        type(taylor_t) :: r

        r = logarithm(c)
        coefficients = r%c
    end function logarithm_of

    function power_of(c, p) result(coefficients)
        type(taylor_t), intent(in) :: c
        real(r8), intent(in) :: p
        real(r8) :: coefficients(0:2, 0:2)
        type(taylor_t) :: r

        r = power(c, p)
        coefficients = r%c
    end function power_of

    subroutine equal(label, a, wanted)
        character(*), intent(in) :: label
        type(taylor_t), intent(in) :: a
        real(r8), intent(in) :: wanted(0:2, 0:2)

        call expect(all(abs(a%c - wanted) <= tight*(abs(wanted) + maxval(abs(wanted)))), label)
    end subroutine equal

end program test_taylor
