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
    use ember_container, only: make_view, view_t
    use ember_godunov, only: half_step_t, n_primitive, n_sloped, p_gamc, p_ratio, p_velx, p_vely, p_velz, row_first, row_last
    use ember_mesh, only: block_zones, first_guard, first_species, last_guard, mesh_t, v_dens
    use ember_slopes, only: slopes_of_row
    use pw_kinds, only: r8
    implicit none
    private

    !> Of a row, (zone, what, direction): mass fractions at both faces of each zone, half a step later, and a copy of the
    !> row's primitive variables with those used by hllc_row, gamc and ratio, at the face.
    type, public :: matter_t
        logical :: simple = .false.   !< the ratio is the same everywhere
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
        type(view_t) :: view
        integer :: i, j, s, row, dens, part

        call make_view(mesh, slot, view)
        do j = first_guard, last_guard
            row = view%origin + sum(view%zone*[0, j, k])
            dens = row + v_dens*view%variable
            do s = 1, mesh%n_species
                part = row + (first_species + s - 1)*view%variable
                do i = first_guard, last_guard
                    fraction(i, s, j) = view%values(part + i*view%zone(1))/view%values(dens + i*view%zone(1))
                end do
            end do
        end do
    end subroutine load_fractions

    !> The states of a row's matter at the faces of zones first_guard to last_guard: of row j of plane k, from arrays of planes
    !> (see ember_slopes) of primitive variables and mass fractions, and the row's slopes, (zone, direction, variable).
    pure subroutine trace_matter(plane, fraction, j, k, half, slope, matter)
        real(r8), contiguous, intent(in) :: plane(row_first:, :, first_guard:, 0:), fraction(row_first:, :, first_guard:, 0:)
        integer, intent(in) :: j, k
        type(half_step_t), intent(in) :: half
        real(r8), intent(in) :: slope(row_first:row_last, 3, n_sloped)
        type(matter_t), intent(inout) :: matter
        integer :: s

        associate (gas => plane(:, :, j, modulo(k, 3)))
            do s = 1, size(fraction, 2)
                call trace_fraction(fraction, s, j, k, half, gas, matter)
            end do
            do s = 1, 3
                matter%lower_gas(:, p_gamc, s) = gas(:, p_gamc)
                matter%upper_gas(:, p_gamc, s) = gas(:, p_gamc)
                matter%lower_gas(:, p_ratio, s) = gas(:, p_ratio)
                matter%upper_gas(:, p_ratio, s) = gas(:, p_ratio)
            end do
        end associate
        if (.not. matter%simple) call trace_ratio(plane, j, k, half, slope, matter)
    end subroutine trace_matter

    !> The mass fraction of species s; `gas`: the row's primitive variables.
    pure subroutine trace_fraction(fraction, s, j, k, half, gas, matter)
        real(r8), contiguous, intent(in) :: fraction(row_first:, :, first_guard:, 0:)
        integer, intent(in) :: s, j, k
        type(half_step_t), intent(in) :: half
        real(r8), intent(in) :: gas(row_first:row_last, n_primitive)
        type(matter_t), intent(inout) :: matter
        real(r8) :: slope(row_first:row_last, 3), middle
        integer :: i, here

        here = modulo(k, 3)
        call slopes_of_row(fraction, s, j, k, half, slope)
        !$omp simd private(middle)
        do i = first_guard, last_guard
            middle = fraction(i, s, j, here) - (half%by_width(1)*gas(i, p_velx)*slope(i, 1) &
                                                    + half%by_width(2)*gas(i, p_vely)*slope(i, 2) &
                                                    + half%by_width(3)*gas(i, p_velz)*slope(i, 3))
            matter%lower(i, s, 1) = max(0.0_r8, middle - 0.5_r8*slope(i, 1))
            matter%upper(i, s, 1) = max(0.0_r8, middle + 0.5_r8*slope(i, 1))
            matter%lower(i, s, 2) = max(0.0_r8, middle - 0.5_r8*slope(i, 2))
            matter%upper(i, s, 2) = max(0.0_r8, middle + 0.5_r8*slope(i, 2))
            matter%lower(i, s, 3) = max(0.0_r8, middle - 0.5_r8*slope(i, 3))
            matter%upper(i, s, 3) = max(0.0_r8, middle + 0.5_r8*slope(i, 3))
        end do
    end subroutine trace_fraction

    !> The ratio of energy to pressure, where it is not the same everywhere; `slope`: of the other variables.
    pure subroutine trace_ratio(plane, j, k, half, slope, matter)
        real(r8), contiguous, intent(in) :: plane(row_first:, :, first_guard:, 0:)
        integer, intent(in) :: j, k
        type(half_step_t), intent(in) :: half
        real(r8), intent(in) :: slope(row_first:row_last, 3, n_sloped)
        type(matter_t), intent(inout) :: matter
        real(r8) :: own(row_first:row_last, 3), middle, growth
        integer :: i, here

        here = modulo(k, 3)
        call slopes_of_row(plane, p_ratio, j, k, half, own)
        !$omp simd private(middle, growth)
        do i = first_guard, last_guard
            growth = half%by_width(1)*slope(i, 1, p_velx) + half%by_width(2)*slope(i, 2, p_vely) &
                     + half%by_width(3)*slope(i, 3, p_velz) + half%by_radius(i)*plane(i, p_velx, j, here)
            middle = plane(i, p_ratio, j, here) &
                     + (plane(i, p_ratio, j, here)*(plane(i, p_gamc, j, here) - 1.0_r8) - 1.0_r8)*growth &
                     - (half%by_width(1)*plane(i, p_velx, j, here)*own(i, 1) &
                        + half%by_width(2)*plane(i, p_vely, j, here)*own(i, 2) &
                        + half%by_width(3)*plane(i, p_velz, j, here)*own(i, 3))
            matter%lower_gas(i, p_ratio, 1) = middle - 0.5_r8*own(i, 1)
            matter%upper_gas(i, p_ratio, 1) = middle + 0.5_r8*own(i, 1)
            matter%lower_gas(i, p_ratio, 2) = middle - 0.5_r8*own(i, 2)
            matter%upper_gas(i, p_ratio, 2) = middle + 0.5_r8*own(i, 2)
            matter%lower_gas(i, p_ratio, 3) = middle - 0.5_r8*own(i, 3)
            matter%upper_gas(i, p_ratio, 3) = middle + 0.5_r8*own(i, 3)
        end do
    end subroutine trace_ratio

    !> The fluxes of the species, (face, species), from that of mass in `flux`; the other arguments as those of hllc_row, for
    !> the mass fractions on both sides.
    pure subroutine species_fluxes(direction, left, right, flux, species)
        integer, intent(in) :: direction
        real(r8), contiguous, intent(in) :: left(row_first:, :), right(row_first:, :)
        real(r8), intent(in) :: flux(row_first:row_last, n_sloped)
        real(r8), contiguous, intent(inout) :: species(row_first:, :)
        real(r8) :: whole(row_first:row_last)
        integer :: i, s, shift

        shift = merge(1, 0, direction == 1)
        whole = 0.0_r8
        do s = 1, size(species, 2)
            !$omp simd
            do i = 1 - shift, block_zones
                species(i, s) = merge(left(i, s), right(i + shift, s), flux(i, 1) > 0.0_r8)
                whole(i) = whole(i) + species(i, s)
            end do
        end do
        do s = 1, size(species, 2)
            !$omp simd
            do i = 1 - shift, block_zones
                species(i, s) = flux(i, 1)*species(i, s)/whole(i)
            end do
        end do
    end subroutine species_fluxes

end module ember_species
