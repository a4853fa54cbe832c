!> The Godunov scheme on rows of zones: from limited slopes (ember_slopes), half a step in time, and the fluxes between two
!> rows of states.
!>
!> Unsplit MUSCL-Hancock (van Leer 1979, J. Comput. Phys. 32, 101; Toro, Riemann Solvers and Numerical Methods for Fluid
!> Dynamics, ch. 14 and 16): in each zone the primitive variables are linear, their slopes limited; the values at all faces
!> are advanced half a step by the Euler equations in primitive form, transverse terms included; one Riemann problem
!> per face then gives a flux of second order in space and time. The Riemann solver is HLLC (Toro, Spruce & Speares
!> 1994, Shock Waves 4, 25) with Davis' bounds of the wave speeds (1988, SIAM J. Sci. Stat. Comput. 9, 445).
module ember_godunov
    use ember_mesh, only: block_zones, first_guard, last_guard
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

    !> Half a time step of a block.
    type, public :: half_step_t
        real(r8) :: by_width(3) = 0.0_r8                     !< dt/2 over the zone's width; 0 if the mesh has no such direction
        real(r8) :: by_radius(row_first:row_last) = 0.0_r8   !< in cylindrical geometry dt/2 over the radius of each zone
        real(r8) :: steepness = 2.0_r8                       !< of the limiter, see ember_slopes
    end type half_step_t

    public :: advance_faces, hllc_row

contains

    !> The states at the faces of the zones first_guard to last_guard of a row, half a time step forward, from its primitive
    !> variables, (zone, variable), and their slopes, (zone, direction, variable).
    !> A zone whose extrapolated density or pressure is not positive keeps its mean at all faces.
    pure subroutine advance_faces(row, slope, half, faces)
        real(r8), intent(in) :: row(row_first:row_last, n_primitive), slope(row_first:row_last, 3, n_sloped)
        type(half_step_t), intent(in) :: half
        type(faces_t), intent(inout) :: faces
        real(r8) :: mean(row_first:row_last, n_sloped), kept(row_first:row_last)
        integer :: i, v, direction

        call advance_means(row, slope, half, mean, kept)
        !$omp simd
        do i = first_guard, last_guard
            faces%middle_pressure(i) = mean(i, p_pres)
        end do
        do direction = 1, 3
            do v = 1, n_sloped
                !$omp simd
                do i = first_guard, last_guard
                    faces%lower(i, v, direction) = mean(i, v) - kept(i)*slope(i, direction, v)
                    faces%upper(i, v, direction) = mean(i, v) + kept(i)*slope(i, direction, v)
                end do
            end do
        end do
    end subroutine advance_faces

    !> The mean states of zones half a time step forward, and the distance from the centre to which slopes apply: half a
    !> zone, or none where the density or the pressure would not be positive there, which leaves the mean unchanged.
    pure subroutine advance_means(row, slope, half, mean, kept)
        real(r8), intent(in) :: row(row_first:row_last, n_primitive), slope(row_first:row_last, 3, n_sloped)
        type(half_step_t), intent(in) :: half
        real(r8), intent(inout) :: mean(row_first:row_last, n_sloped), kept(row_first:row_last)
        real(r8) :: dens, pres, x, y, z, inverse, growth, new_dens, new_velx, new_vely, new_velz, new_pres, least
        integer :: i

        !$omp simd private(dens, pres, x, y, z, inverse, growth, new_dens, new_velx, new_vely, new_velz, new_pres, least)
        do i = first_guard, last_guard
            dens = row(i, p_dens)
            pres = row(i, p_pres)
            inverse = 1.0_r8/dens
            x = row(i, p_velx)*half%by_width(1)
            y = row(i, p_vely)*half%by_width(2)
            z = row(i, p_velz)*half%by_width(3)
            growth = half%by_width(1)*slope(i, 1, p_velx) + half%by_width(2)*slope(i, 2, p_vely) &
                     + half%by_width(3)*slope(i, 3, p_velz) + half%by_radius(i)*row(i, p_velx)
            new_dens = dens - (x*slope(i, 1, p_dens) + y*slope(i, 2, p_dens) + z*slope(i, 3, p_dens)) - dens*growth
            new_velx = row(i, p_velx) - (x*slope(i, 1, p_velx) + y*slope(i, 2, p_velx) + z*slope(i, 3, p_velx)) &
                       - half%by_width(1)*slope(i, 1, p_pres)*inverse
            new_vely = row(i, p_vely) - (x*slope(i, 1, p_vely) + y*slope(i, 2, p_vely) + z*slope(i, 3, p_vely)) &
                       - half%by_width(2)*slope(i, 2, p_pres)*inverse
            new_velz = row(i, p_velz) - (x*slope(i, 1, p_velz) + y*slope(i, 2, p_velz) + z*slope(i, 3, p_velz)) &
                       - half%by_width(3)*slope(i, 3, p_pres)*inverse
            new_pres = pres - (x*slope(i, 1, p_pres) + y*slope(i, 2, p_pres) + z*slope(i, 3, p_pres)) &
                       - row(i, p_gamc)*pres*growth
            least = min(new_dens - 0.5_r8*max(abs(slope(i, 1, p_dens)), abs(slope(i, 2, p_dens)), abs(slope(i, 3, p_dens))), &
                        new_pres - 0.5_r8*max(abs(slope(i, 1, p_pres)), abs(slope(i, 2, p_pres)), abs(slope(i, 3, p_pres))))
            kept(i) = merge(0.5_r8, 0.0_r8, least > 0.0_r8)
            mean(i, p_dens) = merge(new_dens, dens, least > 0.0_r8)
            mean(i, p_velx) = merge(new_velx, row(i, p_velx), least > 0.0_r8)
            mean(i, p_vely) = merge(new_vely, row(i, p_vely), least > 0.0_r8)
            mean(i, p_velz) = merge(new_velz, row(i, p_velz), least > 0.0_r8)
            mean(i, p_pres) = merge(new_pres, pres, least > 0.0_r8)
        end do
    end subroutine advance_means

    !> The fluxes of mass, momentum (by direction) and energy, (face, variable), through the faces of a row normal to
    !> `direction`: face i has the state left(i, :) on its lower side and on the upper one right(i, :), in the first direction
    !> right(i + 1, :). `left_matter` and `right_matter` are the rows of primitive variables that they come from, for the
    !> adiabatic indices.
    pure subroutine hllc_row(direction, left, right, left_matter, right_matter, flux)
        integer, intent(in) :: direction
        real(r8), intent(in), dimension(row_first:row_last, n_sloped) :: left, right
        real(r8), intent(in), dimension(row_first:row_last, n_primitive) :: left_matter, right_matter
        real(r8), intent(inout) :: flux(row_first:row_last, n_sloped)
        real(r8) :: dens_l, vel_l, pres_l, dens_r, vel_r, pres_r, sound_l, sound_r, slowest, fastest
        real(r8) :: mass_l, mass_r, middle, dens, vel, pres, side1, side2, energy, speed, inverse, star, energy_star
        integer :: i, m, n, t1, t2, shift

        shift = merge(1, 0, direction == 1)
        n = 1 + direction
        t1 = 2 + modulo(direction, 3)
        t2 = 2 + modulo(direction + 1, 3)
        !$omp simd private(dens_l, vel_l, pres_l, dens_r, vel_r, pres_r, sound_l, sound_r, slowest, fastest, mass_l, mass_r, &
        !$omp& middle, dens, vel, pres, side1, side2, energy, speed, inverse, star, energy_star, m)
        do i = 1 - shift, block_zones
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

            ! Between the outer waves, the state next to the contact; outside them, the undisturbed one.
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
