!> What changes zones apart from the fluxes of the Euler equations: gravity, the flame, and the fluxes of species.
module ember_hydro_sources
    use ember_container, only: make_view, view_t
    use ember_godunov, only: n_primitive, p_dens, row_first, row_last
    use ember_hydro_block, only: block_t, step_t
    use ember_hydro_work, only: extra_t, ledger_t, scratch_t
    use ember_mesh, only: block_zones, first_guard, first_species, last_guard, mesh_t, n_conserved, v_dens, v_ener, v_momx
    use pw_kinds, only: r8
    implicit none
    private

    integer, parameter :: nb = block_zones

    public :: store_plane

contains

    !> Store the conserved variables and species of plane k, changed by the fluxes, by gravity and by the flame.
    subroutine store_plane(mesh, block, step, k, scratch, ledger)
        type(mesh_t), intent(inout) :: mesh
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        integer, intent(in) :: k
        type(scratch_t), intent(inout) :: scratch
        type(ledger_t), intent(inout) :: ledger

        associate (gas => scratch%plane(:, :, :, modulo(k, 3)), change => scratch%change(:, :, :, modulo(k, 2)))
            if (step%gravity%on) call pull_plane(block, step, gas, scratch%extra, change, ledger)
            if (scratch%extra%burns(modulo(k, 3))) call burn_plane(mesh, block, step, k, scratch, ledger)
            call add_change(mesh, block%slot, k, change)
        end associate
    end subroutine store_plane

    !> The effect of gravity on a plane: `gas`, the primitive variables before.
    subroutine pull_plane(block, step, gas, extra, change, ledger)
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        real(r8), intent(in) :: gas(row_first:row_last, n_primitive, first_guard:last_guard)
        type(extra_t), intent(in) :: extra
        real(r8), contiguous, intent(inout) :: change(:, :, :)
        type(ledger_t), intent(inout) :: ledger
        real(r8) :: middle, weight, work, bend
        integer :: i, j, d

        do j = 1, nb
            do i = 1, nb
                ! Density and flux of mass half a step ahead; of the flux only the part with weight.
                middle = gas(i, p_dens, j) + 0.5_r8*change(i, v_dens, j)
                weight = max(middle - step%gravity%ambient, 0.0_r8)
                work = 0.0_r8
                do d = 1, 2
                    ! The mean over the zone, by a parabola.
                    if (d == 1) bend = extra%rise(i + 1, d, j) + extra%rise(i - 1, d, j)
                    if (d == 2) bend = extra%rise(i, d, j + 1) + extra%rise(i, d, j - 1)
                    bend = (bend - 2.0_r8*extra%rise(i, d, j))/24.0_r8
                    bend = sign(min(abs(bend), 0.1_r8*abs(extra%rise(i, d, j))), bend)/block%width(d)
                    change(i, v_momx + d - 1, j) = change(i, v_momx + d - 1, j) &
                                                   + step%dt*(weight*extra%pull(i, d, j) + bend)
                    work = work + step%dt*weight/middle*extra%carried(i, d, j)*extra%pull(i, d, j)
                end do
                change(i, v_ener, j) = change(i, v_ener, j) + work
                ledger%work = ledger%work + block%volume(i)*work
            end do
        end do
    end subroutine pull_plane

    !> The effect of the flame on plane k.
    subroutine burn_plane(mesh, block, step, k, scratch, ledger)
        type(mesh_t), intent(in) :: mesh
        type(block_t), intent(in) :: block
        type(step_t), intent(in) :: step
        integer, intent(in) :: k
        type(scratch_t), intent(inout) :: scratch
        type(ledger_t), intent(inout) :: ledger
        real(r8) :: burnt, dens, ash
        type(view_t) :: view
        integer :: i, j, here, v_ash, v_fuel, first

        here = modulo(k, 3)
        v_ash = n_conserved + step%flame%ash
        v_fuel = n_conserved + step%flame%fuel
        call make_view(mesh, block%slot, view)
        first = view%origin + (first_species + step%flame%ash - 1)*view%variable
        associate (change => scratch%change(:, :, :, modulo(k, 2)))
            do j = 1, nb
                do i = 1, nb
                    dens = scratch%plane(i, p_dens, j, here) + change(i, v_dens, j)
                    ash = view%values(first + sum(view%zone*[i, j, k])) + change(i, v_ash, j)
                    burnt = step%flame%react(step%dt, dens, ash, scratch%extra%burning(i, j, here))
                    change(i, v_ash, j) = change(i, v_ash, j) + burnt
                    change(i, v_fuel, j) = change(i, v_fuel, j) - burnt
                    change(i, v_ener, j) = change(i, v_ener, j) + step%flame%release*burnt
                    ledger%burnt = ledger%burnt + block%volume(i)*burnt
                end do
            end do
        end associate
    end subroutine burn_plane

    !> Add changes of conserved variables and species, (zone, variable, row), to plane k.
    subroutine add_change(mesh, slot, k, change)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot, k
        real(r8), contiguous, intent(in) :: change(:, :, :)
        type(view_t) :: view
        integer :: i, j, s, v, first

        call make_view(mesh, slot, view)
        do j = 1, nb
            do v = 1, size(change, 2)
                s = merge(v, v + first_species - n_conserved - 1, v <= n_conserved)
                first = view%origin + s*view%variable + sum(view%zone*[0, j, k])
                do i = 1, nb
                    view%values(first + i*view%zone(1)) = view%values(first + i*view%zone(1)) + change(i, v, j)
                end do
            end do
        end do
    end subroutine add_change

end module ember_hydro_sources
