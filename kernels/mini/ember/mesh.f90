!> The mesh shared by all modules of ember: blocks of equal shape, the variables of their zones in one container.
!>
!> A block has `block` zones in each of `dims` directions, with `guards` guard cells on each side. Block b of the
!> container is the leaf of the tree whose slot is b; only leaves have data. The third direction of a 2-d mesh has one zone
!> and no guard cells. In cylindrical geometry the directions are r and z.
module ember_mesh
    use ember_tree, only: tree_t
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t
    implicit none
    private

    !> The blocks of the scheme `planes`, whose loops know their length.
    integer, parameter, public :: block_zones = 16, guard_zones = 2
    integer, parameter, public :: first_guard = 1 - guard_zones, last_guard = block_zones + guard_zones

    !> Those of all schemes.
    integer, parameter, public :: block_sizes(3) = [8, 16, 32], guard_widths(2) = [2, 4]

    integer, parameter, public :: cartesian = 1, cylindrical = 2
    integer, parameter, public :: periodic = 1, reflecting = 2, outflow = 3   !< boundaries

    !> Variables of a zone: per volume those that are conserved, then derived ones; species follow, then padding that nothing
    !> reads [g/cm^3 or any other consistent units].
    integer, parameter, public :: v_dens = 1, v_momx = 2, v_momy = 3, v_momz = 4, v_ener = 5
    integer, parameter, public :: v_pres = 6, v_temp = 7, v_gamc = 8
    integer, parameter, public :: n_conserved = 5, first_species = 9
    !> In the scheme `flash`, which has no species: internal energy per mass, and pressure/(density*v_eint) + 1.
    integer, parameter, public :: v_eint = 9, v_game = 10

    type, public :: mesh_t
        integer :: dims = 3, geometry = cartesian
        logical :: variable_last = .false.                    !< layout soa; otherwise the studies' layout
        integer :: n_variables = 8, n_species = 0             !< of a zone, padding included; of these species
        integer :: block = block_zones, guards = guard_zones  !< zones and guard cells of a block in each direction
        integer :: first = first_guard, last = last_guard     !< indices of a block, guard cells included
        integer :: lowest_level = 0, highest_level = 0        !< of leaves; roots are level 0
        integer :: boundary(2, 3) = periodic                  !< at the lower and upper end of each direction
        real(r8) :: lower(3) = 0.0_r8, upper(3) = 1.0_r8      !< of the domain
        type(tree_t) :: tree
        integer :: rank = 0, n_ranks = 1
        integer :: capacity = 0                               !< slots of the container on this rank
        integer, allocatable :: slot(:)                       !< (leaf) its slot here, 0 if another rank has it
        integer, allocatable :: local(:)                      !< the leaves of this rank, in Morton order
        integer, allocatable :: free(:)                       !< slots without a leaf; the last is used next
        integer :: n_free = 0
        logical :: parents = .false.                          !< parents have data (ember_parents)
        integer, allocatable :: parent_slots(:)               !< the parents' slots on this rank
        !> The container, one of the two: (variable, i, j, k, slot), or (i, j, k, variable, slot).
        real(r8), pointer, contiguous :: aos(:, :, :, :, :) => null(), soa(:, :, :, :, :) => null()
        type(paged_array_t) :: memory
    contains
        procedure :: set_shape
        procedure :: first_k
        procedure :: last_k
        procedure :: bounds
        procedure :: n_used
        procedure :: zones
        procedure :: zone_size
        procedure :: block_corner
        procedure :: zone_volumes
        procedure :: volumes_at
        procedure :: take_slot
        procedure :: give_slot
        procedure :: take_parent
        procedure :: n_parents
        procedure :: release_parents
        procedure :: note_owners
    end type mesh_t

contains

    !> Blocks of `block` zones and `guards` guard cells in each direction, both even: before the container is created.
    pure subroutine set_shape(self, block, guards)
        class(mesh_t), intent(inout) :: self
        integer, intent(in) :: block, guards

        self%block = block
        self%guards = guards
        self%first = 1 - guards
        self%last = block + guards
    end subroutine set_shape

    !> Lower bound of the third index of a block, guard cells included.
    pure integer function first_k(self)
        class(mesh_t), intent(in) :: self

        first_k = merge(self%first, 1, self%dims == 3)
    end function first_k

    !> Upper bound of the third index of a block, guard cells included.
    pure integer function last_k(self)
        class(mesh_t), intent(in) :: self

        last_k = merge(self%last, 1, self%dims == 3)
    end function last_k

    !> Variables of a zone that files have: without padding, and without v_eint and v_game, which follow from the others.
    pure integer function n_used(self)
        class(mesh_t), intent(in) :: self

        n_used = first_species - 1 + self%n_species
    end function n_used

    !> All zones of a block, guard cells included, as a box (ember_container).
    pure function bounds(self) result(box)
        class(mesh_t), intent(in) :: self
        integer :: box(2, 3)

        box(:, 1) = [self%first, self%last]
        box(:, 2) = box(:, 1)
        box(:, 3) = [self%first_k(), self%last_k()]
    end function bounds

    !> Zones of a block in each direction, without guard cells.
    pure function zones(self)
        class(mesh_t), intent(in) :: self
        integer :: zones(3)

        zones = self%block
        if (self%dims == 2) zones(3) = 1
    end function zones

    !> Widths of a zone at `level`.
    pure function zone_size(self, level) result(width)
        class(mesh_t), intent(in) :: self
        integer, intent(in) :: level
        real(r8) :: width(3)

        width = (self%upper - self%lower)/real(self%tree%roots*self%zones(), r8)
        width(:self%dims) = width(:self%dims)/2.0_r8**level
    end function zone_size

    !> The lower corner of a leaf, without guard cells: the same number from whichever level it is computed.
    pure function block_corner(self, leaf) result(corner)
        class(mesh_t), intent(in) :: self
        integer, intent(in) :: leaf
        real(r8) :: corner(3)

        corner = corner_at(self, self%tree%level(leaf), self%tree%place(:, leaf))
    end function block_corner

    !> The same of the block at `place` of `level`.
    pure function corner_at(self, level, place) result(corner)
        class(mesh_t), intent(in) :: self
        integer, intent(in) :: level, place(3)
        real(r8) :: corner(3), part(3)

        part = real(place, r8)/real(self%tree%roots, r8)
        part(:self%dims) = part(:self%dims)/2.0_r8**level
        corner = self%lower + part*(self%upper - self%lower)
    end function corner_at

    !> Volumes of a leaf's zones by the first index; in cylindrical geometry per radian, negative beyond the axis.
    pure function zone_volumes(self, leaf) result(volume)
        class(mesh_t), intent(in) :: self
        integer, intent(in) :: leaf
        real(r8) :: volume(self%first:self%last)

        volume = self%volumes_at(self%tree%level(leaf), self%tree%place(:, leaf))
    end function zone_volumes

    !> The same of the block at `place` of `level`.
    pure function volumes_at(self, level, place) result(volume)
        class(mesh_t), intent(in) :: self
        integer, intent(in) :: level, place(3)
        real(r8) :: volume(self%first:self%last), width(3), corner(3)
        integer :: i

        width = self%zone_size(level)
        volume = product(width)
        if (self%geometry /= cylindrical) return
        corner = corner_at(self, level, place)
        do i = self%first, self%last
            volume(i) = volume(i)*(corner(1) + (i - 0.5_r8)*width(1))
        end do
    end function volumes_at

    !> A free slot of the container, 0 if there is none.
    integer function take_slot(self) result(slot)
        class(mesh_t), intent(inout) :: self

        slot = 0
        if (self%n_free == 0) return
        slot = self%free(self%n_free)
        self%n_free = self%n_free - 1
    end function take_slot

    !> Release a slot.
    subroutine give_slot(self, slot)
        class(mesh_t), intent(inout) :: self
        integer, intent(in) :: slot

        self%n_free = self%n_free + 1
        self%free(self%n_free) = slot
    end subroutine give_slot

    !> A free slot for a parent; the caller ensures that there is one.
    integer function take_parent(self) result(slot)
        class(mesh_t), intent(inout) :: self

        slot = self%take_slot()
        self%parent_slots = [self%parent_slots, slot]
    end function take_parent

    !> Slots of parents with data on this rank.
    pure integer function n_parents(self)
        class(mesh_t), intent(in) :: self

        n_parents = 0
        if (allocated(self%parent_slots)) n_parents = size(self%parent_slots)
    end function n_parents

    !> Release the slots of parents: they follow from the leaves.
    subroutine release_parents(self)
        class(mesh_t), intent(inout) :: self
        integer :: i

        do i = self%n_parents(), 1, -1
            call self%give_slot(self%parent_slots(i))
        end do
        self%parent_slots = [integer ::]
    end subroutine release_parents

    !> Set `local` from the owners in the tree.
    subroutine note_owners(self)
        class(mesh_t), intent(inout) :: self
        integer :: leaf

        self%local = pack([(leaf, leaf=1, self%tree%n_leaves)], self%tree%owner(:self%tree%n_leaves) == self%rank)
    end subroutine note_owners

end module ember_mesh
