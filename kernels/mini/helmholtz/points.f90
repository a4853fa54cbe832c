!> States of matter to measure the equation of state at: functions of their number, so that checks can recompute them.
module helmholtz_points
    use pw_kinds, only: i8, r8
    implicit none
    private

    integer, parameter, public :: points_plane = 1    !< random, evenly over ln(rho), ln(T) of the table
    integer, parameter, public :: points_stellar = 2  !< random, 1 <= rho <= 10^9.5 g/cm^3, 10^7 <= T <= 10^9.7 K
    integer, parameter, public :: points_rows = 3     !< along rows through a white dwarf: neighbours are similar

    public :: point, scatter

contains

    !> Density [g/cm^3] and temperature [K] of point number i, from 0. The composition is half carbon, half oxygen by mass.
    pure subroutine point(kind, i, range, dens, temp, abar, zbar)
        integer, intent(in) :: kind
        integer(i8), intent(in) :: i
        real(r8), intent(in) :: range(4)   !< smallest and largest rho*Ye [g/cm^3] and temperature [K] of the table
        real(r8), intent(out) :: dens, temp, abar, zbar
        real(r8), parameter :: ye = 0.5_r8, row = 1024.0_r8
        real(r8) :: a, b, depth

        abar = 1.0_r8/(0.5_r8/12.0_r8 + 0.5_r8/16.0_r8)
        zbar = ye*abar
        a = scatter(2*i)
        b = scatter(2*i + 1)
        select case (kind)
        case (points_plane)
            ! Not exactly at the edges, which rounding of other compositions may exceed.
            dens = exp(log(range(1)/ye) + (1.0e-6_r8 + 0.999998_r8*a)*log(range(2)/range(1)))
            temp = exp(log(range(3)) + (1.0e-6_r8 + 0.999998_r8*b)*log(range(4)/range(3)))
        case (points_stellar)
            dens = 10.0_r8**(9.5_r8*a)
            temp = 10.0_r8**(7.0_r8 + 2.7_r8*b)
        case default
            ! From the centre to low densities, each row a little further from the centre.
            depth = modulo(real(i, r8), row)/row
            depth = 1.0_r8 - depth**2 - 1.0e-3_r8*scatter(int(real(i, r8)/row, i8))
            dens = 2.2e9_r8*max(1.0e-6_r8, depth)**1.5_r8
            temp = 1.0e7_r8 + 4.0e8_r8*max(0.0_r8, depth)
        end select
    end subroutine point

    !> A pseudo-random number in [0, 1) from an integer: its last 31 bits permuted by multiplications and shifts.
    pure real(r8) function scatter(i)
        integer(i8), intent(in) :: i
        integer(i8), parameter :: mask = 2147483647_i8, factors(3) = [1640531527_i8, 1540483477_i8, 1000000007_i8]   ! odd
        integer(i8) :: z
        integer :: k

        z = iand(i + 1, mask)
        do k = 1, size(factors)
            z = iand(z*factors(k), mask)
            z = ieor(z, shiftr(z, 16))
        end do
        scatter = real(z, r8)/real(mask + 1, r8)
    end function scatter

end module helmholtz_points
