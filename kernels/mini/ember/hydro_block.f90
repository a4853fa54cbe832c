!> What the hydrodynamic update of a block needs in addition to its zones: the step's physics, the block's geometry and its faces.
module ember_hydro_block
    use ember_boundaries, only: on_boundary
    use ember_eos, only: eos_t
    use ember_flame, only: flame_t
    use ember_fluxes, only: face_registers_t, registers_t
    use ember_godunov, only: half_step_t, row_first, row_last
    use ember_gravity, only: gravity_t
    use ember_mesh, only: block_zones, cylindrical, first_guard, last_guard, mesh_t, outflow
    use pw_kinds, only: r8
    implicit none
    private

    integer, parameter :: nb = block_zones

    !> A time step, the same for all blocks.
    type, public :: step_t
        real(r8) :: dt = 0.0_r8
        real(r8) :: steepness = 2.0_r8   !< of the limiter, see ember_slopes
        class(eos_t), pointer :: eos => null()
        type(gravity_t), pointer :: gravity => null()
        type(flame_t), pointer :: flame => null()
        type(registers_t), pointer :: registers => null()
    end type step_t

    !> A block and, after `start`, a step of it. Areas are those of zones' faces.
    type, public :: block_t
        integer :: slot = 0, dims = 3
        real(r8) :: width(3) = 1.0_r8                           !< of zones
        real(r8) :: volume(first_guard:last_guard) = 1.0_r8     !< of zones
        type(half_step_t) :: half
        real(r8) :: dt_by_width(3) = 0.0_r8
        real(r8) :: inverse_volume(nb) = 1.0_r8
        real(r8) :: area_dt(row_first:row_last) = 0.0_r8        !< times dt, of upper faces in the first direction
        real(r8) :: across_dt(nb, 2:3) = 0.0_r8                 !< times dt, by direction
        real(r8) :: source_dt(nb) = 0.0_r8                      !< differences of area_dt: 0 in cartesian geometry
        type(face_registers_t) :: face(2, 3)                    !< (side, direction)
    contains
        procedure :: locate
        procedure :: start
    end type block_t

contains

    !> The place and the zones of a leaf.
    subroutine locate(self, mesh, leaf)
        class(block_t), intent(inout) :: self
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf

        self%slot = mesh%slot(leaf)
        self%dims = mesh%dims
        self%width = mesh%zone_size(mesh%tree%level(leaf))
        self%volume = mesh%zone_volumes(leaf)
    end subroutine locate

    !> A leaf and its faces in a step.
    subroutine start(self, mesh, leaf, step)
        class(block_t), intent(inout) :: self
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        type(step_t), intent(in) :: step
        real(r8) :: corner(3)
        integer :: i, direction, side

        call self%locate(mesh, leaf)
        self%half%by_width = 0.5_r8*step%dt/self%width
        if (mesh%dims == 2) self%half%by_width(3) = 0.0_r8
        self%half%by_radius = 0.0_r8
        self%half%steepness = step%steepness
        self%dt_by_width = step%dt/self%width
        self%inverse_volume = 1.0_r8/self%volume(1:nb)
        self%across_dt(:, 2) = step%dt*self%volume(1:nb)/self%width(2)
        self%across_dt(:, 3) = step%dt*self%volume(1:nb)/self%width(3)
        self%area_dt = step%dt*self%width(2)*self%width(3)
        if (mesh%geometry == cylindrical) then
            corner = mesh%block_corner(leaf)
            do i = first_guard, last_guard
                self%area_dt(i) = self%area_dt(i)*(corner(1) + i*self%width(1))
                self%half%by_radius(i) = 0.5_r8*step%dt/(corner(1) + (i - 0.5_r8)*self%width(1))
            end do
        end if
        self%source_dt = self%area_dt(1:nb) - self%area_dt(0:nb - 1)
        do direction = 1, mesh%dims
            do side = 1, 2
                self%face(side, direction)%at => step%registers%face(leaf, direction, side)
                self%face(side, direction)%open = mesh%boundary(side, direction) == outflow &
                    .and. on_boundary(mesh, leaf, direction, side)
            end do
        end do
    end subroutine start

end module ember_hydro_block
