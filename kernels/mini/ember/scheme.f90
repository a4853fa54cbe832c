!> A scheme: how all blocks of a rank are advanced by a time step. ember_planes and ember_split extend it.
module ember_scheme
    use ember_eos, only: eos_t
    use ember_flame, only: flame_t
    use ember_fluxes, only: registers_t
    use ember_gravity, only: gravity_t
    use ember_guards, only: guards_t
    use ember_hydro_work, only: ledger_t
    use ember_mesh, only: mesh_t
    use ember_parallel, only: comm_t
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_region, only: region_t
    implicit none
    private

    !> The measured regions of a step. The equation of state has its own region if it is called separately from the scheme:
    !> with species or gravity.
    integer, parameter, public :: in_guards = 1, in_hydro = 2, in_fluxes = 3, in_regrid = 4, in_output = 5, in_gravity = 6, &
                                  in_eos = 7
    character(*), parameter, public :: region_name(7) = ['guards ', 'hydro  ', 'fluxes ', 'regrid ', 'output ', 'gravity', &
                                                         'eos    ']

    !> Reconstructions of the state in a zone.
    integer, parameter, public :: minmod = 1, central = 2, parabolic = 3

    !> What a step uses and changes.
    type, public :: parts_t
        type(mesh_t), pointer :: mesh => null()
        type(comm_t), pointer :: comm => null()
        type(guards_t), pointer :: guards => null()
        type(registers_t), pointer :: registers => null()
        class(eos_t), pointer :: eos => null()
        type(gravity_t), pointer :: gravity => null()
        type(flame_t), pointer :: flame => null()
        type(region_t), pointer :: region(:) => null()
        real(r8), pointer :: lost(:) => null()             !< grows by what leaves through outflow boundaries
        type(ledger_t), pointer :: ledger => null()        !< grows
        logical :: adaptive = .true.                       !< blocks may have several levels
    end type parts_t

    type, abstract, public :: scheme_t
        logical :: from_guards = .true.     !< a step starts from filled guard cells
    contains
        procedure(start_work), deferred :: start
        procedure(advance_all), deferred :: advance
        procedure(derive_all), deferred :: derive
        procedure(rate_of_all), deferred :: largest_rate
        procedure(mean_seconds), deferred :: eos_seconds
        procedure(count_values), deferred :: values_per_update
        procedure(get_reconstruction), deferred :: reconstruction
    end type scheme_t

    abstract interface
        !> Work space of `threads` threads, for the mesh's species and with gravity or without.
        subroutine start_work(self, threads, mesh, gravity)
            import :: mesh_t, scheme_t
            class(scheme_t), intent(inout) :: self
            integer, intent(in) :: threads
            type(mesh_t), intent(in) :: mesh
            logical, intent(in) :: gravity
        end subroutine start_work

        !> Advance the state by `dt`: step number `step`, counted from 1. exit_check: a zone has no pressure.
        subroutine advance_all(self, parts, step, dt, error)
            import :: error_t, parts_t, r8, scheme_t
            class(scheme_t), intent(inout) :: self
            type(parts_t), intent(in) :: parts
            integer, intent(in) :: step
            real(r8), intent(in) :: dt
            type(error_t), intent(inout) :: error
        end subroutine advance_all

        !> Derived variables of this rank's leaves from their conserved ones; after the tree has changed, of those that are
        !> marked in `fresh`. exit_check: a zone has no pressure.
        subroutine derive_all(self, parts, error, fresh)
            import :: error_t, parts_t, scheme_t
            class(scheme_t), intent(inout) :: self
            type(parts_t), intent(in) :: parts
            type(error_t), intent(inout) :: error
            logical, intent(in), optional :: fresh(:)
        end subroutine derive_all

        !> The rate of this rank's zones whose inverse bounds the time step.
        real(r8) function rate_of_all(self, mesh)
            import :: mesh_t, r8, scheme_t
            class(scheme_t), intent(inout) :: self
            type(mesh_t), intent(in) :: mesh
        end function rate_of_all

        !> Time in the equation of state within the scheme, the mean over the threads.
        pure real(r8) function mean_seconds(self)
            import :: r8, scheme_t
            class(scheme_t), intent(in) :: self
        end function mean_seconds

        !> Values per zone and step that the scheme reads and writes.
        pure real(r8) function count_values(self, mesh)
            import :: mesh_t, r8, scheme_t
            class(scheme_t), intent(in) :: self
            type(mesh_t), intent(in) :: mesh
        end function count_values

        pure integer function get_reconstruction(self)
            import :: scheme_t
            class(scheme_t), intent(in) :: self
        end function get_reconstruction
    end interface

end module ember_scheme
