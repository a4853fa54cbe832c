!> The container of all blocks, on pages of a chosen kind, and procedures that move zones between blocks and buffers.
!>
!> A box is box(2, 3): the first and the last index in each direction, guard cells included if needed; in 2-d its third
!> direction is 1:1. Buffers hold zones with the variable fastest, then i, j, k, in either layout.
!>
!> A star is the input of prolongation: the zones of a box of coarse zones, and those directly beyond it that share a face
!> with it. In a buffer its rows of i follow one another by j and k: those of the box have one zone more on each end.
module ember_container
    use, intrinsic :: iso_c_binding, only: c_f_pointer
    use ember_mesh, only: mesh_t
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_allocate, pages_free, pages_policy_t
    use pw_text, only: bytes_to_text
    implicit none
    private

    integer, parameter, public :: short = 3   !< rows of up to this many zones are too short for a separate loop

    !> The values of a block in either layout: variable v of zone (i, j, k) is values(origin + v*variable + sum([i, j, k]*zone)).
    type, public :: view_t
        real(r8), pointer, contiguous :: values(:) => null()
        integer :: origin = 0, variable = 0, zone(3) = 0
    end type view_t

    public :: container_create, container_free, block_bytes, copy_box, pack_box, unpack_box, load_interior, &
        make_view, store_interior

contains

    !> Bytes of a block with its guard cells.
    pure integer(i8) function block_bytes(mesh)
        type(mesh_t), intent(in) :: mesh

        associate (box => mesh%bounds())
            block_bytes = int(mesh%n_variables, i8)*product(box(2, :) - box(1, :) + 1)*(storage_size(1.0_r8)/8)
        end associate
    end function block_bytes

    !> Map a container of at most `bytes` [B] by `policy`, untouched, with `static` as pages_allocate does: sets capacity,
    !> memory, aos or soa, and all slots free. Exit codes: 2 if not even one block fits; those of pages_allocate.
    subroutine container_create(mesh, bytes, policy, error, static)
        type(mesh_t), intent(inout) :: mesh
        integer(i8), intent(in) :: bytes
        type(pages_policy_t), intent(in) :: policy
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: static
        real(r8), pointer, contiguous :: values(:)
        integer(i8) :: n_slots, n_values
        integer :: i, b(2, 3)

        n_slots = min(bytes/block_bytes(mesh), int(huge(1), i8))
        if (n_slots < 1) then
            call error%raise(exit_usage, bytes_to_text(bytes)//' are too little for a block, which needs '// &
                             bytes_to_text(block_bytes(mesh)), 'container_create', 'use more --memory or --max-blocks')
            return
        end if
        call pages_allocate(mesh%memory, policy, 'blocks', n_slots*block_bytes(mesh), 0_i8, error, static)
        if (error%failed()) return
        n_values = mesh%memory%bytes/(storage_size(1.0_r8)/8)
        call c_f_pointer(mesh%memory%address, values, [n_values])
        nullify (mesh%aos, mesh%soa)
        b = mesh%bounds()
        if (mesh%variable_last) then
            mesh%soa(b(1, 1):b(2, 1), b(1, 2):b(2, 2), b(1, 3):b(2, 3), 1:mesh%n_variables, 1:n_slots) => values
        else
            mesh%aos(1:mesh%n_variables, b(1, 1):b(2, 1), b(1, 2):b(2, 2), b(1, 3):b(2, 3), 1:n_slots) => values
        end if
        mesh%capacity = int(n_slots)
        mesh%n_free = mesh%capacity
        mesh%free = [(mesh%capacity - i, i=0, mesh%capacity - 1)]
    end subroutine container_create

    !> Unmap the container. Exit code 4 if the system refuses.
    subroutine container_free(mesh, error)
        type(mesh_t), intent(inout) :: mesh
        type(error_t), intent(inout) :: error

        nullify (mesh%aos, mesh%soa)
        mesh%capacity = 0
        mesh%n_free = 0
        call pages_free(mesh%memory, error)
    end subroutine container_free

    !> The values of a slot, which any loop can use without a case for each layout.
    subroutine make_view(mesh, slot, view)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot
        type(view_t), intent(out) :: view
        integer :: extent(3)

        extent = [mesh%last - mesh%first + 1, mesh%last - mesh%first + 1, mesh%last_k() - mesh%first_k() + 1]
        if (mesh%variable_last) then
            view%values(1:mesh%n_variables*product(extent)) => mesh%soa(:, :, :, :, slot)
            view%zone = [1, extent(1), extent(1)*extent(2)]
            view%variable = product(extent)
        else
            view%values(1:mesh%n_variables*product(extent)) => mesh%aos(:, :, :, :, slot)
            view%zone = mesh%n_variables*[1, extent(1), extent(1)*extent(2)]
            view%variable = 1
        end if
        view%origin = 1 - view%variable - sum(view%zone*[mesh%first, mesh%first, mesh%first_k()])
    end subroutine make_view

    !> Copy `from_box` of slot `from` to `to_box` of slot `to`; the boxes have the same shape, and do not overlap if the
    !> slots are the same.
    subroutine copy_box(mesh, from, from_box, to, to_box)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: from, from_box(2, 3), to, to_box(2, 3)
        type(view_t) :: source, destination
        integer :: width

        call make_view(mesh, from, source)
        call make_view(mesh, to, destination)
        width = merge(1, mesh%n_variables, mesh%variable_last)
        call copy_rows(source%values, from_box, destination%values, to_box, width, mesh%n_variables/width, mesh%bounds())
    end subroutine copy_box

    !> Copy rows of i: `width` values per zone are contiguous, in `n_planes` arrays of such zones; `bounds`: of a block.
    pure subroutine copy_rows(from, from_box, to, to_box, width, n_planes, bounds)
        integer, intent(in) :: from_box(2, 3), to_box(2, 3), width, n_planes, bounds(2, 3)
        real(r8), dimension(width*(bounds(2, 1) - bounds(1, 1) + 1), bounds(1, 2):bounds(2, 2), bounds(1, 3):bounds(2, 3), &
                            n_planes), intent(in) :: from
        real(r8), dimension(width*(bounds(2, 1) - bounds(1, 1) + 1), bounds(1, 2):bounds(2, 2), bounds(1, 3):bounds(2, 3), &
                            n_planes), intent(inout) :: to
        integer :: a, b, n, j, k, v, dj, dk

        a = width*(from_box(1, 1) - bounds(1, 1))
        b = width*(to_box(1, 1) - bounds(1, 1))
        n = width*(to_box(2, 1) - to_box(1, 1) + 1)
        dj = from_box(1, 2) - to_box(1, 2)
        dk = from_box(1, 3) - to_box(1, 3)
        do v = 1, n_planes
            do k = to_box(1, 3), to_box(2, 3)
                if (n == 2) then
                    ! Rows of guard cells are too short for a separate loop.
                    do j = to_box(1, 2), to_box(2, 2)
                        to(b + 1:b + 2, j, k, v) = from(a + 1:a + 2, j + dj, k + dk, v)
                    end do
                else if (n == 4) then
                    do j = to_box(1, 2), to_box(2, 2)
                        to(b + 1:b + 4, j, k, v) = from(a + 1:a + 4, j + dj, k + dk, v)
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
        type(view_t) :: view

        call make_view(mesh, from, view)
        if (mesh%variable_last) then
            call pack_planes(view%values, box, mesh%n_variables, mesh%bounds(), buffer)
        else
            call pack_rows(view%values, box, mesh%n_variables, mesh%bounds(), buffer)
        end if
    end subroutine pack_box

    pure subroutine pack_rows(zones, box, n_variables, bounds, buffer)
        integer, intent(in) :: box(2, 3), n_variables, bounds(2, 3)
        real(r8), intent(in) :: zones(n_variables*(bounds(2, 1) - bounds(1, 1) + 1), bounds(1, 2):bounds(2, 2), &
                                      bounds(1, 3):bounds(2, 3))
        real(r8), intent(inout) :: buffer(*)
        integer :: a, n, p, j, k

        a = n_variables*(box(1, 1) - bounds(1, 1))
        n = n_variables*(box(2, 1) - box(1, 1) + 1)
        p = 0
        do k = box(1, 3), box(2, 3)
            do j = box(1, 2), box(2, 2)
                buffer(p + 1:p + n) = zones(a + 1:a + n, j, k)
                p = p + n
            end do
        end do
    end subroutine pack_rows

    pure subroutine pack_planes(zones, box, n_variables, bounds, buffer)
        integer, intent(in) :: box(2, 3), n_variables, bounds(2, 3)
        real(r8), intent(in) :: zones(bounds(1, 1):bounds(2, 1), bounds(1, 2):bounds(2, 2), bounds(1, 3):bounds(2, 3), n_variables)
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
        type(view_t) :: view

        call make_view(mesh, to, view)
        if (mesh%variable_last) then
            call unpack_planes(view%values, box, mesh%n_variables, mesh%bounds(), buffer)
        else
            call unpack_rows(view%values, box, mesh%n_variables, mesh%bounds(), buffer)
        end if
    end subroutine unpack_box

    pure subroutine unpack_rows(zones, box, n_variables, bounds, buffer)
        integer, intent(in) :: box(2, 3), n_variables, bounds(2, 3)
        real(r8), intent(inout) :: zones(n_variables*(bounds(2, 1) - bounds(1, 1) + 1), bounds(1, 2):bounds(2, 2), &
                                         bounds(1, 3):bounds(2, 3))
        real(r8), intent(in) :: buffer(*)
        integer :: a, n, p, j, k

        a = n_variables*(box(1, 1) - bounds(1, 1))
        n = n_variables*(box(2, 1) - box(1, 1) + 1)
        p = 0
        do k = box(1, 3), box(2, 3)
            do j = box(1, 2), box(2, 2)
                zones(a + 1:a + n, j, k) = buffer(p + 1:p + n)
                p = p + n
            end do
        end do
    end subroutine unpack_rows

    pure subroutine unpack_planes(zones, box, n_variables, bounds, buffer)
        integer, intent(in) :: box(2, 3), n_variables, bounds(2, 3)
        real(r8), intent(inout) :: zones(bounds(1, 1):bounds(2, 1), bounds(1, 2):bounds(2, 2), bounds(1, 3):bounds(2, 3), &
                                         n_variables)
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

    !> Copy the zones of `slot` without guard cells: variables (mesh%n_used(), then mesh%zones()).
    subroutine load_interior(mesh, slot, variables)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot
        real(r8), contiguous, intent(inout) :: variables(:, :, :, :)
        type(view_t) :: view
        integer :: i, j, k, v, first

        call make_view(mesh, slot, view)
        do k = 1, size(variables, 4)
            do j = 1, mesh%block
                do v = 1, size(variables, 1)
                    first = view%origin + v*view%variable + sum(view%zone*[0, j, k])
                    do i = 1, mesh%block
                        variables(v, i, j, k) = view%values(first + i*view%zone(1))
                    end do
                end do
            end do
        end do
    end subroutine load_interior

    !> Set the zones of `slot` without guard cells: variables (mesh%n_used(), then mesh%zones()).
    subroutine store_interior(mesh, slot, variables)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot
        real(r8), contiguous, intent(in) :: variables(:, :, :, :)
        type(view_t) :: view
        integer :: i, j, k, v, first

        call make_view(mesh, slot, view)
        do k = 1, size(variables, 4)
            do j = 1, mesh%block
                do v = 1, size(variables, 1)
                    first = view%origin + v*view%variable + sum(view%zone*[0, j, k])
                    do i = 1, mesh%block
                        view%values(first + i*view%zone(1)) = variables(v, i, j, k)
                    end do
                end do
            end do
        end do
    end subroutine store_interior

end module ember_container
