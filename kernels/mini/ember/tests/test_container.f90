!> The container and the transfer of zones: slots and their memory, copies between boxes in both layouts, means over pairs of
!> zones, prolongation: conservation, linear functions, bounds, symmetry under mirroring, the same numbers in both layouts.
program test_container
    use ember_container, only: block_bytes, container_create, container_free, container_touch, copy_box, load_interior, pack_box, &
        store_interior, unpack_box
    use ember_prolongation, only: pack_star, prolong_star, star_size
    use ember_restriction, only: restrict_box
    use ember_mesh, only: block_zones, cartesian, cylindrical, first_guard, last_guard, mesh_t, v_dens, v_ener, v_momx, v_momz
    use ember_testing, only: expect, failures, next_random
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: r8
    use pw_pages, only: pages_begin, pages_none
    implicit none
    integer, parameter :: half = block_zones/2
    type(error_t) :: error
    integer :: dims, geometry

    call pages_begin(pages_none, error)
    call expect(.not. error%failed(), 'pages')
    do dims = 2, 3
        call slots(dims)
        call copies(dims)
        do geometry = cartesian, cylindrical
            if (dims == 3 .and. geometry == cylindrical) cycle
            call means(dims, geometry)
            call prolongation(dims, geometry)
        end do
        call mirror(dims)
        call shock(dims)
    end do
    if (failures > 0) error stop 'test_container: failures'

contains

    !> A mesh of one leaf at radius `corner` in units of its width, with three slots.
    subroutine make(mesh, dims, geometry, last, corner)
        type(mesh_t), intent(out) :: mesh
        integer, intent(in) :: dims, geometry, corner
        logical, intent(in) :: last

        mesh%dims = dims
        mesh%geometry = geometry
        mesh%variable_last = last
        mesh%n_variables = 10
        mesh%n_species = 2
        call mesh%tree%start(dims, [1, 1, 1], [.false., .false., .false.], 0, error)
        mesh%lower = [real(corner, r8), 0.0_r8, 0.0_r8]
        mesh%upper = mesh%lower + 1.0_r8
        call container_create(mesh, 3*block_bytes(mesh) + 7, pages_none, error)
        call expect(.not. error%failed(), 'container_create')
        call container_touch(mesh)
    end subroutine make

    subroutine discard(mesh)
        type(mesh_t), intent(inout) :: mesh

        call container_free(mesh, error)
        call expect(.not. error%failed(), 'container_free')
    end subroutine discard

    !> A box of a block with all its guard cells.
    function whole(mesh) result(box)
        type(mesh_t), intent(in) :: mesh
        integer :: box(2, 3)

        box(:, :2) = spread([first_guard, last_guard], 2, 2)
        box(:, 3) = [mesh%first_k(), mesh%last_k()]
    end function whole

    !> Set all zones of a slot to random numbers in 1..2, energies to larger ones.
    subroutine set_random(mesh, slot, values)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot
        real(r8), allocatable, intent(out) :: values(:, :, :, :)
        integer :: i, j, k, v

        allocate (values(mesh%n_variables, first_guard:last_guard, first_guard:last_guard, mesh%first_k():mesh%last_k()))
        do k = mesh%first_k(), mesh%last_k()
            do j = first_guard, last_guard
                do i = first_guard, last_guard
                    do v = 1, mesh%n_variables
                        values(v, i, j, k) = 1.0_r8 + next_random()
                    end do
                    values(v_ener, i, j, k) = 100.0_r8*values(v_ener, i, j, k)
                end do
            end do
        end do
        call set(mesh, slot, values)
    end subroutine set_random

    !> Set and get a slot zone by zone, the simplest way.
    subroutine set(mesh, slot, values)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot
        real(r8), allocatable, intent(in) :: values(:, :, :, :)
        integer :: v

        do v = 1, mesh%n_variables
            if (mesh%variable_last) then
                mesh%soa(:, :, :, v, slot) = values(v, :, :, :)
            else
                mesh%aos(v, :, :, :, slot) = values(v, :, :, :)
            end if
        end do
    end subroutine set

    subroutine get(mesh, slot, values)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot
        real(r8), allocatable, intent(out) :: values(:, :, :, :)
        integer :: v

        allocate (values(mesh%n_variables, first_guard:last_guard, first_guard:last_guard, mesh%first_k():mesh%last_k()))
        do v = 1, mesh%n_variables
            if (mesh%variable_last) then
                values(v, :, :, :) = mesh%soa(:, :, :, v, slot)
            else
                values(v, :, :, :) = mesh%aos(v, :, :, :, slot)
            end if
        end do
    end subroutine get

    subroutine slots(dims)
        integer, intent(in) :: dims
        type(mesh_t) :: mesh
        integer :: last, slot, i

        mesh%dims = dims
        call container_create(mesh, block_bytes(mesh) - 1, pages_none, error)
        call expect(error%code == exit_usage, 'a container too small for a block')
        if (error%failed()) call expect(index(error%remedy, '--memory') > 0, 'the remedy names --memory')
        error = error_t()
        do last = 0, 1
            call make(mesh, dims, cartesian, last == 1, 0)
            call expect(block_bytes(mesh) == 8*10*merge(8000, 400, dims == 3), 'bytes of a block')
            call expect(mesh%capacity == 3 .and. mesh%n_free == 3, 'slots')
            do i = 1, 3
                slot = mesh%take_slot()
                call expect(slot == i, 'slots are taken in order')
            end do
            slot = mesh%take_slot()
            call expect(slot == 0, 'no more slots')
            call expect(associated(mesh%soa) .eqv. last == 1, 'layout soa')
            call expect(associated(mesh%aos) .eqv. last == 0, 'the studies'' layout')
            if (last == 1) then
                call expect(all(lbound(mesh%soa) == [-1, -1, mesh%first_k(), 1, 1]), 'lower bounds')
                call expect(all(ubound(mesh%soa) == [18, 18, mesh%last_k(), 10, 3]), 'upper bounds')
                call expect(all(abs(mesh%soa) <= 0.0_r8), 'zero')
            else
                call expect(all(lbound(mesh%aos) == [1, -1, -1, mesh%first_k(), 1]), 'lower bounds')
                call expect(all(ubound(mesh%aos) == [10, 18, 18, mesh%last_k(), 3]), 'upper bounds')
                call expect(all(abs(mesh%aos) <= 0.0_r8), 'zero')
            end if
            call discard(mesh)
            call expect(.not. associated(mesh%aos) .and. .not. associated(mesh%soa), 'freed')
        end do
    end subroutine slots

    subroutine copies(dims)
        integer, intent(in) :: dims
        type(mesh_t) :: mesh
        real(r8), allocatable :: a(:, :, :, :), b(:, :, :, :), got(:, :, :, :), buffer(:), inside(:, :, :, :)
        integer :: last, round, d, length, from(2, 3), to(2, 3), full(2, 3), i, j, k, p

        do last = 0, 1
            call make(mesh, dims, cartesian, last == 1, 0)
            call set_random(mesh, 1, a)
            call set_random(mesh, 2, b)
            full = whole(mesh)
            do round = 1, 60
                from = 1
                to = 1
                do d = 1, dims
                    length = 1 + int(next_random()*merge(3, 20, next_random() < 0.5_r8))
                    from(1, d) = first_guard + int(next_random()*(21 - length))
                    to(1, d) = first_guard + int(next_random()*(21 - length))
                    from(2, d) = from(1, d) + length - 1
                    to(2, d) = to(1, d) + length - 1
                end do
                call copy_box(mesh, 1, from, 2, to)
                b(:, to(1, 1):to(2, 1), to(1, 2):to(2, 2), to(1, 3):to(2, 3)) = &
                    a(:, from(1, 1):from(2, 1), from(1, 2):from(2, 2), from(1, 3):from(2, 3))
                call get(mesh, 2, got)
                call expect(same(got, b), 'copy_box')

                buffer = [(-1.0_r8, i=1, mesh%n_variables*product(from(2, :) - from(1, :) + 1))]
                call pack_box(mesh, 2, from, buffer)
                p = 0
                do k = from(1, 3), from(2, 3)
                    do j = from(1, 2), from(2, 2)
                        do i = from(1, 1), from(2, 1)
                            call expect(all(abs(buffer(p + 1:p + 10) - b(:, i, j, k)) <= 0.0_r8), 'pack_box')
                            p = p + 10
                        end do
                    end do
                end do
                call unpack_box(mesh, 1, to, buffer)
                a(:, to(1, 1):to(2, 1), to(1, 2):to(2, 2), to(1, 3):to(2, 3)) = &
                    b(:, from(1, 1):from(2, 1), from(1, 2):from(2, 2), from(1, 3):from(2, 3))
                call get(mesh, 1, got)
                call expect(same(got, a), 'unpack_box')
            end do
            ! Within one slot, as in a periodic domain of one block.
            from = full
            to = full
            from(:, 1) = [15, 16]
            to(:, 1) = [-1, 0]
            call copy_box(mesh, 1, from, 1, to)
            a(:, -1:0, :, :) = a(:, 15:16, :, :)
            call get(mesh, 1, got)
            call expect(same(got, a), 'copy_box within a slot')

            allocate (inside(10, 16, 16, merge(16, 1, dims == 3)))
            call load_interior(mesh, 1, inside)
            call expect(same(inside, a(:, 1:16, 1:16, 1:size(inside, 4))), 'load_interior')
            inside = inside + 1.0_r8
            call store_interior(mesh, 2, inside)
            b(:, 1:16, 1:16, 1:size(inside, 4)) = inside
            call get(mesh, 2, got)
            call expect(same(got, b), 'store_interior')
            deallocate (inside)
            call discard(mesh)
        end do
    end subroutine copies

    !> Restriction against sums over zones and volumes; equal in both layouts.
    subroutine means(dims, geometry)
        integer, intent(in) :: dims, geometry
        type(mesh_t) :: mesh
        real(r8), allocatable :: a(:, :, :, :), buffer(:), other(:)
        real(r8) :: volume(first_guard:last_guard), mean, weight
        integer :: last, box(2, 3), i, j, k, v, p, x, y, z

        box(:, 1) = [2, 7]
        box(:, 2) = [1, 5]
        box(:, 3) = merge([3, 8], [1, 1], dims == 3)
        do last = 0, 1
            call make(mesh, dims, geometry, last == 1, 0)
            if (last == 0) call set_random(mesh, 1, a)
            call set(mesh, 1, a)
            volume = mesh%zone_volumes(1)
            allocate (buffer(mesh%n_variables*product(box(2, :) - box(1, :) + 1)))
            call restrict_box(mesh, 1, volume, box, buffer)
            p = 0
            do k = box(1, 3), box(2, 3)
                do j = box(1, 2), box(2, 2)
                    do i = box(1, 1), box(2, 1)
                        do v = 1, mesh%n_variables
                            mean = 0.0_r8
                            weight = 0.0_r8
                            do z = merge(2*k - 1, 1, dims == 3), merge(2*k, 1, dims == 3)
                                do y = 2*j - 1, 2*j
                                    do x = 2*i - 1, 2*i
                                        mean = mean + volume(x)*a(v, x, y, z)
                                        weight = weight + volume(x)
                                    end do
                                end do
                            end do
                            p = p + 1
                            call expect(near(buffer(p), mean/weight), 'restrict_box')
                        end do
                    end do
                end do
            end do
            if (last == 0) then
                allocate (other, source=buffer)
            else
                call expect(all(abs(buffer - other) <= 0.0_r8), 'restrict_box in both layouts')
            end if
            deallocate (buffer)
            call discard(mesh)
        end do
    end subroutine means

    !> Coarse random zones in slot 1 prolong to means that are the coarse values, within the range of their neighbours; a
    !> linear function stays linear. In cylindrical geometry the coarse mesh is at radius 0 and at larger radii.
    subroutine prolongation(dims, geometry)
        integer, intent(in) :: dims, geometry
        type(mesh_t) :: mesh
        real(r8), allocatable :: a(:, :, :, :), fine(:, :, :, :), other(:, :, :, :)
        real(r8) :: volume(first_guard:last_guard), mean, weight, low, high
        integer :: last, corner, linear, coarse(2, 3), to(2, 3), i, j, k, v, x, y, z, h

        do corner = 0, 3, 3
            do linear = 0, 1
                do last = 0, 1
                    call make(mesh, dims, geometry, last == 1, corner)
                    volume = mesh%zone_volumes(1)
                    to(:, 1:2) = spread([1, 16], 2, 2)
                    to(:, 3) = merge([-1, 6], [1, 1], dims == 3)
                    coarse(:, 1) = [9, 16]
                    coarse(:, 2) = [2, 9]
                    coarse(:, 3) = merge([4, 7], [1, 1], dims == 3)
                    if (last == 0) then
                        call set_random(mesh, 1, a)
                        if (linear == 1) then
                            do k = lbound(a, 4), ubound(a, 4)
                                do j = first_guard, last_guard
                                    do i = first_guard, last_guard
                                        ! The coarse zone at index 9 covers the fine ones 1 and 2.
                                        a(:, i, j, k) = line(mesh, corner, 2*(i - 9) + 1.5_r8, 2*(j - 2) + 1.5_r8, &
                                                             2*(k - 4) - 0.5_r8, 2)
                                    end do
                                end do
                            end do
                        end if
                    end if
                    call set(mesh, 1, a)
                    call prolong(mesh, coarse, to)
                    call get(mesh, 2, fine)
                    do k = coarse(1, 3), coarse(2, 3)
                        z = merge(to(1, 3) + 2*(k - coarse(1, 3)), 1, dims == 3)
                        h = merge(z + 1, 1, dims == 3)
                        do j = coarse(1, 2), coarse(2, 2)
                            y = to(1, 2) + 2*(j - coarse(1, 2))
                            do i = coarse(1, 1), coarse(2, 1)
                                x = to(1, 1) + 2*(i - coarse(1, 1))
                                weight = (volume(x) + volume(x + 1))*2*(h - z + 1)
                                do v = 1, mesh%n_variables
                                    mean = (sum(fine(v, x, y:y + 1, z:h))*volume(x) &
                                            + sum(fine(v, x + 1, y:y + 1, z:h))*volume(x + 1))/weight
                                    call expect(near(mean, a(v, i, j, k)), 'children have the mean of their parent')
                                    low = min(minval(a(v, i - 1:i + 1, j, k)), minval(a(v, i, j - 1:j + 1, k)))
                                    high = max(maxval(a(v, i - 1:i + 1, j, k)), maxval(a(v, i, j - 1:j + 1, k)))
                                    if (dims == 3) low = min(low, minval(a(v, i, j, k - 1:k + 1)))
                                    if (dims == 3) high = max(high, maxval(a(v, i, j, k - 1:k + 1)))
                                    associate (children => fine(v, x:x + 1, y:y + 1, z:h))
                                        call expect(minval(children) >= low - 1.0e-13_r8*abs(low) .and. &
                                                    maxval(children) <= high + 1.0e-13_r8*abs(high), 'children stay within bounds')
                                    end associate
                                end do
                            end do
                        end do
                    end do
                    if (linear == 1) then
                        do k = to(1, 3), to(2, 3)
                            do j = to(1, 2), to(2, 2)
                                do i = to(1, 1), to(2, 1)
                                    ! The function differs beyond the axis.
                                    if (geometry == cylindrical .and. corner == 0 .and. i <= 2) cycle
                                    call expect(all(near(fine(:, i, j, k), line(mesh, corner, real(i, r8), real(j, r8), &
                                                                                real(k, r8), 1))), 'a linear function stays linear')
                                end do
                            end do
                        end do
                    end if
                    if (last == 0) then
                        if (allocated(other)) deallocate (other)
                        allocate (other, source=fine)
                    else
                        call expect(same(fine, other), 'prolong_star in both layouts')
                    end if
                    call discard(mesh)
                end do
            end do
        end do
    end subroutine prolongation

    !> Prolong the box `coarse` of slot 1 to the box `to` of slot 2.
    subroutine prolong(mesh, coarse, to)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: coarse(2, 3), to(2, 3)
        real(r8), allocatable :: star(:)

        allocate (star(star_size(mesh, coarse)))
        call pack_star(mesh, 1, coarse, star)
        call prolong_star(mesh, star, mesh%zone_volumes(1), 2, to)
    end subroutine prolong

    !> Linear functions, one per variable, at the centroid of a zone about (i, j, k) that is `width` zones of the mesh wide,
    !> in units of zones.
    function line(mesh, corner, i, j, k, width)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: corner, width
        real(r8), intent(in) :: i, j, k
        real(r8) :: line(mesh%n_variables), r
        integer :: v

        r = 16*corner + i - 0.5_r8
        if (mesh%geometry == cylindrical) r = r + width**2/(12.0_r8*r)
        line = [(100.0_r8 + (v - 4)*r/3 + (3 - v)*j/2, v=1, mesh%n_variables)]
        if (mesh%dims == 3) line = line + [(0.375_r8*(v - 5)*k, v=1, mesh%n_variables)]
        line(v_momx:v_momz) = 0.01_r8*line(v_momx:v_momz)
        line(v_ener) = 10.0_r8*line(v_ener)
    end function line

    !> Mirrored zones have mirrored children and means, to the last bit.
    subroutine mirror(dims)
        integer, intent(in) :: dims
        type(mesh_t) :: mesh
        real(r8), allocatable :: a(:, :, :, :), b(:, :, :, :), fine(:, :, :, :), mirrored(:, :, :, :), means(:, :, :, :)
        real(r8), allocatable :: flipped(:, :, :, :)
        integer :: d, coarse(2, 3), to(2, 3)

        call make(mesh, dims, cartesian, .false., 0)
        call set_random(mesh, 1, a)
        coarse = 1
        coarse(:, :dims) = spread([5, 12], 2, dims)
        to = 1
        to(:, :dims) = spread([1, 16], 2, dims)
        call prolong(mesh, coarse, to)
        call get(mesh, 2, fine)
        call get_means(mesh, means)
        allocate (b, source=a)
        allocate (flipped, source=means)
        do d = 1, dims
            b = a
            call flip(b, d)
            call set(mesh, 1, b)
            call prolong(mesh, coarse, to)
            call get(mesh, 2, mirrored)
            b = fine
            call flip(b, d)
            call expect(same(b(:, 1:16, 1:16, 1:to(2, 3)), mirrored(:, 1:16, 1:16, 1:to(2, 3))), &
                        'prolongation keeps mirror symmetry')
            flipped = means
            call flip(flipped, d)
            call get_means(mesh, mirrored)
            call expect(same(flipped, mirrored), 'means keep mirror symmetry')
        end do
        call discard(mesh)
    end subroutine mirror

    !> All means of slot 1.
    subroutine get_means(mesh, means)
        type(mesh_t), intent(in) :: mesh
        real(r8), allocatable, intent(out) :: means(:, :, :, :)
        real(r8), allocatable :: buffer(:)
        integer :: box(2, 3)

        box = 1
        box(2, :mesh%dims) = half
        allocate (buffer(mesh%n_variables*product(box(2, :))))
        call restrict_box(mesh, 1, mesh%zone_volumes(1), box, buffer)
        allocate (means(mesh%n_variables, box(2, 1), box(2, 2), box(2, 3)))
        means = reshape(buffer, shape(means))
    end subroutine get_means

    !> Mirror `a` in direction `d`.
    subroutine flip(a, d)
        real(r8), intent(inout) :: a(:, :, :, :)
        integer, intent(in) :: d

        select case (d)
        case (1)
            a = a(:, size(a, 2):1:-1, :, :)
        case (2)
            a = a(:, :, size(a, 3):1:-1, :)
        case (3)
            a = a(:, :, :, size(a, 4):1:-1)
        end select
    end subroutine flip

    !> Children of zones in a fast cold flow with strong jumps keep positive internal energies and densities.
    subroutine shock(dims)
        integer, intent(in) :: dims
        type(mesh_t) :: mesh
        real(r8), allocatable :: a(:, :, :, :), fine(:, :, :, :)
        integer :: coarse(2, 3), to(2, 3), i, j, k

        call make(mesh, dims, cartesian, .false., 0)
        call set_random(mesh, 1, a)
        do k = lbound(a, 4), ubound(a, 4)
            do j = first_guard, last_guard
                do i = first_guard, last_guard
                    a(v_dens, i, j, k) = 10.0_r8**(4.0_r8*next_random() - 2.0_r8)
                    a(v_momx:v_momz, i, j, k) = a(v_dens, i, j, k)*(20.0_r8*[next_random(), next_random(), next_random()] - 10.0_r8)
                    a(v_ener, i, j, k) = 10.0_r8**(4.0_r8*next_random() - 3.0_r8) &
                                         + 0.5_r8*sum(a(v_momx:v_momz, i, j, k)**2)/a(v_dens, i, j, k)
                end do
            end do
        end do
        call set(mesh, 1, a)
        coarse = 1
        coarse(:, :dims) = spread([5, 12], 2, dims)
        to = 1
        to(:, :dims) = spread([1, 16], 2, dims)
        call prolong(mesh, coarse, to)
        call get(mesh, 2, fine)
        do k = 1, to(2, 3)
            do j = 1, 16
                do i = 1, 16
                    associate (u => fine(:, i, j, k))
                        call expect(u(v_dens) > 0.0_r8, 'density of a child')
                        call expect(u(v_ener) > 0.5_r8*sum(u(v_momx:v_momz)**2)/u(v_dens), 'internal energy of a child')
                    end associate
                end do
            end do
        end do
        call discard(mesh)
    end subroutine shock

    !> Whether all numbers are equal.
    logical function same(a, b)
        real(r8), intent(in) :: a(:, :, :, :), b(:, :, :, :)

        same = all(abs(a - b) <= 0.0_r8)
    end function same

    !> Whether two numbers are equal to round-off.
    elemental logical function near(a, b)
        real(r8), intent(in) :: a, b

        near = abs(a - b) <= 1.0e-13_r8*max(abs(a), abs(b), 1.0_r8)
    end function near

end program test_container
