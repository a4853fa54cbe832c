!> A problem: an initial state for any mesh and, of some, the exact solution.
module ember_problem
    use ember_container, only: make_view, view_t
    use ember_flame, only: flame_t
    use ember_gravity, only: gravity_t
    use ember_mesh, only: cylindrical, first_species, mesh_t, n_conserved, v_dens, v_ener, v_momx, v_momz, v_temp
    use ember_parameters, only: parameters_t
    use pw_kinds, only: r8
    implicit none
    private

    type, abstract, public :: problem_t
        integer :: dims = 3
        logical :: cylindrical = .false.         !< directions are r and z
        real(r8) :: gamma = 1.4_r8
        real(r8) :: lower(3) = 0.0_r8, length(3) = 1.0_r8   !< of the domain
    contains
        procedure :: describe
        procedure :: equip
        procedure(fill_leaf), deferred :: fill
    end type problem_t

    !> One with an exact solution, which is also its initial state.
    type, abstract, extends(problem_t), public :: known_problem_t
    contains
        procedure :: fill => fill_exact
        procedure(exact_averages), deferred :: exact
    end type known_problem_t

    abstract interface
        !> Set the conserved variables and species of the interior of `leaf`, which has a slot here. Thread-safe for different
        !> leaves.
        subroutine fill_leaf(self, mesh, leaf)
            import :: mesh_t, problem_t
            class(problem_t), intent(in) :: self
            type(mesh_t), intent(inout) :: mesh
            integer, intent(in) :: leaf
        end subroutine fill_leaf

        !> The exact solution at `time`, averaged over the box from `lower` to `upper` (a zone; in 2-d their third numbers
        !> are unused): density, momentum divided by density, pressure. It holds for an infinite domain, or for a periodic
        !> one.
        pure subroutine exact_averages(self, time, lower, upper, dens, velocity, pres)
            import :: known_problem_t, r8
            class(known_problem_t), intent(in) :: self
            real(r8), intent(in) :: time, lower(3), upper(3)
            real(r8), intent(out) :: dens, velocity(3), pres
        end subroutine exact_averages
    end interface

    public :: put

contains

    !> Set the data of all problems.
    subroutine describe(self, given)
        class(problem_t), intent(inout) :: self
        type(parameters_t), intent(in) :: given

        self%dims = given%dims
        self%cylindrical = given%geometry == cylindrical
        self%gamma = given%gamma
        self%lower = given%lower
        self%length = given%upper - given%lower
    end subroutine describe

    !> Enable the problem's additional physics: gravity, a flame. The mesh has its shape, but no blocks yet.
    subroutine equip(self, mesh, gravity, flame)
        class(problem_t), intent(in) :: self
        type(mesh_t), intent(in) :: mesh
        type(gravity_t), intent(inout) :: gravity
        type(flame_t), intent(inout) :: flame

        associate (unused => [self%dims, mesh%dims])
        end associate
        gravity%on = .false.
        flame%on = .false.
    end subroutine equip

    !> The exact solution at time 0.
    subroutine fill_exact(self, mesh, leaf)
        class(known_problem_t), intent(in) :: self
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        real(r8) :: corner(3), width(3), dens, velocity(3), pres, state(n_conserved)
        integer :: i, j, k, zones(3)

        zones = mesh%zones()
        width = mesh%zone_size(mesh%tree%level(leaf))
        corner = mesh%block_corner(leaf)
        do k = 1, zones(3)
            do j = 1, zones(2)
                do i = 1, zones(1)
                    call self%exact(0.0_r8, corner + width*[i - 1, j - 1, k - 1], corner + width*[i, j, k], dens, velocity, pres)
                    state(v_dens) = dens
                    state(v_momx:v_momz) = dens*velocity
                    state(v_ener) = pres/(self%gamma - 1.0_r8) + 0.5_r8*dens*sum(velocity**2)
                    call put(mesh, leaf, [i, j, k], state)
                end do
            end do
        end do
    end subroutine fill_exact

    !> Set the zone at `place` of a leaf; species have the mass fractions `fraction`, or by default equal ones. `temp`: a
    !> first guess of the temperature.
    subroutine put(mesh, leaf, place, state, fraction, temp)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf, place(3)
        real(r8), intent(in) :: state(n_conserved)
        real(r8), intent(in), optional :: fraction(:), temp
        real(r8) :: species(mesh%n_species)
        type(view_t) :: view
        integer :: at, v

        if (mesh%n_species > 0) species = state(v_dens)/mesh%n_species
        if (present(fraction)) species = state(v_dens)*fraction
        call make_view(mesh, mesh%slot(leaf), view)
        at = view%origin + sum(view%zone*place)
        if (present(temp)) view%values(at + v_temp*view%variable) = temp
        do v = 1, n_conserved
            view%values(at + v*view%variable) = state(v)
        end do
        do v = 1, mesh%n_species
            view%values(at + (first_species + v - 1)*view%variable) = species(v)
        end do
    end subroutine put

end module ember_problem
