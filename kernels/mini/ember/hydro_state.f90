!> The state of zones after an update: conserved variables are changed, the equation of state derives the others, and the
!> largest rate of crossing a zone bounds the next step.
module ember_hydro_state
    use ember_container, only: make_view, view_t
    use ember_eos, only: eos_t
    use ember_hydro_block, only: block_t
    use ember_hydro_work, only: ledger_t, scratch_t
    use ember_mesh, only: block_zones, first_species, mesh_t, n_conserved, v_dens, v_ener, v_gamc, &
        v_momx, v_momy, v_momz, v_pres, v_temp
    use pw_kinds, only: r8
    use pw_region, only: region_begin, region_end
    use pw_text, only: to_text
    implicit none
    private

    integer, parameter :: nb = block_zones

    public :: finish_block, rate_of_block, finish_plane

contains

    !> Update the derived variables of a leaf after its conserved variables were set.
    !> `rate`: the largest sum over directions of (|v| + c)/width. Raises exit_check in `scratch` as advance_block does.
    subroutine finish_block(mesh, leaf, eos, scratch, rate, ledger)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        class(eos_t), intent(in) :: eos
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(out) :: rate
        type(ledger_t), intent(inout) :: ledger
        type(block_t) :: block
        integer :: k, zones(3)

        rate = 0.0_r8
        zones = mesh%zones()
        call block%locate(mesh, leaf)
        scratch%change(:, :n_conserved, :, :) = 0.0_r8
        do k = 1, zones(3)
            call finish_plane(mesh, block, k, eos, scratch, rate, ledger)
            if (scratch%error%failed()) return
        end do
    end subroutine finish_block

    !> The largest sum over directions of (|v| + c)/width in a leaf whose derived variables are up to date.
    subroutine rate_of_block(mesh, leaf, scratch, rate)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(out) :: rate
        type(view_t) :: view
        integer :: j, k, v, row, zones(3)

        rate = 0.0_r8
        zones = mesh%zones()
        call make_view(mesh, mesh%slot(leaf), view)
        associate (state => scratch%state, pres => scratch%pres, gamc => scratch%gamc)
            do k = 1, zones(3)
                do j = 1, nb
                    row = view%origin + sum(view%zone*[1, j, k])
                    do v = 1, n_conserved
                        call load_row(view, row + v*view%variable, state(:, j, v))
                    end do
                    call load_row(view, row + v_pres*view%variable, pres(:, j))
                    call load_row(view, row + v_gamc*view%variable, gamc(:, j))
                end do
                call fastest(nb*nb, mesh%dims, state, pres, gamc, mesh%zone_size(mesh%tree%level(leaf)), rate)
            end do
        end associate
    end subroutine rate_of_block

    !> Change the conserved variables of plane k, and derive the others. `rate` grows to that of the plane's zones.
    subroutine finish_plane(mesh, block, k, eos, scratch, rate, ledger)
        type(mesh_t), intent(inout) :: mesh
        type(block_t), intent(in) :: block
        integer, intent(in) :: k
        class(eos_t), intent(in) :: eos
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(inout) :: rate
        type(ledger_t), intent(inout) :: ledger
        real(r8) :: seconds, before(nb, nb)
        logical :: may_raise

        associate (state => scratch%state, dens => scratch%dens, eint => scratch%eint, temp => scratch%temp, &
                   pres => scratch%pres, gamc => scratch%gamc)
            call change_plane(mesh, block%slot, k, scratch%change(:, :, :, modulo(k, 2)), state, temp)
            call internal_energy(nb*nb, state, dens, eint)
            may_raise = .false.
            if (allocated(scratch%extra)) then
                call fractions_of_plane(mesh, block%slot, k, scratch%fraction)
                may_raise = .not. eos%is_simple()
                if (may_raise) before = eint
            end if
            call region_begin(scratch%in_eos)
            call eos%rows(nb*nb, dens, scratch%fraction, eint, temp, pres, gamc, scratch%error)
            call region_end(scratch%in_eos, seconds)
            scratch%eos_seconds = scratch%eos_seconds + seconds
            if (scratch%error%failed()) then
                scratch%error%message = scratch%error%message//' (block at '//to_text(block%slot)//', plane '//to_text(k)//')'
                return
            end if
            if (may_raise) call raise_energy(block%volume(1:nb), dens, eint, before, state(:, :, v_ener), ledger)
            call fastest(nb*nb, block%dims, state, pres, gamc, block%width, rate)
            call store_state(mesh, block%slot, k, scratch)
        end associate
    end subroutine finish_plane

    !> The conserved variables of plane k, (zone, row, variable), changed by `change`, (zone, variable, row); and the
    !> temperature.
    pure subroutine change_plane(mesh, slot, k, change, state, temp)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, k
        real(r8), contiguous, intent(in) :: change(:, :, :)
        real(r8), intent(inout) :: state(nb, nb, n_conserved), temp(nb, nb)
        integer :: j, v

        do j = 1, nb
            if (mesh%variable_last) then
                do v = 1, n_conserved
                    state(:, j, v) = mesh%soa(1:nb, j, k, v, slot) + change(:, v, j)
                end do
                temp(:, j) = mesh%soa(1:nb, j, k, v_temp, slot)
            else
                call changed_zones(mesh%n_variables, mesh%aos(:, 1:nb, j, k, slot), change(:, :, j), state(:, j, :), temp(:, j))
            end if
        end do
    end subroutine change_plane

    !> Add to the energies per volume in `ener` what the equation of state added to the internal energies per mass since
    !> `before`, which are replaced by these additions; `volume`: of zones by row.
    pure subroutine raise_energy(volume, dens, eint, before, ener, ledger)
        real(r8), intent(in) :: volume(nb), dens(nb, nb), eint(nb, nb)
        real(r8), intent(inout) :: before(nb, nb), ener(nb, nb)
        type(ledger_t), intent(inout) :: ledger
        integer :: j

        do j = 1, nb
            if (.not. any(eint(:, j) > before(:, j))) cycle
            before(:, j) = dens(:, j)*(eint(:, j) - before(:, j))
            ledger%raised = ledger%raised + sum(volume*before(:, j))
            ener(:, j) = ener(:, j) + before(:, j)
        end do
    end subroutine raise_energy

    !> Store conserved and derived variables of plane k.
    subroutine store_state(mesh, slot, k, scratch)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot, k
        type(scratch_t), intent(in) :: scratch
        integer :: i, j, v

        associate (state => scratch%state, pres => scratch%pres, temp => scratch%temp, gamc => scratch%gamc)
            do j = 1, nb
                if (mesh%variable_last) then
                    do v = 1, n_conserved
                        mesh%soa(1:nb, j, k, v, slot) = state(:, j, v)
                    end do
                    mesh%soa(1:nb, j, k, v_pres, slot) = pres(:, j)
                    mesh%soa(1:nb, j, k, v_temp, slot) = temp(:, j)
                    mesh%soa(1:nb, j, k, v_gamc, slot) = gamc(:, j)
                else
                    do i = 1, nb
                        mesh%aos(v_dens, i, j, k, slot) = state(i, j, v_dens)
                        mesh%aos(v_momx, i, j, k, slot) = state(i, j, v_momx)
                        mesh%aos(v_momy, i, j, k, slot) = state(i, j, v_momy)
                        mesh%aos(v_momz, i, j, k, slot) = state(i, j, v_momz)
                        mesh%aos(v_ener, i, j, k, slot) = state(i, j, v_ener)
                        mesh%aos(v_pres, i, j, k, slot) = pres(i, j)
                        mesh%aos(v_temp, i, j, k, slot) = temp(i, j)
                        mesh%aos(v_gamc, i, j, k, slot) = gamc(i, j)
                    end do
                end if
            end do
        end associate
    end subroutine store_state

    !> Mass fractions of the zones of plane k, (zone, species).
    subroutine fractions_of_plane(mesh, slot, k, fraction)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, k
        real(r8), contiguous, intent(inout) :: fraction(:, :)
        type(view_t) :: view
        real(r8) :: dens(nb)
        integer :: j, s, row

        call make_view(mesh, slot, view)
        do j = 1, nb
            row = view%origin + sum(view%zone*[1, j, k])
            call load_row(view, row + v_dens*view%variable, dens)
            do s = 1, mesh%n_species
                associate (part => fraction(nb*(j - 1) + 1:nb*j, s))
                    call load_row(view, row + (first_species + s - 1)*view%variable, part)
                    part = part/dens
                end associate
            end do
        end do
    end subroutine fractions_of_plane

    !> A variable of a row of zones, the first of which is number `first` of the values.
    pure subroutine load_row(view, first, row)
        type(view_t), intent(in) :: view
        integer, intent(in) :: first
        real(r8), intent(out) :: row(nb)
        integer :: i

        do i = 1, nb
            row(i) = view%values(first + (i - 1)*view%zone(1))
        end do
    end subroutine load_row

    !> The conserved variables of a row of zones with the variable first, changed; and their temperature.
    pure subroutine changed_zones(n, zone, change, state, temp)
        integer, intent(in) :: n
        real(r8), intent(in) :: zone(n, nb), change(nb, n_conserved)
        real(r8), intent(inout) :: state(:, :), temp(nb)
        integer :: i

        do i = 1, nb
            state(i, v_dens) = zone(v_dens, i) + change(i, v_dens)
            state(i, v_momx) = zone(v_momx, i) + change(i, v_momx)
            state(i, v_momy) = zone(v_momy, i) + change(i, v_momy)
            state(i, v_momz) = zone(v_momz, i) + change(i, v_momz)
            state(i, v_ener) = zone(v_ener, i) + change(i, v_ener)
            temp(i) = zone(v_temp, i)
        end do
    end subroutine changed_zones

    !> Density and internal energy per mass of n zones.
    pure subroutine internal_energy(n, state, dens, eint)
        integer, intent(in) :: n
        real(r8), intent(in) :: state(n, n_conserved)
        real(r8), intent(out) :: dens(n), eint(n)
        real(r8) :: inverse
        integer :: i

        !$omp simd private(inverse)
        do i = 1, n
            inverse = 1.0_r8/state(i, v_dens)
            dens(i) = state(i, v_dens)
            eint(i) = (state(i, v_ener) - 0.5_r8*(state(i, v_momx)**2 + state(i, v_momy)**2 + state(i, v_momz)**2)*inverse)*inverse
        end do
    end subroutine internal_energy

    !> `rate` grows to the largest sum over directions of (|v| + c)/width.
    pure subroutine fastest(n, dims, state, pres, gamc, width, rate)
        integer, intent(in) :: n, dims
        real(r8), intent(in) :: state(n, n_conserved), pres(n), gamc(n), width(3)
        real(r8), intent(inout) :: rate
        real(r8) :: inverse(3), per_dens
        integer :: i

        inverse = 1.0_r8/width
        inverse(dims + 1:) = 0.0_r8
        !$omp simd private(per_dens) reduction(max: rate)
        do i = 1, n
            per_dens = 1.0_r8/state(i, v_dens)
            rate = max(rate, sum(inverse)*sqrt(gamc(i)*pres(i)*per_dens) &
                       + per_dens*(inverse(1)*abs(state(i, v_momx)) + inverse(2)*abs(state(i, v_momy)) &
                                   + inverse(3)*abs(state(i, v_momz))))
        end do
    end subroutine fastest

end module ember_hydro_state
