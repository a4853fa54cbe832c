!> The result record, schema `pagewise.record/1`: the facts of one measurement and their JSON text.
!>
!> The schema itself is part of the program that reads records (runners/pagewise/core/schema).
module pw_record
    use pw_error, only: error_t, exit_check, exit_pages
    use pw_json, only: json_t
    use pw_kinds, only: i4, i8, r8
    use pw_options, only: options_t
    use pw_system, only: base_page_size, cpus_allowed, host_cpu, host_kernel, host_name, memory_bound, utc_now
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
        character(:), allocatable :: library            !< called instead of the system's; empty: none
        character(:), allocatable :: library_file       !< of that library, as linked; then as loaded
        character(:), allocatable :: runtime            !< of OpenMP: libgomp, libomp; as linked; then as loaded
        character(:), allocatable :: runtime_file, runtime_version, runtime_build   !< of the one loaded
        logical :: openmp = .false., papi = .false.
        logical :: finalizers = .false.                 !< objects of a block are finalised once, at its end
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
        real(r8) :: populate_seconds = 0.0_r8
        real(r8), allocatable :: seconds(:)   !< of each timed repetition
        integer(i8) :: passes = 1             !< passes over the working set in one repetition
        type(traffic_t) :: traffic
        type(metric_t), allocatable :: metrics(:)
        type(validation_t) :: validation
        type(pages_record_t) :: pages
        integer(i8) :: populate_minor = 0, populate_major = 0, compute_minor = 0, compute_major = 0   !< page faults
        type(counters_record_t) :: counters
        type(region_record_t), allocatable :: regions(:)
        real(r8) :: region_cost = 0.0_r8      !< of an empty region, to the region around it
        type(placement_t) :: placement
    contains
        procedure :: to_json
    end type record_t

    public :: failure_to_json

contains

    !> The record of a measurement that ran, as one line of JSON.
    function to_json(self, options) result(line)
        class(record_t), intent(in) :: self
        type(options_t), intent(in) :: options
        character(:), allocatable :: line
        type(json_t) :: json
        integer :: i

        call json%open_object('')
        if (self%validation%passed) then
            call write_head(json, self%kernel, self%started, 'ok')
        else
            call write_head(json, self%kernel, self%started, 'check_failed')
            call write_failure(json, exit_check, 'the result failed its check: '//self%validation%method, &
                               'do not use this configuration; try another compiler version')
        end if
        call write_configuration(json, self%configuration)
        call write_options(json, options)

        call json%open_object('sizes')
        call json%put('elements', self%elements)
        call json%put('element_bytes', self%element_bytes)
        call json%put('arrays', self%arrays)
        call json%put('working_set_bytes', self%working_set)
        call json%put('array_spacing_bytes', self%array_spacing)
        call put_known(json, 'warning', self%size_warning)
        call json%close_object()

        call json%open_object('seconds')
        call json%put('populate', self%populate_seconds)
        call json%put('repetitions', self%seconds)
        call json%close_object()
        call json%put('passes_per_repetition', self%passes)

        call json%open_object('traffic')
        call json%put('bytes_stream', self%traffic%bytes_stream)
        call json%put('bytes_hardware', self%traffic%bytes_hardware)
        call json%put('flops', self%traffic%flops)
        call json%close_object()

        call json%open_object('metrics')
        do i = 1, size(self%metrics)
            call json%put(self%metrics(i)%field, self%metrics(i)%value)
        end do
        call json%close_object()

        call json%open_object('validation')
        call json%put('passed', self%validation%passed)
        call json%put('method', self%validation%method)
        call json%put('error', self%validation%error)
        call json%put('tolerance', self%validation%tolerance)
        if (allocated(self%validation%checks)) call write_checks(json, self%validation%checks)
        call json%close_object()

        call write_pages(json, self%pages)

        call json%open_object('page_faults')
        call json%put('populate_minor', self%populate_minor)
        call json%put('populate_major', self%populate_major)
        call json%put('compute_minor', self%compute_minor)
        call json%put('compute_major', self%compute_major)
        call json%close_object()

        call write_counters(json, self%counters)
        if (allocated(self%regions)) call write_regions(json, self%regions, self%counters, self%region_cost)

        call write_placement(json, self%placement)
        call write_host(json)
        call json%close_object()
        line = json%text()
    end function to_json

    !> The record of a measurement that failed to start or to finish, as one line of JSON.
    function failure_to_json(kernel, configuration, options, error) result(line)
        character(*), intent(in) :: kernel
        type(configuration_t), intent(in) :: configuration
        type(options_t), intent(in) :: options
        type(error_t), intent(in) :: error
        character(:), allocatable :: line
        type(json_t) :: json

        call json%open_object('')
        if (error%code == exit_pages) then
            call write_head(json, kernel, utc_now(), 'pages_unavailable')
        else
            call write_head(json, kernel, utc_now(), 'failed')
        end if
        call write_failure(json, error%code, error%message, error%remedy)
        call write_configuration(json, configuration)
        call write_options(json, options)
        call write_host(json)
        call json%close_object()
        line = json%text()
    end function failure_to_json

    subroutine write_placement(json, placement)
        type(json_t), intent(inout) :: json
        type(placement_t), intent(in) :: placement

        call json%open_object('placement')
        call json%put('threads', size(placement%cpus))
        call json%put('cpus', placement%cpus)
        call json%put('numa_nodes', placement%numa_nodes)
        call json%put('cpus_at_end', placement%cpus_at_end)
        call json%put('numa_nodes_at_end', placement%numa_nodes_at_end)
        call json%put('migrated', sum(placement%migrated))
        if (placement%last_level_cache > 0) call json%put('last_level_cache_bytes', placement%last_level_cache)
        call write_bound(json)
        call json%close_object()
    end subroutine write_placement

    !> What the process may use and where its memory is, as far as the operating system reports it.
    subroutine write_bound(json)
        type(json_t), intent(inout) :: json
        character(:), allocatable :: list, policy
        integer(i8), allocatable :: node_bytes(:)
        integer :: i

        list = cpus_allowed()
        if (len(list) > 0) call json%put('cpus_allowed', list)
        call memory_bound(policy, node_bytes)
        if (len(policy) == 0) return
        call json%put('memory_policy', policy)
        call json%open_array('node_bytes')
        do i = 1, size(node_bytes)
            call json%put('', node_bytes(i))
        end do
        call json%close_array()
    end subroutine write_bound

    subroutine write_head(json, kernel, started, status)
        type(json_t), intent(inout) :: json
        character(*), intent(in) :: kernel, started, status

        call json%put('schema', 'pagewise.record/1')
        call json%put('kernel', kernel)
        call json%put('started', started)
        call json%put('status', status)
    end subroutine write_head

    subroutine write_failure(json, code, message, remedy)
        type(json_t), intent(inout) :: json
        integer, intent(in) :: code
        character(*), intent(in) :: message, remedy

        call json%open_object('failure')
        call json%put('exit_code', code)
        call json%put('message', message)
        call json%put('remedy', remedy)
        call json%close_object()
    end subroutine write_failure

    subroutine write_configuration(json, configuration)
        type(json_t), intent(inout) :: json
        type(configuration_t), intent(in) :: configuration

        call json%open_object('configuration')
        call json%put('version', configuration%version)
        call json%put('compiler', configuration%compiler)
        call json%put('compiler_version', configuration%compiler_version)
        call json%put('compiler_options', configuration%compiler_options)
        call json%put('hugepages', configuration%hugepages)
        call json%put('prefetch', configuration%prefetch)
        call json%put('stores', configuration%stores)
        call json%put('loop', configuration%loop)
        call put_known(json, 'simd', configuration%simd)
        call put_known(json, 'library', configuration%library)
        call put_known(json, 'library_file', configuration%library_file)
        call json%put('openmp', configuration%openmp)
        call put_known(json, 'runtime', configuration%runtime)
        call put_known(json, 'runtime_file', configuration%runtime_file)
        call put_known(json, 'runtime_version', configuration%runtime_version)
        call put_known(json, 'runtime_build', configuration%runtime_build)
        call json%put('papi', configuration%papi)
        call json%put('finalizers', configuration%finalizers)
        call json%close_object()
    end subroutine write_configuration

    !> Put an optional text.
    subroutine put_known(json, name, text)
        type(json_t), intent(inout) :: json
        character(*), intent(in) :: name
        character(:), allocatable, intent(in) :: text

        if (.not. allocated(text)) return
        if (len(text) > 0) call json%put(name, text)
    end subroutine put_known

    subroutine write_options(json, options)
        type(json_t), intent(inout) :: json
        type(options_t), intent(in) :: options

        call json%open_object('options')
        call options%write_values(json)
        call json%close_object()
    end subroutine write_options

    subroutine write_checks(json, checks)
        type(json_t), intent(inout) :: json
        type(check_t), intent(in) :: checks(:)
        integer :: i

        call json%open_array('checks')
        do i = 1, size(checks)
            call json%open_object('')
            call json%put('name', checks(i)%name)
            call json%put('error', checks(i)%error)
            call json%put('tolerance', checks(i)%tolerance)
            call json%close_object()
        end do
        call json%close_array()
    end subroutine write_checks

    subroutine write_pages(json, pages)
        type(json_t), intent(inout) :: json
        type(pages_record_t), intent(in) :: pages
        integer :: i

        call json%open_object('pages')
        call json%put('policy', pages%policy)
        call json%put('page_size_requested_bytes', pages%page_size_requested)
        call json%put('page_size_observed_bytes', pages%page_size_observed)
        call json%put('huge_coverage', pages%huge_coverage)
        call json%put('base_page_size_bytes', base_page_size())
        call json%put('method', pages%method)
        call json%open_array('arrays')
        do i = 1, size(pages%arrays)
            call json%open_object('')
            call json%put('name', pages%arrays(i)%name)
            call json%put('bytes', pages%arrays(i)%bytes)
            call json%put('huge_bytes', pages%arrays(i)%huge_bytes)
            call json%put('page_size_observed_bytes', pages%arrays(i)%page_size_observed)
            call json%close_object()
        end do
        call json%close_array()
        call json%close_object()
    end subroutine write_pages

    subroutine write_counters(json, counters)
        type(json_t), intent(inout) :: json
        type(counters_record_t), intent(in) :: counters
        integer :: i

        call json%open_object('counters')
        if (allocated(counters%unavailable)) then
            call json%put('unavailable', counters%unavailable)
        else
            do i = 1, size(counters%event)
                call json%put(trim(counters%event(i)), counters%count(i))
            end do
        end if
        call json%close_object()
        if (allocated(counters%unavailable)) return
        if (allocated(counters%source)) call json%put('counters_source', counters%source)
        if (.not. allocated(counters%refused)) return
        if (size(counters%refused) == 0) return
        call json%open_object('counters_refused')
        do i = 1, size(counters%refused)
            call json%put(counters%refused(i)%event, counters%refused(i)%reason)
        end do
        call json%close_object()
    end subroutine write_counters

    subroutine write_regions(json, regions, counters, cost)
        type(json_t), intent(inout) :: json
        type(region_record_t), intent(in) :: regions(:)
        type(counters_record_t), intent(in) :: counters
        real(r8), intent(in) :: cost
        integer :: i, j

        call json%open_array('regions')
        do i = 1, size(regions)
            call json%open_object('')
            call json%put('name', regions(i)%name)
            call json%put('path', regions(i)%path)
            call json%put('calls', regions(i)%calls)
            call json%put('threads', regions(i)%threads)
            call json%put('seconds', regions(i)%seconds)
            call json%put('seconds_mean_of_threads', regions(i)%seconds_mean)
            call json%put('seconds_exclusive', regions(i)%seconds_exclusive)
            if (size(regions(i)%count) > 0) then
                call json%open_object('counts')
                do j = 1, size(regions(i)%count)
                    call json%put(trim(counters%event(j)), regions(i)%count(j))
                end do
                call json%close_object()
            end if
            call json%close_object()
        end do
        call json%close_array()
        call json%put('region_cost_seconds', cost)
    end subroutine write_regions

    subroutine write_host(json)
        type(json_t), intent(inout) :: json

        call json%open_object('host')
        call json%put('hostname', host_name())
        call json%put('cpu', host_cpu())
        call json%put('kernel', host_kernel())
        call json%put('base_page_size_bytes', base_page_size())
        call json%close_object()
    end subroutine write_host

end module pw_record
