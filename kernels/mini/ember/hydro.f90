!> The hydrodynamic update of one block: a time step of the Euler equations for its zones, from filled guard cells.
!>
!> The block is traversed once, plane by plane (third index): three planes of primitive variables are kept, the fluxes
!> are computed row by row, and a plane whose last flux is known is finished and stored. The working data of a thread
!> stays in its cache.
!>
!> With species, or gravity, a step also has the fluxes of the species and the flame, and sources. The equation of state is
!> not called then: the fluxes between levels are corrected first, and `finish_block` calls it once for all zones.
module ember_hydro
    use ember_boundaries, only: on_boundary
    use ember_eos, only: eos_t
    use ember_flame, only: flame_t
    use ember_fluxes, only: face_registers_t, registers_t
    use ember_godunov, only: hllc_row, n_sloped, p_dens, row_first, row_last, trace_row
    use ember_gravity, only: gravity_t
    use ember_hydro_planes, only: load_plane
    use ember_hydro_sources, only: store_plane
    use ember_hydro_state, only: finish_plane
    use ember_hydro_work, only: ledger_t, scratch_t
    use ember_mesh, only: block_zones, cylindrical, first_guard, last_guard, mesh_t, n_conserved, outflow, v_momx
    use ember_slopes, only: balance_slopes, push_faces
    use ember_species, only: load_fractions, species_fluxes, trace_matter
    use pw_error, only: error_t
    use pw_kinds, only: r8
    implicit none
    private

    integer, parameter :: nb = block_zones

    public :: advance_block

contains

    !> Advance the zones of `leaf` by `dt`, and update their derived variables.
    !>
    !> `steepness`: of the limiter, see ember_godunov. `rate`: the largest sum over directions of (|v| + c)/width [1/s], of
    !> the new state. `lost`, of the conserved variables and species, grows by the outflow through boundaries of the domain.
    !> With species or gravity, derived variables and `rate` are not changed, and `ledger` grows.
    !> Raises exit_check if density or internal energy is no longer positive.
    subroutine advance_block(mesh, leaf, dt, steepness, eos, gravity, flame, registers, scratch, rate, lost, ledger, error)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        real(r8), intent(in) :: dt, steepness
        class(eos_t), intent(in) :: eos
        type(gravity_t), intent(in) :: gravity
        type(flame_t), intent(in) :: flame
        type(registers_t), intent(in) :: registers
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(inout) :: rate, lost(:)
        type(ledger_t), intent(inout) :: ledger
        type(error_t), intent(inout) :: error
        type(face_registers_t) :: face(2, 3)
        real(r8), dimension(row_first:row_last) :: curvature, area_dt
        real(r8), dimension(nb) :: inverse_volume, amount_y, amount_z, source_dt
        real(r8) :: width(3), half(3), volume(first_guard:last_guard), corner(3), flux(row_first:row_last, n_sloped)
        integer :: slot, j, k, v, side, direction, now, before, old, new, above, here, below, planes, i
        logical :: plain, simple

        slot = mesh%slot(leaf)
        width = mesh%zone_size(mesh%tree%level(leaf))
        half = 0.5_r8*dt/width
        if (mesh%dims == 2) half(3) = 0.0_r8
        volume = mesh%zone_volumes(leaf)
        inverse_volume = 1.0_r8/volume(1:nb)
        amount_y = dt*volume(1:nb)/width(2)
        amount_z = dt*volume(1:nb)/width(3)
        area_dt = dt*width(2)*width(3)
        curvature = 0.0_r8
        if (mesh%geometry == cylindrical) then
            corner = mesh%block_corner(leaf)
            do i = first_guard, last_guard
                area_dt(i) = area_dt(i)*(corner(1) + i*width(1))
                curvature(i) = 0.5_r8*dt/(corner(1) + (i - 0.5_r8)*width(1))
            end do
        end if
        source_dt = area_dt(1:nb) - area_dt(0:nb - 1)   ! 0 in cartesian geometry
        do direction = 1, mesh%dims
            do side = 1, 2
                face(side, direction)%at => registers%face(leaf, direction, side)
                face(side, direction)%open = mesh%boundary(side, direction) == outflow &
                    .and. on_boundary(mesh, leaf, direction, side)
            end do
        end do

        plain = .not. allocated(scratch%extra)
        simple = plain
        if (plain) then
            rate = 0.0_r8
        else
            simple = eos%is_simple()
            if (gravity%on) call gravity%pull_block(mesh, leaf, row_first, scratch%extra%pull)
            scratch%extra%carried = 0.0_r8
        end if
        planes = nb
        if (mesh%dims == 2) then
            planes = 1
            call load(1, 1)
            call clear(1)
            call sweep_plane(1, 1, 1, 1)
            call finish(1)
            return
        end if
        call load(-1, 2)
        call load(0, 0)
        do k = 0, planes + 1
            ! Plane k is in scratch%plane(modulo(k, 3)), the changes of its zones in scratch%change(modulo(k, 2)).
            below = modulo(k - 1, 3)
            here = modulo(k, 3)
            above = modulo(k + 1, 3)
            call load(k + 1, above)
            if (k >= 1 .and. k <= planes) call clear(k)
            call sweep_plane(k, below, here, above)
            if (k < 2) cycle
            call finish(k - 1)
            if (error%failed()) return
        end do

    contains

        !> Load plane k as number `to` of the three.
        subroutine load(k, to)
            integer, intent(in) :: k, to

            call load_plane(mesh, slot, k, scratch%plane(:, :, :, to))
            if (.not. plain) call load_more(k, to)
        end subroutine load

        !> Begin the changes of plane k.
        subroutine clear(k)
            integer, intent(in) :: k

            scratch%change(:, :, :, modulo(k, 2)) = 0.0_r8
            if (.not. plain) scratch%extra%change(:, :, :, modulo(k, 2)) = 0.0_r8
        end subroutine clear

        !> Finish plane k.
        subroutine finish(k)
            integer, intent(in) :: k

            if (plain) then
                call finish_plane(mesh, slot, k, scratch%change(:, :, :, modulo(k, 2)), eos, volume, width, scratch, rate, &
                                  ledger, error)
            else
                call store_plane(mesh, slot, k, dt, volume, width, gravity, flame, scratch%plane(:, :, :, modulo(k, 3)), &
                                 scratch%change(:, :, :, modulo(k, 2)), modulo(k, 3), modulo(k, 2), scratch%extra, ledger)
            end if
        end subroutine finish

        !> All fluxes of the rows of plane k, with the planes at the given positions.
        subroutine sweep_plane(k, below, here, above)
            integer, intent(in) :: k, below, here, above
            logical :: inner
            integer :: first, last

            inner = mesh%dims == 2 .or. (k >= 1 .and. k <= planes)
            first = merge(0, 1, inner)
            last = merge(nb + 1, nb, inner)
            new = modulo(k, 2)
            old = modulo(k - 1, 2)
            associate (plane => scratch%plane, change => scratch%change, faces => scratch%faces)
                do j = first, last
                    now = modulo(j, 2)
                    before = modulo(j - 1, 2)
                    if (plain) then
                        call trace_row(plane(:, :, j, here), plane(:, :, j - 1, here), plane(:, :, j + 1, here), &
                                       plane(:, :, j, below), plane(:, :, j, above), half, steepness, curvature, faces(now))
                    else
                        call trace_more(below, here, above)
                    end if
                    if (inner .and. j >= 1 .and. j <= nb) then
                        if (plain) then
                            call hllc_row(1, 0, nb, 1, faces(now)%upper(:, :, 1), faces(now)%lower(:, :, 1), &
                                          plane(:, :, j, here), plane(:, :, j, here), flux)
                        else
                            call more_along_rows(k, here)
                        end if
                        do v = 1, n_conserved
                            !$omp simd
                            do i = 1, nb
                                change(i, v, j, new) = change(i, v, j, new) + inverse_volume(i)* &
                                                       (area_dt(i - 1)*flux(i - 1, v) - area_dt(i)*flux(i, v))
                            end do
                        end do
                        change(:, v_momx, j, new) = change(:, v_momx, j, new) &
                                                    + inverse_volume*source_dt*faces(now)%middle_pressure(1:nb)
                        if (associated(face(1, 1)%at)) face(1, 1)%at(:n_conserved, j, k) = area_dt(0)*flux(0, :)
                        if (associated(face(2, 1)%at)) face(2, 1)%at(:n_conserved, j, k) = area_dt(nb)*flux(nb, :)
                        if (face(1, 1)%open) lost(:n_conserved) = lost(:n_conserved) - area_dt(0)*flux(0, :)
                        if (face(2, 1)%open) lost(:n_conserved) = lost(:n_conserved) + area_dt(nb)*flux(nb, :)
                    end if
                    if (inner .and. j >= 1) then
                        if (plain) then
                            call hllc_row(2, 1, nb, 0, faces(before)%upper(:, :, 2), faces(now)%lower(:, :, 2), &
                                          plane(:, :, j - 1, here), plane(:, :, j, here), flux)
                        else
                            call more_between_rows(k, here)
                        end if
                        if (j > 1) call add_layer(change(:, :, j - 1, new), flux, -dt/width(2))
                        if (j <= nb) call add_layer(change(:, :, j, new), flux, dt/width(2))
                        if (j == 1) call register_layer(face(1, 2), -1.0_r8, flux, amount_y, k)
                        if (j == nb + 1) call register_layer(face(2, 2), 1.0_r8, flux, amount_y, k)
                    end if
                    if (mesh%dims == 3 .and. j >= 1 .and. j <= nb) then
                        if (k >= 1) then
                            if (plain) then
                                call hllc_row(3, 1, nb, 0, scratch%upper(:, :, j), faces(now)%lower(:, :, 3), &
                                              plane(:, :, j, below), plane(:, :, j, here), flux)
                            else
                                call more_between_planes(k, below, here)
                            end if
                            if (k > 1) call add_layer(change(:, :, j, old), flux, -dt/width(3))
                            if (k <= planes) call add_layer(change(:, :, j, new), flux, dt/width(3))
                            if (k == 1) call register_layer(face(1, 3), -1.0_r8, flux, amount_z, j)
                            if (k == planes + 1) call register_layer(face(2, 3), 1.0_r8, flux, amount_z, j)
                        end if
                        scratch%upper(:, :, j) = faces(now)%upper(:, :, 3)
                        if (.not. plain) call keep_more()
                    end if
                end do
            end associate
        end subroutine sweep_plane

        !> Add the fluxes through a row's faces; `factor` is dt over the width, negative for upper faces.
        pure subroutine add_layer(change, flux, factor)
            real(r8), intent(inout) :: change(nb, n_conserved)
            real(r8), intent(in) :: flux(row_first:row_last, n_sloped), factor
            integer :: i, v

            do v = 1, n_conserved
                !$omp simd
                do i = 1, nb
                    change(i, v) = change(i, v) + factor*flux(i, v)
                end do
            end do
        end subroutine add_layer

        !> Store the fluxes through a row of the block's faces, between levels or (`outwards`: the sign) out of the domain.
        subroutine register_layer(face, outwards, flux, area_dt, row)
            type(face_registers_t), intent(in) :: face
            real(r8), intent(in) :: outwards, flux(row_first:row_last, n_sloped), area_dt(nb)
            integer, intent(in) :: row
            integer :: v

            do v = 1, n_conserved
                if (associated(face%at)) face%at(v, :, row) = area_dt*flux(1:nb, v)
                if (face%open) lost(v) = lost(v) + outwards*sum(area_dt*flux(1:nb, v))
            end do
        end subroutine register_layer

        !> Load the additional data of plane k, as number `to` of the three.
        subroutine load_more(k, to)
            integer, intent(in) :: k, to
            integer :: d, r

            associate (extra => scratch%extra, plane => scratch%plane)
                call load_fractions(mesh, slot, k, extra%fraction(:, :, :, to))
                if (gravity%on) then
                    do r = first_guard, last_guard
                        do d = 1, 2
                            extra%rise(:, d, r) = max(plane(:, p_dens, r, to) - gravity%ambient, 0.0_r8)*width(d) &
                                                  *extra%pull(:, d, r)
                        end do
                    end do
                end if
                extra%burns(to) = flame%burns(extra%fraction(:, :, :, to))
                if (.not. extra%burns(to)) return
                do r = first_guard, last_guard
                    call flame%burning(plane(:, p_dens, r, to), extra%fraction(:, :, r, to), extra%pull(:, :, r), &
                                      extra%burning(:, r, to))
                end do
            end associate
        end subroutine load_more

        !> The states of row j at its faces.
        subroutine trace_more(below, here, above)
            integer, intent(in) :: below, here, above

            associate (plane => scratch%plane, fraction => scratch%extra%fraction, faces => scratch%faces(now), &
                       matter => scratch%extra%matter(now))
                if (gravity%on) then
                    associate (rise => scratch%extra%rise(:, :, j - 1:j + 1), slopes => scratch%extra%slopes, &
                               bend => scratch%extra%bend)
                        call balance_slopes(plane(:, :, j, here), plane(:, :, j - 1, here), plane(:, :, j + 1, here), rise, &
                                            steepness, slopes, bend)
                        call trace_row(plane(:, :, j, here), plane(:, :, j - 1, here), plane(:, :, j + 1, here), &
                                       plane(:, :, j, below), plane(:, :, j, above), half, steepness, curvature, faces, slopes)
                        call push_faces(plane(:, :, j, here), scratch%extra%rise(:, :, j), bend, half, faces)
                    end associate
                else
                    call trace_row(plane(:, :, j, here), plane(:, :, j - 1, here), plane(:, :, j + 1, here), &
                                   plane(:, :, j, below), plane(:, :, j, above), half, steepness, curvature, faces)
                end if
                call trace_matter(mesh%n_species, plane(:, :, j, here), plane(:, :, j - 1, here), plane(:, :, j + 1, here), &
                                  plane(:, :, j, below), plane(:, :, j, above), fraction(:, :, j, here), &
                                  fraction(:, :, j - 1, here), fraction(:, :, j + 1, here), &
                                  fraction(:, :, j, below), fraction(:, :, j, above), half, &
                                  steepness, curvature, simple, matter)
            end associate
        end subroutine trace_more

        !> The fluxes between the zones of row j, and the effect of those of the species.
        subroutine more_along_rows(k, here)
            integer, intent(in) :: k, here

            associate (plane => scratch%plane, extra => scratch%extra, faces => scratch%faces(now), ns => mesh%n_species)
                associate (matter => extra%matter(now), carries => extra%flux)
                    call hllc_row(1, 0, nb, 1, faces%upper(:, :, 1), faces%lower(:, :, 1), matter%upper_gas(:, :, 1), &
                                  matter%lower_gas(:, :, 1), flux)
                    call species_fluxes(ns, 0, nb, 1, matter%upper(:, :, 1), matter%lower(:, :, 1), flux, carries)
                    if (extra%burns(here)) call flame%diffuse(0, nb, 1, width(1), extra%fraction(:, :, j, here), &
                        extra%fraction(:, :, j, here), extra%burning(:, j, here), extra%burning(:, j, here), flux, carries)
                    do v = 1, ns
                        extra%change(:, v, j, new) = extra%change(:, v, j, new) + inverse_volume* &
                                                     (area_dt(0:nb - 1)*carries(0:nb - 1, v) - area_dt(1:nb)*carries(1:nb, v))
                    end do
                    extra%carried(:, 1, j) = 0.5_r8*(flux(0:nb - 1, 1) + flux(1:nb, 1))
                    if (associated(face(1, 1)%at)) face(1, 1)%at(n_conserved + 1:, j, k) = area_dt(0)*carries(0, :)
                    if (associated(face(2, 1)%at)) face(2, 1)%at(n_conserved + 1:, j, k) = area_dt(nb)*carries(nb, :)
                    if (face(1, 1)%open) lost(n_conserved + 1:) = lost(n_conserved + 1:) - area_dt(0)*carries(0, :)
                    if (face(2, 1)%open) lost(n_conserved + 1:) = lost(n_conserved + 1:) + area_dt(nb)*carries(nb, :)
                end associate
            end associate
        end subroutine more_along_rows

        !> Those between rows j - 1 and j.
        subroutine more_between_rows(k, here)
            integer, intent(in) :: k, here

            associate (plane => scratch%plane, extra => scratch%extra, faces => scratch%faces, ns => mesh%n_species)
                associate (matter => extra%matter, carries => extra%flux)
                    call hllc_row(2, 1, nb, 0, faces(before)%upper(:, :, 2), faces(now)%lower(:, :, 2), &
                                  matter(before)%upper_gas(:, :, 2), matter(now)%lower_gas(:, :, 2), flux)
                    call species_fluxes(ns, 1, nb, 0, matter(before)%upper(:, :, 2), matter(now)%lower(:, :, 2), flux, carries)
                    if (extra%burns(here)) call flame%diffuse(1, nb, 0, width(2), extra%fraction(:, :, j - 1, here), &
                        extra%fraction(:, :, j, here), extra%burning(:, j - 1, here), extra%burning(:, j, here), flux, carries)
                    if (j > 1) call add_more(extra%change(:, :, j - 1, new), -dt/width(2))
                    if (j <= nb) call add_more(extra%change(:, :, j, new), dt/width(2))
                    if (j > 1) extra%carried(:, 2, j - 1) = extra%carried(:, 2, j - 1) + 0.5_r8*flux(1:nb, 1)
                    if (j <= nb) extra%carried(:, 2, j) = extra%carried(:, 2, j) + 0.5_r8*flux(1:nb, 1)
                    if (j == 1) call register_more(face(1, 2), -1.0_r8, amount_y, k)
                    if (j == nb + 1) call register_more(face(2, 2), 1.0_r8, amount_y, k)
                end associate
            end associate
        end subroutine more_between_rows

        !> Those between row j of the plane below and of this one.
        subroutine more_between_planes(k, below, here)
            integer, intent(in) :: k, below, here

            associate (plane => scratch%plane, extra => scratch%extra, faces => scratch%faces(now), ns => mesh%n_species)
                associate (matter => extra%matter(now), carries => extra%flux)
                    call hllc_row(3, 1, nb, 0, scratch%upper(:, :, j), faces%lower(:, :, 3), extra%upper_gas(:, :, j), &
                                  matter%lower_gas(:, :, 3), flux)
                    call species_fluxes(ns, 1, nb, 0, extra%upper(:, :, j), matter%lower(:, :, 3), flux, carries)
                    if (extra%burns(below) .or. extra%burns(here)) call flame%diffuse(1, nb, 0, width(3), &
                        extra%fraction(:, :, j, below), extra%fraction(:, :, j, here), extra%burning(:, j, below), &
                        extra%burning(:, j, here), flux, carries)
                    if (k > 1) call add_more(extra%change(:, :, j, old), -dt/width(3))
                    if (k <= planes) call add_more(extra%change(:, :, j, new), dt/width(3))
                    if (k == 1) call register_more(face(1, 3), -1.0_r8, amount_z, j)
                    if (k == planes + 1) call register_more(face(2, 3), 1.0_r8, amount_z, j)
                end associate
            end associate
        end subroutine more_between_planes

        !> Keep the upper faces of row j in the third direction for the next plane.
        subroutine keep_more()
            associate (extra => scratch%extra)
                extra%upper(:, :, j) = extra%matter(now)%upper(:, :, 3)
                extra%upper_gas(:, :, j) = extra%matter(now)%upper_gas(:, :, 3)
            end associate
        end subroutine keep_more

        !> As add_layer, of the species' fluxes.
        subroutine add_more(change, factor)
            real(r8), contiguous, intent(inout) :: change(:, :)
            real(r8), intent(in) :: factor

            do v = 1, mesh%n_species
                change(:, v) = change(:, v) + factor*scratch%extra%flux(1:nb, v)
            end do
        end subroutine add_more

        !> As register_layer, of the species' fluxes.
        subroutine register_more(face, outwards, area_dt, row)
            type(face_registers_t), intent(in) :: face
            real(r8), intent(in) :: outwards, area_dt(nb)
            integer, intent(in) :: row

            do v = 1, mesh%n_species
                associate (carries => scratch%extra%flux(1:nb, v), at => n_conserved + v)
                    if (associated(face%at)) face%at(at, :, row) = area_dt*carries
                    if (face%open) lost(at) = lost(at) + outwards*sum(area_dt*carries)
                end associate
            end do
        end subroutine register_more

    end subroutine advance_block

end module ember_hydro
