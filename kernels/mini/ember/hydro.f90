!> The hydrodynamic update of one block: a time step of the Euler equations for its zones, from filled guard cells.
!>
!> The block is traversed once, plane by plane (third index): three planes of primitive variables are kept, the fluxes
!> are computed row by row, and a plane whose last flux is known is finished and stored. The working data of a thread
!> stays in its cache.
!>
!> With species, or gravity, a step also has the fluxes of the species and the flame, and sources. The equation of state is
!> not called then: the fluxes between levels are corrected first, and `finish_block` calls it once for all zones.
module ember_hydro
    use ember_fluxes, only: face_registers_t
    use ember_godunov, only: advance_faces, hllc_row, n_sloped, p_dens, p_pres, row_first, row_last
    use ember_hydro_block, only: block_t, step_t
    use ember_hydro_planes, only: load_plane
    use ember_hydro_sources, only: store_plane
    use ember_hydro_state, only: finish_plane
    use ember_hydro_work, only: ledger_t, scratch_t
    use ember_mesh, only: block_zones, first_guard, last_guard, mesh_t, n_conserved, v_dens, v_momx
    use ember_slopes, only: balance_slopes, push_faces, slopes_of_row
    use ember_species, only: load_fractions, species_fluxes, trace_matter
    use pw_kinds, only: r8
    implicit none
    private

    integer, parameter :: nb = block_zones

    public :: advance_block

contains

    !> Advance the zones of `leaf` by a step, and update their derived variables.
    !>
    !> `rate`: the largest sum over directions of (|v| + c)/width [1/s], of the new state. `lost`, of the conserved variables
    !> and species, grows by the outflow through boundaries of the domain.
    !> With species or gravity, derived variables and `rate` are not changed, and `ledger` grows.
    !> Raises exit_check in `scratch` if density or internal energy is no longer positive.
    subroutine advance_block(mesh, leaf, step, scratch, rate, lost, ledger)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        type(step_t), intent(in) :: step
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(inout) :: rate, lost(:)
        type(ledger_t), intent(inout) :: ledger
        type(block_t) :: block
        integer :: k

        call block%start(mesh, leaf, step)
        if (allocated(scratch%extra)) then
            scratch%extra%matter%simple = step%eos%is_simple()
            if (step%gravity%on) call step%gravity%pull_block(mesh, leaf, row_first, scratch%extra%pull)
            scratch%extra%carried = 0.0_r8
        else
            rate = 0.0_r8
        end if
        if (mesh%dims == 2) then
            call load(mesh, block, step, 1, scratch)
            call sweep_plane(block, step, 1, scratch, lost)
            call finish(mesh, block, step, 1, scratch, rate, ledger)
            return
        end if
        call load(mesh, block, step, -1, scratch)
        call load(mesh, block, step, 0, scratch)
        do k = 0, nb + 1
            call load(mesh, block, step, k + 1, scratch)
            call sweep_plane(block, step, k, scratch, lost)
            if (k < 2) cycle
            call finish(mesh, block, step, k - 1, scratch, rate, ledger)
            if (scratch%error%failed()) return
        end do
    end subroutine advance_block

    !> Load plane k.
    subroutine load(mesh, block, step, k, scratch)
        type(mesh_t), intent(in) :: mesh
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        integer, intent(in) :: k
        type(scratch_t), intent(inout) :: scratch
        integer :: here, d, j

        here = modulo(k, 3)
        call load_plane(mesh, block%slot, k, scratch%plane(:, :, :, here))
        if (.not. allocated(scratch%extra)) return
        associate (extra => scratch%extra, plane => scratch%plane)
            call load_fractions(mesh, block%slot, k, extra%fraction(:, :, :, here))
            if (step%gravity%on) then
                do j = first_guard, last_guard
                    do d = 1, 2
                        extra%rise(:, d, j) = max(plane(:, p_dens, j, here) - step%gravity%ambient, 0.0_r8)*block%width(d) &
                                              *extra%pull(:, d, j)
                    end do
                end do
            end if
            extra%burns(here) = step%flame%burns(extra%fraction(:, :, :, here))
            if (.not. extra%burns(here)) return
            do j = first_guard, last_guard
                call step%flame%burning(plane(:, p_dens, j, here), extra%fraction(:, :, j, here), extra%pull(:, :, j), &
                                        extra%burning(:, j, here))
            end do
        end associate
    end subroutine load

    !> Finish plane k.
    subroutine finish(mesh, block, step, k, scratch, rate, ledger)
        type(mesh_t), intent(inout) :: mesh
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        integer, intent(in) :: k
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(inout) :: rate
        type(ledger_t), intent(inout) :: ledger

        if (allocated(scratch%extra)) then
            call store_plane(mesh, block, step, k, scratch, ledger)
        else
            call finish_plane(mesh, block, k, step%eos, scratch, rate, ledger)
        end if
    end subroutine finish

    !> All fluxes of the rows of plane k.
    subroutine sweep_plane(block, step, k, scratch, lost)
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        integer, intent(in) :: k
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(inout) :: lost(:)
        logical :: inner
        integer :: j

        inner = block%dims == 2 .or. (k >= 1 .and. k <= nb)
        if (inner) scratch%change(:, :, :, modulo(k, 2)) = 0.0_r8
        do j = merge(0, 1, inner), merge(nb + 1, nb, inner)
            call trace_row(block, step, j, k, scratch)
            if (inner .and. j >= 1 .and. j <= nb) call flow_along_row(block, step, j, k, scratch, lost)
            if (inner .and. j >= 1) call flow_between_rows(block, step, j, k, scratch, lost)
            if (block%dims == 2 .or. j < 1 .or. j > nb) cycle
            if (k >= 1) call flow_between_planes(block, step, j, k, scratch, lost)
            scratch%upper(:, :, j) = scratch%faces(modulo(j, 2))%upper(:, :, 3)
            if (.not. allocated(scratch%extra)) cycle
            scratch%extra%upper(:, :, j) = scratch%extra%matter(modulo(j, 2))%upper(:, :, 3)
            scratch%extra%upper_gas(:, :, j) = scratch%extra%matter(modulo(j, 2))%upper_gas(:, :, 3)
        end do
    end subroutine sweep_plane

    !> The states of row j of plane k at its faces.
    subroutine trace_row(block, step, j, k, scratch)
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        integer, intent(in) :: j, k
        type(scratch_t), intent(inout) :: scratch
        integer :: here, now, v

        here = modulo(k, 3)
        now = modulo(j, 2)
        do v = 1, n_sloped
            call slopes_of_row(scratch%plane, v, j, k, block%half, scratch%slope(:, :, v))
        end do
        if (step%gravity%on) call balance_slopes(scratch%plane(:, :, :, here), scratch%extra%rise, j, block%half, &
                                                 scratch%slope(:, :, p_pres), scratch%extra%bend)
        call advance_faces(scratch%plane(:, :, j, here), scratch%slope, block%half, scratch%faces(now))
        if (step%gravity%on) call push_faces(scratch%plane(:, :, j, here), scratch%extra%rise(:, :, j), scratch%extra%bend, &
                                             block%half, scratch%faces(now))
        if (allocated(scratch%extra)) call trace_matter(scratch%plane, scratch%extra%fraction, j, k, block%half, &
                                                        scratch%slope, scratch%extra%matter(now))
    end subroutine trace_row

    !> The fluxes between the zones of row j.
    subroutine flow_along_row(block, step, j, k, scratch, lost)
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        integer, intent(in) :: j, k
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(inout) :: lost(:)

        call face_fluxes(1, block, step, [j, k], [j, k], scratch)
        associate (flux => scratch%flux)
            call add_along_row(size(flux, 2), block, flux, scratch%faces(modulo(j, 2))%middle_pressure, &
                               scratch%change(:, :, j, modulo(k, 2)))
            if (associated(block%face(1, 1)%at)) block%face(1, 1)%at(:, j, k) = block%area_dt(0)*flux(0, :)
            if (associated(block%face(2, 1)%at)) block%face(2, 1)%at(:, j, k) = block%area_dt(nb)*flux(nb, :)
            if (block%face(1, 1)%open) lost = lost - block%area_dt(0)*flux(0, :)
            if (block%face(2, 1)%open) lost = lost + block%area_dt(nb)*flux(nb, :)
        end associate
    end subroutine flow_along_row

    !> The fluxes between rows j - 1 and j of plane k.
    subroutine flow_between_rows(block, step, j, k, scratch, lost)
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        integer, intent(in) :: j, k
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(inout) :: lost(:)

        call face_fluxes(2, block, step, [j - 1, k], [j, k], scratch)
        associate (flux => scratch%flux)
            associate (change => scratch%change, here => modulo(k, 2), n => size(flux, 2))
                if (j > 1) call add_layer(n, flux, -block%dt_by_width(2), change(:, :, j - 1, here))
                if (j <= nb) call add_layer(n, flux, block%dt_by_width(2), change(:, :, j, here))
            end associate
            if (j == 1) call register_layer(block%face(1, 2), -1.0_r8, flux, block%across_dt(:, 2), k, lost)
            if (j == nb + 1) call register_layer(block%face(2, 2), 1.0_r8, flux, block%across_dt(:, 2), k, lost)
        end associate
    end subroutine flow_between_rows

    !> The fluxes between row j of plane k - 1 and that of plane k.
    subroutine flow_between_planes(block, step, j, k, scratch, lost)
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        integer, intent(in) :: j, k
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(inout) :: lost(:)

        call face_fluxes(3, block, step, [j, k - 1], [j, k], scratch)
        associate (flux => scratch%flux)
            associate (change => scratch%change, below => modulo(k - 1, 2), here => modulo(k, 2), n => size(flux, 2))
                if (k > 1) call add_layer(n, flux, -block%dt_by_width(3), change(:, :, j, below))
                if (k <= nb) call add_layer(n, flux, block%dt_by_width(3), change(:, :, j, here))
            end associate
            if (k == 1) call register_layer(block%face(1, 3), -1.0_r8, flux, block%across_dt(:, 3), j, lost)
            if (k == nb + 1) call register_layer(block%face(2, 3), 1.0_r8, flux, block%across_dt(:, 3), j, lost)
        end associate
    end subroutine flow_between_planes

    !> The fluxes in direction d, with species those of their masses and of the flame, between the row `from` before the faces
    !> and the row `to` after them, each (row, plane); in the first direction between the zones of a row.
    subroutine face_fluxes(d, block, step, from, to, scratch)
        integer, intent(in) :: d, from(2), to(2)
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        type(scratch_t), intent(inout), target :: scratch
        real(r8), pointer, contiguous :: upper(:, :), upper_gas(:, :), upper_species(:, :)
        integer :: i, j, below, here, before, now, shift

        i = from(1)
        j = to(1)
        below = modulo(from(2), 3)
        here = modulo(to(2), 3)
        before = modulo(i, 2)
        now = modulo(j, 2)
        upper => scratch%faces(before)%upper(:, :, d)
        if (d == 3) upper => scratch%upper(:, :, j)
        associate (faces => scratch%faces(now), flux => scratch%flux, plane => scratch%plane)
            if (.not. allocated(scratch%extra)) then
                call hllc_row(d, upper, faces%lower(:, :, d), plane(:, :, i, below), plane(:, :, j, here), flux)
                return
            end if
            associate (extra => scratch%extra, matter => scratch%extra%matter)
                upper_gas => scratch%extra%matter(before)%upper_gas(:, :, d)
                upper_species => scratch%extra%matter(before)%upper(:, :, d)
                if (d == 3) upper_gas => scratch%extra%upper_gas(:, :, j)
                if (d == 3) upper_species => scratch%extra%upper(:, :, j)
                call hllc_row(d, upper, faces%lower(:, :, d), upper_gas, matter(now)%lower_gas(:, :, d), flux)
                call species_fluxes(d, upper_species, matter(now)%lower(:, :, d), flux, flux(:, n_conserved + 1:))
                shift = merge(1, 0, d == 1)
                if (extra%burns(below) .or. extra%burns(here)) call step%flame%diffuse(d, block%width(d), &
                    extra%fraction(:, :, i, below), extra%fraction(:, :, j, here), &
                    0.5_r8*(extra%burning(0:nb, i, below) + extra%burning(shift:nb + shift, j, here)), flux)
                if (d == 1) extra%carried(:, 1, j) = 0.5_r8*(flux(0:nb - 1, v_dens) + flux(1:nb, v_dens))
                if (d == 2 .and. i >= 1) extra%carried(:, 2, i) = extra%carried(:, 2, i) + 0.5_r8*flux(1:nb, v_dens)
                if (d == 2 .and. j <= nb) extra%carried(:, 2, j) = extra%carried(:, 2, j) + 0.5_r8*flux(1:nb, v_dens)
            end associate
        end associate
    end subroutine face_fluxes

    !> Add the fluxes of n variables through the faces within a row; `pres`: in the middle of its zones.
    pure subroutine add_along_row(n, block, flux, pres, change)
        integer, intent(in) :: n
        type(block_t), intent(in) :: block
        real(r8), intent(in) :: flux(row_first:row_last, n), pres(row_first:row_last)
        real(r8), intent(inout) :: change(nb, n)
        integer :: i, v

        do v = 1, n
            !$omp simd
            do i = 1, nb
                change(i, v) = change(i, v) + block%inverse_volume(i)* &
                               (block%area_dt(i - 1)*flux(i - 1, v) - block%area_dt(i)*flux(i, v))
            end do
        end do
        change(:, v_momx) = change(:, v_momx) + block%inverse_volume*block%source_dt*pres(1:nb)
    end subroutine add_along_row

    !> Add the fluxes of n variables through a row's faces; `factor` is dt over the width, negative for upper faces.
    pure subroutine add_layer(n, flux, factor, change)
        integer, intent(in) :: n
        real(r8), intent(in) :: flux(row_first:row_last, n), factor
        real(r8), intent(inout) :: change(nb, n)
        integer :: i, v

        do v = 1, n
            !$omp simd
            do i = 1, nb
                change(i, v) = change(i, v) + factor*flux(i, v)
            end do
        end do
    end subroutine add_layer

    !> Store the fluxes through a row of the block's faces, between levels or (`outwards`: the sign) out of the domain.
    subroutine register_layer(face, outwards, flux, area_dt, row, lost)
        type(face_registers_t), intent(in) :: face
        real(r8), contiguous, intent(in) :: flux(row_first:, :)
        real(r8), intent(in) :: outwards, area_dt(nb)
        integer, intent(in) :: row
        real(r8), intent(inout) :: lost(:)
        integer :: v

        do v = 1, size(flux, 2)
            if (associated(face%at)) face%at(v, :, row) = area_dt*flux(1:nb, v)
            if (face%open) lost(v) = lost(v) + outwards*sum(area_dt*flux(1:nb, v))
        end do
    end subroutine register_layer

end module ember_hydro
