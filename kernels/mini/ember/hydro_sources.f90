!> What changes zones apart from the fluxes of the Euler equations: gravity, the flame, and the fluxes of species.
module ember_hydro_sources
    use ember_flame, only: flame_t
    use ember_godunov, only: n_primitive, p_dens, row_first, row_last
    use ember_gravity, only: gravity_t
    use ember_hydro_work, only: extra_t, ledger_t
    use ember_mesh, only: block_zones, first_guard, first_species, last_guard, mesh_t, n_conserved, v_dens, v_ener, v_momx
    use pw_kinds, only: r8
    implicit none
    private

    integer, parameter :: nb = block_zones

    public :: store_plane

contains

    !> Store the conserved variables and species of plane k, changed by the fluxes, by gravity and by the flame:
    !> `gas`, the primitive variables before; `plane`, its number of three; `layer`, of two.
    subroutine store_plane(mesh, slot, k, dt, volume, width, gravity, flame, gas, change, plane, layer, extra, ledger)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot, k, plane, layer
        real(r8), intent(in) :: dt, volume(first_guard:last_guard), width(3)
        type(gravity_t), intent(in) :: gravity
        type(flame_t), intent(in) :: flame
        real(r8), intent(in) :: gas(row_first:row_last, n_primitive, first_guard:last_guard)
        real(r8), intent(inout) :: change(nb, n_conserved, nb)
        type(extra_t), intent(inout) :: extra
        type(ledger_t), intent(inout) :: ledger
        real(r8) :: middle, weight, work, burnt, dens, ash, bend
        integer :: i, j, s, d

        do j = 1, nb
            if (gravity%on) then
                do i = 1, nb
                    ! Density and flux of mass half a step ahead; of the flux only the part with weight.
                    middle = gas(i, p_dens, j) + 0.5_r8*change(i, v_dens, j)
                    weight = max(middle - gravity%ambient, 0.0_r8)
                    work = 0.0_r8
                    do d = 1, 2
                        ! The mean over the zone, by a parabola.
                        if (d == 1) bend = extra%rise(i + 1, d, j) + extra%rise(i - 1, d, j)
                        if (d == 2) bend = extra%rise(i, d, j + 1) + extra%rise(i, d, j - 1)
                        bend = (bend - 2.0_r8*extra%rise(i, d, j))/24.0_r8
                        bend = sign(min(abs(bend), 0.1_r8*abs(extra%rise(i, d, j))), bend)/width(d)
                        change(i, v_momx + d - 1, j) = change(i, v_momx + d - 1, j) + dt*(weight*extra%pull(i, d, j) + bend)
                        work = work + dt*weight/middle*extra%carried(i, d, j)*extra%pull(i, d, j)
                    end do
                    change(i, v_ener, j) = change(i, v_ener, j) + work
                    ledger%work = ledger%work + volume(i)*work
                end do
            end if
            if (extra%burns(plane)) then
                associate (carried_ash => extra%change(:, flame%ash, j, layer), &
                           carried_fuel => extra%change(:, flame%fuel, j, layer))
                    do i = 1, nb
                        dens = gas(i, p_dens, j) + change(i, v_dens, j)
                        if (mesh%variable_last) then
                            ash = mesh%soa(i, j, k, first_species + flame%ash - 1, slot) + carried_ash(i)
                        else
                            ash = mesh%aos(first_species + flame%ash - 1, i, j, k, slot) + carried_ash(i)
                        end if
                        burnt = flame%react(dt, dens, ash, extra%burning(i, j, plane))
                        carried_ash(i) = carried_ash(i) + burnt
                        carried_fuel(i) = carried_fuel(i) - burnt
                        change(i, v_ener, j) = change(i, v_ener, j) + flame%release*burnt
                        ledger%burnt = ledger%burnt + volume(i)*burnt
                    end do
                end associate
            end if
            if (mesh%variable_last) then
                do s = 1, n_conserved
                    mesh%soa(1:nb, j, k, s, slot) = mesh%soa(1:nb, j, k, s, slot) + change(:, s, j)
                end do
                do s = 1, mesh%n_species
                    associate (u => mesh%soa(1:nb, j, k, first_species + s - 1, slot))
                        u = u + extra%change(:, s, j, layer)
                    end associate
                end do
            else
                do i = 1, nb
                    do s = 1, n_conserved
                        mesh%aos(s, i, j, k, slot) = mesh%aos(s, i, j, k, slot) + change(i, s, j)
                    end do
                    do s = 1, mesh%n_species
                        associate (u => mesh%aos(first_species + s - 1, i, j, k, slot))
                            u = u + extra%change(i, s, j, layer)
                        end associate
                    end do
                end do
            end if
        end do
    end subroutine store_plane

end module ember_hydro_sources
