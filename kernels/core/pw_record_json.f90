!> The result record as JSON, schema `pagewise.record/1`, which is part of the program that reads records
!> (runners/pagewise/core/record.py).
module pw_record_json
    use pw_error, only: error_t, exit_check, exit_ok, exit_system
    use pw_json, only: json_t
    use pw_kinds, only: i8, r8
    use pw_options, only: options_t
    use pw_record, only: check_t, configuration_t, counters_record_t, pages_record_t, placement_t, record_t, region_record_t, &
        validation_t
    use pw_system, only: base_page_size, cpus_allowed, host_cpu, host_kernel, host_name, memory_bound, utc_now
    implicit none
    private

    public :: failure_to_json, record_to_json

contains

    !> The record of a measurement that ran, as one line of JSON.
    function record_to_json(record, options) result(line)
        type(record_t), intent(in) :: record
        type(options_t), intent(in) :: options
        character(:), allocatable :: line
        type(json_t) :: json
        type(error_t) :: error

        if (.not. record%validation%passed) call error%raise(exit_check, 'the result failed its check: '// &
            record%validation%method, 'record_to_json', 'do not use this configuration; try another compiler version')
        call begin(json, record%kernel, record%started, record%configuration, options, error)
        call write_measured(json, record)
        call write_validation(json, record%validation)
        call write_pages(json, record%pages)
        call json%open_object('page_faults')
        call json%put('first_touch_minor', record%first_touch_minor)
        call json%put('first_touch_major', record%first_touch_major)
        call json%put('compute_minor', record%compute_minor)
        call json%put('compute_major', record%compute_major)
        call json%close_object()
        call write_counters(json, record%counters)
        if (allocated(record%regions)) call write_regions(json, record%regions, record%counters, record%region_cost)
        call write_placement(json, record%placement)
        line = finished(json)
    end function record_to_json

    !> Sizes, times, traffic, metrics.
    subroutine write_measured(json, record)
        type(json_t), intent(inout) :: json
        type(record_t), intent(in) :: record
        integer :: i

        call json%open_object('sizes')
        call json%put('elements', record%elements)
        call json%put('element_bytes', record%element_bytes)
        call json%put('arrays', record%arrays)
        call json%put('working_set_bytes', record%working_set)
        call json%put('array_spacing_bytes', record%array_spacing)
        call put_known(json, 'warning', record%size_warning)
        call json%close_object()

        call json%open_object('seconds')
        call json%put('first_touch', record%first_touch_seconds)
        call json%put('repetitions', record%seconds)
        call json%close_object()
        call json%put('passes_per_repetition', record%passes)

        call json%open_object('traffic')
        call json%put('bytes_stream', record%traffic%bytes_stream)
        call json%put('bytes_hardware', record%traffic%bytes_hardware)
        call json%put('flops', record%traffic%flops)
        call json%close_object()

        call json%open_object('metrics')
        do i = 1, size(record%metrics)
            call json%put(record%metrics(i)%field, record%metrics(i)%value)
        end do
        call json%close_object()
    end subroutine write_measured

    subroutine write_validation(json, validation)
        type(json_t), intent(inout) :: json
        type(validation_t), intent(in) :: validation

        call json%open_object('validation')
        call json%put('passed', validation%passed)
        call json%put('method', validation%method)
        call json%put('error', validation%error)
        call json%put('tolerance', validation%tolerance)
        if (allocated(validation%checks)) call write_checks(json, validation%checks)
        call json%close_object()
    end subroutine write_validation

    !> The record of a measurement that failed to start or to finish, as one line of JSON.
    function failure_to_json(kernel, configuration, options, error) result(line)
        character(*), intent(in) :: kernel
        type(configuration_t), intent(in) :: configuration
        type(options_t), intent(in) :: options
        type(error_t), intent(in) :: error
        character(:), allocatable :: line
        type(json_t) :: json

        call begin(json, kernel, utc_now(), configuration, options, error)
        line = finished(json)
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

    !> What every record begins with: the kernel, whether it failed and why, how it was built and called.
    subroutine begin(json, kernel, started, configuration, options, error)
        type(json_t), intent(inout) :: json
        character(*), intent(in) :: kernel, started
        type(configuration_t), intent(in) :: configuration
        type(options_t), intent(in) :: options
        type(error_t), intent(in) :: error
        ! By exit code.
        character(17), parameter :: states(exit_ok:exit_system) = &
            [character(17) :: 'ok', 'check_failed', 'failed', 'pages_unavailable', 'failed']

        call json%open_object('')
        call json%put('schema', 'pagewise.record/1')
        call json%put('kernel', kernel)
        call json%put('started', started)
        call json%put('status', trim(states(error%code)))
        if (error%failed()) then
            call json%open_object('failure')
            call json%put('exit_code', error%code)
            call json%put('message', error%message)
            call json%put('remedy', error%remedy)
            call json%close_object()
        end if
        call write_configuration(json, configuration)
        call json%open_object('options')
        call options%write_values(json)
        call json%close_object()
    end subroutine begin

    !> The record, with the host at its end.
    function finished(json) result(line)
        type(json_t), intent(inout) :: json
        character(:), allocatable :: line

        call json%open_object('host')
        call json%put('hostname', host_name())
        call json%put('cpu', host_cpu())
        call json%put('kernel', host_kernel())
        call json%put('base_page_size_bytes', base_page_size())
        call json%close_object()
        call json%close_object()
        line = json%text()
    end function finished

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
        call put_known(json, 'sector', configuration%sector)
        call put_known(json, 'library', configuration%library)
        call put_known(json, 'library_file', configuration%library_file)
        call json%put('openmp', configuration%openmp)
        call put_known(json, 'runtime', configuration%runtime)
        call put_known(json, 'runtime_file', configuration%runtime_file)
        call put_known(json, 'runtime_version', configuration%runtime_version)
        call put_known(json, 'runtime_build', configuration%runtime_build)
        call json%put('papi', configuration%papi)
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
        real(r8) :: mean
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
            if (size(regions(i)%count) > 0 .and. regions(i)%threads > 1) then
                call json%open_object('imbalance')
                do j = 1, size(regions(i)%count)
                    if (regions(i)%count(j) == 0) cycle
                    mean = real(regions(i)%count(j), r8)/regions(i)%threads
                    call json%put(trim(counters%event(j)), regions(i)%most(j)/mean)
                end do
                call json%close_object()
            end if
            call json%close_object()
        end do
        call json%close_array()
        call json%put('region_cost_seconds', cost)
    end subroutine write_regions

end module pw_record_json
