!> Shared by the tests of ember: meshes distributed over ranks, their values in both layouts, zones counted over the domain.
module ember_test_meshes
    use ember_container, only: block_bytes, container_create, container_free
    use ember_mesh, only: mesh_t
    use ember_testing, only: expect, expect_success
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_none
    implicit none
    private

    public :: beyond, child_zone, discard, expect_same_zones, get_value, give_container, mixed, put_value, share_out, take_slots, &
        zones_of

contains

    !> The leaves of `rank` among `n_ranks`.
    subroutine share_out(mesh, rank, n_ranks)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: rank, n_ranks
        integer, allocatable :: owner(:)

        mesh%rank = rank
        mesh%n_ranks = n_ranks
        call mesh%tree%partition(n_ranks, owner)
        mesh%tree%owner = owner
        call mesh%note_owners()
    end subroutine share_out

    !> A container of `slots` blocks, at least one.
    subroutine give_container(mesh, slots)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slots
        type(error_t) :: error

        call container_create(mesh, max(1, slots)*block_bytes(mesh), pages_none, error)
        call expect_success(error, 'container_create')
    end subroutine give_container

    !> A slot for each leaf of this rank, not in Morton order: slots are not leaves.
    subroutine take_slots(mesh)
        type(mesh_t), intent(inout) :: mesh
        integer :: l

        allocate (mesh%slot(mesh%tree%n_leaves), source=0)
        do l = size(mesh%local), 1, -1
            mesh%slot(mesh%local(l)) = mesh%take_slot()
        end do
    end subroutine take_slots

    subroutine discard(mesh)
        type(mesh_t), intent(inout) :: mesh
        type(error_t) :: error

        call container_free(mesh, error)
        call expect_success(error, 'container_free')
    end subroutine discard

    pure real(r8) function get_value(mesh, slot, v, i, j, k) result(value)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot, v, i, j, k

        if (mesh%variable_last) then
            value = mesh%soa(i, j, k, v, slot)
        else
            value = mesh%aos(v, i, j, k, slot)
        end if
    end function get_value

    subroutine put_value(mesh, slot, v, i, j, k, value)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot, v, i, j, k
        real(r8), intent(in) :: value

        if (mesh%variable_last) then
            mesh%soa(i, j, k, v, slot) = value
        else
            mesh%aos(v, i, j, k, slot) = value
        end if
    end subroutine put_value

    !> The zones of a box in the leaves of this rank, to the last bit, against those of `reference`, a mesh of one rank in the
    !> studies' layout. Zones beyond a corner of three faces are not compared: nothing sets them.
    subroutine expect_same_zones(mesh, reference, box)
        type(mesh_t), intent(in) :: mesh, reference
        integer, intent(in) :: box(2, 3)
        integer :: l, leaf, i, j, k, v
        real(r8) :: difference

        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            do k = box(1, 3), box(2, 3)
                do j = box(1, 2), box(2, 2)
                    do i = box(1, 1), box(2, 1)
                        if (beyond([i, j, k], mesh) == 3) cycle
                        do v = 1, mesh%n_variables
                            difference = get_value(mesh, mesh%slot(leaf), v, i, j, k) &
                                         - reference%aos(v, i, j, k, reference%slot(leaf))
                            call expect(abs(difference) <= 0.0_r8, 'layouts, threads and ranks agree')
                        end do
                    end do
                end do
            end do
        end do
    end subroutine expect_same_zones

    !> The number of directions in which a zone is beyond its block.
    pure integer function beyond(zone, mesh)
        integer, intent(in) :: zone(3)
        type(mesh_t), intent(in) :: mesh

        beyond = count(zone(:mesh%dims) < 1 .or. zone(:mesh%dims) > mesh%block)
    end function beyond

    !> Zones of `level` in each direction of the domain.
    pure function zones_of(mesh, level) result(n)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: level
        integer :: n(3)

        n = mesh%tree%roots*mesh%zones()
        n(:mesh%dims) = n(:mesh%dims)*2**level
    end function zones_of

    !> Child m, from 0, of a zone; both are counted from 0 over the domain.
    pure function child_zone(mesh, zone, m) result(child)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: zone(3), m
        integer :: child(3)

        child = zone
        child(:mesh%dims) = 2*zone(:mesh%dims)
        child = child + [ibits(m, 0, 1), ibits(m, 1, 1), ibits(m, 2, 1)]
    end function child_zone

    !> A number between 0 and 1 that depends on `n` only.
    pure real(r8) function mixed(n)
        integer(i8), intent(in) :: n
        integer(i8) :: h

        h = iand(iand(ieor(n, shiftr(n, 15)), int(z'7fffffff', i8))*2146121773_i8, int(z'7fffffff', i8))
        h = iand(ieor(h, shiftr(h, 13))*1812433253_i8, int(z'7fffffff', i8))
        mixed = real(ieor(h, shiftr(h, 16)), r8)/2.0_r8**31
    end function mixed

end module ember_test_meshes
