!> Planes of primitive variables from the container, in either layout, with software prefetch of the next plane.
module ember_hydro_planes
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    use ember_godunov, only: n_primitive, p_dens, p_gamc, p_pres, p_ratio, p_velx, p_vely, p_velz, row_first, row_last
    use ember_mesh, only: first_guard, last_guard, mesh_t, v_dens, v_ener, v_gamc, v_momx, v_momy, v_momz, v_pres
    use pw_kinds, only: r8
    implicit none
    private

    interface
        !> Software prefetch of `bytes` bytes; does nothing in other builds.
        subroutine c_prefetch(address, bytes) bind(c, name='pw_ember_prefetch')
            import :: c_double, c_int64_t
            real(c_double), intent(in) :: address(*)
            integer(c_int64_t), value :: bytes
        end subroutine c_prefetch
    end interface

    public :: load_plane

contains

    !> Primitive variables of plane k of a block, guard cells included: (zone, variable, row).
    subroutine load_plane(mesh, slot, k, plane)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, k
        real(r8), intent(inout) :: plane(row_first:row_last, n_primitive, first_guard:last_guard)
        integer :: j

        if (mesh%variable_last) then
            do j = first_guard, last_guard
                if (k < mesh%last_k()) call prefetch_soa(mesh, slot, j, k + 1)
                call primitive_row(mesh%soa(:, :, :, :, slot), mesh%first_k(), j, k, plane(:, :, j))
            end do
        else
            do j = first_guard, last_guard
                if (k < mesh%last_k()) call prefetch_row(mesh%aos(:, :, j, k + 1, slot))
                call primitive_zones(mesh%n_variables, mesh%aos(:, :, j, k, slot), plane(:, :, j))
            end do
        end if
    end subroutine load_plane

    !> Row j of plane k of a block with the variable last.
    pure subroutine primitive_row(block, first_k, j, k, row)
        integer, intent(in) :: first_k, j, k
        real(r8), contiguous, intent(in) :: block(first_guard:, first_guard:, first_k:, :)
        real(r8), intent(inout) :: row(row_first:row_last, n_primitive)
        real(r8) :: inverse
        integer :: i

        !$omp simd private(inverse)
        do i = first_guard, last_guard
            inverse = 1.0_r8/block(i, j, k, v_dens)
            row(i, p_dens) = block(i, j, k, v_dens)
            row(i, p_velx) = block(i, j, k, v_momx)*inverse
            row(i, p_vely) = block(i, j, k, v_momy)*inverse
            row(i, p_velz) = block(i, j, k, v_momz)*inverse
            row(i, p_pres) = block(i, j, k, v_pres)
            row(i, p_gamc) = block(i, j, k, v_gamc)
            row(i, p_ratio) = (block(i, j, k, v_ener) - 0.5_r8*row(i, p_dens)*(row(i, p_velx)*row(i, p_velx) &
                                                                               + row(i, p_vely)*row(i, p_vely) &
                                                                               + row(i, p_velz)*row(i, p_velz)))/row(i, p_pres)
        end do
    end subroutine primitive_row

    !> A row with the variable first: all variables of a zone together.
    pure subroutine primitive_zones(n, zone, row)
        integer, intent(in) :: n
        real(r8), intent(in) :: zone(n, first_guard:last_guard)
        real(r8), intent(inout) :: row(row_first:row_last, n_primitive)
        real(r8) :: inverse
        integer :: i

        ! Separate from the arithmetic, so that compilers do not turn these loads into gathers.
        do i = first_guard, last_guard
            row(i, p_dens) = zone(v_dens, i)
            row(i, p_velx) = zone(v_momx, i)
            row(i, p_vely) = zone(v_momy, i)
            row(i, p_velz) = zone(v_momz, i)
            row(i, p_pres) = zone(v_pres, i)
            row(i, p_gamc) = zone(v_gamc, i)
            row(i, p_ratio) = zone(v_ener, i)
        end do
        !$omp simd private(inverse)
        do i = first_guard, last_guard
            inverse = 1.0_r8/row(i, p_dens)
            row(i, p_velx) = row(i, p_velx)*inverse
            row(i, p_vely) = row(i, p_vely)*inverse
            row(i, p_velz) = row(i, p_velz)*inverse
            row(i, p_ratio) = (row(i, p_ratio) - 0.5_r8*row(i, p_dens)*(row(i, p_velx)*row(i, p_velx) &
                                                                        + row(i, p_vely)*row(i, p_vely) &
                                                                        + row(i, p_velz)*row(i, p_velz)))/row(i, p_pres)
        end do
    end subroutine primitive_zones

    !> Prefetch a row of zones, with all their variables.
    subroutine prefetch_row(zones)
        real(r8), intent(in), contiguous :: zones(:, :)

        call c_prefetch(zones, 8_c_int64_t*size(zones))
    end subroutine prefetch_row

    subroutine prefetch_soa(mesh, slot, j, k)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, j, k
        integer :: v

        do v = v_dens, v_gamc
            call c_prefetch(mesh%soa(:, j, k, v, slot), 8_c_int64_t*(last_guard - first_guard + 1))
        end do
    end subroutine prefetch_soa

end module ember_hydro_planes
