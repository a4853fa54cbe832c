!> Shared by the tests of the container and of prolongation: a mesh of one leaf with three slots, whose zones are read and
!> written the simplest way.
module ember_test_slots
    use ember_container, only: block_bytes, container_create, container_touch
    use ember_mesh, only: mesh_t, v_ener
    use ember_testing, only: expect_success, next_random
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_pages, only: pages_none
    implicit none
    private

    integer, parameter, public :: n_slots = 3

    public :: get_slot, make_leaf, new_zones, same_zones, set_random, set_slot

contains

    !> A mesh of one leaf at radius `corner` in units of its width, in layout soa (`last`) or the studies'.
    subroutine make_leaf(mesh, dims, geometry, last, corner)
        type(mesh_t), intent(out) :: mesh
        integer, intent(in) :: dims, geometry, corner
        logical, intent(in) :: last
        type(error_t) :: error

        mesh%dims = dims
        mesh%geometry = geometry
        mesh%variable_last = last
        mesh%n_variables = 10
        mesh%n_species = 2
        call mesh%tree%start(dims, [1, 1, 1], [.false., .false., .false.], 0, error)
        call expect_success(error, 'tree')
        mesh%lower = [real(corner, r8), 0.0_r8, 0.0_r8]
        mesh%upper = mesh%lower + 1.0_r8
        ! A few bytes more are no slot.
        call container_create(mesh, n_slots*block_bytes(mesh) + 7, pages_none, error)
        call expect_success(error, 'container_create')
        call container_touch(mesh)
    end subroutine make_leaf

    !> Room for all variables of all zones of a slot, guard cells too.
    subroutine new_zones(mesh, values)
        type(mesh_t), intent(in) :: mesh
        real(r8), allocatable, intent(out) :: values(:, :, :, :)

        allocate (values(mesh%n_variables, mesh%first:mesh%last, mesh%first:mesh%last, mesh%first_k():mesh%last_k()))
    end subroutine new_zones

    !> Set all zones of a slot to random numbers in 1..2, energies to larger ones.
    subroutine set_random(mesh, slot, values)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: slot
        real(r8), allocatable, intent(out) :: values(:, :, :, :)
        integer :: i, j, k, v

        call new_zones(mesh, values)
        do k = mesh%first_k(), mesh%last_k()
            do j = mesh%first, mesh%last
                do i = mesh%first, mesh%last
                    do v = 1, mesh%n_variables
                        values(v, i, j, k) = 1.0_r8 + next_random()
                    end do
                    values(v_ener, i, j, k) = 100.0_r8*values(v_ener, i, j, k)
                end do
            end do
        end do
        call set_slot(mesh, slot, values)
    end subroutine set_random

    subroutine set_slot(mesh, slot, values)
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
    end subroutine set_slot

    subroutine get_slot(mesh, slot, values)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: slot
        real(r8), allocatable, intent(out) :: values(:, :, :, :)
        integer :: v

        call new_zones(mesh, values)
        do v = 1, mesh%n_variables
            if (mesh%variable_last) then
                values(v, :, :, :) = mesh%soa(:, :, :, v, slot)
            else
                values(v, :, :, :) = mesh%aos(v, :, :, :, slot)
            end if
        end do
    end subroutine get_slot

    !> Whether all numbers are equal.
    logical function same_zones(a, b)
        real(r8), intent(in) :: a(:, :, :, :), b(:, :, :, :)

        same_zones = all(abs(a - b) <= 0.0_r8)
    end function same_zones

end module ember_test_slots
