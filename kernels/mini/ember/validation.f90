!> Whether the state of a run is right: conservation, and the state itself against the exact solution and committed norms.
!>
!> Wrong states conserve too: a limiter that is skipped keeps mass and energy to the last digit. Where neither an exact
!> solution nor norms are known, the record's checks and its method show that only conservation was checked.
module ember_validation
    use ember_hydro_work, only: ledger_t
    use ember_mesh, only: mesh_t, n_conserved, outflow, v_dens, v_ener
    use ember_problems, only: sedov_problem_t, sod_problem_t, wave_problem_t
    use ember_reference, only: find_norms
    use ember_simulation, only: simulation_t
    use ember_solution_errors, only: blast_radius, density_error
    use pw_deviation, only: worse, worst_of
    use pw_kinds, only: r8
    use pw_record, only: check_t, validation_t
    implicit none
    private

    !> Rounding errors of sums over 1e8 zones in 1e3 steps are some 1e-13 of the total.
    real(r8), parameter :: conservation_tolerance = 1.0e-11_r8

    !> How far norms of right builds lie apart, and of wrong ones: docs/reference/ember.md.
    real(r8), parameter :: norms_tolerance = 1.0e-9_r8

    !> Bounds of the mean error of the density, by reconstruction (docs/reference/ember.md): scheme planes with both limiters,
    !> scheme flash. In sod times (zone width/length)**0.9, because of the contact; in wave times its square, the amplitude and the
    !> path in domain lengths.
    real(r8), parameter :: sod_bound(3) = [0.80_r8, 0.45_r8, 0.20_r8], sod_order = 0.9_r8, latest_sod = 0.25_r8
    real(r8), parameter :: wave_bound(3) = [150.0_r8, 50.0_r8, 30.0_r8], wave_order = 2.0_r8
    !> The explosion is similar to itself when it has left its first ball far behind; the radius of its shock is then right to
    !> 0.8 of a zone, in scheme flash to 1.0, because parabolas are flattened in shocks. Bounds in zones.
    real(r8), parameter :: similar_from = 2.0_r8, sedov_bound(3) = [1.0_r8, 1.0_r8, 1.4_r8]

    public :: validate_state

contains

    !> Check the state of `simulation`, whose totals were `first` before its steps and are `last`. `key`: of the state,
    !> empty if unknown; `norm`: its norms.
    subroutine validate_state(simulation, first, last, key, norm, validation)
        type(simulation_t), intent(in) :: simulation
        real(r8), intent(in) :: first(:), last(:), norm(:, :)
        character(*), intent(in) :: key
        type(validation_t), intent(out) :: validation
        type(check_t), allocatable :: exact(:), norms(:)

        call check_conservation(simulation, first, last, norm, validation)
        allocate (exact(0))
        select type (problem => simulation%problem)
        type is (sod_problem_t)
            call check_sod(simulation, problem, exact)
        type is (wave_problem_t)
            call check_wave(simulation, problem, exact)
        type is (sedov_problem_t)
            call check_sedov(simulation, problem, exact)
        end select
        call check_norms(key, norm, norms)
        validation%checks = [validation%checks, exact, norms]
        if (size(exact) > 0) validation%method = validation%method//'; the exact solution'
        if (size(norms) > 0) validation%method = validation%method//'; the committed norms of this state'
        if (size(validation%checks) == 1) validation%method = validation%method// &
            '; only conservation, because no exact solution and no norms of this state are known'
        call summarise(validation)
    end subroutine validate_state

    !> Mass and energy are conserved, except for losses through outflow boundaries and the contributions of gravity and
    !> flame; ash is the burnt mass; species add up to the density; and all variables are numbers.
    subroutine check_conservation(simulation, first, last, norm, validation)
        type(simulation_t), intent(in) :: simulation
        real(r8), intent(in) :: first(:), last(:), norm(:, :)
        type(validation_t), intent(inout) :: validation
        real(r8) :: change(size(first)), error
        real(r8), allocatable :: lost(:)
        type(ledger_t) :: ledger

        validation%method = 'mass and energy of the domain, corrected for outflow'
        associate (flame => simulation%flame)
            call simulation%comm%all_gather(simulation%lost, lost)
            change = last - first + sum(reshape(lost, [size(first), simulation%comm%n_ranks]), dim=2)
            ledger = simulation%whole_ledger()
            change(v_ener) = change(v_ener) - (flame%release*ledger%burnt + ledger%work + ledger%raised)
            error = worst_of(abs([change(v_dens)/first(v_dens), change(v_ener)/first(v_ener)]))
            if (.not. simulation%is_plain()) then
                validation%method = 'mass, energy and ash of the domain, corrected for outflow, gravity and burning, and the '// &
                    'sum of species'
                if (flame%on) error = worse(error, abs((change(n_conserved + flame%ash) - ledger%burnt)/first(v_dens)))
                error = worse(error, abs((sum(last(n_conserved + 1:)) - last(v_dens))/first(v_dens)))
            end if
        end associate
        ! A number adds nothing, anything else the largest error.
        error = worse(error, worst_of(-abs(last)))
        error = worse(error, worst_of(-reshape(norm, [size(norm)])))
        validation%checks = [check_t('conservation', error, conservation_tolerance)]
    end subroutine check_conservation

    !> Until the waves reach the ends, which must let them pass.
    subroutine check_sod(simulation, problem, checks)
        type(simulation_t), intent(in) :: simulation
        type(sod_problem_t), intent(in) :: problem
        type(check_t), allocatable, intent(inout) :: checks(:)

        associate (mesh => simulation%mesh, d => problem%direction)
            if (any(mesh%boundary(:, d) /= outflow) .or. simulation%time > latest_sod*problem%length(d)) return
            checks = [check_t('exact', density_error(simulation, problem), &
                              sod_bound(simulation%scheme%reconstruction())*(coarsest(mesh, d)/problem%length(d))**sod_order)]
        end associate
    end subroutine check_sod

    subroutine check_wave(simulation, problem, checks)
        type(simulation_t), intent(in) :: simulation
        type(wave_problem_t), intent(in) :: problem
        type(check_t), allocatable, intent(inout) :: checks(:)
        real(r8) :: width(3), path(3)
        integer :: d

        associate (mesh => simulation%mesh)
            path = max(abs(problem%velocity), 1.0_r8)*simulation%time/problem%length
            width = [(coarsest(mesh, d), d=1, 3)]/problem%length
            checks = [check_t('exact', density_error(simulation, problem), norms_tolerance &
                              + wave_bound(simulation%scheme%reconstruction())*problem%amplitude &
                              *sum(path(:mesh%dims)*width(:mesh%dims)**wave_order))]
        end associate
    end subroutine check_wave

    !> While the shock is inside the domain, in gas without much pressure.
    subroutine check_sedov(simulation, problem, checks)
        type(simulation_t), intent(in) :: simulation
        type(sedov_problem_t), intent(in) :: problem
        type(check_t), allocatable, intent(inout) :: checks(:)
        real(r8) :: exact

        exact = problem%shock_radius(simulation%time)
        if (.not. problem%is_similar(simulation%time, similar_from)) return
        checks = [check_t('exact', abs(blast_radius(simulation, problem) - exact), &
                          sedov_bound(simulation%scheme%reconstruction())*coarsest(simulation%mesh, 1))]
    end subroutine check_sedov

    !> The norms of this state, if they are known.
    subroutine check_norms(key, norm, checks)
        character(*), intent(in) :: key
        real(r8), intent(in) :: norm(:, :)
        type(check_t), allocatable, intent(out) :: checks(:)
        real(r8), allocatable :: known(:, :)
        real(r8) :: error
        logical :: is_present
        integer :: q

        allocate (checks(0))
        call find_norms(key, size(norm, 2), known, is_present)
        if (.not. is_present) return
        error = 0.0_r8
        do q = 1, size(norm, 2)
            error = worse(error, worst_of(abs(norm(:, q) - known(:, q))/max(known(:, q), tiny(1.0_r8))))
        end do
        checks = [check_t('norms', error, norms_tolerance)]
    end subroutine check_norms

    !> The outcome: that of the check whose error is the largest part of its tolerance.
    subroutine summarise(validation)
        type(validation_t), intent(inout) :: validation
        integer :: i

        i = maxloc(validation%checks%error/validation%checks%tolerance, dim=1)
        validation%error = validation%checks(i)%error
        validation%tolerance = validation%checks(i)%tolerance
        validation%passed = all(validation%checks%error <= validation%checks%tolerance)
    end subroutine summarise

    !> The width of the coarsest zones.
    pure real(r8) function coarsest(mesh, direction)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: direction
        real(r8) :: width(3)

        width = mesh%zone_size(minval(mesh%tree%level(:mesh%tree%n_leaves)))
        coarsest = width(direction)
    end function coarsest

end module ember_validation
