!> The log of a run: a table, about one row per step, that grows during the run.
!>
!> Comma-separated, with a line of names. Sums over the domain are of the conserved variables; seconds are sums since the
!> start of the process; for the container, the bytes on huge and on base pages by the operating system's accounting. With
!> species or gravity, also: the largest density; for the whole domain, over the full angle, the burnt mass and the energy
!> released since the start of the process, the gravitational energy, the work of gravity, and the energy added to matter
!> that would have been too cold.
module ember_log
    use ember_hydro_work, only: ledger_t
    use ember_mesh, only: cylindrical, mesh_t, n_conserved
    use ember_scheme, only: in_gravity, region_name
    use ember_simulation, only: simulation_t
    use pw_error, only: error_t, exit_system
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_policy_t, pages_observe
    use pw_record, only: pages_record_t
    use pw_text, only: to_text
    implicit none
    private

    type, public :: log_t
        private
        character(:), allocatable :: path
        integer :: unit = 0
    contains
        procedure :: open => open_log
        procedure :: write => write_row
        procedure :: close => close_log
    end type log_t

    character(*), parameter :: names = 'step,time,dt,blocks,mass,momentum_1,momentum_2,momentum_3,energy,'// &
        'zone_updates_per_s,guards_s,hydro_s,fluxes_s,regrid_s,output_s,eos_s,huge_page_bytes,base_page_bytes'
    character(*), parameter :: more_names = ',gravity_s,largest_density,burnt_mass,released_energy,gravitational_energy,'// &
        'work_of_gravity,raised_energy'
    integer, parameter :: n_regions = 5   ! that every run has

contains

    !> Begin the log, of a run with only the Euler equations (`plain`) or with others. Exit code 4: the file cannot be written.
    subroutine open_log(self, path, plain, error)
        class(log_t), intent(inout) :: self
        character(*), intent(in) :: path
        logical, intent(in) :: plain
        type(error_t), intent(inout) :: error
        character(256) :: message
        integer :: status

        self%path = path
        if (len(path) == 0) return
        open (newunit=self%unit, file=path, action='write', status='replace', iostat=status, iomsg=message)
        if (status == 0) write (self%unit, '(a)', iostat=status, iomsg=message) names//more_names(:merge(0, len(more_names), plain))
        call check(self, status, message, error)
    end subroutine open_log

    !> Add a row: `totals` of the conserved variables, `seconds` of the last step, the largest density, and the
    !> ledger of all ranks.
    subroutine write_row(self, simulation, totals, seconds, densest, ledger, error)
        class(log_t), intent(inout) :: self
        type(simulation_t), intent(in) :: simulation
        real(r8), intent(in) :: totals(:), seconds, densest
        type(ledger_t), intent(in) :: ledger
        type(error_t), intent(inout) :: error
        type(pages_record_t) :: observed
        character(256) :: message
        character(:), allocatable :: row
        real(r8) :: round, potential
        integer(i8) :: huge_bytes
        integer :: i, status

        if (len(self%path) == 0) return
        associate (mesh => simulation%mesh)
            call pages_observe([mesh%memory], mesh%memory%policy, observed, error)
            if (error%failed()) return
            huge_bytes = observed%arrays(1)%huge_bytes
            row = to_text(simulation%step)//','//number(simulation%time)//','//number(simulation%dt)//','// &
                  to_text(mesh%tree%n_leaves)
            do i = 1, n_conserved
                row = row//','//number(totals(i))
            end do
            row = row//','//number(product(real(mesh%zones(), r8))*mesh%tree%n_leaves/seconds)
            do i = 1, n_regions
                row = row//','//number(simulation%region(i)%seconds)
            end do
            row = row//','//number(simulation%eos_seconds())//','//to_text(huge_bytes)//','// &
                  to_text(mesh%memory%bytes - huge_bytes)
            if (.not. simulation%is_plain()) then
                round = merge(2.0_r8*acos(-1.0_r8), 1.0_r8, mesh%geometry == cylindrical)
                potential = 0.0_r8
                if (simulation%gravity%on) potential = simulation%gravity%energy()
                row = row//','//number(simulation%region(in_gravity)%seconds)//','//number(densest)//','// &
                      number(round*ledger%burnt)//','//number(round*simulation%flame%release*ledger%burnt)// &
                      ','//number(potential)// &
                      ','//number(round*ledger%work)//','//number(round*ledger%raised)
            end if
        end associate
        write (self%unit, '(a)', iostat=status, iomsg=message) row
        if (status == 0) flush (self%unit, iostat=status, iomsg=message)
        call check(self, status, message, error)
    end subroutine write_row

    subroutine close_log(self)
        class(log_t), intent(inout) :: self

        if (allocated(self%path)) then
            if (len(self%path) > 0) close (self%unit)
        end if
    end subroutine close_log

    pure function number(value) result(text)
        real(r8), intent(in) :: value
        character(:), allocatable :: text

        text = to_text(value, 'es24.16e3')
    end function number

    subroutine check(self, status, message, error)
        type(log_t), intent(in) :: self
        integer, intent(in) :: status
        character(*), intent(in) :: message
        type(error_t), intent(inout) :: error

        if (status /= 0) call error%raise(exit_system, 'cannot write the log '//self%path//': '//trim(message), 'ember_log', &
                                          'free space, or choose another file with --log')
    end subroutine check

end module ember_log
