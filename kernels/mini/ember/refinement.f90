!> The criteria of refinement: which leaves to refine, and which to coarsen.
module ember_refinement
    use ember_container, only: make_view, view_t
    use ember_mesh, only: mesh_t, v_dens, v_pres
    use ember_parallel, only: comm_t
    use pw_kinds, only: r8
    implicit none
    private

    !> The criteria of refinement.
    type, public :: regrid_settings_t
        integer, allocatable :: variables(:)        !< that are examined; default: density and pressure
        real(r8) :: refine_above = 0.8_r8           !< the estimate of a block that is to be refined
        real(r8) :: coarsen_below = 0.2_r8          !< that of a block that may be coarsened
        real(r8) :: filter = 0.01_r8                !< the share of a variable's size that counts as a ripple
        integer :: dense_level = 0                  !< the lowest level of blocks with zones as dense as `dense`
        real(r8) :: dense = huge(1.0_r8)
        !> Blocks in which this variable's share of the density is neither 0 nor 1, in zones as dense as `front_dense`, have
        !> the highest level; 0: not used.
        integer :: front = 0
        real(r8) :: front_dense = 0.0_r8
    end type regrid_settings_t

    public :: mark_leaves, estimate

contains

    !> For all leaves, on all ranks: mark(leaf) is 1 if the estimate of a variable in one of its zones is above
    !> settings%refine_above, -1 if all are below settings%coarsen_below, otherwise 0; and if the level is not within the
    !> mesh's lowest and highest, or at one of them, the value that this requires. Guard cells must be filled.
    subroutine mark_leaves(mesh, settings, comm, mark)
        type(mesh_t), intent(in) :: mesh
        type(regrid_settings_t), intent(in) :: settings
        type(comm_t), intent(in) :: comm
        integer, allocatable, intent(out) :: mark(:)
        integer, allocatable :: mine(:), all(:), variables(:)
        integer :: next(0:comm%n_ranks - 1), l, v, leaf, r, level
        real(r8) :: largest

        if (allocated(settings%variables)) then
            allocate (variables, source=settings%variables)
        else
            allocate (variables, source=[v_dens, v_pres])
        end if
        allocate (mine(size(mesh%local)))
        !$omp parallel do schedule(dynamic) private(leaf, largest, v, level)
        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            largest = 0.0_r8
            do v = 1, size(variables)
                largest = max(largest, estimate(mesh, mesh%slot(leaf), variables(v), settings%filter))
            end do
            mine(l) = 0
            if (largest > settings%refine_above) mine(l) = 1
            if (largest < settings%coarsen_below) mine(l) = -1
            level = least_level(mesh, settings, mesh%slot(leaf))
            if (mesh%tree%level(leaf) < level) mine(l) = 1
            if (mesh%tree%level(leaf) == level) mine(l) = max(mine(l), 0)
        end do
        call comm%all_gather(mine, all)

        ! Those of each rank are in Morton order.
        next(0) = 1
        do r = 1, comm%n_ranks - 1
            next(r) = next(r - 1) + count(mesh%tree%owner == r - 1)
        end do
        allocate (mark(mesh%tree%n_leaves))
        do leaf = 1, mesh%tree%n_leaves
            r = mesh%tree%owner(leaf)
            mark(leaf) = all(next(r))
            next(r) = next(r) + 1
            associate (level => mesh%tree%level(leaf))
                if (level >= mesh%highest_level) mark(leaf) = min(mark(leaf), 0)
                if (level <= mesh%lowest_level) mark(leaf) = max(mark(leaf), 0)
                if (level > mesh%highest_level) mark(leaf) = -1
                if (level < mesh%lowest_level) mark(leaf) = 1
            end associate
        end do
    end subroutine mark_leaves

    !> The lowest level of the block in `slot` required by density and fronts.
    integer function least_level(mesh, settings, slot) result(level)
        type(mesh_t), intent(in) :: mesh
        type(regrid_settings_t), intent(in) :: settings
        integer, intent(in) :: slot
        real(r8), parameter :: little = 0.01_r8
        real(r8), dimension(mesh%first:mesh%last, mesh%first:mesh%last, mesh%first_k():mesh%last_k()) :: dens, share

        level = 0
        if (settings%dense_level == 0 .and. settings%front == 0) return
        call load_variable(mesh, slot, v_dens, dens)
        if (maxval(dens) >= settings%dense) level = settings%dense_level
        if (settings%front == 0) return
        call load_variable(mesh, slot, settings%front, share)
        share = share/dens
        if (any(share > little .and. share < 1.0_r8 - little .and. dens >= settings%front_dense)) level = mesh%highest_level
        if (maxval(share, mask=dens >= settings%front_dense) - minval(share, mask=dens >= settings%front_dense) > 0.5_r8) &
            level = mesh%highest_level
    end function least_level

    !> A variable of a block, guard cells included.
    subroutine load_variable(mesh, slot, variable, values)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, variable
        real(r8), intent(out) :: values(mesh%first:, mesh%first:, mesh%first_k():)
        type(view_t) :: view
        integer :: first, i, j, k

        call make_view(mesh, slot, view)
        do k = mesh%first_k(), mesh%last_k()
            do j = mesh%first, mesh%last
                first = view%origin + variable*view%variable + sum(view%zone*[0, j, k])
                do i = mesh%first, mesh%last
                    values(i, j, k) = view%values(first + i*view%zone(1))
                end do
            end do
        end do
    end subroutine load_variable

    !> The largest error estimate of a variable in the zones of the block in `slot`, from 0 to 1: second differences, the mixed
    !> ones too, divided by the bound from first differences and `filter` times the values (R. Loehner, An
    !> adaptive finite element scheme for transient problems in CFD, Comput. Methods Appl. Mech. Eng. 61, 1987, p. 323), between
    !> zones that touch; differences are per zone, whatever their widths. Needs one layer of guard cells on faces and edges.
    real(r8) function estimate(mesh, slot, variable, filter)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, variable
        real(r8), intent(in) :: filter
        real(r8) :: u(mesh%first:mesh%last, mesh%first:mesh%last, mesh%first_k():mesh%last_k())
        real(r8) :: above(mesh%block), below(mesh%block)
        integer :: i, j, k, n(3)

        call load_variable(mesh, slot, variable, u)
        estimate = 0.0_r8
        n = mesh%zones()
        do k = 1, n(3)
            do j = 1, n(2)
                above = 0.0_r8
                below = tiny(1.0_r8)
                do i = 1, n(1)
                    call add_second(u(i - 1, j, k), u(i, j, k), u(i + 1, j, k), filter, above(i), below(i))
                    call add_second(u(i, j - 1, k), u(i, j, k), u(i, j + 1, k), filter, above(i), below(i))
                    call add_mixed(u(i - 1, j - 1, k), u(i + 1, j - 1, k), u(i - 1, j + 1, k), u(i + 1, j + 1, k), filter, &
                                   above(i), below(i))
                end do
                if (mesh%dims == 3) then
                    do i = 1, n(1)
                        call add_second(u(i, j, k - 1), u(i, j, k), u(i, j, k + 1), filter, above(i), below(i))
                        call add_mixed(u(i - 1, j, k - 1), u(i + 1, j, k - 1), u(i - 1, j, k + 1), u(i + 1, j, k + 1), filter, &
                                       above(i), below(i))
                        call add_mixed(u(i, j - 1, k - 1), u(i, j + 1, k - 1), u(i, j - 1, k + 1), u(i, j + 1, k + 1), filter, &
                                       above(i), below(i))
                    end do
                end if
                estimate = max(estimate, maxval(above/below))
            end do
        end do
        estimate = sqrt(estimate)
    end function estimate

    !> Add the squares of a second difference and of its bound.
    elemental subroutine add_second(low, middle, high, filter, above, below)
        real(r8), intent(in) :: low, middle, high, filter
        real(r8), intent(inout) :: above, below
        real(r8) :: up, down

        up = high - middle
        down = middle - low
        above = above + (up - down)**2
        below = below + (abs(up) + abs(down) + filter*(abs(high) + abs(low) + 2.0_r8*abs(middle)))**2
    end subroutine add_second

    !> Add the squares of a mixed second difference and of the smaller of its bounds: by first differences in the one direction or
    !> in the other. A plane front, which has them in only one direction, therefore has the same estimate as in one dimension.
    !> `lh` is low in the first direction and high in the second; mirrored or turned values give the same to the last bit.
    elemental subroutine add_mixed(ll, hl, lh, hh, filter, above, below)
        real(r8), intent(in) :: ll, hl, lh, hh, filter
        real(r8), intent(inout) :: above, below
        real(r8) :: ripple

        ripple = filter*((abs(ll) + abs(hh)) + (abs(hl) + abs(lh)))
        above = above + 0.125_r8*((ll + hh) - (hl + lh))**2
        below = below + 0.125_r8*(min(abs(hh - lh) + abs(hl - ll), abs(hh - hl) + abs(lh - ll)) + ripple)**2
    end subroutine add_mixed

end module ember_refinement
