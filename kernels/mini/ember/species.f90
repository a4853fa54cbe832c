!> Advection of species with the mass, on rows of zones: mass fractions at the faces, and fluxes through them.
!>
!> Mass fractions are linear in each zone, with limited slopes, and are advanced half a step along the flow, like the
!> primitive variables of ember_godunov. The flux through a face is the flux of mass times the fractions on the upwind side
!> (B. Larrouturou, J. Comput. Phys. 95 (1991) 59), scaled to a sum of 1, so that the species' densities still add up to the
!> density and a uniform mixture stays uniform.
!>
!> In matter whose pressure is not simple, the ratio of internal energy per volume to pressure is treated as such a
!> fraction. Along the flow it changes with compression, d ln(e rho/p) = (gamc - 1 - p/(e rho)) dt div v (P. Colella, H. M.
!> Glaz, J. Comput. Phys.
!> 59 (1985) 264, do the same).
module ember_species
    use ember_godunov, only: n_primitive, n_sloped, p_gamc, p_ratio, p_velx, p_vely, p_velz, row_first, row_last
    use ember_mesh, only: first_guard, first_species, last_guard, mesh_t, v_dens
    use ember_slopes, only: slopes_of_row, slopes_of_velocities
    use pw_kinds, only: r8
    implicit none
    private

    !> Of a row, (zone, what, direction): mass fractions at both faces of each zone, half a step later, and a copy of the
    !> row's primitive variables with those used by hllc_row, gamc and ratio, at the face.
    type, public :: matter_t
        real(r8), allocatable :: lower(:, :, :), upper(:, :, :)
        real(r8), allocatable :: lower_gas(:, :, :), upper_gas(:, :, :)
    contains
        procedure :: start
    end type matter_t

    public :: load_fractions, trace_matter, species_fluxes

contains

    subroutine start(self, n_species)
        class(matter_t), intent(inout) :: self
        integer, intent(in) :: n_species

        allocate (self%lower(row_first:row_last, n_species, 3), self%upper(row_first:row_last, n_species, 3), source=1.0_r8)
        allocate (self%lower_gas(row_first:row_last, n_primitive, 3), self%upper_gas(row_first:row_last, n_primitive, 3), &
                  source=1.0_r8)
    end subroutine start

    !> Mass fractions of plane k of a block, guard cells included: (zone, species, row).
    subroutine load_fractions(mesh, slot, k, fraction)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, k
        real(r8), contiguous, intent(inout) :: fraction(row_first:, :, first_guard:)
        integer :: i, j, s

        do j = first_guard, last_guard
            do s = 1, mesh%n_species
                if (mesh%variable_last) then
                    do i = first_guard, last_guard
                        fraction(i, s, j) = mesh%soa(i, j, k, first_species + s - 1, slot)/mesh%soa(i, j, k, v_dens, slot)
                    end do
                else
                    do i = first_guard, last_guard
                        fraction(i, s, j) = mesh%aos(first_species + s - 1, i, j, k, slot)/mesh%aos(v_dens, i, j, k, slot)
                    end do
                end if
            end do
        end do
    end subroutine load_fractions

    !> The states of a row's matter at the faces of zones first_guard to last_guard; arguments as those of trace_row, for
    !> the primitive variables (`gas`, and the rows around it) and the mass fractions (`row`, and the rows around it). `simple`: the
    !> ratio of energy to pressure is the same everywhere.
    pure subroutine trace_matter(n, gas, gas_south, gas_north, gas_below, gas_above, row, south, north, below, above, half, &
                                 steepness, curvature, simple, matter)
        integer, intent(in) :: n
        real(r8), intent(in), dimension(row_first:row_last, n_primitive) :: gas, gas_south, gas_north, gas_below, gas_above
        real(r8), intent(in), dimension(row_first:row_last, n) :: row, south, north, below, above
        real(r8), intent(in) :: half(3), steepness, curvature(row_first:row_last)
        logical, intent(in) :: simple
        type(matter_t), intent(inout) :: matter
        real(r8), dimension(row_first:row_last) :: x, y, z, dx, dy, dz
        real(r8) :: middle, growth
        logical :: flat
        integer :: i, s

        flat = .not. half(3) > 0.0_r8
        do s = 1, n
            call slopes_of_row(row(:, s), south(:, s), north(:, s), below(:, s), above(:, s), flat, steepness, x, y, z)
            !$omp simd private(middle)
            do i = first_guard, last_guard
                middle = row(i, s) - (half(1)*gas(i, p_velx)*x(i) + half(2)*gas(i, p_vely)*y(i) + half(3)*gas(i, p_velz)*z(i))
                matter%lower(i, s, 1) = max(0.0_r8, middle - 0.5_r8*x(i))
                matter%upper(i, s, 1) = max(0.0_r8, middle + 0.5_r8*x(i))
                matter%lower(i, s, 2) = max(0.0_r8, middle - 0.5_r8*y(i))
                matter%upper(i, s, 2) = max(0.0_r8, middle + 0.5_r8*y(i))
                matter%lower(i, s, 3) = max(0.0_r8, middle - 0.5_r8*z(i))
                matter%upper(i, s, 3) = max(0.0_r8, middle + 0.5_r8*z(i))
            end do
        end do

        do s = 1, 3
            matter%lower_gas(:, p_gamc, s) = gas(:, p_gamc)
            matter%upper_gas(:, p_gamc, s) = gas(:, p_gamc)
            matter%lower_gas(:, p_ratio, s) = gas(:, p_ratio)
            matter%upper_gas(:, p_ratio, s) = gas(:, p_ratio)
        end do
        if (simple) return
        call slopes_of_velocities(gas, gas_south, gas_north, gas_below, gas_above, flat, steepness, dx, dy, dz)
        associate (v => p_ratio)
            call slopes_of_row(gas(:, v), gas_south(:, v), gas_north(:, v), gas_below(:, v), gas_above(:, v), flat, steepness, &
                               x, y, z)
        end associate
        !$omp simd private(middle, growth)
        do i = first_guard, last_guard
            growth = half(1)*dx(i) + half(2)*dy(i) + half(3)*dz(i) + curvature(i)*gas(i, p_velx)
            middle = gas(i, p_ratio) + (gas(i, p_ratio)*(gas(i, p_gamc) - 1.0_r8) - 1.0_r8)*growth &
                     - (half(1)*gas(i, p_velx)*x(i) + half(2)*gas(i, p_vely)*y(i) + half(3)*gas(i, p_velz)*z(i))
            matter%lower_gas(i, p_ratio, 1) = middle - 0.5_r8*x(i)
            matter%upper_gas(i, p_ratio, 1) = middle + 0.5_r8*x(i)
            matter%lower_gas(i, p_ratio, 2) = middle - 0.5_r8*y(i)
            matter%upper_gas(i, p_ratio, 2) = middle + 0.5_r8*y(i)
            matter%lower_gas(i, p_ratio, 3) = middle - 0.5_r8*z(i)
            matter%upper_gas(i, p_ratio, 3) = middle + 0.5_r8*z(i)
        end do
    end subroutine trace_matter

    !> The fluxes of the species, (face, species), from that of mass in `flux`: fractions left(i, :) on the lower side of face i and
    !> right(i + shift, :) on the upper one.
    pure subroutine species_fluxes(n, first, last, shift, left, right, flux, species)
        integer, intent(in) :: n, first, last, shift
        real(r8), intent(in), dimension(row_first:row_last, n) :: left, right
        real(r8), intent(in) :: flux(row_first:row_last, n_sloped)
        real(r8), intent(inout) :: species(row_first:row_last, n)
        real(r8) :: whole(row_first:row_last)
        integer :: i, s

        whole = 0.0_r8
        do s = 1, n
            !$omp simd
            do i = first, last
                species(i, s) = merge(left(i, s), right(i + shift, s), flux(i, 1) > 0.0_r8)
                whole(i) = whole(i) + species(i, s)
            end do
        end do
        do s = 1, n
            !$omp simd
            do i = first, last
                species(i, s) = flux(i, 1)*species(i, s)/whole(i)
            end do
        end do
    end subroutine species_fluxes

end module ember_species
