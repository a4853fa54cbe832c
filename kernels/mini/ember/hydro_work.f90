!> The work space of a thread in the hydrodynamic update, and the ledger of what changes zones apart from fluxes.
module ember_hydro_work
    use ember_godunov, only: faces_t, n_primitive, n_sloped, row_first, row_last
    use ember_mesh, only: block_zones, first_guard, last_guard, n_conserved
    use ember_species, only: matter_t
    use pw_error, only: error_t
    use pw_kinds, only: i4, r8
    use pw_region, only: region_handle
    implicit none
    private

    integer, parameter :: nb = block_zones

    !> Additional work space of a thread with species or gravity.
    type, public :: extra_t
        type(matter_t) :: matter(0:1)                  ! of a row and the previous one
        real(r8), allocatable :: fraction(:, :, :, :)  ! (zone, species, row, one of three planes)
        real(r8), allocatable :: burning(:, :, :)      ! (zone, row, one of three planes), mass per area and time
        logical :: burns(0:2) = .false.                ! (one of three planes)
        real(r8), allocatable :: upper(:, :, :), upper_gas(:, :, :)   ! (zone, what, row): as `upper`
        real(r8), allocatable :: pull(:, :, :)         ! (zone, direction, row), acceleration
        real(r8), allocatable :: rise(:, :, :)         ! (zone, direction, row), pressure that balances it across a zone
        real(r8), allocatable :: carried(:, :, :)      ! (zone, direction, row), flux of mass, mean of both faces
        real(r8), allocatable :: bend(:, :)            ! (zone, direction): of the pressure in a row
    end type extra_t

    !> The work space of a thread, its time in the equation of state, and its failure. Plane k is number modulo(k, 3) of
    !> three, and modulo(k, 2) of two; row j modulo(j, 2) of two.
    type, public :: scratch_t
        real(r8), allocatable :: plane(:, :, :, :)   ! (zone, variable, row, one of three planes), primitive
        real(r8), allocatable :: slope(:, :, :)      ! (zone, direction, variable) of a row
        type(faces_t), allocatable :: faces(:)       ! of a row and the previous one
        real(r8), allocatable :: upper(:, :, :)      ! (zone, variable, row): upper faces in the third direction, plane before
        real(r8), allocatable :: flux(:, :)          ! (face, conserved variable or species) of a row
        real(r8), allocatable :: change(:, :, :, :)  ! (zone, conserved variable or species, row, one of two planes)
        real(r8), allocatable :: state(:, :, :)      ! (zone, row, variable), conserved
        real(r8), allocatable, dimension(:, :) :: dens, eint, temp, pres, gamc   ! (zone, row)
        real(r8), allocatable :: fraction(:, :)      ! (zone, species) of a plane
        integer(i4) :: in_eos = -1                   ! region
        real(r8) :: eos_seconds = 0.0_r8
        type(error_t) :: error
        type(extra_t), allocatable :: extra
    contains
        procedure :: start
    end type scratch_t

    !> Changes of zones other than fluxes; in cylindrical geometry per radian.
    type, public :: ledger_t
        real(r8) :: burnt = 0.0_r8    !< mass that became ash
        real(r8) :: work = 0.0_r8     !< work of gravity
        real(r8) :: raised = 0.0_r8   !< energy added to matter that would have been too cold
    end type ledger_t

contains

    !> Allocate, for a mesh with `n_species` and with gravity or without; values are chosen so that zones beyond the guard
    !> cells have no effect.
    subroutine start(self, n_species, gravity)
        class(scratch_t), intent(inout) :: self
        integer, intent(in) :: n_species
        logical, intent(in) :: gravity
        integer :: i

        if (allocated(self%plane)) return
        allocate (self%plane(row_first:row_last, n_primitive, first_guard:last_guard, 0:2), source=1.0_r8)
        allocate (self%faces(0:1))
        allocate (self%upper(row_first:row_last, n_sloped, nb), source=1.0_r8)
        allocate (self%slope(row_first:row_last, 3, n_sloped), self%flux(row_first:row_last, n_conserved + n_species), &
                  self%change(nb, n_conserved + n_species, nb, 0:1), source=0.0_r8)
        allocate (self%state(nb, nb, n_conserved), source=1.0_r8)
        allocate (self%dens(nb, nb), self%eint(nb, nb), self%temp(nb, nb), self%pres(nb, nb), self%gamc(nb, nb))
        allocate (self%fraction(nb*nb, n_species), source=0.0_r8)
        ! A plane of a simple equation of state takes less time than reading counters.
        self%in_eos = region_handle('eos', counted=n_species > 0 .or. gravity)
        if (n_species == 0 .and. .not. gravity) return
        allocate (self%extra)
        associate (extra => self%extra, ns => n_species)
            do i = 0, 1
                call extra%matter(i)%start(ns)
            end do
            allocate (extra%fraction(row_first:row_last, ns, first_guard:last_guard, 0:2), &
                      extra%upper(row_first:row_last, ns, nb), extra%upper_gas(row_first:row_last, n_primitive, nb), &
                      extra%burning(row_first:row_last, first_guard:last_guard, 0:2), &
                      extra%pull(row_first:row_last, 2, first_guard:last_guard), &
                      extra%rise(row_first:row_last, 2, first_guard:last_guard), extra%carried(nb, 2, nb), &
                      extra%bend(row_first:row_last, 2), source=0.0_r8)
        end associate
    end subroutine start

end module ember_hydro_work
