!> The hydrodynamic update of one block: a time step of the Euler equations for its zones, from filled guard cells.
!>
!> The block is traversed once, plane by plane (third index): three planes of primitive variables are kept, the fluxes
!> are computed row by row, and a plane whose last flux is known is finished and stored. The working data of a thread
!> stays in its cache.
!>
!> With species, or gravity, a step also has the fluxes of the species and the flame, and sources. The equation of state is
!> not called then: the fluxes between levels are corrected first, and `finish_block` calls it once for all zones.
module ember_hydro
    use, intrinsic :: iso_c_binding, only: c_double, c_int64_t
    use ember_eos, only: eos_t
    use ember_flame, only: flame_t
    use ember_fluxes, only: registers_t
    use ember_godunov, only: faces_t, hllc_row, n_primitive, n_sloped, p_dens, p_gamc, p_pres, p_ratio, p_velx, p_vely, &
        p_velz, row_first, row_last, trace_row
    use ember_gravity, only: gravity_t
    use ember_mesh, only: block_zones, cylindrical, first_guard, first_species, last_guard, mesh_t, n_conserved, outflow, &
        v_dens, v_ener, v_gamc, v_momx, v_momy, v_momz, v_pres, v_temp
    use ember_slopes, only: balance_slopes, push_faces
    use ember_species, only: load_fractions, matter_t, species_fluxes, trace_matter
    use ember_tree, only: outside
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: i4, r8
    use pw_region, only: region_begin, region_end, region_handle
    use pw_text, only: to_text
    implicit none
    private

    integer, parameter :: nb = block_zones

    !> Additional work space of a thread with species or gravity.
    type :: extra_t
        type(matter_t) :: matter(0:1)                  ! of a row and the previous one
        real(r8), allocatable :: fraction(:, :, :, :)  ! (zone, species, row, one of three planes)
        real(r8), allocatable :: burning(:, :, :)      ! (zone, row, one of three planes), mass per area and time
        logical :: burns(0:2) = .false.                ! (one of three planes)
        real(r8), allocatable :: flux(:, :)            ! (face, species) of a row
        real(r8), allocatable :: change(:, :, :, :)    ! (zone, species, row, one of two planes)
        real(r8), allocatable :: upper(:, :, :), upper_gas(:, :, :)   ! (zone, what, row): as `upper`
        real(r8), allocatable :: pull(:, :, :)         ! (zone, direction, row), acceleration
        real(r8), allocatable :: rise(:, :, :)         ! (zone, direction, row), pressure that balances it across a zone
        real(r8), allocatable :: carried(:, :, :)      ! (zone, direction, row), flux of mass, mean of both faces
        real(r8), allocatable :: slopes(:, :), bend(:, :)   ! (zone, direction): of the pressure in a row
    end type extra_t

    !> The work space of a thread, and its time in the equation of state.
    type, public :: scratch_t
        private
        real(r8), allocatable :: plane(:, :, :, :)   ! (zone, variable, row, one of three planes), primitive
        type(faces_t), allocatable :: faces(:)       ! of a row and the previous one
        real(r8), allocatable :: upper(:, :, :)      ! (zone, variable, row): upper faces in the third direction, plane before
        real(r8), allocatable :: change(:, :, :, :)  ! (zone, variable, row, one of two planes), conserved
        real(r8), allocatable :: state(:, :, :)      ! (zone, row, variable), conserved
        real(r8), allocatable, dimension(:, :) :: dens, eint, temp, pres, gamc   ! (zone, row)
        real(r8), allocatable :: fraction(:, :)      ! (zone, species) of a plane
        integer(i4) :: in_eos = -1                   ! region
        real(r8), public :: eos_seconds = 0.0_r8
        type(extra_t), allocatable :: extra
    contains
        procedure :: start
    end type scratch_t

    !> Changes of zones other than fluxes; in cylindrical geometry per radian.
    type, public :: ledger_t
        real(r8) :: burnt = 0.0_r8    !< mass that became ash
        real(r8) :: work = 0.0_r8     !< work of gravity
        real(r8) :: raised = 0.0_r8   !< energy added to matter that would have been too cold
    end type ledger_t

    !> A leaf's face in the flux registers; not associated if the neighbour has the same level.
    type :: face_registers_t
        real(r8), pointer, contiguous :: at(:, :, :) => null()
        logical :: open = .false.   ! an outflow boundary
    end type face_registers_t

    public :: advance_block, finish_block, rate_of_block

    interface
        !> Software prefetch of `bytes` bytes; does nothing in other builds.
        subroutine c_prefetch(address, bytes) bind(c, name='pw_ember_prefetch')
            import :: c_double, c_int64_t
            real(c_double), intent(in) :: address(*)
            integer(c_int64_t), value :: bytes
        end subroutine c_prefetch
    end interface

contains

    !> Allocate, for a mesh with `n_species` and with gravity or without; values are chosen so that zones beyond the guard
    !> cells have no effect.
    subroutine start(self, n_species, gravity)
        class(scratch_t), intent(inout) :: self
        integer, intent(in) :: n_species
        logical, intent(in) :: gravity
        integer :: i

        if (allocated(self%plane)) return
        allocate (self%plane(row_first:row_last, n_primitive, first_guard:last_guard, 0:2), source=1.0_r8)
        allocate (self%faces(0:1))
        allocate (self%upper(row_first:row_last, n_sloped, nb), source=1.0_r8)
        allocate (self%change(nb, n_conserved, nb, 0:1), source=0.0_r8)
        allocate (self%state(nb, nb, n_conserved), source=1.0_r8)
        allocate (self%dens(nb, nb), self%eint(nb, nb), self%temp(nb, nb), self%pres(nb, nb), self%gamc(nb, nb))
        allocate (self%fraction(nb*nb, n_species), source=0.0_r8)
        ! A plane of a simple equation of state takes less time than reading counters.
        self%in_eos = region_handle('eos', counted=n_species > 0 .or. gravity)
        if (n_species == 0 .and. .not. gravity) return
        allocate (self%extra)
        associate (extra => self%extra, ns => n_species)
            do i = 0, 1
                call extra%matter(i)%start(ns)
            end do
            allocate (extra%fraction(row_first:row_last, ns, first_guard:last_guard, 0:2), extra%flux(row_first:row_last, ns), &
                      extra%change(nb, ns, nb, 0:1), extra%upper(row_first:row_last, ns, nb), &
                      extra%upper_gas(row_first:row_last, n_primitive, nb), &
                      extra%burning(row_first:row_last, first_guard:last_guard, 0:2), &
                      extra%pull(row_first:row_last, 2, first_guard:last_guard), &
                      extra%rise(row_first:row_last, 2, first_guard:last_guard), extra%carried(nb, 2, nb), &
                      extra%slopes(row_first:row_last, 2), extra%bend(row_first:row_last, 2), source=0.0_r8)
        end associate
    end subroutine start

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
                face(side, direction)%open = is_open(mesh, leaf, direction, side)
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

    !> Update the derived variables of a leaf after its conserved variables were set.
    !> `rate`: the largest sum over directions of (|v| + c)/width. Raises exit_check as advance_block does.
    subroutine finish_block(mesh, leaf, eos, scratch, rate, ledger, error)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        class(eos_t), intent(in) :: eos
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(out) :: rate
        type(ledger_t), intent(inout) :: ledger
        type(error_t), intent(inout) :: error
        real(r8) :: width(3), volume(first_guard:last_guard)
        integer :: k, zones(3)

        rate = 0.0_r8
        zones = mesh%zones()
        width = mesh%zone_size(mesh%tree%level(leaf))
        volume = mesh%zone_volumes(leaf)
        scratch%change(:, :, :, 0) = 0.0_r8
        do k = 1, zones(3)
            call finish_plane(mesh, mesh%slot(leaf), k, scratch%change(:, :, :, 0), eos, volume, width, scratch, rate, &
                              ledger, error)
            if (error%failed()) return
        end do
    end subroutine finish_block

    !> The largest sum over directions of (|v| + c)/width in a leaf whose derived variables are up to date.
    subroutine rate_of_block(mesh, leaf, scratch, rate)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(out) :: rate
        integer :: j, k, slot, zones(3)

        rate = 0.0_r8
        slot = mesh%slot(leaf)
        zones = mesh%zones()
        associate (state => scratch%state, pres => scratch%pres, gamc => scratch%gamc)
            do k = 1, zones(3)
                do j = 1, nb
                    if (mesh%variable_last) then
                        state(:, j, :) = mesh%soa(1:nb, j, k, :n_conserved, slot)
                        pres(:, j) = mesh%soa(1:nb, j, k, v_pres, slot)
                        gamc(:, j) = mesh%soa(1:nb, j, k, v_gamc, slot)
                    else
                        state(:, j, :) = transpose(mesh%aos(:n_conserved, 1:nb, j, k, slot))
                        pres(:, j) = mesh%aos(v_pres, 1:nb, j, k, slot)
                        gamc(:, j) = mesh%aos(v_gamc, 1:nb, j, k, slot)
                    end if
                end do
                call fastest(nb*nb, mesh%dims, state, pres, gamc, mesh%zone_size(mesh%tree%level(leaf)), rate)
            end do
        end associate
    end subroutine rate_of_block

    !> Change the conserved variables of plane k, (zone, variable, row), and derive the others. `rate` grows to that of the
    !> plane's zones.
    subroutine finish_plane(mesh, slot, k, change, eos, volume, width, scratch, rate, ledger, error)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot, k
        real(r8), intent(in) :: change(nb, n_conserved, nb), volume(first_guard:last_guard), width(3)
        class(eos_t), intent(in) :: eos
        type(scratch_t), intent(inout) :: scratch
        real(r8), intent(inout) :: rate
        type(ledger_t), intent(inout) :: ledger
        type(error_t), intent(inout) :: error
        real(r8) :: seconds, before(nb, nb)
        logical :: may_raise
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
            may_raise = .false.
            if (allocated(scratch%extra)) then
                call fractions_of_plane(mesh, slot, k, scratch%fraction)
                may_raise = .not. eos%is_simple()
                if (may_raise) before = eint
            end if
            call region_begin(scratch%in_eos)
            call eos%rows(nb*nb, dens, scratch%fraction, eint, temp, pres, gamc, error)
            call region_end(scratch%in_eos, seconds)
            scratch%eos_seconds = scratch%eos_seconds + seconds
            if (error%failed()) then
                error%message = error%message//' (block at '//to_text(slot)//', plane '//to_text(k)//')'
                return
            end if
            if (may_raise) then
                do j = 1, nb
                    if (.not. any(eint(:, j) > before(:, j))) cycle
                    before(:, j) = dens(:, j)*(eint(:, j) - before(:, j))
                    ledger%raised = ledger%raised + sum(volume(1:nb)*before(:, j))
                    state(:, j, v_ener) = state(:, j, v_ener) + before(:, j)
                end do
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

    !> Mass fractions of the zones of plane k, (zone, species).
    subroutine fractions_of_plane(mesh, slot, k, fraction)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, k
        real(r8), contiguous, intent(inout) :: fraction(:, :)
        integer :: i, j, s

        do s = 1, mesh%n_species
            do j = 1, nb
                if (mesh%variable_last) then
                    do i = 1, nb
                        fraction(nb*(j - 1) + i, s) = mesh%soa(i, j, k, first_species + s - 1, slot)/mesh%soa(i, j, k, v_dens, slot)
                    end do
                else
                    do i = 1, nb
                        fraction(nb*(j - 1) + i, s) = mesh%aos(first_species + s - 1, i, j, k, slot)/mesh%aos(v_dens, i, j, k, slot)
                    end do
                end if
            end do
        end do
    end subroutine fractions_of_plane

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

end module ember_hydro
