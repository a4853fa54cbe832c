!> The container of all blocks, on pages of a chosen kind, and procedures that move zones between blocks and buffers.
!>
!> A box is box(2, 3): the first and the last index in each direction, guard cells included if needed; in 2-d its third
!> direction is 1:1. Buffers hold zones with the variable fastest, then i, j, k, in either layout.
!>
!> A star is the input of prolongation: the zones of a box of coarse zones, and those directly beyond it that share a face
!> with it. In a buffer its rows of i follow one another by j and k: those of the box have one zone more on each end.
module ember_container
    use, intrinsic :: iso_c_binding, only: c_f_pointer
    use ember_mesh, only: block_zones, cylindrical, first_guard, first_species, guard_zones, last_guard, mesh_t, v_dens, &
        v_ener, v_momx, v_momz
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_allocate, pages_free, pages_policy_t
    use pw_text, only: bytes_to_text
    implicit none
    private

    integer, parameter :: extent = block_zones + 2*guard_zones

    integer, parameter :: short = 3   !< rows of up to this many zones are too short for a separate loop

    !> Children whose internal energy falls below this share of their parent's take the parent's state unchanged.
    real(r8), parameter :: least_energy = 0.1_r8

    public :: container_create, container_touch, container_free, block_bytes
    public :: copy_box, pack_box, unpack_box, restrict_box, restrict_to
    public :: star_size, pack_star, prolong_star
    public :: load_interior, store_interior

contains

    !> Bytes of a block with its guard cells.
    pure integer(i8) function block_bytes(mesh)
        type(mesh_t), intent(in) :: mesh

        block_bytes = int(mesh%n_variables, i8)*extent**2*(mesh%last_k() - mesh%first_k() + 1)*(storage_size(1.0_r8)/8)
    end function block_bytes

    !> Map a container of at most `bytes` [B] by `policy`, untouched: sets capacity, memory, aos or soa, and all slots free.
    !> Exit codes: 2 if not even one block fits; those of pages_allocate.
    subroutine container_create(mesh, bytes, policy, error)
        type(mesh_t), intent(inout) :: mesh
        integer(i8), intent(in) :: bytes
        type(pages_policy_t), intent(in) :: policy
        type(error_t), intent(inout) :: error
        real(r8), pointer, contiguous :: values(:)
        integer(i8) :: n_slots, n_values
        integer :: i

        n_slots = min(bytes/block_bytes(mesh), int(huge(1), i8))
        if (n_slots < 1) then
            call error%raise(exit_usage, bytes_to_text(bytes)//' are too little for a block, which needs '// &
                             bytes_to_text(block_bytes(mesh)), 'container_create', 'use more --memory')
            return
        end if
        call pages_allocate(mesh%memory, policy, 'blocks', n_slots*block_bytes(mesh), 0_i8, error)
        if (error%failed()) return
        n_values = mesh%memory%bytes/(storage_size(1.0_r8)/8)
        call c_f_pointer(mesh%memory%address, values, [n_values])
        nullify (mesh%aos, mesh%soa)
        if (mesh%variable_last) then
            mesh%soa(first_guard:last_guard, first_guard:last_guard, mesh%first_k():mesh%last_k(), 1:mesh%n_variables, 1:n_slots) &
                => values
        else
            mesh%aos(1:mesh%n_variables, first_guard:last_guard, first_guard:last_guard, mesh%first_k():mesh%last_k(), 1:n_slots) &
                => values
        end if
        mesh%capacity = int(n_slots)
        mesh%n_free = mesh%capacity
        mesh%free = [(mesh%capacity - i, i=0, mesh%capacity - 1)]
    end subroutine container_create

    !> First touch: all values are zeroed, equal ranges of slots per thread.
    subroutine container_touch(mesh)
        type(mesh_t), intent(inout) :: mesh
        integer :: slot

        !$omp parallel do schedule(static)
        do slot = 1, mesh%capacity
            if (mesh%variable_last) then
                mesh%soa(:, :, :, :, slot) = 0.0_r8
            else
                mesh%aos(:, :, :, :, slot) = 0.0_r8
            end if
        end do
    end subroutine container_touch

    !> Unmap the container. Exit code 4 if the system refuses.
    subroutine container_free(mesh, error)
        type(mesh_t), intent(inout) :: mesh
        type(error_t), intent(inout) :: error

        nullify (mesh%aos, mesh%soa)
        mesh%capacity = 0
        mesh%n_free = 0
        call pages_free(mesh%memory, error)
    end subroutine container_free

    !> Copy `from_box` of slot `from` to `to_box` of slot `to`; the boxes have the same shape, and do not overlap if the
    !> slots are the same.
    subroutine copy_box(mesh, from, from_box, to, to_box)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: from, from_box(2, 3), to, to_box(2, 3)
        real(r8), pointer, contiguous :: source(:, :, :, :), destination(:, :, :, :)
        integer :: k

        k = mesh%first_k()
        if (mesh%variable_last) then
            source => mesh%soa(:, :, :, :, from)
            destination => mesh%soa(:, :, :, :, to)
            call copy_rows(source, from_box, destination, to_box, 1, mesh%n_variables, k, mesh%last_k())
        else
            source => mesh%aos(:, :, :, :, from)
            destination => mesh%aos(:, :, :, :, to)
            call copy_rows(source, from_box, destination, to_box, mesh%n_variables, 1, k, mesh%last_k())
        end if
    end subroutine copy_box

    !> Copy rows of i: `width` values per zone are contiguous, in `n_planes` arrays of such zones.
    pure subroutine copy_rows(from, from_box, to, to_box, width, n_planes, k_first, k_last)
        integer, intent(in) :: from_box(2, 3), to_box(2, 3), width, n_planes, k_first, k_last
        real(r8), intent(in) :: from(width*extent, first_guard:last_guard, k_first:k_last, n_planes)
        real(r8), intent(inout) :: to(width*extent, first_guard:last_guard, k_first:k_last, n_planes)
        integer :: a, b, n, j, k, v, dj, dk

        a = width*(from_box(1, 1) - first_guard)
        b = width*(to_box(1, 1) - first_guard)
        n = width*(to_box(2, 1) - to_box(1, 1) + 1)
        dj = from_box(1, 2) - to_box(1, 2)
        dk = from_box(1, 3) - to_box(1, 3)
        do v = 1, n_planes
            do k = to_box(1, 3), to_box(2, 3)
                if (n == guard_zones) then
                    ! The row is too short for a separate loop.
                    do j = to_box(1, 2), to_box(2, 2)
                        to(b + 1:b + guard_zones, j, k, v) = from(a + 1:a + guard_zones, j + dj, k + dk, v)
                    end do
                else
                    do j = to_box(1, 2), to_box(2, 2)
                        to(b + 1:b + n, j, k, v) = from(a + 1:a + n, j + dj, k + dk, v)
                    end do
                end if
            end do
        end do
    end subroutine copy_rows

    !> Copy `box` of slot `from` to the start of `buffer`.
    subroutine pack_box(mesh, from, box, buffer)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: from, box(2, 3)
        real(r8), contiguous, intent(inout) :: buffer(:)
        real(r8), pointer, contiguous :: block(:, :, :, :)
        integer :: k

        k = mesh%first_k()
        if (mesh%variable_last) then
            block => mesh%soa(:, :, :, :, from)
            call pack_planes(block, box, mesh%n_variables, k, mesh%last_k(), buffer)
        else
            block => mesh%aos(:, :, :, :, from)
            call pack_rows(block, box, mesh%n_variables, k, mesh%last_k(), buffer)
        end if
    end subroutine pack_box

    pure subroutine pack_rows(zones, box, n_variables, k_first, k_last, buffer)
        integer, intent(in) :: box(2, 3), n_variables, k_first, k_last
        real(r8), intent(in) :: zones(n_variables*extent, first_guard:last_guard, k_first:k_last)
        real(r8), intent(inout) :: buffer(*)
        integer :: a, n, p, j, k

        a = n_variables*(box(1, 1) - first_guard)
        n = n_variables*(box(2, 1) - box(1, 1) + 1)
        p = 0
        do k = box(1, 3), box(2, 3)
            do j = box(1, 2), box(2, 2)
                buffer(p + 1:p + n) = zones(a + 1:a + n, j, k)
                p = p + n
            end do
        end do
    end subroutine pack_rows

    pure subroutine pack_planes(zones, box, n_variables, k_first, k_last, buffer)
        integer, intent(in) :: box(2, 3), n_variables, k_first, k_last
        real(r8), intent(in) :: zones(first_guard:last_guard, first_guard:last_guard, k_first:k_last, n_variables)
        real(r8), intent(inout) :: buffer(n_variables, box(1, 1):box(2, 1), box(1, 2):box(2, 2), box(1, 3):box(2, 3))
        integer :: i, j, k, v

        do k = box(1, 3), box(2, 3)
            if (box(2, 1) - box(1, 1) < short) then
                do v = 1, n_variables
                    do i = box(1, 1), box(2, 1)
                        do j = box(1, 2), box(2, 2)
                            buffer(v, i, j, k) = zones(i, j, k, v)
                        end do
                    end do
                end do
            else
                do j = box(1, 2), box(2, 2)
                    do v = 1, n_variables
                        do i = box(1, 1), box(2, 1)
                            buffer(v, i, j, k) = zones(i, j, k, v)
                        end do
                    end do
                end do
            end if
        end do
    end subroutine pack_planes

    !> Copy the start of `buffer` to `box` of slot `to`.
    subroutine unpack_box(mesh, to, box, buffer)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: to, box(2, 3)
        real(r8), contiguous, intent(in) :: buffer(:)
        real(r8), pointer, contiguous :: block(:, :, :, :)
        integer :: k

        k = mesh%first_k()
        if (mesh%variable_last) then
            block => mesh%soa(:, :, :, :, to)
            call unpack_planes(block, box, mesh%n_variables, k, mesh%last_k(), buffer)
        else
            block => mesh%aos(:, :, :, :, to)
            call unpack_rows(block, box, mesh%n_variables, k, mesh%last_k(), buffer)
        end if
    end subroutine unpack_box

    pure subroutine unpack_rows(zones, box, n_variables, k_first, k_last, buffer)
        integer, intent(in) :: box(2, 3), n_variables, k_first, k_last
        real(r8), intent(inout) :: zones(n_variables*extent, first_guard:last_guard, k_first:k_last)
        real(r8), intent(in) :: buffer(*)
        integer :: a, n, p, j, k

        a = n_variables*(box(1, 1) - first_guard)
        n = n_variables*(box(2, 1) - box(1, 1) + 1)
        p = 0
        do k = box(1, 3), box(2, 3)
            do j = box(1, 2), box(2, 2)
                zones(a + 1:a + n, j, k) = buffer(p + 1:p + n)
                p = p + n
            end do
        end do
    end subroutine unpack_rows

    pure subroutine unpack_planes(zones, box, n_variables, k_first, k_last, buffer)
        integer, intent(in) :: box(2, 3), n_variables, k_first, k_last
        real(r8), intent(inout) :: zones(first_guard:last_guard, first_guard:last_guard, k_first:k_last, n_variables)
        real(r8), intent(in) :: buffer(n_variables, box(1, 1):box(2, 1), box(1, 2):box(2, 2), box(1, 3):box(2, 3))
        integer :: i, j, k, v

        do k = box(1, 3), box(2, 3)
            if (box(2, 1) - box(1, 1) < short) then
                do v = 1, n_variables
                    do i = box(1, 1), box(2, 1)
                        do j = box(1, 2), box(2, 2)
                            zones(i, j, k, v) = buffer(v, i, j, k)
                        end do
                    end do
                end do
            else
                do j = box(1, 2), box(2, 2)
                    do v = 1, n_variables
                        do i = box(1, 1), box(2, 1)
                            zones(i, j, k, v) = buffer(v, i, j, k)
                        end do
                    end do
                end do
            end if
        end do
    end subroutine unpack_planes

    !> The means over pairs of zones in each direction of slot `from`, weighted by volume: `box` counts the means, from 1 to
    !> half a block's zones in each direction; `volume` (first_guard:last_guard) is that of the leaf's zones
    !> (mesh%zone_volumes). The sums go by pairs, so that a mirrored block has mirrored means to the last bit.
    subroutine restrict_box(mesh, from, volume, box, buffer)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: from, box(2, 3)
        real(r8), intent(in) :: volume(first_guard:last_guard)
        real(r8), contiguous, intent(inout) :: buffer(:)
        integer :: n(3), stride(4)

        n = box(2, :) - box(1, :) + 1
        stride(1) = 1
        stride(2) = mesh%n_variables
        stride(3) = stride(2)*n(1)
        stride(4) = stride(3)*n(2)
        call restrict_any(mesh, from, volume, box, buffer, -sum(stride(2:)*box(1, :)), stride)
    end subroutine restrict_box

    !> The same means into `to_box` of slot `to`.
    subroutine restrict_to(mesh, from, volume, box, to, to_box)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: from, box(2, 3), to, to_box(2, 3)
        real(r8), intent(in) :: volume(first_guard:last_guard)
        real(r8), pointer, contiguous :: block(:, :, :, :)
        integer :: stride(4), first(3)

        first = [first_guard, first_guard, mesh%first_k()]
        if (mesh%variable_last) then
            block => mesh%soa(:, :, :, :, to)
            stride = [extent**2*(mesh%last_k() - mesh%first_k() + 1), 1, extent, extent**2]
        else
            block => mesh%aos(:, :, :, :, to)
            stride = [1, mesh%n_variables, mesh%n_variables*extent, mesh%n_variables*extent**2]
        end if
        call restrict_any(mesh, from, volume, box, block, &
                          1 - stride(1) + sum(stride(2:)*(to_box(1, :) - first - box(1, :))), stride)
    end subroutine restrict_to

    !> Means of slot `from` to means(origin + dot_product(stride, [v, i, j, k])), of mean (i, j, k) in the count of `box`. With
    !> the variable first its stride is 1.
    subroutine restrict_any(mesh, from, volume, box, means, origin, stride)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: from, box(2, 3), origin, stride(4)
        real(r8), intent(in) :: volume(first_guard:last_guard)
        real(r8), intent(inout) :: means(*)
        real(r8) :: tilt(block_zones/2)
        real(r8), pointer, contiguous :: block(:, :, :, :)
        integer :: i, k

        do i = 1, block_zones/2
            tilt(i) = (volume(2*i) - volume(2*i - 1))/(volume(2*i) + volume(2*i - 1))
        end do
        k = mesh%first_k()
        if (mesh%variable_last) then
            block => mesh%soa(:, :, :, :, from)
            call restrict_planes(block, tilt, box, mesh%n_variables, k, mesh%last_k(), means, origin, stride)
        else
            block => mesh%aos(:, :, :, :, from)
            call restrict_rows(block, tilt, box, mesh%n_variables, k, mesh%last_k(), means, origin, stride)
        end if
    end subroutine restrict_any

    pure subroutine restrict_rows(zones, tilt, box, n_variables, k_first, k_last, means, origin, stride)
        integer, intent(in) :: box(2, 3), n_variables, k_first, k_last, origin, stride(4)
        real(r8), intent(in) :: zones(n_variables, first_guard:last_guard, first_guard:last_guard, k_first:k_last)
        real(r8), intent(in) :: tilt(block_zones/2)
        real(r8), intent(inout) :: means(*)
        real(r8) :: t
        integer :: i, j, k, v, f, g, h(2), p

        do k = box(1, 3), box(2, 3)
            h = pair_of(k, k_first == k_last)
            do j = box(1, 2), box(2, 2)
                g = 2*j - 1
                do i = box(1, 1), box(2, 1)
                    f = 2*i - 1
                    t = tilt(i)
                    p = origin + stride(2)*i + stride(3)*j + stride(4)*k
                    do v = 1, n_variables
                        means(p + v) = 0.125_r8*((pair(zones(v, f, g, h(1)), zones(v, f + 1, g, h(1)), t) &
                                                  + pair(zones(v, f, g + 1, h(1)), zones(v, f + 1, g + 1, h(1)), t)) &
                                                 + (pair(zones(v, f, g, h(2)), zones(v, f + 1, g, h(2)), t) &
                                                    + pair(zones(v, f, g + 1, h(2)), zones(v, f + 1, g + 1, h(2)), t)))
                    end do
                end do
            end do
        end do
    end subroutine restrict_rows

    pure subroutine restrict_planes(zones, tilt, box, n_variables, k_first, k_last, means, origin, stride)
        integer, intent(in) :: box(2, 3), n_variables, k_first, k_last, origin, stride(4)
        real(r8), intent(in) :: zones(first_guard:last_guard, first_guard:last_guard, k_first:k_last, n_variables)
        real(r8), intent(in) :: tilt(block_zones/2)
        real(r8), intent(inout) :: means(*)
        real(r8) :: t
        integer :: i, j, k, v, f, g, h(2), p

        do k = box(1, 3), box(2, 3)
            h = pair_of(k, k_first == k_last)
            do v = 1, n_variables
                if (box(2, 1) - box(1, 1) < short) then
                    do i = box(1, 1), box(2, 1)
                        f = 2*i - 1
                        t = tilt(i)
                        p = origin + stride(1)*v + stride(2)*i + stride(4)*k
                        do j = box(1, 2), box(2, 2)
                            g = 2*j - 1
                            means(p + stride(3)*j) = &
                                0.125_r8*((pair(zones(f, g, h(1), v), zones(f + 1, g, h(1), v), t) &
                                           + pair(zones(f, g + 1, h(1), v), zones(f + 1, g + 1, h(1), v), t)) &
                                          + (pair(zones(f, g, h(2), v), zones(f + 1, g, h(2), v), t) &
                                             + pair(zones(f, g + 1, h(2), v), zones(f + 1, g + 1, h(2), v), t)))
                        end do
                    end do
                else
                    do j = box(1, 2), box(2, 2)
                        g = 2*j - 1
                        p = origin + stride(1)*v + stride(3)*j + stride(4)*k
                        do i = box(1, 1), box(2, 1)
                            f = 2*i - 1
                            means(p + stride(2)*i) = &
                                0.125_r8*((pair(zones(f, g, h(1), v), zones(f + 1, g, h(1), v), tilt(i)) &
                                           + pair(zones(f, g + 1, h(1), v), zones(f + 1, g + 1, h(1), v), tilt(i))) &
                                          + (pair(zones(f, g, h(2), v), zones(f + 1, g, h(2), v), tilt(i)) &
                                             + pair(zones(f, g + 1, h(2), v), zones(f + 1, g + 1, h(2), v), tilt(i))))
                        end do
                    end do
                end if
            end do
        end do
    end subroutine restrict_planes

    !> The two zones of mean k in the third direction; in a plane its only zone, twice: halving doubled sums gives the same
    !> bits.
    pure function pair_of(k, plane) result(h)
        integer, intent(in) :: k
        logical, intent(in) :: plane
        integer :: h(2)

        h = [2*k - 1, 2*k]
        if (plane) h = 1
    end function pair_of

    !> Twice the mean of two zones, weighted by volumes whose difference is `tilt` of their sum. A single product gives
    !> compilers no choice of contractions, so that layouts agree to the last bit.
    elemental real(r8) function pair(lower, upper, tilt)
        real(r8), intent(in) :: lower, upper, tilt

        pair = (lower + upper) + tilt*(upper - lower)
    end function pair

    !> Values in the star of `box`.
    pure integer function star_size(mesh, box)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: box(2, 3)
        integer :: n(3)

        n = box(2, :) - box(1, :) + 1
        star_size = product(n) + 2*n(2)*n(3) + 2*n(1)*n(3)
        if (mesh%dims == 3) star_size = star_size + 2*n(1)*n(2)
        star_size = mesh%n_variables*star_size
    end function star_size

    !> Copy the star of `box` of slot `from` to the start of `buffer`.
    subroutine pack_star(mesh, from, box, buffer)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: from, box(2, 3)
        real(r8), contiguous, intent(inout) :: buffer(:)
        integer :: part(2, 3), k, p, margin

        margin = merge(1, 0, mesh%dims == 3)
        p = 0
        do k = box(1, 3) - margin, box(2, 3) + margin
            part = box
            part(:, 3) = k
            if (k < box(1, 3) .or. k > box(2, 3)) then
                call add()
            else
                part(:, 2) = box(1, 2) - 1
                call add()
                part(:, 2) = box(:, 2)
                part(:, 1) = box(:, 1) + [-1, 1]
                call add()
                part(:, 1) = box(:, 1)
                part(:, 2) = box(2, 2) + 1
                call add()
            end if
        end do

    contains

        subroutine add()
            integer :: n

            n = mesh%n_variables*(part(2, 1) - part(1, 1) + 1)*(part(2, 2) - part(1, 2) + 1)
            call pack_box(mesh, from, part, buffer(p + 1:p + n))
            p = p + n
        end subroutine add

    end subroutine pack_star

    !> Prolong: fill `to_box` of slot `to` from the star of the coarse zones that cover it (`to_box` starts at an odd index
    !> and ends at an even one in each direction). `volume` (first_guard:last_guard) is that of the fine leaf's zones
    !> (mesh%zone_volumes).
    !>
    !> In each coarse zone a value is a linear function of the position about the zone's centroid; its slopes are the
    !> monotonised central ones (van Leer 1977, J. Comput. Phys. 23, 276), and are reduced together if a child would
    !> leave the range of the zone and those across its faces. The mean of the children is thus their parent, a linear
    !> function is reproduced, and positive values stay positive. If a child's internal energy would not be positive, or
    !> hardly so, all of the parent's children equal the parent. Species that add up to the density also do so in the
    !> children.
    subroutine prolong_star(mesh, star, volume, to, to_box)
        type(mesh_t), intent(inout) :: mesh
        real(r8), contiguous, intent(in) :: star(:)
        real(r8), intent(in) :: volume(first_guard:last_guard)
        integer, intent(in) :: to, to_box(2, 3)
        real(r8) :: coefficient(5, block_zones/2)
        integer :: n(3)

        n = (to_box(2, :) - to_box(1, :) + 1)/2
        if (mesh%dims == 2) n(3) = 1
        call prolong_coefficients(mesh%geometry == cylindrical, volume, to_box(1, 1), n(1), coefficient)
        call prolong_rows(mesh, star, coefficient, n, to, to_box)
    end subroutine prolong_star

    !> For each of the `n` coarse zones of a row, of which the first covers the fine zones `first` and first + 1: the
    !> coefficients that convert the differences to the zone below, to that above, and between the two to slopes; and the
    !> positions of the centroids of the two children. In units of the coarse zone's width, from its centroid.
    pure subroutine prolong_coefficients(round, volume, first, n, coefficient)
        logical, intent(in) :: round
        real(r8), intent(in) :: volume(first_guard:last_guard)
        integer, intent(in) :: first, n
        real(r8), intent(out) :: coefficient(5, n)
        real(r8) :: r, below, centroid, above, child
        integer :: i

        do i = 1, n
            coefficient(:, i) = [1.0_r8, 1.0_r8, 0.5_r8, -0.25_r8, 0.25_r8]
            if (.not. round) cycle
            associate (v => volume(first + 2*i - 2:first + 2*i - 1))
                ! Volumes go with the radii, whose step is half a coarse zone. The centroid of a ring of width w about the
                ! radius r is at r + w**2/(12 r).
                r = 0.25_r8*(v(1) + v(2))/(v(2) - v(1))
                below = (r - 1.0_r8) + 1.0_r8/(12.0_r8*(r - 1.0_r8))
                centroid = r + 1.0_r8/(12.0_r8*r)
                above = (r + 1.0_r8) + 1.0_r8/(12.0_r8*(r + 1.0_r8))
                child = (r - 0.25_r8) + 1.0_r8/(48.0_r8*(r - 0.25_r8))
                coefficient(1, i) = 1.0_r8/(centroid - below)
                coefficient(2, i) = 1.0_r8/(above - centroid)
                coefficient(3, i) = 1.0_r8/(above - below)
                coefficient(4, i) = child - centroid
                coefficient(5, i) = -coefficient(4, i)*v(1)/v(2)
            end associate
        end do
    end subroutine prolong_coefficients

    !> The work of prolong_star: `coefficient` from prolong_coefficients, `n` coarse zones in each direction.
    subroutine prolong_rows(mesh, star, coefficient, n, to, to_box)
        type(mesh_t), intent(inout) :: mesh
        real(r8), intent(in) :: star(*)
        integer, intent(in) :: n(3), to, to_box(2, 3)
        real(r8), intent(in) :: coefficient(5, n(1))
        ! By variable and zone of a row: coefficients; slopes and the largest deviation of a child, in differences to the zone.
        real(r8) :: along(mesh%n_variables*n(1), 5), slope(mesh%n_variables*n(1), 3), deviation(mesh%n_variables*n(1))
        real(r8) :: fine(mesh%n_variables, 2*n(1), 2*n(2), 2)
        real(r8) :: u, fy, fz
        integer :: at(0:n(2) + 1, 0:n(3) + 1), box(2, 3)
        integer :: nv, n_row, n_halves, i, j, k, y, z, p, q, v, c, below, above, back, front

        nv = mesh%n_variables
        n_row = nv*n(1)
        n_halves = merge(2, 1, mesh%dims == 3)
        do i = 1, n(1)
            do q = nv*(i - 1) + 1, nv*i
                along(q, :) = coefficient(:, i)
            end do
        end do
        call star_rows(n, nv, mesh%dims, at)
        do k = 1, n(3)
            do j = 1, n(2)
                c = at(j, k)
                below = at(j - 1, k)
                above = at(j + 1, k)
                ! A plane has no slope in the third direction.
                back = merge(at(j, k - 1), c, n_halves == 2)
                front = merge(at(j, k + 1), c, n_halves == 2)
                call set_slopes(n_row, star(c + 1), star(c + 1 - nv), star(c + 1 + nv), star(below + 1), star(above + 1), &
                                star(back + 1), star(front + 1), along, slope, deviation)
                if (mesh%n_species > 0) call join_species(mesh%n_species, nv, n(1), star(c + 1), coefficient, slope)
                do i = 1, n(1)
                    p = nv*(i - 1)
                    if (.not. energy_stays(star(c + p + 1), slope(p + 1, 1), n_row, deviation(p + 1), coefficient(4, i))) &
                        slope(p + 1:p + nv, :) = 0.0_r8
                end do
                do z = 1, n_halves
                    fz = 0.5_r8*z - 0.75_r8
                    do y = 1, 2
                        fy = 0.5_r8*y - 0.75_r8
                        do i = 1, n(1)
                            do v = 1, nv
                                q = nv*(i - 1) + v
                                u = star(c + q) + (fy*slope(q, 2) + fz*slope(q, 3))
                                fine(v, 2*i - 1, 2*j - 2 + y, z) = u + coefficient(4, i)*slope(q, 1)
                                fine(v, 2*i, 2*j - 2 + y, z) = u + coefficient(5, i)*slope(q, 1)
                            end do
                        end do
                    end do
                end do
            end do
            box(:, :2) = to_box(:, :2)
            box(1, 3) = to_box(1, 3) + n_halves*(k - 1)
            box(2, 3) = box(1, 3) + n_halves - 1
            call unpack_fine(mesh, to, box, fine)
        end do
    end subroutine prolong_rows

    !> The slopes in each direction, and the largest deviation of a child, of the `n` values `here` of a row of zones. The
    !> rows across the faces in the three directions are left, right, below, above, back and front. By value, `along` is from
    !> prolong_coefficients.
    pure subroutine set_slopes(n, here, left, right, below, above, back, front, along, slope, deviation)
        integer, intent(in) :: n
        real(r8), intent(in) :: here(n), left(n), right(n), below(n), above(n), back(n), front(n), along(n, 5)
        real(r8), intent(out) :: slope(n, 3), deviation(n)
        real(r8) :: x, y, z, low, high, most, rest, scale
        integer :: q

        do q = 1, n
            x = central((here(q) - left(q))*along(q, 1), (right(q) - here(q))*along(q, 2), (right(q) - left(q))*along(q, 3))
            y = central(here(q) - below(q), above(q) - here(q), 0.5_r8*(above(q) - below(q)))
            z = central(here(q) - back(q), front(q) - here(q), 0.5_r8*(front(q) - back(q)))
            low = min(here(q), left(q), right(q), below(q), above(q), back(q), front(q))
            high = max(here(q), left(q), right(q), below(q), above(q), back(q), front(q))
            most = max(abs(along(q, 4)), abs(along(q, 5)))*abs(x) + 0.25_r8*(abs(y) + abs(z))
            rest = min(most, here(q) - low, high - here(q))
            scale = rest/max(most, tiny(1.0_r8))
            slope(q, 1) = scale*x
            slope(q, 2) = scale*y
            slope(q, 3) = scale*z
            deviation(q) = rest
        end do
    end subroutine set_slopes

    !> Make the slopes of species that add up to the density add up to the density's: the difference is distributed by mass
    !> fractions. If a child might then have a negative amount of a species, its fraction is the parent's.
    pure subroutine join_species(n_species, n_variables, n, here, coefficient, slope)
        integer, intent(in) :: n_species, n_variables, n
        real(r8), intent(in) :: here(n_variables, n), coefficient(5, n)
        real(r8), intent(inout) :: slope(n_variables, n, 3)
        real(r8), parameter :: adds_up = 1.0e-9_r8
        real(r8) :: missing, least
        integer :: i, d, s, first, last

        first = first_species
        last = first_species + n_species - 1
        do i = 1, n
            if (abs(sum(here(first:last, i)) - here(v_dens, i)) > adds_up*here(v_dens, i)) cycle
            do d = 1, 3
                missing = (slope(v_dens, i, d) - sum(slope(first:last, i, d)))/here(v_dens, i)
                slope(first:last, i, d) = slope(first:last, i, d) + missing*here(first:last, i)
            end do
            least = 0.0_r8
            do s = first, last
                least = min(least, here(s, i) - maxval(abs(coefficient(4:5, i)))*abs(slope(s, i, 1)) &
                            - 0.25_r8*(abs(slope(s, i, 2)) + abs(slope(s, i, 3))))
            end do
            if (least >= 0.0_r8) cycle
            do d = 1, 3
                slope(first:last, i, d) = slope(v_dens, i, d)*here(first:last, i)/here(v_dens, i)
            end do
        end do
    end subroutine join_species

    !> `fine` as the buffer of unpack_box.
    subroutine unpack_fine(mesh, to, box, fine)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: to, box(2, 3)
        real(r8), intent(in) :: fine(mesh%n_variables*product(box(2, :) - box(1, :) + 1))

        call unpack_box(mesh, to, box, fine)
    end subroutine unpack_fine

    !> The starts of a star's rows: before the first value of the box' first zone, or of the row beyond the box.
    pure subroutine star_rows(n, n_variables, dims, at)
        integer, intent(in) :: n(3), n_variables, dims
        integer, intent(out) :: at(0:n(2) + 1, 0:n(3) + 1)
        integer :: j, k, p
        logical :: inside_j, inside_k

        at = 0
        p = 0
        do k = 0, n(3) + 1
            inside_k = k >= 1 .and. k <= n(3)
            if (dims == 2 .and. .not. inside_k) cycle
            do j = 0, n(2) + 1
                inside_j = j >= 1 .and. j <= n(2)
                if (inside_j .and. inside_k) then
                    at(j, k) = p + n_variables
                    p = p + n_variables*(n(1) + 2)
                else if (inside_j .or. inside_k) then
                    at(j, k) = p
                    p = p + n_variables*n(1)
                end if
            end do
        end do
    end subroutine star_rows

    !> The monotonised central slope from the slopes below, above and between both neighbours.
    elemental real(r8) function central(below, above, between)
        real(r8), intent(in) :: below, above, between

        central = (sign(0.5_r8, below) + sign(0.5_r8, above))*min(2.0_r8*abs(below), 2.0_r8*abs(above), abs(between))
    end function central

    !> Whether the children of a zone keep their internal energy: parent, slope and deviation by conserved
    !> variable; the slopes in each direction lie `stride` values apart.
    pure logical function energy_stays(parent, slope, stride, deviation, offset)
        integer, intent(in) :: stride
        real(r8), intent(in) :: parent(v_ener), slope(stride, 3), deviation(v_ener), offset(2)
        real(r8) :: least, child(v_ener)
        integer :: x, y, z

        energy_stays = .true.
        if (.not. parent(v_dens) > 0.0_r8) return
        least = least_energy*(parent(v_ener) - 0.5_r8*sum(parent(v_momx:v_momz)**2)/parent(v_dens))
        if (.not. least > 0.0_r8) return
        ! Mostly the worst case is sufficient.
        if ((parent(v_ener) - deviation(v_ener) - least)*(parent(v_dens) - deviation(v_dens)) &
            > 0.5_r8*sum((abs(parent(v_momx:v_momz)) + deviation(v_momx:v_momz))**2)) return
        do z = -1, 1, 2
            do y = -1, 1, 2
                do x = 1, 2
                    child = parent + offset(x)*slope(:v_ener, 1) + 0.25_r8*(y*slope(:v_ener, 2) + z*slope(:v_ener, 3))
                    if ((child(v_ener) - least)*child(v_dens) < 0.5_r8*sum(child(v_momx:v_momz)**2)) energy_stays = .false.
                end do
            end do
        end do
    end function energy_stays

    !> Copy the zones of `slot` without guard cells: variables (n_variables, 16, 16, 16 or 1).
    subroutine load_interior(mesh, slot, variables)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot
        real(r8), contiguous, intent(inout) :: variables(:, :, :, :)
        integer :: j, k, v

        do k = 1, size(variables, 4)
            do j = 1, block_zones
                if (mesh%variable_last) then
                    do v = 1, mesh%n_variables
                        variables(v, :, j, k) = mesh%soa(1:block_zones, j, k, v, slot)
                    end do
                else
                    variables(:, :, j, k) = mesh%aos(:, 1:block_zones, j, k, slot)
                end if
            end do
        end do
    end subroutine load_interior

    !> Set the zones of `slot` without guard cells: variables (n_variables, 16, 16, 16 or 1).
    subroutine store_interior(mesh, slot, variables)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot
        real(r8), contiguous, intent(in) :: variables(:, :, :, :)
        integer :: j, k, v

        do k = 1, size(variables, 4)
            do j = 1, block_zones
                if (mesh%variable_last) then
                    do v = 1, mesh%n_variables
                        mesh%soa(1:block_zones, j, k, v, slot) = variables(v, :, j, k)
                    end do
                else
                    mesh%aos(:, 1:block_zones, j, k, slot) = variables(:, :, j, k)
                end if
            end do
        end do
    end subroutine store_interior

end module ember_container
