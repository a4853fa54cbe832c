!> Shared code of every micro-kernel's main program: the common options, first touch, timed repetitions, page
!> verification, validation of the result, the record and the summary.
!>
!> A kernel extends `kernel_t` (pw_kernel) or `shared_kernel_t` (pw_shares) and passes itself to `run_kernel`. Order of calls:
!> declare_options, read_options, plan, initialise, run (several times), validate, traffic, metrics. A sweep begins again with
!> read_options at each point.
module pw_harness
    use, intrinsic :: iso_c_binding, only: c_intptr_t
    use pw_error, only: end_program, error_t, exit_check, exit_system, exit_usage
    use pw_evidence, only: median, first_touch_all, first_touch_t, put_regions
    use pw_kernel, only: arrays_of, bandwidth_metrics, kernel_t, plan_t
    use pw_kinds, only: i4, i8, r8
    use pw_openmp_runtime, only: verify_runtime
    use pw_options, only: option_bytes, option_choice, option_count, option_text, rules_t
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_verify, pages_free, pages_observe, &
        pages_policy_from_name, pages_policy_names, pages_policy_t, pages_require, pages_static_bytes
    use pw_program, only: pagewise_built_configuration, read_command_line, report_failure
    use pw_record, only: record_t
    use pw_record_json, only: record_to_json
    use pw_region, only: mark_array, region_begin_team, region_end_team, region_handle, regions_open, regions_reset
    use pw_summary, only: print_point, print_summary
    use pw_sweep, only: sweep_t
    use pw_system, only: append_line, base_page_size, begin_turns, free_memory, page_faults, turn_comes, utc_now
    use pw_text, only: bytes_to_text
    use pw_threads, only: placement_begin, placement_update, threads_begin, threads_ladder
    use pw_traffic, only: per_element_t
    use pw_timer, only: wall_seconds
    use pw_working_set, only: fit_working_set, machine_caches, memory_working_set
    implicit none
    private

    public :: arrays_of, bandwidth_metrics, kernel_t, plan_t, run_kernel

    real(r8), parameter :: repetition_seconds = 0.010_r8, sweep_repetition_seconds = 0.004_r8
    !> Untimed passes at the begin of a turn, as a share of the timed ones: other processes used the caches, which also hold
    !> page tables (without them, chases on base pages are up to 10 % slower).
    integer(i8), parameter :: warm_up_divisor = 10_i8

    !> The common options, and what is measured once per process.
    type :: session_t
        integer(i8) :: working_set = 0, repetitions = 0
        logical :: in_turns = .false.
        type(per_element_t) :: described  ! in kernel.yaml
        type(pages_policy_t) :: policy
        integer(i8) :: last_level_cache = 0
        logical :: static = .false., parallel_touch = .true.
        character(:), allocatable :: size_warning
        character(:), allocatable :: record_file
        type(sweep_t) :: sweep
        type(first_touch_t) :: first_touched
        integer(i8) :: measured = 0       ! bytes of the arrays of the last point
        integer :: failures = 0           ! of validations
    end type session_t

contains

    !> A kernel's entire main program; exits with a code other than 0 if something failed.
    subroutine run_kernel(kernel)
        class(kernel_t), intent(inout) :: kernel
        type(session_t) :: session
        type(error_t) :: error
        character(:), allocatable :: program, policy
        logical :: answered

        program = 'pw-'//kernel%name
        session%described = kernel%per_element
        kernel%configuration = pagewise_built_configuration()
        session%last_level_cache = machine_caches()
        call declare_common_options(kernel, program, session%last_level_cache)
        call kernel%declare_options()
        call read_command_line(kernel%options, program, kernel%configuration, answered, error)
        if (answered) return
        if (.not. error%failed() .and. .not. allocated(kernel%default_working_set)) then
            call kernel%options%get('pages', policy)
            ! Reserved pages are not free memory, and a pool that is too small is an error.
            if (index(policy, 'hugetlbfs') == 0) &
                call fit_working_set(kernel%options, program, free_memory('/'), session%size_warning, error)
        end if
        if (.not. error%failed()) call measure(kernel, session, error)
        if (error%failed()) then
            call report_failure(program, session%record_file, kernel%configuration, kernel%options, error)
            call end_program(error%code)
        end if
    end subroutine run_kernel

    subroutine declare_common_options(kernel, program, last_level_cache)
        class(kernel_t), intent(inout) :: kernel
        character(*), intent(in) :: program
        integer(i8), intent(in) :: last_level_cache
        character(:), allocatable :: working_set

        working_set = memory_working_set(last_level_cache)
        if (allocated(kernel%default_working_set)) working_set = kernel%default_working_set
        associate (options => kernel%options)
            call options%start(program, kernel%summary)
            call options%add('working-set', option_bytes, working_set, 'total bytes of all arrays', rules_t(lowest=512_i8))
            call options%add('repetitions', option_count, '5', 'timed repetitions', rules_t(lowest=1_i8))
            call options%add('turns', option_count, '0', 'most timed repetitions in turns with other processes, instead of '// &
                             '--repetitions: the program stops before these and before each until SIGCONT; SIGUSR1 ends them', &
                             rules_t(lowest=0_i8))
            call options%add('threads', option_count, '1', 'threads', rules_t(lowest=1_i8), threads_ladder())
            call options%add('pages', option_choice, kernel%configuration%hugepages, 'page policy of the arrays', &
                             values=pages_policy_names())
            call options%add('allocation', option_choice, 'dynamic', 'memory of the arrays: mapped, or part of a large array '// &
                             'of the program', values=trim(merge('dynamic|static', 'dynamic       ', pages_static_bytes() > 0)))
            call options%add('first-touch', option_choice, 'parallel', 'first touch of the pages: each thread its share, or '// &
                             'the first thread all of them', values='parallel|serial')
            call options%add('sweep', option_text, '', 'one record per value of an option: OPTION or OPTION=VALUE,VALUE; '// &
                             'working-set runs from 8 KiB to --working-set')
            call options%add('record', option_text, '', 'append the record of each measurement to this file as a JSON line')
        end associate
    end subroutine declare_common_options

    !> Measure once, or at every point of a sweep.
    subroutine measure(kernel, session, error)
        class(kernel_t), intent(inout) :: kernel
        type(session_t), intent(inout) :: session
        type(error_t), intent(inout) :: error

        call read_session(kernel, session, error)
        call verify_runtime(kernel%configuration, error)
        if (error%failed()) return
        call session%sweep%begin(kernel%options, session%working_set, error)
        if (error%failed()) return
        call pages_begin(session%policy, error)
        if (error%failed()) return
        call regions_open()
        if (len(session%sweep%option) == 0) call measure_point(kernel, session, error)
        do while (session%sweep%next(kernel%options, error))
            call read_session(kernel, session, error)
            if (.not. error%failed()) call measure_point(kernel, session, error)
        end do
        if (error%failed()) return
        if (session%failures > 0) call error%raise(exit_check, 'the result failed its check', 'measure', &
            'do not use this configuration; try another compiler version')
    end subroutine measure

    !> Allocate, place and verify the memory, and measure, unless the kernel's arrays equal those of the previous working
    !> set.
    subroutine measure_point(kernel, session, error)
        class(kernel_t), intent(inout) :: kernel
        type(session_t), intent(inout) :: session
        type(error_t), intent(inout) :: error
        type(record_t) :: record
        type(plan_t) :: wanted

        kernel%per_element = session%described
        call kernel%read_options(error)
        if (error%failed()) return
        call kernel%plan(session%working_set, wanted, error)
        if (error%failed()) return
        if (session%sweep%of_working_set() .and. sum(wanted%bytes) == session%measured) return
        session%measured = sum(wanted%bytes)
        call threads_begin(kernel%threads, error)
        if (error%failed()) return
        call allocate_arrays(kernel, session, wanted, error)
        if (error%failed()) return
        call regions_reset()
        call first_touch_all(kernel%memory, session%parallel_touch, session%in_turns, session%first_touched)
        call pages_verify(kernel%memory, session%policy, error)
        if (error%failed()) return
        call describe(kernel, session, wanted, record)
        kernel%elements = wanted%elements
        kernel%units = merge(wanted%units, wanted%elements, wanted%units > 0)
        kernel%passes = 0
        call kernel%initialise()
        call time_repetitions(kernel, session, record, error)
        if (error%failed()) return
        call check_and_report(kernel, session, record, error)
        if (error%failed()) return
        call free_arrays(kernel%memory, error)
        deallocate (kernel%memory)
    end subroutine measure_point

    subroutine read_session(kernel, session, error)
        class(kernel_t), intent(inout) :: kernel
        type(session_t), intent(inout) :: session
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer(i8) :: turns

        associate (options => kernel%options)
            call options%get('working-set', session%working_set)
            call options%get('repetitions', session%repetitions)
            call options%get('turns', turns)
            session%in_turns = turns > 0
            if (session%in_turns) then
                session%repetitions = turns
                call begin_turns()
            end if
            call options%get('threads', kernel%threads)
            call options%get('record', session%record_file)
            call options%get('first-touch', word)
            session%parallel_touch = word == 'parallel'
            call options%get('pages', word)
            call pages_policy_from_name(word, session%policy, error)
            call options%get('allocation', word)
            session%static = word == 'static'
        end associate
    end subroutine read_session

    !> Map the arrays. Starts that are a power of two apart compete for the same cache sets and look identical to the memory
    !> disambiguation, which compares the low 12 address bits: each array starts a few lines later, plus 64 KiB, so that
    !> the streams are in different memory banks; one page of 4 KiB instead costs a triad 5 % on Zen 4 (huge pages).
    subroutine allocate_arrays(kernel, session, wanted, error)
        class(kernel_t), intent(inout) :: kernel
        type(session_t), intent(in) :: session
        type(plan_t), intent(in) :: wanted
        type(error_t), intent(inout) :: error
        integer(i8), parameter :: lines = 256_i8, banks = 65536_i8
        integer(i8) :: stagger
        integer :: i

        stagger = max(base_page_size(), banks) + lines
        call pages_require(session%policy, wanted%bytes + [(stagger*(i - 1), i=1, size(wanted%bytes))], error, &
                           session%static)
        if (error%failed()) return
        allocate (kernel%memory(size(wanted%bytes)))
        do i = 1, size(wanted%bytes)
            call pages_allocate(kernel%memory(i), session%policy, wanted%name(i), wanted%bytes(i), stagger*(i - 1), error, &
                                session%static)
            if (error%failed()) return
            call mark_array(wanted%name(i), kernel%memory(i)%address, wanted%bytes(i))
        end do
    end subroutine allocate_arrays

    subroutine free_arrays(memory, error)
        type(paged_array_t), intent(inout) :: memory(:)
        type(error_t), intent(inout) :: error
        integer :: i

        do i = 1, size(memory)
            call pages_free(memory(i), error)
            if (error%failed()) return
        end do
    end subroutine free_arrays

    !> What is known of a measurement before its repetitions.
    subroutine describe(kernel, session, wanted, record)
        class(kernel_t), intent(in) :: kernel
        type(session_t), intent(in) :: session
        type(plan_t), intent(in) :: wanted
        type(record_t), intent(inout) :: record

        record%kernel = kernel%name
        record%started = utc_now()
        if (allocated(session%size_warning)) record%size_warning = session%size_warning
        record%configuration = kernel%configuration
        record%elements = wanted%elements
        record%element_bytes = wanted%element_bytes
        record%arrays = size(wanted%bytes)
        record%working_set = sum(wanted%bytes)
        if (size(kernel%memory) > 1) record%array_spacing = &
            abs(transfer(kernel%memory(2)%address, 0_c_intptr_t) - transfer(kernel%memory(1)%address, 0_c_intptr_t))
        record%first_touch_seconds = session%first_touched%seconds
        record%first_touch_minor = session%first_touched%minor
        record%first_touch_major = session%first_touched%major
    end subroutine describe

    !> The timed part: repetitions of as many passes as calibration finds.
    subroutine time_repetitions(kernel, session, record, error)
        class(kernel_t), intent(inout) :: kernel
        type(session_t), intent(in) :: session
        type(record_t), intent(inout) :: record
        type(error_t), intent(inout) :: error
        real(r8) :: target
        integer(i8) :: minor, major
        integer(i4) :: compute
        integer :: i
        logical :: comes

        target = repetition_seconds
        if (len(session%sweep%option) > 0) target = sweep_repetition_seconds
        comes = .true.
        if (session%in_turns) comes = turn_comes()      ! until then, others may be starting on the same CPUs
        if (comes) call calibrate(kernel, target, record%passes, error)
        if (error%failed()) return
        allocate (record%seconds(session%repetitions))
        compute = region_handle('compute')
        call placement_begin(record%placement)
        record%placement%last_level_cache = session%last_level_cache
        call page_faults(minor, major)
        do i = 1, size(record%seconds)
            if (session%in_turns) then
                if (comes) comes = turn_comes()
                if (.not. comes) exit
                call kernel%make_passes(max(1_i8, record%passes/warm_up_divisor))
            end if
            call region_begin_team(compute)
            call kernel%make_passes(record%passes)
            call region_end_team(compute, record%seconds(i))
            call placement_update(record%placement)
        end do
        call page_faults(record%compute_minor, record%compute_major)
        record%compute_minor = record%compute_minor - minor
        record%compute_major = record%compute_major - major
        if (i > size(record%seconds) .and. session%in_turns) comes = turn_comes()
        record%seconds = record%seconds(:i - 1)
        if (size(record%seconds) == 0) call error%raise(exit_system, 'no turn was taken', 'time_repetitions', &
            'send SIGCONT for each turn')
    end subroutine time_repetitions

    !> Validate the result, observe the pages, record and print.
    subroutine check_and_report(kernel, session, record, error)
        class(kernel_t), intent(inout) :: kernel
        type(session_t), intent(inout) :: session
        type(record_t), intent(inout) :: record
        type(error_t), intent(inout) :: error
        character(:), allocatable :: value

        call put_regions(record, 'compute', error)
        if (error%failed()) return
        record%traffic = kernel%traffic(record%passes)
        call pages_observe(kernel%memory, session%policy, record%pages, error)
        if (error%failed()) return
        call kernel%validate(record%validation)
        record%validation%passed = record%validation%error <= record%validation%tolerance
        record%metrics = kernel%metrics(record%passes, median(record%seconds))
        if (.not. record%validation%passed) session%failures = session%failures + 1
        if (len(session%record_file) > 0) &
            call append_line(session%record_file, record_to_json(record, kernel%options), error)
        if (error%failed()) return
        if (len(session%sweep%option) == 0) then
            call print_summary(record)
        else if (session%sweep%of_working_set()) then
            call print_point(record, bytes_to_text(record%working_set))
        else
            call kernel%options%get(session%sweep%option, value)
            call print_point(record, session%sweep%option//' '//value)
        end if
    end subroutine check_and_report

    !> The number of passes that take `target` seconds, by doubling, which also warms caches and clocks. Or, after one
    !> warm-up pass, the number in PAGEWISE_PASSES: under emulation times mean nothing, and counts must be repeatable. Exit
    !> code 1 if the time does not grow with the passes: then the compiler removed them.
    subroutine calibrate(kernel, target, passes, error)
        class(kernel_t), intent(inout) :: kernel
        real(r8), intent(in) :: target
        integer(i8), intent(out) :: passes
        type(error_t), intent(inout) :: error
        integer(i8), parameter :: most = shiftl(1_i8, 32)   ! passes of a picosecond would fill 4 ms
        real(r8) :: start, seconds
        character(20) :: given
        integer :: status

        passes = 0
        call get_environment_variable('PAGEWISE_PASSES', given, status=status)
        if (status == 0) then
            read (given, *, iostat=status) passes
            if (status /= 0 .or. passes < 1) then
                call error%raise(exit_usage, "PAGEWISE_PASSES='"//trim(given)//"' is not a number of passes", &
                                 'environment', 'set it to 1 or more, or unset it')
                return
            end if
        end if
        if (passes > 0) then
            call kernel%make_passes(1_i8)
            return
        end if
        passes = 1
        do
            start = wall_seconds()
            call kernel%make_passes(passes)
            seconds = wall_seconds() - start
            if (seconds >= 0.25_r8*target) exit
            if (passes >= most) then
                call error%raise(exit_check, 'the time does not grow with the passes: the compiler removed them', 'calibrate', &
                                 'do not use this configuration; try another compiler version')
                return
            end if
            passes = 2*passes
        end do
        passes = max(1_i8, nint(real(passes, r8)*target/seconds, i8))
    end subroutine calibrate

end module pw_harness
