!> Limited slopes of rows of zones, (zone, direction), and those of a pressure that balances gravity.
!>
!> Arrays of planes are (zone, variable, row, one of three planes): plane k is number modulo(k, 3). The steepness of the limiter
!> is 1 for minmod, 2 for the monotonised central limiter (van Leer 1977, J. Comput. Phys. 23, 276).
!>
!> A pressure's balanced rise is the change across a zone that balances the force on it. With it, limiters act only on
!> the deviation of the pressure from balance, after R. Kaeppeli, S. Mishra, Astron. Astrophys. 587 (2016) A94: matter at
!> rest in hydrostatic equilibrium has equal pressures on both sides of a face, and no velocity. Their scheme is exact for the
!> balance by the trapezoidal rule, which is of second order; here the force is a parabola through three zones, so that a
!> star at rest is in balance to the fourth order.
module ember_slopes
    use ember_godunov, only: faces_t, half_step_t, n_primitive, p_dens, p_pres, row_first, row_last
    use ember_mesh, only: first_guard, last_guard
    use pw_kinds, only: r8
    implicit none
    private

    public :: slopes_of_row, balance_slopes, push_faces

contains

    !> The limited slopes of variable v of row j of plane k in each direction, of zones first_guard to last_guard; none in a
    !> direction that the mesh does not have.
    pure subroutine slopes_of_row(plane, v, j, k, half, slope)
        real(r8), contiguous, intent(in) :: plane(row_first:, :, first_guard:, 0:)
        integer, intent(in) :: v, j, k
        type(half_step_t), intent(in) :: half
        real(r8), intent(inout) :: slope(row_first:row_last, 3)
        integer :: i, below, here, above

        here = modulo(k, 3)
        !$omp simd
        do i = first_guard, last_guard
            slope(i, 1) = limited(plane(i, v, j, here) - plane(i - 1, v, j, here), &
                                  plane(i + 1, v, j, here) - plane(i, v, j, here), half%steepness)
            slope(i, 2) = limited(plane(i, v, j, here) - plane(i, v, j - 1, here), &
                                  plane(i, v, j + 1, here) - plane(i, v, j, here), half%steepness)
        end do
        slope(:, 3) = 0.0_r8
        if (.not. half%by_width(3) > 0.0_r8) return
        below = modulo(k - 1, 3)
        above = modulo(k + 1, 3)
        !$omp simd
        do i = first_guard, last_guard
            slope(i, 3) = limited(plane(i, v, j, here) - plane(i, v, j, below), &
                                  plane(i, v, j, above) - plane(i, v, j, here), half%steepness)
        end do
    end subroutine slopes_of_row

    !> The slopes of the pressure in both directions of row j of a plane, (zone, variable, row), if its balanced rise, (zone,
    !> direction, row), is known: that rise, which is at most the pressure itself, and the limited slope of the deviation from
    !> it. `bend`: the mean difference between the balanced pressure at a zone's two faces, in each direction, and that in its
    !> centre.
    pure subroutine balance_slopes(plane, rise, j, half, slope, bend)
        real(r8), intent(in) :: plane(row_first:row_last, n_primitive, first_guard:last_guard)
        real(r8), intent(in) :: rise(row_first:row_last, 2, first_guard:last_guard)
        integer, intent(in) :: j
        type(half_step_t), intent(in) :: half
        real(r8), intent(inout) :: slope(row_first:row_last, 3), bend(row_first:row_last, 2)
        real(r8) :: pres
        integer :: i

        !$omp simd private(pres)
        do i = first_guard, last_guard
            pres = plane(i, p_pres, j)
            slope(i, 1) = limited(pres - plane(i - 1, p_pres, j) &
                                  - to_neighbour(rise(i + 1, 1, j), rise(i, 1, j), rise(i - 1, 1, j)), &
                                  plane(i + 1, p_pres, j) - pres &
                                  - to_neighbour(rise(i - 1, 1, j), rise(i, 1, j), rise(i + 1, 1, j)), &
                                  half%steepness) + no_more(rise(i, 1, j), pres)
            slope(i, 2) = limited(pres - plane(i, p_pres, j - 1) &
                                  - to_neighbour(rise(i, 2, j + 1), rise(i, 2, j), rise(i, 2, j - 1)), &
                                  plane(i, p_pres, j + 1) - pres &
                                  - to_neighbour(rise(i, 2, j - 1), rise(i, 2, j), rise(i, 2, j + 1)), &
                                  half%steepness) + no_more(rise(i, 2, j), pres)
            bend(i, 1) = no_more(0.0625_r8*(rise(i + 1, 1, j) - rise(i - 1, 1, j)), 0.1_r8*pres)
            bend(i, 2) = no_more(0.0625_r8*(rise(i, 2, j + 1) - rise(i, 2, j - 1)), 0.1_r8*pres)
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
        real(r8), intent(in) :: row(row_first:row_last, n_primitive)
        type(half_step_t), intent(in) :: half
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
                    push = half%by_width(d)*no_more(rise(i, d), row(i, p_pres))/row(i, p_dens)
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

    !> The limited slope from the differences to both neighbours: central, or `steepness` times the smaller of the two if
    !> that is less, and zero at an extremum.
    pure elemental real(r8) function limited(lower, upper, steepness)
        real(r8), intent(in) :: lower, upper, steepness
        real(r8) :: central

        central = 0.5_r8*(lower + upper)
        limited = sign(min(abs(central), steepness*min(abs(lower), abs(upper))), central)
        limited = merge(limited, 0.0_r8, lower*upper > 0.0_r8)
    end function limited

end module ember_slopes
