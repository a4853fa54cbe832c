!> The parameters of pw-ember, options of the command line.
!>
!> Order of calls: `options%start`, `declare_parameters`, `options%parse`, and, unless help or a list was requested,
!> `read_parameters`. Parameters that are not given have the default of the problem, or the one that --help shows. Lengths,
!> masses and times have any consistent units.
module ember_parameters
    use ember_container, only: block_bytes
    use ember_mesh, only: block_zones, cartesian, guard_zones, mesh_t, outflow, v_game
    use ember_parameter_options, only: variable_name
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_policy_t
    implicit none
    private

    type, public :: parameters_t
        character(:), allocatable :: problem
        integer :: dims = 3, geometry = cartesian
        integer :: block_size = block_zones, guards = guard_zones   !< zones and guard cells of a block in each direction
        logical :: variable_last = .false.                !< layout soa
        logical :: split = .false.                        !< scheme flash
        logical :: steep = .true.                         !< its contacts
        integer :: n_species = 0
        character(4), allocatable :: species(:)           !< their names
        logical :: parents = .false.                      !< parents of blocks have data
        integer :: padding = 0                            !< variables of a zone that nothing reads
        integer(i8) :: memory = 0                         !< of the container, on all ranks together [B]
        integer :: max_blocks = 0                         !< of the container of each rank; 0: by memory
        logical :: static = .false.                       !< the container is part of a large array of the program
        integer :: threads = 1                            !< of a rank
        type(pages_policy_t) :: policy
        integer :: roots(3) = 1, lowest_level = 0, highest_level = 0
        real(r8) :: lower(3) = 0.0_r8, upper(3) = 1.0_r8
        integer :: boundary(2, 3) = outflow
        integer :: steps = 0                              !< at most
        real(r8) :: end_time = 0.0_r8
        real(r8) :: cfl = 0.8_r8                          !< share of the longest stable step
        real(r8) :: first_step = 1.0_r8                   !< share of that, of the first step
        real(r8) :: gamma = 1.4_r8, weight = 1.0_r8       !< mean molecular weight
        real(r8) :: steepness = 2.0_r8                    !< of the limiter: 1 minmod, 2 monotonised central
        integer :: regrid_interval = 1                    !< steps
        integer, allocatable :: refine_variables(:)
        real(r8) :: refine_above = 0.8_r8, coarsen_below = 0.2_r8, refine_filter = 0.01_r8
        character(:), allocatable :: output               !< folder and first part of the names of plotfiles
        character(:), allocatable :: log, record, norms   !< files; empty: none
        integer :: log_interval = 1                       !< steps
        integer :: plot_interval = 0                      !< steps; 0: none
        real(r8) :: plot_time = 0.0_r8                    !< 0: none
        logical :: single_precision = .true.              !< of plotfiles
        logical :: errors = .false.                       !< compare with the exact solution
        real(r8) :: sedov_energy = 1.0_r8                 !< of the whole explosion
        real(r8) :: sedov_radius = 3.5_r8                 !< of the ball that holds it first [finest zones]
        real(r8) :: sedov_density = 1.0_r8, sedov_pressure = 0.0_r8 !< of the gas around
        logical :: octant = .false.
        integer :: sod_direction = 1
        real(r8) :: flame_speed = 0.0_r8                  !< 0: that of carbon and oxygen
        real(r8) :: flame_release = 0.0_r8                !< energy by mass of ash
        real(r8) :: flame_quench = 0.0_r8                 !< density below which nothing burns
        real(r8) :: star_density = 0.0_r8                 !< in the centre [g/cm^3]
        real(r8) :: star_temperature = 0.0_r8             !< [K]
        real(r8) :: ambient_density = 0.0_r8              !< around the star [g/cm^3]
        real(r8) :: lowest_temperature = 0.0_r8           !< of degenerate matter [K]
        real(r8) :: ignition_radius = 0.0_r8, ignition_offset = 0.0_r8   !< [cm]
        integer :: star_level = 0                         !< the lowest level of the star's blocks
        real(r8) :: star_above = 0.0_r8                   !< blocks with such a density are the star's [g/cm^3]
        character(:), allocatable :: eos_table            !< file
        integer :: table_layout = 0                       !< of it in memory
        real(r8) :: wave_amplitude = 0.2_r8               !< share of the mean density
        real(r8) :: wave_speed = 1.0_r8                   !< of the gas in each direction [domain lengths a time]
    contains
        procedure :: set_up_mesh
        procedure :: container_bytes
    end type parameters_t

contains

    !> Set the mesh's parameters before its tree and its container are created.
    subroutine set_up_mesh(self, mesh)
        class(parameters_t), intent(in) :: self
        type(mesh_t), intent(inout) :: mesh

        call mesh%set_shape(self%block_size, self%guards)
        mesh%dims = self%dims
        mesh%geometry = self%geometry
        mesh%variable_last = self%variable_last
        mesh%n_species = self%n_species
        mesh%parents = self%parents
        mesh%n_variables = size(variable_name) + self%n_species + self%padding
        if (self%split) mesh%n_variables = v_game + self%padding
        mesh%lowest_level = self%lowest_level
        mesh%highest_level = self%highest_level
        mesh%boundary = self%boundary
        mesh%lower = self%lower
        mesh%upper = self%upper
        mesh%tree%roots = self%roots
    end subroutine set_up_mesh

    !> Bytes of the container of a rank, whose mesh is set up.
    pure integer(i8) function container_bytes(self, mesh)
        class(parameters_t), intent(in) :: self
        type(mesh_t), intent(in) :: mesh

        container_bytes = self%memory/mesh%n_ranks
        if (self%max_blocks > 0) container_bytes = self%max_blocks*block_bytes(mesh)
    end function container_bytes

end module ember_parameters
