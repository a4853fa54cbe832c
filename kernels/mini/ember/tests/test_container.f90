!> The container: slots and their memory, copies between boxes in both layouts, the interior of a block.
program test_container
    use ember_container, only: block_bytes, container_create, copy_box, load_interior, pack_box, store_interior, unpack_box
    use ember_mesh, only: cartesian, mesh_t
    use ember_test_meshes, only: discard
    use ember_test_slots, only: get_slot, make_leaf, n_slots, same_zones, set_random
    use ember_testing, only: expect, failures, next_random, random_below, start_pages
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: r8
    use pw_pages, only: pages_none
    implicit none
    integer :: dims

    call start_pages()
    do dims = 2, 3
        call slots(dims)
        call copies(dims)
    end do
    if (failures > 0) error stop 'test_container: failures'

contains

    subroutine slots(dims)
        integer, intent(in) :: dims
        type(mesh_t) :: mesh
        type(error_t) :: error
        integer :: last, slot, i

        mesh%dims = dims
        call container_create(mesh, block_bytes(mesh) - 1, pages_none, error)
        call expect(error%code == exit_usage, 'a container too small for a block')
        if (error%failed()) call expect(index(error%remedy, '--memory') > 0, 'the remedy names --memory')
        do last = 0, 1
            call make_leaf(mesh, dims, cartesian, last == 1, 0)
            call expect(block_bytes(mesh) == 8*10*merge(8000, 400, dims == 3), 'bytes of a block')
            call expect(mesh%capacity == n_slots .and. mesh%n_free == n_slots, 'slots')
            do i = 1, n_slots
                slot = mesh%take_slot()
                call expect(slot == i, 'slots are taken in order')
            end do
            slot = mesh%take_slot()
            call expect(slot == 0, 'no more slots')
            call expect(associated(mesh%soa) .eqv. last == 1, 'layout soa')
            call expect(associated(mesh%aos) .eqv. last == 0, 'the studies'' layout')
            if (last == 1) then
                call expect(all(lbound(mesh%soa) == [-1, -1, mesh%first_k(), 1, 1]), 'lower bounds')
                call expect(all(ubound(mesh%soa) == [18, 18, mesh%last_k(), 10, n_slots]), 'upper bounds')
                call expect(all(abs(mesh%soa) <= 0.0_r8), 'zero')
            else
                call expect(all(lbound(mesh%aos) == [1, -1, -1, mesh%first_k(), 1]), 'lower bounds')
                call expect(all(ubound(mesh%aos) == [10, 18, 18, mesh%last_k(), n_slots]), 'upper bounds')
                call expect(all(abs(mesh%aos) <= 0.0_r8), 'zero')
            end if
            call discard(mesh)
            call expect(.not. associated(mesh%aos) .and. .not. associated(mesh%soa), 'freed')
        end do
    end subroutine slots

    subroutine copies(dims)
        integer, intent(in) :: dims
        type(mesh_t) :: mesh
        real(r8), allocatable :: a(:, :, :, :), b(:, :, :, :)
        integer :: last, round

        do last = 0, 1
            call make_leaf(mesh, dims, cartesian, last == 1, 0)
            call set_random(mesh, 1, a)
            call set_random(mesh, 2, b)
            do round = 1, 60
                call copy_between(mesh, a, b)
            end do
            call copy_within(mesh, a)
            call interiors(mesh, a, b)
            call discard(mesh)
        end do
    end subroutine copies

    !> Copy a random box of slot 1, whose zones are `a`, to slot 2, whose zones are `b`, and another one back through a buffer.
    subroutine copy_between(mesh, a, b)
        type(mesh_t), intent(inout) :: mesh
        real(r8), allocatable, intent(inout) :: a(:, :, :, :), b(:, :, :, :)
        real(r8), allocatable :: got(:, :, :, :), buffer(:)
        integer :: d, length, from(2, 3), to(2, 3), i, j, k, p

        from = 1
        to = 1
        do d = 1, mesh%dims
            length = 1 + int(next_random()*merge(3, 20, next_random() < 0.5_r8))
            from(1, d) = mesh%first + random_below(21 - length)
            to(1, d) = mesh%first + random_below(21 - length)
            from(2, d) = from(1, d) + length - 1
            to(2, d) = to(1, d) + length - 1
        end do
        call copy_box(mesh, 1, from, 2, to)
        b(:, to(1, 1):to(2, 1), to(1, 2):to(2, 2), to(1, 3):to(2, 3)) = &
            a(:, from(1, 1):from(2, 1), from(1, 2):from(2, 2), from(1, 3):from(2, 3))
        call get_slot(mesh, 2, got)
        call expect(same_zones(got, b), 'copy_box')

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
        call get_slot(mesh, 1, got)
        call expect(same_zones(got, a), 'unpack_box')
    end subroutine copy_between

    !> Within one slot, as in a periodic domain of one block.
    subroutine copy_within(mesh, a)
        type(mesh_t), intent(inout) :: mesh
        real(r8), allocatable, intent(inout) :: a(:, :, :, :)
        real(r8), allocatable :: got(:, :, :, :)
        integer :: from(2, 3), to(2, 3)

        to = mesh%bounds()
        from = to
        from(:, 1) = [15, 16]
        to(:, 1) = [-1, 0]
        call copy_box(mesh, 1, from, 1, to)
        a(:, -1:0, :, :) = a(:, 15:16, :, :)
        call get_slot(mesh, 1, got)
        call expect(same_zones(got, a), 'copy_box within a slot')
    end subroutine copy_within

    subroutine interiors(mesh, a, b)
        type(mesh_t), intent(inout) :: mesh
        real(r8), allocatable, intent(inout) :: a(:, :, :, :), b(:, :, :, :)
        real(r8), allocatable :: got(:, :, :, :), inside(:, :, :, :)

        allocate (inside(10, 16, 16, merge(16, 1, mesh%dims == 3)))
        call load_interior(mesh, 1, inside)
        call expect(same_zones(inside, a(:, 1:16, 1:16, 1:size(inside, 4))), 'load_interior')
        inside = inside + 1.0_r8
        call store_interior(mesh, 2, inside)
        b(:, 1:16, 1:16, 1:size(inside, 4)) = inside
        call get_slot(mesh, 2, got)
        call expect(same_zones(got, b), 'store_interior')
    end subroutine interiors

end program test_container
