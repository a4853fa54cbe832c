!> Directionally split sweeps of a block over pencils, with the access pattern of FLASH: the zones of a pencil are gathered from
!> the container variable by variable into work arrays, the piecewise parabolic method gives the fluxes (ember_pencil), and each
!> conserved variable is changed in the container in turn. The equation of state and the time step have separate passes by rows.
module ember_sweeps
    use ember_boundaries, only: on_boundary
    use ember_container, only: make_view, view_t
    use ember_eos, only: eos_t
    use ember_fluxes, only: face_registers_t, registers_t
    use ember_mesh, only: cylindrical, mesh_t, n_conserved, outflow, v_dens, v_ener, v_eint, v_gamc, v_game, v_momx, v_momy, &
        v_momz, v_pres, v_temp
    use ember_pencil, only: pencil_t
    use ember_ppm, only: longest, pencil_first, pencil_last, sweep_guards, w_along, w_dens, w_game, w_gamc, w_pres, w_side1, w_side2
    use ember_ppm_riemann, only: f_along, f_pres
    use pw_error, only: error_t
    use pw_kinds, only: i4, r8
    use pw_region, only: region_begin, region_end
    use pw_text, only: to_text
    implicit none
    private

    !> Values that the passes of a block name per zone: those of the update and of the equation of state in each sweep, next to
    !> the gathered ones; and those of the time step.
    integer, parameter :: n_gathered = 7, n_update = 2*n_conserved, n_state = 11, n_rate = 6

    !> A sweep of all blocks in one direction.
    type, public :: sweep_t
        integer :: direction = 1
        real(r8) :: dt = 0.0_r8
        logical :: steep = .true.                  !< contacts are steepened
        type(registers_t), pointer :: registers => null()   !< null if all blocks have one level
    end type sweep_t

    !> The work space of a thread, its time in the equation of state, and its failure.
    type, public :: sweep_work_t
        type(pencil_t) :: pencil
        real(r8) :: area_dt(0:pencil_last) = 0.0_r8            !< of a pencil's faces, times the time step
        real(r8) :: inverse_volume(longest) = 0.0_r8           !< of its zones
        real(r8) :: amount(0:pencil_last, n_conserved) = 0.0_r8   !< flux times area_dt
        real(r8), dimension(longest) :: dens = 1.0_r8, eint = 1.0_r8, temp = 1.0_r8, pres = 1.0_r8, &
            gamc = 1.0_r8, game = 1.0_r8                       !< of a row
        real(r8), dimension(longest, 3) :: momentum = 0.0_r8
        real(r8), allocatable :: fraction(:, :)                !< without species
        integer(i4) :: in_eos = -1                             !< region
        real(r8) :: eos_seconds = 0.0_r8
        type(error_t) :: error
    end type sweep_work_t

    public :: sweep_block, derive_block, block_rate, values_per_update

contains

    !> Values per zone and step that the passes read and write, counted as the source names them, for blocks of `n` zones.
    pure real(r8) function values_per_update(n, dims)
        integer, intent(in) :: n, dims
        real(r8) :: gathered

        gathered = n_gathered*real(n + 2*sweep_guards, r8)/n
        values_per_update = dims*(gathered + n_update + n_state) + n_rate
    end function values_per_update

    !> Sweep the pencils of `leaf`, whose guard cells are filled: its conserved variables change. `lost` grows by what leaves
    !> through outflow boundaries.
    subroutine sweep_block(mesh, leaf, sweep, work, lost)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        type(sweep_t), intent(in) :: sweep
        type(sweep_work_t), intent(inout) :: work
        real(r8), intent(inout) :: lost(:)
        type(view_t) :: view
        type(face_registers_t) :: face(2)
        real(r8) :: width(3)
        integer :: across(2), place(3), kept(n_conserved), zones(3), a, b, d, side, start

        d = sweep%direction
        across = pack([1, 2, 3], [1, 2, 3] /= d)
        kept = [v_dens, v_momx + d - 1, v_momx + modulo(d, 3), v_momx + modulo(d + 1, 3), v_ener]
        zones = mesh%zones()
        width = mesh%zone_size(mesh%tree%level(leaf))
        call make_view(mesh, mesh%slot(leaf), view)
        do side = 1, 2
            if (associated(sweep%registers)) face(side)%at => sweep%registers%face(leaf, d, side)
            face(side)%open = mesh%boundary(side, d) == outflow .and. on_boundary(mesh, leaf, d, side)
        end do
        call measure_faces(mesh, leaf, sweep, work)
        do b = 1, zones(across(2))
            do a = 1, zones(across(1))
                place(d) = 0
                place(across) = [a, b]
                start = view%origin + sum(view%zone*place)
                call gather_pencil(view, start, d, zones(d), kept, work)
                call work%pencil%solve(zones(d), sweep%dt/width(d), sweep%steep)
                call weigh_fluxes(zones(d), merge(place(1), 0, d > 1), work)
                call change_pencil(view, start, d, zones(d), kept, merge(place(1), 0, d > 1), work)
                call keep_boundary(face(1), kept, [a, b], -1.0_r8, work%amount(0, :), lost)
                call keep_boundary(face(2), kept, [a, b], 1.0_r8, work%amount(zones(d), :), lost)
            end do
        end do
    end subroutine sweep_block

    !> The areas and volumes of a leaf: along the first direction by face and zone, across it by the first index.
    subroutine measure_faces(mesh, leaf, sweep, work)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        type(sweep_t), intent(in) :: sweep
        type(sweep_work_t), intent(inout) :: work
        real(r8) :: width(3), corner(3), volume(mesh%first:mesh%last)
        integer :: i, n

        n = mesh%block
        width = mesh%zone_size(mesh%tree%level(leaf))
        volume = mesh%zone_volumes(leaf)
        corner = mesh%block_corner(leaf)
        work%inverse_volume(:n) = 1.0_r8/volume(1:n)
        work%pencil%half_by_radius = 0.0_r8
        if (sweep%direction > 1) then
            work%area_dt(1:n) = sweep%dt*volume(1:n)/width(sweep%direction)
            return
        end if
        work%area_dt = sweep%dt*width(2)*width(3)
        if (mesh%geometry /= cylindrical) return
        do i = 0, n
            work%area_dt(i) = work%area_dt(i)*(corner(1) + i*width(1))
        end do
        do i = mesh%first, mesh%last
            work%pencil%half_by_radius(i) = 0.5_r8*sweep%dt/(corner(1) + (i - 0.5_r8)*width(1))
        end do
    end subroutine measure_faces

    !> Gather a pencil of `n` zones with its guard cells, variable by variable; `start`: the index of zone 0 and variable 0.
    pure subroutine gather_pencil(view, start, direction, n, kept, work)
        type(view_t), intent(in) :: view
        integer, intent(in) :: start, direction, n, kept(n_conserved)
        type(sweep_work_t), intent(inout) :: work
        integer, parameter :: into(n_gathered) = [w_dens, w_along, w_side1, w_side2, w_pres, w_gamc, w_game]
        integer :: from(n_gathered), v, m

        from = [kept(:4), v_pres, v_gamc, v_game]
        m = n + 2*sweep_guards
        associate (zone => work%pencil%zone)
            do v = 1, n_gathered
                call gather(m, view%values, start + from(v)*view%variable + pencil_first*view%zone(direction), &
                            view%zone(direction), zone(pencil_first:pencil_first + m - 1, into(v)))
            end do
            do v = w_along, w_side2
                call divide(m, zone(pencil_first:pencil_first + m - 1, v), zone(pencil_first:pencil_first + m - 1, w_dens))
            end do
        end associate
    end subroutine gather_pencil

    !> Every `stride`th of the values from `first` on.
    pure subroutine gather(n, values, first, stride, row)
        integer, intent(in) :: n, first, stride
        real(r8), contiguous, intent(in) :: values(:)
        real(r8), intent(out) :: row(n)
        integer :: i

        do i = 1, n
            row(i) = values(first + (i - 1)*stride)
        end do
    end subroutine gather

    !> The inverse of `gather`.
    pure subroutine scatter(n, row, values, first, stride)
        integer, intent(in) :: n, first, stride
        real(r8), intent(in) :: row(n)
        real(r8), contiguous, intent(inout) :: values(:)
        integer :: i

        do i = 1, n
            values(first + (i - 1)*stride) = row(i)
        end do
    end subroutine scatter

    pure subroutine divide(n, row, by)
        integer, intent(in) :: n
        real(r8), intent(inout) :: row(n)
        real(r8), intent(in) :: by(n)
        integer :: i

        !$omp simd
        do i = 1, n
            row(i) = row(i)/by(i)
        end do
    end subroutine divide

    !> What passes the faces of a pencil in the time step. `ring`: the first index of a pencil across the first direction, 0 for
    !> one along it.
    pure subroutine weigh_fluxes(n, ring, work)
        integer, intent(in) :: n, ring
        type(sweep_work_t), intent(inout) :: work
        integer :: i, v

        do v = 1, n_conserved
            if (ring > 0) then
                !$omp simd
                do i = 0, n
                    work%amount(i, v) = work%area_dt(ring)*work%pencil%flux(i, v)
                end do
            else
                !$omp simd
                do i = 0, n
                    work%amount(i, v) = work%area_dt(i)*work%pencil%flux(i, v)
                end do
            end if
        end do
    end subroutine weigh_fluxes

    !> Change the conserved variables of a pencil, one after the other. `ring`: as above.
    subroutine change_pencil(view, start, direction, n, kept, ring, work)
        type(view_t), intent(in) :: view
        integer, intent(in) :: start, direction, n, kept(n_conserved), ring
        type(sweep_work_t), intent(in) :: work
        real(r8) :: change(longest), mean
        integer :: first, stride, i, v

        stride = view%zone(direction)
        do v = 1, n_conserved
            !$omp simd
            do i = 1, n
                change(i) = work%amount(i - 1, v) - work%amount(i, v)
            end do
            ! In cylindrical geometry the upper face is larger: what the pressure does on the difference stays in the zone.
            if (v == f_along .and. ring == 0) then
                !$omp simd private(mean)
                do i = 1, n
                    mean = 0.5_r8*(work%pencil%flux(i - 1, f_pres) + work%pencil%flux(i, f_pres))
                    change(i) = change(i) + (work%area_dt(i) - work%area_dt(i - 1))*mean
                end do
            end if
            if (ring > 0) then
                change(:n) = work%inverse_volume(ring)*change(:n)
            else
                change(:n) = work%inverse_volume(:n)*change(:n)
            end if
            first = start + kept(v)*view%variable
            do i = 1, n
                view%values(first + i*stride) = view%values(first + i*stride) + change(i)
            end do
        end do
    end subroutine change_pencil

    !> What passed the pencil's end at a face of the block: for the flux registers, and if it left the domain.
    subroutine keep_boundary(face, kept, place, outwards, amount, lost)
        type(face_registers_t), intent(in) :: face
        integer, intent(in) :: kept(n_conserved), place(2)
        real(r8), intent(in) :: outwards, amount(n_conserved)
        real(r8), intent(inout) :: lost(:)

        if (associated(face%at)) face%at(kept, place(1), place(2)) = amount
        if (face%open) lost(kept) = lost(kept) + outwards*amount
    end subroutine keep_boundary

    !> The derived variables of a leaf from its conserved ones, row by row. Raises exit_check in `work` if density or internal
    !> energy is not positive.
    subroutine derive_block(mesh, leaf, eos, work)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        class(eos_t), intent(in) :: eos
        type(sweep_work_t), intent(inout) :: work
        type(view_t) :: view
        real(r8) :: seconds
        integer :: j, k, zones(3)

        zones = mesh%zones()
        call make_view(mesh, mesh%slot(leaf), view)
        call region_begin(work%in_eos)
        do k = 1, zones(3)
            do j = 1, zones(2)
                call derive_row(view, view%origin + sum(view%zone*[1, j, k]), zones(1), eos, work)
                if (work%error%failed()) exit
            end do
            if (work%error%failed()) exit
        end do
        call region_end(work%in_eos, seconds)
        work%eos_seconds = work%eos_seconds + seconds
        if (work%error%failed()) work%error%message = work%error%message//' (block at '//to_text(mesh%slot(leaf))//', row '// &
            to_text(j)//' of plane '//to_text(k)//')'
    end subroutine derive_block

    !> `first`: the index of a row's first zone and variable 0.
    subroutine derive_row(view, first, n, eos, work)
        type(view_t), intent(in) :: view
        integer, intent(in) :: first, n
        class(eos_t), intent(in) :: eos
        type(sweep_work_t), intent(inout) :: work
        integer :: i, s

        s = view%zone(1)
        associate (values => view%values, dens => work%dens, m => work%momentum, eint => work%eint)
            call gather(n, values, first + v_dens*view%variable, s, dens)
            call gather(n, values, first + v_momx*view%variable, s, m(:, 1))
            call gather(n, values, first + v_momy*view%variable, s, m(:, 2))
            call gather(n, values, first + v_momz*view%variable, s, m(:, 3))
            call gather(n, values, first + v_ener*view%variable, s, eint)
            call gather(n, values, first + v_temp*view%variable, s, work%temp)
            !$omp simd
            do i = 1, n
                eint(i) = (eint(i) - 0.5_r8*(m(i, 1)**2 + m(i, 2)**2 + m(i, 3)**2)/dens(i))/dens(i)
            end do
            call eos%rows(n, dens, work%fraction, eint, work%temp, work%pres, work%gamc, work%error)
            if (work%error%failed()) return
            !$omp simd
            do i = 1, n
                work%game(i) = work%pres(i)/(dens(i)*eint(i)) + 1.0_r8
            end do
            call scatter(n, work%pres, values, first + v_pres*view%variable, s)
            call scatter(n, work%temp, values, first + v_temp*view%variable, s)
            call scatter(n, work%gamc, values, first + v_gamc*view%variable, s)
            call scatter(n, eint, values, first + v_eint*view%variable, s)
            call scatter(n, work%game, values, first + v_game*view%variable, s)
        end associate
    end subroutine derive_row

    !> The largest (|v| + c)/width of all directions in a leaf: its inverse bounds the time step of a split scheme.
    subroutine block_rate(mesh, leaf, work, rate)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        type(sweep_work_t), intent(inout) :: work
        real(r8), intent(out) :: rate
        type(view_t) :: view
        real(r8) :: inverse(3)
        integer :: first, i, j, k, zones(3)

        zones = mesh%zones()
        inverse = 1.0_r8/mesh%zone_size(mesh%tree%level(leaf))
        inverse(mesh%dims + 1:) = 0.0_r8
        rate = 0.0_r8
        call make_view(mesh, mesh%slot(leaf), view)
        associate (values => view%values, dens => work%dens, m => work%momentum, n => zones(1), s => view%zone(1))
            do k = 1, zones(3)
                do j = 1, zones(2)
                    first = view%origin + sum(view%zone*[1, j, k])
                    call gather(n, values, first + v_dens*view%variable, s, dens)
                    call gather(n, values, first + v_momx*view%variable, s, m(:, 1))
                    call gather(n, values, first + v_momy*view%variable, s, m(:, 2))
                    call gather(n, values, first + v_momz*view%variable, s, m(:, 3))
                    call gather(n, values, first + v_pres*view%variable, s, work%pres)
                    call gather(n, values, first + v_gamc*view%variable, s, work%gamc)
                    !$omp simd reduction(max: rate)
                    do i = 1, n
                        associate (sound => sqrt(work%gamc(i)*work%pres(i)/dens(i)))
                            rate = max(rate, inverse(1)*(abs(m(i, 1)/dens(i)) + sound), &
                                       inverse(2)*(abs(m(i, 2)/dens(i)) + sound), inverse(3)*(abs(m(i, 3)/dens(i)) + sound))
                        end associate
                    end do
                end do
            end do
        end associate
    end subroutine block_rate

end module ember_sweeps
