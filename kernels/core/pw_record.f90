!> The facts of one measurement.
module pw_record
    use pw_kinds, only: i4, i8, r8
    implicit none
    private

    !> Facts of the build, known when the program is compiled.
    type, public :: configuration_t
        character(:), allocatable :: version            !< of the project
        character(:), allocatable :: compiler           !< of Fortran and C, such as gcc-12.2.0
        character(:), allocatable :: compiler_version   !< as the Fortran compiler reports it
        character(:), allocatable :: compiler_options   !< as the Fortran compiler reports them
        character(:), allocatable :: hugepages, prefetch, stores, loop
        character(:), allocatable :: simd               !< SIMD width; empty: as the compiler's flags set it
        character(:), allocatable :: sector             !< sectors of the caches; empty: none
        character(:), allocatable :: library            !< called instead of the system's; empty: none
        character(:), allocatable :: library_file       !< of that library, as linked; then as loaded
        character(:), allocatable :: runtime            !< of OpenMP: libgomp, libomp; as linked; then as loaded
        character(:), allocatable :: runtime_file, runtime_version, runtime_build   !< of the one loaded
        logical :: openmp = .false., papi = .false.
    end type configuration_t

    !> A figure derived from a measurement; `field` carries the unit, such as latency_ns.
    type, public :: metric_t
        character(:), allocatable :: field
        real(r8) :: value = 0.0_r8
    end type metric_t

    !> Traffic of one repetition.
    type, public :: traffic_t
        real(r8) :: bytes_stream = 0.0_r8     !< bytes that the source names
        real(r8) :: bytes_hardware = 0.0_r8   !< with write-allocate
        real(r8) :: flops = 0.0_r8
    end type traffic_t

    !> One of several checks of a result.
    type, public :: check_t
        character(:), allocatable :: name
        real(r8) :: error = huge(1.0_r8), tolerance = 0.0_r8
    end type check_t

    !> Outcome of comparing a result with its closed form or a second algorithm. With several `checks`, error and tolerance
    !> are of the one that is nearest to failing.
    type, public :: validation_t
        logical :: passed = .false.
        character(:), allocatable :: method
        real(r8) :: error = huge(1.0_r8)      !< largest deviation, in the measure that `method` names
        real(r8) :: tolerance = 0.0_r8
        type(check_t), allocatable :: checks(:)
    end type validation_t

    !> The kernel's accounting of one array's mapping.
    type, public :: array_record_t
        character(:), allocatable :: name
        integer(i8) :: bytes = 0, huge_bytes = 0, page_size_observed = 0
    end type array_record_t

    type, public :: pages_record_t
        character(:), allocatable :: policy, method
        integer(i8) :: page_size_requested = 0, page_size_observed = 0
        real(r8) :: huge_coverage = 0.0_r8
        type(array_record_t), allocatable :: arrays(:)
    end type pages_record_t

    !> An event that was requested and is not counted.
    type, public :: refusal_t
        character(:), allocatable :: event, reason
    end type refusal_t

    !> Counted events, or why none was counted.
    type, public :: counters_record_t
        character(:), allocatable :: unavailable
        character(:), allocatable :: source            !< papi, perf_event, software
        character(128), allocatable :: event(:)
        integer(i8), allocatable :: count(:)
        type(refusal_t), allocatable :: refused(:)     !< if others are counted
    end type counters_record_t

    !> A measured region: sums over all calls.
    type, public :: region_record_t
        character(:), allocatable :: name, path        !< path: preceded by the enclosing regions, 'step/hydro'
        integer(i8) :: calls = 0                       !< of all threads
        integer(i4) :: threads = 0                     !< that entered it
        real(r8) :: seconds = 0.0_r8                   !< of the thread with the most
        real(r8) :: seconds_mean = 0.0_r8              !< mean over these threads
        real(r8) :: seconds_exclusive = 0.0_r8         !< their mean, without the regions inside on the same thread
        integer(i8), allocatable :: count(:)           !< per event, over all threads; empty if unknown
        integer(i8), allocatable :: most(:)            !< per event, of the thread with the most; as long as `count`
    end type region_record_t

    !> CPU and NUMA node of each thread when the timed part begins and ends.
    type, public :: placement_t
        integer(i4), allocatable :: cpus(:), numa_nodes(:), cpus_at_end(:), numa_nodes_at_end(:)
        integer(i4), allocatable :: migrated(:)        !< 1: on another CPU after some repetition, else 0
        integer(i8) :: last_level_cache = 0            !< bytes next to the CPUs that the run may use; 0: unknown
    end type placement_t

    type, public :: record_t
        character(:), allocatable :: kernel, started
        type(configuration_t) :: configuration
        integer(i8) :: elements = 0, element_bytes = 0, arrays = 0, working_set = 0
        integer(i8) :: array_spacing = 0      !< between the starts of the first two arrays; 0 with one array
        character(:), allocatable :: size_warning   !< of a default working set that memory limits
        real(r8) :: first_touch_seconds = 0.0_r8
        real(r8), allocatable :: seconds(:)   !< of each timed repetition
        integer(i8) :: passes = 1             !< passes over the working set in one repetition
        type(traffic_t) :: traffic
        type(metric_t), allocatable :: metrics(:)
        type(validation_t) :: validation
        type(pages_record_t) :: pages
        integer(i8) :: first_touch_minor = 0, first_touch_major = 0, compute_minor = 0, compute_major = 0   !< page faults
        type(counters_record_t) :: counters
        type(region_record_t), allocatable :: regions(:)
        real(r8) :: region_cost = 0.0_r8      !< of an empty region, to the region around it
        type(placement_t) :: placement
    end type record_t

end module pw_record
