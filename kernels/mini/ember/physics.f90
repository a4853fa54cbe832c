!> The equation of state, the problem and its physics, as the parameters of a run request them.
module ember_physics
    use ember_eos, only: gamma_law_t
    use ember_helmholtz_eos, only: helmholtz_eos_t
    use ember_mesh, only: first_species
    use ember_nuclei, only: charge, mass_number
    use ember_parameters, only: parameters_t
    use ember_problems, only: new_problem
    use ember_simulation, only: simulation_t
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_pages, only: pages_policy_t
    implicit none
    private

    public :: set_up_physics

contains

    !> Equation of state, problem, and its physics in addition to hydrodynamics.
    subroutine set_up_physics(given, policy, simulation, error)
        type(parameters_t), intent(in) :: given
        type(pages_policy_t), intent(in) :: policy
        type(simulation_t), intent(inout) :: simulation
        type(error_t), intent(inout) :: error
        type(helmholtz_eos_t), allocatable :: degenerate

        if (given%problem == 'snia2d') then
            allocate (degenerate)
            degenerate%table%layout = given%table_layout
            call degenerate%start(given%eos_table, policy, mass_number, charge, given%lowest_temperature, error)
            call move_alloc(degenerate, simulation%eos)
        else
            simulation%eos = gamma_law_t(gamma=given%gamma, weight=given%weight)
        end if
        if (.not. error%failed()) call new_problem(given, simulation%problem, error, simulation%eos)
        call simulation%comm%agree(error)
        if (error%failed()) return
        call simulation%problem%equip(simulation%mesh, simulation%gravity, simulation%flame)
        if (simulation%gravity%on) then
            simulation%refinement%dense_level = given%star_level
            simulation%refinement%dense = given%star_above
        end if
        if (simulation%flame%on) then
            simulation%refinement%front = first_species + simulation%flame%ash - 1
            simulation%refinement%front_dense = given%flame_quench
            if (given%problem == 'flame') simulation%refinement%front_dense = 0.0_r8
        end if
    end subroutine set_up_physics

end module ember_physics
