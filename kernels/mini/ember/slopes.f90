!> Limited slopes of rows of zones, beyond the Euler equations: of advected quantities, and of a pressure that
!> balances gravity.
!>
!> A pressure's balanced rise is the change across a zone that balances the force on it. With it, limiters act only on
!> the deviation of the pressure from balance, after R. Kaeppeli, S. Mishra, Astron. Astrophys. 587 (2016) A94: matter at
!> rest in hydrostatic equilibrium has equal pressures on both sides of a face, and no velocity. Theirs is exact for the
!> balance by the trapezoidal rule, which is of second order; here the force is a parabola through three zones, so that a
!> star at rest is in balance to the fourth order.
module ember_slopes
    use ember_godunov, only: faces_t, n_primitive, p_dens, p_pres, p_velx, p_vely, p_velz, row_first, row_last
    use ember_mesh, only: first_guard, last_guard
    use pw_kinds, only: r8
    implicit none
    private

    public :: slopes_of_row, slopes_of_velocities, balance_slopes, push_faces

contains

    !> The limited slopes of a row, and the rows around it, in each direction; none in the third direction of a plane
    !> (`flat`).
    pure subroutine slopes_of_row(row, south, north, below, above, flat, steepness, x, y, z)
        real(r8), intent(in), dimension(row_first:row_last) :: row, south, north, below, above
        logical, intent(in) :: flat
        real(r8), intent(in) :: steepness
        real(r8), intent(inout), dimension(row_first:row_last) :: x, y, z
        integer :: i

        !$omp simd
        do i = first_guard, last_guard
            x(i) = limited(row(i) - row(i - 1), row(i + 1) - row(i), steepness)
            y(i) = limited(row(i) - south(i), north(i) - row(i), steepness)
        end do
        z = 0.0_r8
        if (flat) return
        !$omp simd
        do i = first_guard, last_guard
            z(i) = limited(row(i) - below(i), above(i) - row(i), steepness)
        end do
    end subroutine slopes_of_row

    !> The limited slopes of the velocities, each in its own direction, from the primitive variables of a row and those around it.
    pure subroutine slopes_of_velocities(row, south, north, below, above, flat, steepness, x, y, z)
        real(r8), intent(in), dimension(row_first:row_last, n_primitive) :: row, south, north, below, above
        logical, intent(in) :: flat
        real(r8), intent(in) :: steepness
        real(r8), intent(inout), dimension(row_first:row_last) :: x, y, z
        integer :: i

        !$omp simd
        do i = first_guard, last_guard
            x(i) = limited(row(i, p_velx) - row(i - 1, p_velx), row(i + 1, p_velx) - row(i, p_velx), steepness)
            y(i) = limited(row(i, p_vely) - south(i, p_vely), north(i, p_vely) - row(i, p_vely), steepness)
        end do
        z = 0.0_r8
        if (flat) return
        !$omp simd
        do i = first_guard, last_guard
            z(i) = limited(row(i, p_velz) - below(i, p_velz), above(i, p_velz) - row(i, p_velz), steepness)
        end do
    end subroutine slopes_of_velocities

    !> The slopes of the pressure in both directions, if its balanced rise is known: that rise, which is at most the
    !> pressure itself, and the limited slope of the deviation from it. `bend`: the mean difference between the balanced
    !> pressure at a zone's two faces, in each direction, and that in its centre.
    pure subroutine balance_slopes(row, south, north, rise, steepness, slopes, bend)
        real(r8), intent(in), dimension(row_first:row_last, n_primitive) :: row, south, north
        real(r8), intent(in) :: rise(row_first:row_last, 2, -1:1), steepness
        real(r8), intent(inout), dimension(row_first:row_last, 2) :: slopes, bend
        real(r8) :: pres
        integer :: i

        !$omp simd private(pres)
        do i = first_guard, last_guard
            pres = row(i, p_pres)
            slopes(i, 1) = limited(pres - row(i - 1, p_pres) - to_neighbour(rise(i + 1, 1, 0), rise(i, 1, 0), rise(i - 1, 1, 0)), &
                           row(i + 1, p_pres) - pres - to_neighbour(rise(i - 1, 1, 0), rise(i, 1, 0), rise(i + 1, 1, 0)), &
                           steepness) + no_more(rise(i, 1, 0), pres)
            slopes(i, 2) = limited(pres - south(i, p_pres) - to_neighbour(rise(i, 2, 1), rise(i, 2, 0), rise(i, 2, -1)), &
                           north(i, p_pres) - pres - to_neighbour(rise(i, 2, -1), rise(i, 2, 0), rise(i, 2, 1)), &
                           steepness) + no_more(rise(i, 2, 0), pres)
            bend(i, 1) = no_more(0.0625_r8*(rise(i + 1, 1, 0) - rise(i - 1, 1, 0)), 0.1_r8*pres)
            bend(i, 2) = no_more(0.0625_r8*(rise(i, 2, 1) - rise(i, 2, -1)), 0.1_r8*pres)
        end do
    end subroutine balance_slopes

    !> The integral from a zone's centre to that of the next, of a parabola through values of the zone before, itself and
    !> the next.
    pure elemental real(r8) function to_neighbour(before, here, next)
        real(r8), intent(in) :: before, here, next

        to_neighbour = (5.0_r8*next + 8.0_r8*here - before)*(1.0_r8/12.0_r8)
    end function to_neighbour

    !> Add the bend to the pressures at the faces, and the effect of the forces of `rise` in half a step to the velocities.
    pure subroutine push_faces(row, rise, bend, half, faces)
        real(r8), intent(in) :: row(row_first:row_last, n_primitive), half(3)
        real(r8), intent(in), dimension(row_first:row_last, 2) :: rise, bend
        type(faces_t), intent(inout) :: faces
        real(r8) :: push
        integer :: direction, i, d

        do d = 1, 2
            !$omp simd
            do i = first_guard, last_guard
                faces%lower(i, p_pres, d) = faces%lower(i, p_pres, d) + bend(i, d)
                faces%upper(i, p_pres, d) = faces%upper(i, p_pres, d) + bend(i, d)
            end do
            do direction = 1, 2
                !$omp simd private(push)
                do i = first_guard, last_guard
                    push = half(d)*no_more(rise(i, d), row(i, p_pres))/row(i, p_dens)
                    faces%lower(i, 1 + d, direction) = faces%lower(i, 1 + d, direction) + push
                    faces%upper(i, 1 + d, direction) = faces%upper(i, 1 + d, direction) + push
                end do
            end do
        end do
        ! The mean of the faces in the first direction, for the pressure's source in cylindrical geometry.
        !$omp simd
        do i = first_guard, last_guard
            faces%middle_pressure(i) = faces%middle_pressure(i) + bend(i, 1)
        end do
    end subroutine push_faces

    !> `x`, no larger than `most` in size.
    pure elemental real(r8) function no_more(x, most)
        real(r8), intent(in) :: x, most

        no_more = sign(min(abs(x), most), x)
    end function no_more

    !> As that of ember_godunov, because compilers inline it only within a file: the limited slope from the differences to
    !> both neighbours: central, or `steepness` times the smaller of the two if that is less, and zero at an extremum.
    pure elemental real(r8) function limited(lower, upper, steepness)
        real(r8), intent(in) :: lower, upper, steepness
        real(r8) :: central

        central = 0.5_r8*(lower + upper)
        limited = sign(min(abs(central), steepness*min(abs(lower), abs(upper))), central)
        limited = merge(limited, 0.0_r8, lower*upper > 0.0_r8)
    end function limited

end module ember_slopes
