!> The Godunov scheme on rows of zones: limited slopes, half a step in time, and the fluxes between two rows of states.
!>
!> Unsplit MUSCL-Hancock (van Leer 1979, J. Comput. Phys. 32, 101; Toro, Riemann Solvers and Numerical Methods for Fluid
!> Dynamics, ch. 14 and 16): in each zone the primitive variables are linear, their slopes limited; the values at all faces
!> are advanced half a step by the Euler equations in primitive form, transverse terms included; one Riemann problem
!> per face then gives a flux of second order in space and time. The Riemann solver is HLLC (Toro, Spruce & Speares
!> 1994, Shock Waves 4, 25) with Davis' bounds of the wave speeds (1988, SIAM J. Sci. Stat. Comput. 9, 445).
module ember_godunov
    use ember_mesh, only: first_guard, last_guard
    use pw_kinds, only: r8
    implicit none
    private

    !> Bounds of a row of zones: the guard cells, and padding to whole cache lines and whole vectors.
    integer, parameter, public :: row_first = first_guard - 2, row_last = last_guard + 2

    !> Primitive variables: density, velocities, pressure; then those of the zone's matter, without slopes: the adiabatic
    !> index of the sound speed, and the ratio of internal energy per volume to pressure.
    integer, parameter, public :: p_dens = 1, p_velx = 2, p_vely = 3, p_velz = 4, p_pres = 5, p_gamc = 6, p_ratio = 7
    integer, parameter, public :: n_sloped = 5, n_primitive = 7

    !> The states of a row at its faces: (zone, variable), at the lower and the upper face in each direction.
    type, public :: faces_t
        real(r8) :: lower(row_first:row_last, n_sloped, 3) = 1.0_r8, upper(row_first:row_last, n_sloped, 3) = 1.0_r8
        real(r8) :: middle_pressure(row_first:row_last) = 1.0_r8   !< at the zone's centre, half a step forward
    end type faces_t

    public :: trace_row, hllc_row

contains

    !> The states at the faces of the zones first_guard to last_guard of a row, half a time step forward.
    !>
    !> `west` and `east` are the row itself shifted in memory; `south`, `north`, `below`, `above` its neighbours in the second
    !> and third direction: (zone, variable). `half` holds dt/2 over the zone's width in each direction, 0 if the mesh has
    !> no such direction. `steepness` is 1 for minmod, 2 for the monotonised central limiter (van Leer 1977). `curvature` is
    !> dt/2 over the radius of each zone in cylindrical geometry, 0 otherwise.
    !> A zone whose extrapolated density or pressure is not positive keeps its mean at all faces.
    !> With `pres_slopes`, (zone, direction), the pressure has these in a plane, instead of limited ones.
    pure subroutine trace_row(row, south, north, below, above, half, steepness, curvature, faces, pres_slopes)
        real(r8), intent(in), dimension(row_first:row_last, n_primitive) :: row, south, north, below, above
        real(r8), intent(in) :: half(3), steepness, curvature(row_first:row_last)
        type(faces_t), intent(inout) :: faces
        real(r8), intent(in), optional :: pres_slopes(row_first:row_last, 2)
        real(r8) :: slope(row_first:row_last, n_sloped, 3)   ! (zone, variable, direction)
        integer :: i, v

        do v = 1, n_sloped
            !$omp simd
            do i = first_guard, last_guard
                slope(i, v, 1) = limited(row(i, v) - row(i - 1, v), row(i + 1, v) - row(i, v), steepness)
                slope(i, v, 2) = limited(row(i, v) - south(i, v), north(i, v) - row(i, v), steepness)
            end do
        end do
        if (half(3) > 0.0_r8) then
            do v = 1, n_sloped
                !$omp simd
                do i = first_guard, last_guard
                    slope(i, v, 3) = limited(row(i, v) - below(i, v), above(i, v) - row(i, v), steepness)
                end do
            end do
        else
            slope(:, :, 3) = 0.0_r8
        end if
        if (present(pres_slopes)) slope(:, p_pres, :2) = pres_slopes
        call advance_faces(row, slope(:, :, 1), slope(:, :, 2), slope(:, :, 3), half, curvature, faces)
    end subroutine trace_row

    !> The rest of trace_row: `x`, `y`, `z` are the slopes in the three directions.
    pure subroutine advance_faces(row, x, y, z, half, curvature, faces)
        real(r8), intent(in) :: row(row_first:row_last, n_primitive)
        real(r8), intent(in), dimension(row_first:row_last, n_sloped) :: x, y, z
        real(r8), intent(in) :: half(3), curvature(row_first:row_last)
        type(faces_t), intent(inout) :: faces
        real(r8) :: dens, velx, vely, velz, pres, growth, least, lowest_dens, lowest_pres, kept
        real(r8) :: new_dens, new_velx, new_vely, new_velz, new_pres, inverse
        integer :: i

        !$omp simd private(dens, velx, vely, velz, pres, growth, least, lowest_dens, lowest_pres, kept, new_dens, new_velx, &
        !$omp& new_vely, new_velz, new_pres, inverse)
        do i = first_guard, last_guard
            dens = row(i, p_dens)
            velx = row(i, p_velx)
            vely = row(i, p_vely)
            velz = row(i, p_velz)
            pres = row(i, p_pres)
            inverse = 1.0_r8/dens
            velx = velx*half(1)
            vely = vely*half(2)
            velz = velz*half(3)
            growth = half(1)*x(i, p_velx) + half(2)*y(i, p_vely) + half(3)*z(i, p_velz) + curvature(i)*row(i, p_velx)
            new_dens = dens - (velx*x(i, p_dens) + vely*y(i, p_dens) + velz*z(i, p_dens)) - dens*growth
            new_velx = row(i, p_velx) - (velx*x(i, p_velx) + vely*y(i, p_velx) + velz*z(i, p_velx)) &
                       - half(1)*x(i, p_pres)*inverse
            new_vely = row(i, p_vely) - (velx*x(i, p_vely) + vely*y(i, p_vely) + velz*z(i, p_vely)) &
                       - half(2)*y(i, p_pres)*inverse
            new_velz = row(i, p_velz) - (velx*x(i, p_velz) + vely*y(i, p_velz) + velz*z(i, p_velz)) &
                       - half(3)*z(i, p_pres)*inverse
            new_pres = pres - (velx*x(i, p_pres) + vely*y(i, p_pres) + velz*z(i, p_pres)) - row(i, p_gamc)*pres*growth

            lowest_dens = new_dens - 0.5_r8*max(abs(x(i, p_dens)), abs(y(i, p_dens)), abs(z(i, p_dens)))
            lowest_pres = new_pres - 0.5_r8*max(abs(x(i, p_pres)), abs(y(i, p_pres)), abs(z(i, p_pres)))
            least = min(lowest_dens, lowest_pres)
            kept = merge(0.5_r8, 0.0_r8, least > 0.0_r8)
            new_dens = merge(new_dens, dens, least > 0.0_r8)
            new_velx = merge(new_velx, row(i, p_velx), least > 0.0_r8)
            new_vely = merge(new_vely, row(i, p_vely), least > 0.0_r8)
            new_velz = merge(new_velz, row(i, p_velz), least > 0.0_r8)
            new_pres = merge(new_pres, pres, least > 0.0_r8)
            faces%middle_pressure(i) = new_pres

            faces%lower(i, p_dens, 1) = new_dens - kept*x(i, p_dens)
            faces%upper(i, p_dens, 1) = new_dens + kept*x(i, p_dens)
            faces%lower(i, p_velx, 1) = new_velx - kept*x(i, p_velx)
            faces%upper(i, p_velx, 1) = new_velx + kept*x(i, p_velx)
            faces%lower(i, p_vely, 1) = new_vely - kept*x(i, p_vely)
            faces%upper(i, p_vely, 1) = new_vely + kept*x(i, p_vely)
            faces%lower(i, p_velz, 1) = new_velz - kept*x(i, p_velz)
            faces%upper(i, p_velz, 1) = new_velz + kept*x(i, p_velz)
            faces%lower(i, p_pres, 1) = new_pres - kept*x(i, p_pres)
            faces%upper(i, p_pres, 1) = new_pres + kept*x(i, p_pres)
            faces%lower(i, p_dens, 2) = new_dens - kept*y(i, p_dens)
            faces%upper(i, p_dens, 2) = new_dens + kept*y(i, p_dens)
            faces%lower(i, p_velx, 2) = new_velx - kept*y(i, p_velx)
            faces%upper(i, p_velx, 2) = new_velx + kept*y(i, p_velx)
            faces%lower(i, p_vely, 2) = new_vely - kept*y(i, p_vely)
            faces%upper(i, p_vely, 2) = new_vely + kept*y(i, p_vely)
            faces%lower(i, p_velz, 2) = new_velz - kept*y(i, p_velz)
            faces%upper(i, p_velz, 2) = new_velz + kept*y(i, p_velz)
            faces%lower(i, p_pres, 2) = new_pres - kept*y(i, p_pres)
            faces%upper(i, p_pres, 2) = new_pres + kept*y(i, p_pres)
            faces%lower(i, p_dens, 3) = new_dens - kept*z(i, p_dens)
            faces%upper(i, p_dens, 3) = new_dens + kept*z(i, p_dens)
            faces%lower(i, p_velx, 3) = new_velx - kept*z(i, p_velx)
            faces%upper(i, p_velx, 3) = new_velx + kept*z(i, p_velx)
            faces%lower(i, p_vely, 3) = new_vely - kept*z(i, p_vely)
            faces%upper(i, p_vely, 3) = new_vely + kept*z(i, p_vely)
            faces%lower(i, p_velz, 3) = new_velz - kept*z(i, p_velz)
            faces%upper(i, p_velz, 3) = new_velz + kept*z(i, p_velz)
            faces%lower(i, p_pres, 3) = new_pres - kept*z(i, p_pres)
            faces%upper(i, p_pres, 3) = new_pres + kept*z(i, p_pres)
        end do
    end subroutine advance_faces

    !> The limited slope from the differences to both neighbours: central, or `steepness` times the smaller of the two if
    !> that is less, and zero at an extremum.
    pure elemental real(r8) function limited(lower, upper, steepness)
        real(r8), intent(in) :: lower, upper, steepness
        real(r8) :: central

        central = 0.5_r8*(lower + upper)
        limited = sign(min(abs(central), steepness*min(abs(lower), abs(upper))), central)
        limited = merge(limited, 0.0_r8, lower*upper > 0.0_r8)
    end function limited

    !> The fluxes of mass, momentum (by direction) and energy, (face, variable), through the faces `first` to `last` normal to
    !> `direction`: face i has the state left(i, :) on its lower side and right(i + shift, :) on the upper one. `left_matter`
    !> and `right_matter` are the rows of primitive variables that they come from, for the adiabatic indices.
    pure subroutine hllc_row(direction, first, last, shift, left, right, left_matter, right_matter, flux)
        integer, intent(in) :: direction, first, last, shift
        real(r8), intent(in), dimension(row_first:row_last, n_sloped) :: left, right
        real(r8), intent(in), dimension(row_first:row_last, n_primitive) :: left_matter, right_matter
        real(r8), intent(inout) :: flux(row_first:row_last, n_sloped)
        real(r8) :: dens_l, vel_l, pres_l, dens_r, vel_r, pres_r, sound_l, sound_r, slowest, fastest
        real(r8) :: mass_l, mass_r, middle, dens, vel, pres, side1, side2, energy, speed, inverse, star, energy_star
        integer :: i, m, n, t1, t2

        n = 1 + direction
        t1 = 2 + modulo(direction, 3)
        t2 = 2 + modulo(direction + 1, 3)
        !$omp simd private(dens_l, vel_l, pres_l, dens_r, vel_r, pres_r, sound_l, sound_r, slowest, fastest, mass_l, mass_r, &
        !$omp& middle, dens, vel, pres, side1, side2, energy, speed, inverse, star, energy_star, m)
        do i = first, last
            m = i + shift
            dens_l = left(i, p_dens)
            vel_l = left(i, n)
            pres_l = left(i, p_pres)
            dens_r = right(m, p_dens)
            vel_r = right(m, n)
            pres_r = right(m, p_pres)
            sound_l = sqrt(left_matter(i, p_gamc)*pres_l/dens_l)
            sound_r = sqrt(right_matter(m, p_gamc)*pres_r/dens_r)
            slowest = min(vel_l - sound_l, vel_r - sound_r)
            fastest = max(vel_l + sound_l, vel_r + sound_r)
            mass_l = dens_l*(slowest - vel_l)
            mass_r = dens_r*(fastest - vel_r)
            middle = (pres_r - pres_l + mass_l*vel_l - mass_r*vel_r)/(mass_l - mass_r)

            dens = merge(dens_l, dens_r, middle > 0.0_r8)
            vel = merge(vel_l, vel_r, middle > 0.0_r8)
            pres = merge(pres_l, pres_r, middle > 0.0_r8)
            side1 = merge(left(i, t1), right(m, t1), middle > 0.0_r8)
            side2 = merge(left(i, t2), right(m, t2), middle > 0.0_r8)
            speed = merge(slowest, fastest, middle > 0.0_r8)
            energy = merge(left_matter(i, p_ratio), right_matter(m, p_ratio), middle > 0.0_r8)*pres &
                     + 0.5_r8*dens*(vel*vel + (side1*side1 + side2*side2))

            ! Between the outer waves, the state beside the contact; outside them, the undisturbed one.
            inverse = 1.0_r8/(speed - middle)
            star = pres + dens*(speed - vel)*(middle - vel)
            energy_star = ((speed - vel)*energy - pres*vel + star*middle)*inverse
            dens = merge(dens*(speed - vel)*inverse, dens, slowest*fastest < 0.0_r8)
            energy = merge(energy_star, energy, slowest*fastest < 0.0_r8)
            pres = merge(star, pres, slowest*fastest < 0.0_r8)
            vel = merge(middle, vel, slowest*fastest < 0.0_r8)

            flux(i, 1) = dens*vel
            flux(i, n) = dens*vel*vel + pres
            flux(i, t1) = dens*vel*side1
            flux(i, t2) = dens*vel*side2
            flux(i, 5) = (energy + pres)*vel
        end do
    end subroutine hllc_row

end module ember_godunov
