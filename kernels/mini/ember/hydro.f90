!> The hydrodynamic update of one block: a time step of the Euler equations for its zones, from filled guard cells.
!>
!> The block passes through once, plane by plane (third index): three planes of primitive variables are at hand, the fluxes
!> are made row by row, and a plane whose last flux is known is finished and stored. What a thread needs beside the container
!> stays in its cache.
module ember_hydro
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    use ember_eos, only: eos_t
    use ember_fluxes, only: registers_t
    use ember_godunov, only: faces_t, hllc_row, n_primitive, n_sloped, p_dens, p_gamc, p_pres, p_ratio, p_velx, p_vely, &
        p_velz, row_first, row_last, trace_row
    use ember_mesh, only: block_zones, cylindrical, first_guard, last_guard, mesh_t, n_conserved, outflow, v_dens, v_ener, &
        v_gamc, v_momx, v_momy, v_momz, v_pres, v_temp
    use ember_tree, only: outside
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: r8
    use pw_text, only: to_text
    use pw_timer, only: wall_seconds
    implicit none
    private

    integer, parameter :: nb = block_zones

    !> What a thread works in, and the time that it spent in the equation of state.
    type, public :: scratch_t
        private
        real(r8), allocatable :: plane(:, :, :, :)   ! (zone, variable, row, one of three planes), primitive
        type(faces_t), allocatable :: faces(:)       ! of a row and the one before
        real(r8), allocatable :: upper(:, :, :)      ! (zone, variable, row): upper faces in the third direction, plane before
        real(r8), allocatable :: change(:, :, :, :)  ! (zone, variable, row, one of two planes), conserved
        real(r8), allocatable :: state(:, :, :)      ! (zone, row, variable), conserved
        real(r8), allocatable, dimension(:, :) :: dens, eint, temp, pres, gamc   ! (zone, row)
        real(r8), public :: eos_seconds = 0.0_r8
    contains
        procedure :: start
    end type scratch_t

    !> The place of a leaf's face in the flux registers; not associated where the neighbour is of the same level.
    type :: face_registers_t
        real(r8), pointer, contiguous :: at(:, :, :) => null()
        logical :: open = .false.   ! an outflow boundary
    end type face_registers_t

    public :: advance_block, finish_block

    interface
        !> Software prefetch of `bytes` bytes; does nothing in other builds.
        subroutine c_prefetch(address, bytes) bind(c, name='pw_ember_prefetch')
            import :: c_double, c_int64_t
            real(c_double), intent(in) :: address(*)
            integer(c_int64_t), value :: bytes
        end subroutine c_prefetch
    end interface

contains

    !> Allocate; values are such that what lies beyond the guard cells disturbs nothing.
    subroutine start(self)
        class(scratch_t), intent(inout) :: self

        if (allocated(self%plane)) return
        allocate (self%plane(row_first:row_last, n_primitive, first_guard:last_guard, 0:2), source=1.0_r8)
        allocate (self%faces(0:1))
        allocate (self%upper(row_first:row_last, n_sloped, nb), source=1.0_r8)
        allocate (self%change(nb, n_conserved, nb, 0:1), source=0.0_r8)
        allocate (self%state(nb, nb, n_conserved), source=1.0_r8)
        allocate (self%dens(nb, nb), self%eint(nb, nb), self%temp(nb, nb), self%pres(nb, nb), self%gamc(nb, nb))
    end subroutine start

    !> Advance the zones of `leaf` by `dt`, and bring their derived variables up to date.
    !>
    !> `steepness`: of the limiter, see ember_godunov. `rate`: the largest sum over directions of (|v| + c)/width [1/s], of
    !> the new state. `lost` grows by what of the conserved variables leaves the domain through outflow boundaries.
    !> Raises exit_check where density or internal energy is not positive any more.
    subroutine advance_block(mesh, leaf, dt, steepness, eos, registers, scratch, rate, lost, error)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        real(r8), intent(in) :: dt, steepness
        class(eos_t), intent(in) :: eos
        type(registers_t), intent(in) :: registers
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(out) :: rate
        real(r8), intent(inout) :: lost(n_conserved)
        type(error_t), intent(inout) :: error
        type(face_registers_t) :: face(2, 3)
        real(r8), dimension(row_first:row_last) :: curvature, area_dt
        real(r8), dimension(nb) :: inverse_volume, amount_y, amount_z, source_dt
        real(r8) :: width(3), half(3), volume(first_guard:last_guard), corner(3), flux(row_first:row_last, n_sloped)
        integer :: slot, j, k, v, side, direction, now, before, old, new, above, here, below, planes, i

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
                face(side, direction)%open = is_open(mesh, leaf, direction, side)
            end do
        end do

        rate = 0.0_r8
        planes = nb
        if (mesh%dims == 2) then
            planes = 1
            call load_plane(mesh, slot, 1, scratch%plane(:, :, :, 1))
            scratch%change(:, :, :, 1) = 0.0_r8
            call sweep_plane(1, 1, 1, 1)
            call finish_plane(mesh, slot, 1, scratch%change(:, :, :, 1), eos, width, scratch, rate, error)
            return
        end if
        call load_plane(mesh, slot, -1, scratch%plane(:, :, :, 2))
        call load_plane(mesh, slot, 0, scratch%plane(:, :, :, 0))
        do k = 0, planes + 1
            ! Plane k is in scratch%plane(modulo(k, 3)), the changes of its zones in scratch%change(modulo(k, 2)).
            below = modulo(k - 1, 3)
            here = modulo(k, 3)
            above = modulo(k + 1, 3)
            call load_plane(mesh, slot, k + 1, scratch%plane(:, :, :, above))
            if (k >= 1 .and. k <= planes) scratch%change(:, :, :, modulo(k, 2)) = 0.0_r8
            call sweep_plane(k, below, here, above)
            if (k < 2) cycle
            call finish_plane(mesh, slot, k - 1, scratch%change(:, :, :, modulo(k - 1, 2)), eos, width, scratch, rate, error)
            if (error%failed()) return
        end do

    contains

        !> All fluxes that the rows of plane k take part in, with the planes at the given places.
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
                    call trace_row(plane(:, :, j, here), plane(:, :, j - 1, here), plane(:, :, j + 1, here), &
                                   plane(:, :, j, below), plane(:, :, j, above), half, steepness, curvature, faces(now))
                    if (inner .and. j >= 1 .and. j <= nb) then
                        call hllc_row(1, 0, nb, 1, faces(now)%upper(:, :, 1), faces(now)%lower(:, :, 1), &
                                      plane(:, :, j, here), plane(:, :, j, here), flux)
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
                        if (face(1, 1)%open) lost = lost - area_dt(0)*flux(0, :)
                        if (face(2, 1)%open) lost = lost + area_dt(nb)*flux(nb, :)
                    end if
                    if (inner .and. j >= 1) then
                        call hllc_row(2, 1, nb, 0, faces(before)%upper(:, :, 2), faces(now)%lower(:, :, 2), &
                                      plane(:, :, j - 1, here), plane(:, :, j, here), flux)
                        if (j > 1) call add_layer(change(:, :, j - 1, new), flux, -dt/width(2))
                        if (j <= nb) call add_layer(change(:, :, j, new), flux, dt/width(2))
                        if (j == 1) call register_layer(face(1, 2), -1.0_r8, flux, amount_y, k)
                        if (j == nb + 1) call register_layer(face(2, 2), 1.0_r8, flux, amount_y, k)
                    end if
                    if (mesh%dims == 3 .and. j >= 1 .and. j <= nb) then
                        if (k >= 1) then
                            call hllc_row(3, 1, nb, 0, scratch%upper(:, :, j), faces(now)%lower(:, :, 3), &
                                          plane(:, :, j, below), plane(:, :, j, here), flux)
                            if (k > 1) call add_layer(change(:, :, j, old), flux, -dt/width(3))
                            if (k <= planes) call add_layer(change(:, :, j, new), flux, dt/width(3))
                            if (k == 1) call register_layer(face(1, 3), -1.0_r8, flux, amount_z, j)
                            if (k == planes + 1) call register_layer(face(2, 3), 1.0_r8, flux, amount_z, j)
                        end if
                        scratch%upper(:, :, j) = faces(now)%upper(:, :, 3)
                    end if
                end do
            end associate
        end subroutine sweep_plane

        !> Add what passes a row's faces; `factor` is dt over the width, negative for upper faces.
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

        !> Keep what passes a row of the block's faces, between levels or (`outwards`: the sign) out of the domain.
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

    end subroutine advance_block

    !> Whether a leaf's face is an outflow boundary of the domain.
    logical function is_open(mesh, leaf, direction, side)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf, direction, side
        integer :: step(3), relation, leaves(4), n

        is_open = mesh%boundary(side, direction) == outflow
        if (.not. is_open) return
        step = 0
        step(direction) = 2*side - 3
        call mesh%tree%neighbour(leaf, step, relation, leaves, n)
        is_open = relation == outside
    end function is_open

    !> Primitive variables of plane k of a block, guard cells included: (zone, variable, row).
    subroutine load_plane(mesh, slot, k, plane)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, k
        real(r8), intent(inout) :: plane(row_first:row_last, n_primitive, first_guard:last_guard)
        integer :: j

        if (mesh%variable_last) then
            do j = first_guard, last_guard
                if (k < mesh%last_k()) call prefetch_soa(mesh, slot, j, k + 1)
                call primitive_row(mesh%soa(:, j, k, v_dens, slot), mesh%soa(:, j, k, v_momx, slot), &
                                   mesh%soa(:, j, k, v_momy, slot), mesh%soa(:, j, k, v_momz, slot), &
                                   mesh%soa(:, j, k, v_ener, slot), mesh%soa(:, j, k, v_pres, slot), &
                                   mesh%soa(:, j, k, v_gamc, slot), plane(:, :, j))
            end do
        else
            do j = first_guard, last_guard
                if (k < mesh%last_k()) call prefetch_row(mesh%aos(:, :, j, k + 1, slot))
                call primitive_zones(mesh%n_variables, mesh%aos(:, :, j, k, slot), plane(:, :, j))
            end do
        end if
    end subroutine load_plane

    !> A row with the variable last, from its conserved variables, pressure and adiabatic index.
    pure subroutine primitive_row(dens, momx, momy, momz, ener, pres, gamc, row)
        real(r8), intent(in), dimension(first_guard:last_guard) :: dens, momx, momy, momz, ener, pres, gamc
        real(r8), intent(inout) :: row(row_first:row_last, n_primitive)
        real(r8) :: inverse
        integer :: i

        !$omp simd private(inverse)
        do i = first_guard, last_guard
            inverse = 1.0_r8/dens(i)
            row(i, p_dens) = dens(i)
            row(i, p_velx) = momx(i)*inverse
            row(i, p_vely) = momy(i)*inverse
            row(i, p_velz) = momz(i)*inverse
            row(i, p_pres) = pres(i)
            row(i, p_gamc) = gamc(i)
            row(i, p_ratio) = (ener(i) - 0.5_r8*dens(i)*(row(i, p_velx)*row(i, p_velx) + row(i, p_vely)*row(i, p_vely) &
                                                         + row(i, p_velz)*row(i, p_velz)))/pres(i)
        end do
    end subroutine primitive_row

    !> A row with the variable first: all variables of a zone together.
    pure subroutine primitive_zones(n, zone, row)
        integer, intent(in) :: n
        real(r8), intent(in) :: zone(n, first_guard:last_guard)
        real(r8), intent(inout) :: row(row_first:row_last, n_primitive)
        real(r8) :: inverse
        integer :: i

        ! Apart from the arithmetic, so that the compilers do not make gathers of these loads.
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

    !> Bring the derived variables of a leaf up to date, its conserved variables having been set.
    !> `rate`: the largest sum over directions of (|v| + c)/width. Raises exit_check as advance_block does.
    subroutine finish_block(mesh, leaf, eos, scratch, rate, error)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        class(eos_t), intent(in) :: eos
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(out) :: rate
        type(error_t), intent(inout) :: error
        real(r8) :: width(3)
        integer :: k, zones(3)

        rate = 0.0_r8
        zones = mesh%zones()
        width = mesh%zone_size(mesh%tree%level(leaf))
        scratch%change(:, :, :, 0) = 0.0_r8
        do k = 1, zones(3)
            call finish_plane(mesh, mesh%slot(leaf), k, scratch%change(:, :, :, 0), eos, width, scratch, rate, error)
            if (error%failed()) return
        end do
    end subroutine finish_block

    !> Change the conserved variables of plane k, (zone, variable, row), and derive the others. `rate` grows to what the
    !> plane's zones have.
    subroutine finish_plane(mesh, slot, k, change, eos, width, scratch, rate, error)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot, k
        real(r8), intent(in) :: change(nb, n_conserved, nb), width(3)
        class(eos_t), intent(in) :: eos
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(inout) :: rate
        type(error_t), intent(inout) :: error
        real(r8) :: begun
        integer :: i, j, v

        associate (state => scratch%state, dens => scratch%dens, eint => scratch%eint, temp => scratch%temp, &
                   pres => scratch%pres, gamc => scratch%gamc)
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
            call internal_energy(nb*nb, state, dens, eint)
            begun = wall_seconds()
            call eos%rows(nb*nb, dens, eint, temp, pres, gamc, error)
            scratch%eos_seconds = scratch%eos_seconds + (wall_seconds() - begun)
            if (error%failed()) then
                error%message = error%message//' (block at '//to_text(slot)//', plane '//to_text(k)//')'
                return
            end if
            call fastest(nb*nb, mesh%dims, state, pres, gamc, width, rate)
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
    end subroutine finish_plane

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

    !> Ask for a row of zones, all their variables together, ahead of its use.
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

end module ember_hydro
