!> Problem flame: a plane front of the model flame, through a uniform gas at rest, moving along x.
!>
!> Without release the gas stays at rest and the front moves with the flame's speed, into fuel; the density stays
!> uniform. With release, and `--boundary-x-lower outflow`, the ash expands and leaves behind the front, and the fuel stays
!> at rest. The front starts at a quarter of the domain, with its final width.
module ember_flame_front
    use ember_flame, only: flame_t
    use ember_gravity, only: gravity_t
    use ember_mesh, only: mesh_t, n_conserved, v_dens, v_ener
    use ember_parameters, only: parameters_t
    use ember_problem, only: problem_t, put
    use pw_kinds, only: r8
    implicit none
    private

    type, extends(problem_t), public :: flame_problem_t
        type(flame_t), private :: flame
    contains
        procedure :: start
        procedure :: equip
        procedure :: fill => fill_front
    end type flame_problem_t

contains

    subroutine start(self, given)
        class(flame_problem_t), intent(inout) :: self
        type(parameters_t), intent(in) :: given
        type(mesh_t) :: mesh
        real(r8) :: width(3), expansion

        call self%describe(given)
        call given%set_up_mesh(mesh)
        width = mesh%zone_size(mesh%highest_level)
        self%flame%on = .true.
        self%flame%zone = width(1)
        self%flame%speed = given%flame_speed
        self%flame%release = given%flame_release
        ! The ash of a perfect gas, burnt at the pressure 1 from the density 1: hotter by release/cp.
        expansion = 1.0_r8 + given%flame_release*(given%gamma - 1.0_r8)/given%gamma
        self%flame%atwood = spread((expansion - 1.0_r8)/(expansion + 1.0_r8), 1, 2)
    end subroutine start

    !> As problem_t%equip.
    subroutine equip(self, mesh, gravity, flame)
        class(flame_problem_t), intent(in) :: self
        type(mesh_t), intent(in) :: mesh
        type(gravity_t), intent(inout) :: gravity
        type(flame_t), intent(inout) :: flame

        associate (unused => mesh)
        end associate
        flame = self%flame
        gravity%on = .false.
    end subroutine equip

    !> As problem_t%fill.
    subroutine fill_front(self, mesh, leaf)
        class(flame_problem_t), intent(in) :: self
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        real(r8) :: state(n_conserved), width(3), corner(3), burnt, place
        integer :: i, j, k, zones(3)

        zones = mesh%zones()
        width = mesh%zone_size(mesh%tree%level(leaf))
        corner = mesh%block_corner(leaf)
        do i = 1, zones(1)
            ! Density and pressure 1.
            state = 0.0_r8
            state(v_dens) = 1.0_r8
            state(v_ener) = 1.0_r8/(self%gamma - 1.0_r8)
            place = (corner(1) + (i - 0.5_r8)*width(1) - self%lower(1) - 0.25_r8*self%length(1))/(4.0_r8*self%flame%zone)
            burnt = min(max(0.5_r8 - place, 0.0_r8), 1.0_r8)
            do k = 1, zones(3)
                do j = 1, zones(2)
                    call put(mesh, leaf, [i, j, k], state, [1.0_r8 - burnt, burnt])
                end do
            end do
        end do
    end subroutine fill_front

end module ember_flame_front
