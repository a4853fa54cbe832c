!> Shared code of every micro-kernel's main program: the common options, first touch, timed repetitions, page
!> verification, validation of the result, the record and the summary.
!>
!> A kernel extends `kernel_t` and passes itself to `run_kernel`. Order of calls: declare_options, read_options, plan,
!> initialise, run (several times), validate, traffic, metrics. A sweep begins again with read_options at each point.
module pw_harness
    use, intrinsic :: iso_c_binding, only: c_intptr_t
    use, intrinsic :: iso_fortran_env, only: output_unit
    use pw_error, only: end_program, error_t, exit_check, exit_usage
    use pw_evidence, only: median, outcome, populate, populated_t, record_pages, put_regions
    use pw_kinds, only: i4, i8, r8
    use pw_openmp_runtime, only: verify_runtime
    use pw_options, only: option_bytes, option_choice, option_count, option_flag, option_text, options_t
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_verify, pages_free, pages_policy_from_name, &
        pages_policy_names, pages_policy_t, pages_require, pages_static_bytes
    use pw_processor, only: processor_check
    use pw_program, only: pagewise_built_configuration, read_command_line, report_failure
    use pw_record, only: configuration_t, metric_t, record_t, traffic_t, validation_t
    use pw_region, only: region_begin_team, region_end_team, region_handle, regions_open, regions_reset
    use pw_system, only: append_line, base_page_size, free_memory, page_faults, utc_now
    use pw_text, only: bytes_to_text, to_text
    use pw_threads, only: placement_begin, placement_update, threads_begin, threads_ladder
    use pw_timer, only: wall_seconds
    use pw_traffic, only: per_element_t
    use pw_working_set, only: fit_working_set, machine_caches, memory_working_set
    implicit none
    private

    !> The arrays that a kernel needs for a working set.
    type, public :: plan_t
        integer(i8) :: elements = 0, element_bytes = 0
        character(16), allocatable :: name(:)
        integer(i8), allocatable :: bytes(:)
    end type plan_t

    type, abstract, public :: kernel_t
        character(:), allocatable :: name, summary
        character(:), allocatable :: default_working_set   !< not set: from the machine's caches, for kernels that measure memory
        type(per_element_t) :: per_element                   !< traffic and flops in kernel.yaml
        type(configuration_t) :: configuration
        type(options_t) :: options
        type(paged_array_t), allocatable :: memory(:)   !< as planned
    contains
        procedure :: declare_options => no_options
        procedure :: read_options => nothing_to_read
        procedure(plan), deferred :: plan
        procedure(initialise), deferred :: initialise
        procedure(run), deferred :: run
        procedure(validate), deferred :: validate
        procedure(traffic), deferred :: traffic
        procedure :: metrics => bandwidths
    end type kernel_t

    abstract interface
        !> The arrays for a working set of `bytes`; their sum is at most this.
        subroutine plan(self, bytes, wanted, error)
            import :: error_t, i8, kernel_t, plan_t
            class(kernel_t), intent(inout) :: self
            integer(i8), intent(in) :: bytes
            type(plan_t), intent(out) :: wanted
            type(error_t), intent(inout) :: error
        end subroutine plan

        !> Fill the arrays in `self%memory`, of `elements` elements as planned; reset earlier passes.
        subroutine initialise(self, elements)
            import :: i8, kernel_t
            class(kernel_t), intent(inout) :: self
            integer(i8), intent(in) :: elements
        end subroutine initialise

        !> The work that is timed: `passes` passes over the working set.
        subroutine run(self, passes)
            import :: i8, kernel_t
            class(kernel_t), intent(inout) :: self
            integer(i8), intent(in) :: passes
        end subroutine run

        !> Compare the result of all passes since `initialise` with a closed form or a second algorithm.
        subroutine validate(self, outcome)
            import :: kernel_t, validation_t
            class(kernel_t), intent(inout) :: self
            type(validation_t), intent(out) :: outcome
        end subroutine validate

        !> Traffic of `passes` passes.
        function traffic(self, passes) result(moved)
            import :: i8, kernel_t, traffic_t
            class(kernel_t), intent(in) :: self
            integer(i8), intent(in) :: passes
            type(traffic_t) :: moved
        end function traffic
    end interface

    public :: run_kernel, bandwidth_metrics

    integer(i8), parameter :: smallest_sweep = 8192_i8
    real(r8), parameter :: repetition_seconds = 0.010_r8, sweep_repetition_seconds = 0.004_r8

    !> The common options, and what is measured once per process.
    type :: session_t
        integer(i8) :: working_set = 0, repetitions = 0, threads = 1
        type(pages_policy_t) :: policy
        integer(i8) :: last_level_cache = 0
        logical :: static = .false., parallel_touch = .true.
        character(:), allocatable :: size_warning
        character(:), allocatable :: record_file, swept   !< swept: name of an option, empty without a sweep
        type(populated_t) :: populated
    end type session_t

contains

    !> A kernel's entire main program; exits with a code other than 0 if something failed.
    subroutine run_kernel(kernel)
        class(kernel_t), intent(inout) :: kernel
        type(session_t) :: session
        type(error_t) :: error
        character(:), allocatable :: program
        logical :: answered

        program = 'pw-'//kernel%name
        kernel%configuration = pagewise_built_configuration()
        session%last_level_cache = machine_caches()
        call declare_common_options(kernel, program, session%last_level_cache)
        call kernel%declare_options()
        call read_command_line(kernel%options, program, kernel%configuration, answered, error)
        if (answered) return
        if (.not. error%failed() .and. .not. allocated(kernel%default_working_set)) &
            call fit_working_set(kernel%options, program, free_memory('/'), session%size_warning, error)
        if (.not. error%failed()) call measure(kernel, session, error)
        if (error%failed()) then
            call report_failure(program, session%record_file, kernel%configuration, kernel%options, error)
            call end_program(error%code)
        end if
    end subroutine run_kernel

    !> Add the kernel's own options to `self%options`; none by default.
    subroutine no_options(self)
        class(kernel_t), intent(inout) :: self

        associate (unused => self)
        end associate
    end subroutine no_options

    !> Read the kernel's own options; raise exit_usage if they are invalid.
    subroutine nothing_to_read(self, error)
        class(kernel_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        associate (unused_self => self, unused_error => error)
        end associate
    end subroutine nothing_to_read

    !> The figures of `passes` passes in `seconds`, the headline first; by default, bandwidths.
    function bandwidths(self, passes, seconds) result(figures)
        class(kernel_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = bandwidth_metrics(self%traffic(passes), seconds)
    end function bandwidths

    !> Bandwidth by both conventions, stream first, then hardware.
    function bandwidth_metrics(moved, seconds) result(figures)
        type(traffic_t), intent(in) :: moved
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = [metric_t('bandwidth_stream_gb_per_s', moved%bytes_stream/seconds*1.0e-9_r8), &
                   metric_t('bandwidth_hardware_gb_per_s', moved%bytes_hardware/seconds*1.0e-9_r8)]
    end function bandwidth_metrics

    subroutine declare_common_options(kernel, program, last_level_cache)
        class(kernel_t), intent(inout) :: kernel
        character(*), intent(in) :: program
        integer(i8), intent(in) :: last_level_cache
        character(:), allocatable :: working_set

        working_set = to_text(memory_working_set(last_level_cache))
        if (allocated(kernel%default_working_set)) working_set = kernel%default_working_set
        associate (options => kernel%options)
            call options%start(program, kernel%summary)
            call options%add('working-set', option_bytes, working_set, 'total bytes of all arrays', &
                             lowest=512_i8)
            call options%add('repetitions', option_count, '5', 'timed repetitions', lowest=1_i8)
            call options%add('threads', option_count, '1', 'threads', lowest=1_i8, ladder=threads_ladder())
            call options%add('pages', option_choice, kernel%configuration%hugepages, 'page policy of the arrays', &
                             choices=pages_policy_names())
            call options%add('allocation', option_choice, 'dynamic', 'memory of the arrays: mapped, or part of a large array '// &
                             'of the program', choices=trim(merge('dynamic|static', 'dynamic       ', pages_static_bytes() > 0)))
            call options%add('first-touch', option_choice, 'parallel', 'first touch of the pages: each thread its share, '// &
                             'or the first thread all of them', choices='parallel|serial')
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
        character(:), allocatable :: values
        integer :: failures
        integer(i8) :: measured

        failures = 0
        measured = 0
        call read_session(kernel, session, error)
        if (.not. error%failed()) call processor_check(kernel%configuration, error)
        call verify_runtime(kernel%configuration, error)
        if (error%failed()) return
        call begin_sweep(kernel, session, values, error)
        if (error%failed()) return
        call pages_begin(session%policy, error)
        if (error%failed()) return
        call regions_open()
        if (len(session%swept) == 0) call measure_point(kernel, session, measured, failures, error)
        do while (len(values) > 0 .and. .not. error%failed())
            call kernel%options%replace(session%swept, first_of(values), error)
            if (.not. error%failed()) call read_session(kernel, session, error)
            if (.not. error%failed()) call measure_point(kernel, session, measured, failures, error)
            values = values(min(len(first_of(values)) + 2, len(values) + 1):)
        end do
        if (error%failed()) return
        if (failures > 0) call error%raise(exit_check, 'the result failed its check', 'measure', &
            'do not use this configuration; try another compiler version')
    end subroutine measure

    !> The swept option and its values, separated by ','.
    subroutine begin_sweep(kernel, session, values, error)
        class(kernel_t), intent(in) :: kernel
        type(session_t), intent(inout) :: session
        character(:), allocatable, intent(out) :: values
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer :: equals, step

        call kernel%options%get('sweep', word)
        equals = index(word//'=', '=')
        session%swept = word(:equals - 1)
        if (equals < len(word)) then
            values = word(equals + 1:)
        else if (session%swept == 'working-set') then
            values = ''
            step = 0
            do while (sweep_size(step) < session%working_set)
                values = values//to_text(sweep_size(step))//','
                step = step + 1
            end do
            values = values//to_text(session%working_set)
        else
            values = kernel%options%ladder(session%swept)
        end if
        if (len(session%swept) > 0 .and. (len(values) == 0 .or. session%swept == 'pages')) &
            call error%raise(exit_usage, "'"//word//"' is not a sweep", 'pw_harness', &
                             'use --sweep OPTION=VALUE,VALUE,... with an option other than --pages; '// &
                             'options with a ladder in --list-options need no values')
    end subroutine begin_sweep

    pure function first_of(values) result(value)
        character(*), intent(in) :: values
        character(:), allocatable :: value

        value = values(:index(values//',', ',') - 1)
    end function first_of

    !> Allocate, place and verify the memory, and measure, unless the kernel's arrays equal those of the previous working
    !> set.
    subroutine measure_point(kernel, session, measured, failures, error)
        class(kernel_t), intent(inout) :: kernel
        type(session_t), intent(inout) :: session
        integer(i8), intent(inout) :: measured
        integer, intent(inout) :: failures
        type(error_t), intent(inout) :: error
        type(plan_t) :: wanted

        call kernel%read_options(error)
        if (error%failed()) return
        call kernel%plan(session%working_set, wanted, error)
        if (error%failed()) return
        if (session%swept == 'working-set' .and. sum(wanted%bytes) == measured) return
        measured = sum(wanted%bytes)
        call threads_begin(session%threads, error)
        if (error%failed()) return
        call allocate_arrays(kernel, session, wanted, error)
        if (error%failed()) return
        call regions_reset()
        call populate(kernel%memory, session%parallel_touch, session%populated)
        call pages_verify(kernel%memory, session%policy, error)
        if (error%failed()) return
        call measure_working_set(kernel, session, wanted, failures, error)
        if (error%failed()) return
        call free_arrays(kernel%memory, error)
        deallocate (kernel%memory)
    end subroutine measure_point

    !> Working sets of a sweep: two per octave.
    pure integer(i8) function sweep_size(step)
        integer, intent(in) :: step

        sweep_size = smallest_sweep*2_i8**(step/2)
        if (modulo(step, 2) == 1) sweep_size = (sweep_size*181_i8/128_i8)/512_i8*512_i8
    end function sweep_size

    subroutine read_session(kernel, session, error)
        class(kernel_t), intent(in) :: kernel
        type(session_t), intent(inout) :: session
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        associate (options => kernel%options)
            call options%get('working-set', session%working_set)
            call options%get('repetitions', session%repetitions)
            call options%get('threads', session%threads)
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

    !> Time the repetitions of one working set, validate, observe the pages, record and print.
    subroutine measure_working_set(kernel, session, wanted, failures, error)
        class(kernel_t), intent(inout) :: kernel
        type(session_t), intent(inout) :: session
        type(plan_t), intent(in) :: wanted
        integer, intent(inout) :: failures
        type(error_t), intent(inout) :: error
        type(record_t) :: record
        integer(i8) :: minor, major
        integer(i4) :: compute
        integer :: i

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

        call kernel%initialise(wanted%elements)
        call calibrate(kernel, merge(sweep_repetition_seconds, repetition_seconds, len(session%swept) > 0), record%passes, error)
        if (error%failed()) return
        allocate (record%seconds(session%repetitions))
        compute = region_handle('compute')
        call placement_begin(record%placement)
        call page_faults(minor, major)
        do i = 1, size(record%seconds)
            call region_begin_team(compute)
            call kernel%run(record%passes)
            call region_end_team(compute, record%seconds(i))
            call placement_update(record%placement)
        end do
        call page_faults(record%compute_minor, record%compute_major)
        record%compute_minor = record%compute_minor - minor
        record%compute_major = record%compute_major - major

        record%placement%last_level_cache = session%last_level_cache
        record%populate_seconds = session%populated%seconds
        record%populate_minor = session%populated%minor
        record%populate_major = session%populated%major
        call put_regions(record, 'compute', error)
        if (error%failed()) return
        record%traffic = kernel%traffic(record%passes)
        call record_pages(kernel%memory, session%policy, record%pages, error)
        if (error%failed()) return
        call kernel%validate(record%validation)
        record%metrics = kernel%metrics(record%passes, median(record%seconds))
        if (.not. record%validation%passed) failures = failures + 1

        if (len(session%record_file) > 0) then
            call append_line(session%record_file, record%to_json(kernel%options), error)
            if (error%failed()) return
        end if
        if (len(session%swept) > 0) then
            call print_line(kernel, session, record)
        else
            call print_summary(record)
        end if
    end subroutine measure_working_set

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
        if (status == 0) read (given, *, iostat=status) passes
        if (passes > 0) then
            call kernel%run(1_i8)
            return
        end if
        passes = 1
        do
            start = wall_seconds()
            call kernel%run(passes)
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

    !> Print one measurement.
    subroutine print_summary(record)
        type(record_t), intent(in) :: record
        integer :: i

        associate (c => record%configuration, seconds => record%seconds)
            write (output_unit, '(a)') record%kernel//'  '//c%compiler//'  prefetch '//c%prefetch//'  stores '//c%stores// &
                '  loop '//c%loop, &
                '  working set   '//bytes_to_text(record%working_set)//' in '//to_text(record%arrays)//' array(s), '// &
                to_text(size(record%placement%cpus))//' thread(s)', &
                '  pages         '//record%pages%policy//': '//bytes_to_text(record%pages%page_size_observed)// &
                ' observed, '//to_text(100.0_r8*record%pages%huge_coverage, 'f0.1')//' % huge; first touch '// &
                to_text(1.0e3_r8*record%populate_seconds, 'f0.2')//' ms', &
                '  time          '//to_text(1.0e3_r8*median(seconds), 'f0.3')//' ms median of '//to_text(size(seconds))// &
                ' (from '//to_text(1.0e3_r8*minval(seconds), 'f0.3')//' to '//to_text(1.0e3_r8*maxval(seconds), 'f0.3')// &
                '), '//to_text(record%passes)//' pass(es) each'
        end associate
        do i = 1, size(record%metrics)
            write (output_unit, '(a)') '  '//record%metrics(i)%field//'  '//to_text(record%metrics(i)%value, 'g0.5')
        end do
        write (output_unit, '(a)') '  check         '//outcome(record%validation)//': '//record%validation%method
    end subroutine print_summary

    !> Print one point of a sweep.
    subroutine print_line(kernel, session, record)
        class(kernel_t), intent(in) :: kernel
        type(session_t), intent(in) :: session
        type(record_t), intent(in) :: record
        character(:), allocatable :: point, value

        if (session%swept == 'working-set') then
            point = bytes_to_text(record%working_set)
        else
            call kernel%options%get(session%swept, value)
            point = session%swept//' '//value
        end if
        write (output_unit, '(a)') record%kernel//'  '//point//'  '//record%metrics(1)%field//' '// &
            to_text(record%metrics(1)%value, 'g0.5')//'  '//outcome(record%validation)
    end subroutine print_line

end module pw_harness
