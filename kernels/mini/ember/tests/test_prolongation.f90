!> The transfer of zones between levels. Restriction: means over pairs of zones. Prolongation: conservation, linear functions,
!> bounds, positive energies. Both: symmetry under mirroring, the same numbers in both layouts.
program test_prolongation
    use ember_mesh, only: cartesian, cylindrical, mesh_t, v_dens, v_ener, v_momx, v_momz
    use ember_prolongation, only: pack_star, prolong_star, star_size
    use ember_restriction, only: restrict_box
    use ember_test_meshes, only: discard
    use ember_test_slots, only: get_slot, make_leaf, same_zones, set_random, set_slot
    use ember_testing, only: expect, failures, near, next_random, start_pages
    use pw_kinds, only: r8
    implicit none
    integer :: dims, geometry, corner

    call start_pages()
    do dims = 2, 3
        do geometry = cartesian, cylindrical
            if (dims == 3 .and. geometry == cylindrical) cycle
            call means(dims, geometry)
            ! In cylindrical geometry at the axis and at larger radii.
            do corner = 0, 3, 3
                call prolongation(dims, geometry, corner, linear=.false.)
                call prolongation(dims, geometry, corner, linear=.true.)
            end do
        end do
        call mirror(dims)
        call shock(dims)
    end do
    if (failures > 0) error stop 'test_prolongation: failures'

contains

    !> Restriction against sums over zones and volumes; equal in both layouts.
    subroutine means(dims, geometry)
        integer, intent(in) :: dims, geometry
        type(mesh_t) :: mesh
        real(r8), allocatable :: a(:, :, :, :), buffer(:), other(:), volume(:)
        real(r8) :: mean, weight
        integer :: last, box(2, 3), i, j, k, v, p, x, y, z

        box(:, 1) = [2, 7]
        box(:, 2) = [1, 5]
        box(:, 3) = merge([3, 8], [1, 1], dims == 3)
        do last = 0, 1
            call make_leaf(mesh, dims, geometry, last == 1, 0)
            if (last == 0) call set_random(mesh, 1, a)
            call set_slot(mesh, 1, a)
            allocate (volume(mesh%first:mesh%last), source=mesh%zone_volumes(1))
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
            deallocate (buffer, volume)
            call discard(mesh)
        end do
    end subroutine means

    !> Coarse random zones in slot 1 prolong to means that are the coarse values, within the range of their neighbours; a
    !> linear function stays linear.
    subroutine prolongation(dims, geometry, corner, linear)
        integer, intent(in) :: dims, geometry, corner
        logical, intent(in) :: linear
        type(mesh_t) :: mesh
        real(r8), allocatable :: a(:, :, :, :), fine(:, :, :, :), other(:, :, :, :)
        integer :: last, coarse(2, 3), to(2, 3), i, j, k

        to(:, 1:2) = spread([1, 16], 2, 2)
        to(:, 3) = merge([-1, 6], [1, 1], dims == 3)
        coarse(:, 1) = [9, 16]
        coarse(:, 2) = [2, 9]
        coarse(:, 3) = merge([4, 7], [1, 1], dims == 3)
        do last = 0, 1
            call make_leaf(mesh, dims, geometry, last == 1, corner)
            if (last == 0) then
                call set_random(mesh, 1, a)
                if (linear) then
                    do k = lbound(a, 4), ubound(a, 4)
                        do j = mesh%first, mesh%last
                            do i = mesh%first, mesh%last
                                ! The coarse zone at index 9 covers the fine ones 1 and 2.
                                a(:, i, j, k) = line(mesh, corner, 2*(i - 9) + 1.5_r8, 2*(j - 2) + 1.5_r8, 2*(k - 4) - 0.5_r8, 2)
                            end do
                        end do
                    end do
                end if
            end if
            call set_slot(mesh, 1, a)
            call prolong(mesh, coarse, to)
            call get_slot(mesh, 2, fine)
            call compare_parents(mesh, a, coarse, fine, to)
            if (linear) call compare_line(mesh, corner, fine, to)
            if (last == 0) then
                allocate (other, source=fine)
            else
                call expect(same_zones(fine, other), 'prolong_star in both layouts')
            end if
            call discard(mesh)
        end do
    end subroutine prolongation

    !> Children in `fine` against their parents in `a`: means and bounds.
    subroutine compare_parents(mesh, a, coarse, fine, to)
        type(mesh_t), intent(in) :: mesh
        real(r8), allocatable, intent(in) :: a(:, :, :, :), fine(:, :, :, :)
        integer, intent(in) :: coarse(2, 3), to(2, 3)
        real(r8) :: volume(mesh%first:mesh%last), mean, weight, low, high
        integer :: i, j, k, v, x, y, z, h

        volume = mesh%zone_volumes(1)
        do k = coarse(1, 3), coarse(2, 3)
            z = merge(to(1, 3) + 2*(k - coarse(1, 3)), 1, mesh%dims == 3)
            h = merge(z + 1, 1, mesh%dims == 3)
            do j = coarse(1, 2), coarse(2, 2)
                y = to(1, 2) + 2*(j - coarse(1, 2))
                do i = coarse(1, 1), coarse(2, 1)
                    x = to(1, 1) + 2*(i - coarse(1, 1))
                    weight = (volume(x) + volume(x + 1))*2*(h - z + 1)
                    do v = 1, mesh%n_variables
                        mean = (sum(fine(v, x, y:y + 1, z:h))*volume(x) + sum(fine(v, x + 1, y:y + 1, z:h))*volume(x + 1))/weight
                        call expect(near(mean, a(v, i, j, k)), 'children have the mean of their parent')
                        low = min(minval(a(v, i - 1:i + 1, j, k)), minval(a(v, i, j - 1:j + 1, k)))
                        high = max(maxval(a(v, i - 1:i + 1, j, k)), maxval(a(v, i, j - 1:j + 1, k)))
                        if (mesh%dims == 3) low = min(low, minval(a(v, i, j, k - 1:k + 1)))
                        if (mesh%dims == 3) high = max(high, maxval(a(v, i, j, k - 1:k + 1)))
                        associate (children => fine(v, x:x + 1, y:y + 1, z:h))
                            call expect(minval(children) >= low - 1.0e-13_r8*abs(low) .and. &
                                        maxval(children) <= high + 1.0e-13_r8*abs(high), 'children stay within bounds')
                        end associate
                    end do
                end do
            end do
        end do
    end subroutine compare_parents

    !> Children of a linear function against it.
    subroutine compare_line(mesh, corner, fine, to)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: corner, to(2, 3)
        real(r8), allocatable, intent(in) :: fine(:, :, :, :)
        integer :: i, j, k

        do k = to(1, 3), to(2, 3)
            do j = to(1, 2), to(2, 2)
                do i = to(1, 1), to(2, 1)
                    ! The function differs beyond the axis.
                    if (mesh%geometry == cylindrical .and. corner == 0 .and. i <= 2) cycle
                    call expect(all(near(fine(:, i, j, k), line(mesh, corner, real(i, r8), real(j, r8), real(k, r8), 1))), &
                                'a linear function stays linear')
                end do
            end do
        end do
    end subroutine compare_line

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

        call make_leaf(mesh, dims, cartesian, .false., 0)
        call set_random(mesh, 1, a)
        coarse = 1
        coarse(:, :dims) = spread([5, 12], 2, dims)
        to = 1
        to(:, :dims) = spread([1, 16], 2, dims)
        call prolong(mesh, coarse, to)
        call get_slot(mesh, 2, fine)
        call get_means(mesh, means)
        allocate (b, source=a)
        allocate (flipped, source=means)
        do d = 1, dims
            b = a
            call flip(b, d)
            call set_slot(mesh, 1, b)
            call prolong(mesh, coarse, to)
            call get_slot(mesh, 2, mirrored)
            b = fine
            call flip(b, d)
            call expect(same_zones(b(:, 1:16, 1:16, 1:to(2, 3)), mirrored(:, 1:16, 1:16, 1:to(2, 3))), &
                        'prolongation keeps mirror symmetry')
            flipped = means
            call flip(flipped, d)
            call get_means(mesh, mirrored)
            call expect(same_zones(flipped, mirrored), 'means keep mirror symmetry')
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
        box(2, :mesh%dims) = mesh%block/2
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

        call make_leaf(mesh, dims, cartesian, .false., 0)
        call set_random(mesh, 1, a)
        do k = lbound(a, 4), ubound(a, 4)
            do j = mesh%first, mesh%last
                do i = mesh%first, mesh%last
                    a(v_dens, i, j, k) = 10.0_r8**(4.0_r8*next_random() - 2.0_r8)
                    a(v_momx:v_momz, i, j, k) = a(v_dens, i, j, k)*(20.0_r8*[next_random(), next_random(), next_random()] - 10.0_r8)
                    a(v_ener, i, j, k) = 10.0_r8**(4.0_r8*next_random() - 3.0_r8) &
                                         + 0.5_r8*sum(a(v_momx:v_momz, i, j, k)**2)/a(v_dens, i, j, k)
                end do
            end do
        end do
        call set_slot(mesh, 1, a)
        coarse = 1
        coarse(:, :dims) = spread([5, 12], 2, dims)
        to = 1
        to(:, :dims) = spread([1, 16], 2, dims)
        call prolong(mesh, coarse, to)
        call get_slot(mesh, 2, fine)
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

end program test_prolongation
