!> OpenMP overhead: the time of each construct with a little work inside, minus that of the work.
!>
!> Source: J. M. Bull, Measuring synchronisation and scheduling overheads in OpenMP (EWOMP 1999); J. M. Bull, F. Reid,
!> N. McDonnell, A microbenchmark suite for OpenMP tasks (IWOMP 2012).
module openmp_overhead
    use openmp_overhead_h, only: call_t => overhead_call_t, pw_overhead_deviation, pw_overhead_reference, pw_overhead_run, &
        rounds => overhead_rounds
    use pw_error, only: error_t, exit_usage
    use pw_evidence, only: median
    use pw_harness, only: arrays_of, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice, option_count, rules_t
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_simd, only: place_of, words_available
    use pw_text, only: to_text
    implicit none
    private

    ! In the order of the numbers in overhead.h.
    character(13), parameter :: constructs(15) = [character(13) :: 'parallel', 'parallel_for', 'for_static', 'for_dynamic', &
        'for_guided', 'barrier', 'single', 'critical', 'lock', 'ordered', 'atomic', 'reduction', 'task', 'task_from_one', &
        'taskwait']
    !> Those that threads execute one after the other: a round takes as many times as there are threads.
    character(13), parameter :: in_turn(4) = [character(13) :: 'critical', 'lock', 'ordered', 'atomic']
    integer(i8), parameter :: line = 256     ! bytes of struct overhead_thread
    integer, parameter :: windows = 15
    real(r8), parameter :: window_seconds = 2.0e-4_r8

    type, extends(kernel_t), public :: openmp_overhead_t
        private
        type(call_t) :: request
        character(13) :: construct = ''
    contains
        procedure :: declare_options, read_options, plan, initialise, run, validate, traffic, metrics
        procedure, private :: work_seconds
    end type openmp_overhead_t

contains

    subroutine declare_options(self)
        class(openmp_overhead_t), intent(inout) :: self

        associate (options => self%options)
            call options%add('construct', option_choice, 'parallel', 'measured construct', values=words_available(constructs))
            call options%add('work', option_count, '64', 'steps per piece of work in a construct, of about five cycles each', &
                             rules_t(lowest=0_i8), '0,16,64,256,1024')
            call options%add('iterations', option_count, '16', 'loops: pieces of work per thread', rules_t(lowest=1_i8), &
                             '1,4,16,64,256')
            call options%add('chunk', option_count, '0', 'for_static, for_dynamic, for_guided: chunk of the schedule; 0: '// &
                             'unspecified', rules_t(lowest=0_i8), '1,2,4,8,16')
        end associate
    end subroutine declare_options

    subroutine read_options(self, error)
        class(openmp_overhead_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        self%request = call_t()
        self%request%threads = self%threads
        call self%options%get('construct', word)
        self%construct = word
        self%request%construct = place_of(word, constructs)
        call self%options%get('work', self%request%steps)
        call self%options%get('iterations', self%request%iterations)
        call self%options%get('chunk', self%request%chunk)
        if (self%request%chunk > 0 .and. index(word, 'for_') /= 1) &
            call error%raise(exit_usage, '--chunk '//to_text(self%request%chunk)//' has no effect on '//word, 'openmp_overhead', &
                             'use --construct for_static, for_dynamic or for_guided')
    end subroutine read_options

    !> Lines for the threads' counts, and the same number for untimed passes.
    subroutine plan(self, bytes, wanted, error)
        class(openmp_overhead_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        wanted = arrays_of('counts counts_aside', self%threads + 1, line)
        if (sum(wanted%bytes) > bytes) call error%raise(exit_usage, 'the working set is too small for the counts of '// &
            to_text(self%request%threads)//' threads', 'openmp_overhead', 'choose --working-set '//to_text(sum(wanted%bytes)))
    end subroutine plan

    !> Fresh memory is zero. An untimed pass starts the threads, because the number of timed passes follows from the first
    !> one.
    subroutine initialise(self)
        class(openmp_overhead_t), intent(inout) :: self

        self%request%team = self%memory(2)%address
        call self%run(1_i8)
        self%request%team = self%memory(1)%address
    end subroutine initialise

    subroutine run(self, passes)
        class(openmp_overhead_t), intent(inout) :: self
        integer(i8), intent(in) :: passes

        self%request%passes = passes
        call pw_overhead_run(self%request)
    end subroutine run

    !> The timed passes, and one more in which threads are late and check the order.
    subroutine validate(self, outcome)
        class(openmp_overhead_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        integer(i8), parameter :: looked = 1

        self%request%checks = 1
        call self%make_passes(looked)
        self%request%checks = 0
        outcome%method = 'pieces of work done, and the sum of their results, against those computed serially'
        select case (self%construct)
        case ('critical', 'lock', 'ordered')
            outcome%method = outcome%method//'; a count under mutual exclusion'
        case ('atomic')
            outcome%method = 'the sum of all additions'
        case ('reduction')
            outcome%method = outcome%method//'; the sum of all reductions'
        case ('barrier', 'single', 'for_static', 'for_dynamic', 'for_guided')
            outcome%method = outcome%method//'; number of threads that continued before a late one'
        case ('taskwait')
            outcome%method = outcome%method//'; number of threads that continued before their task was done'
        end select
        outcome%error = real(pw_overhead_deviation(self%request, self%passes, looked), r8)
    end subroutine validate

    !> No data is moved.
    function traffic(self, passes) result(moved)
        class(openmp_overhead_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved

        moved = traffic_t()
    end function traffic

    !> The time of the work is measured directly after the timed passes, because clock frequencies follow the load.
    function metrics(self, passes, seconds) result(figures)
        class(openmp_overhead_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: a_construct, its_work

        a_construct = seconds/real(rounds*passes, r8)
        if (any(in_turn == self%construct)) a_construct = a_construct/real(self%request%threads, r8)
        its_work = self%work_seconds()
        figures = [metric_t('overhead_ns', 1.0e9_r8*(a_construct - its_work)), metric_t('construct_ns', 1.0e9_r8*a_construct), &
                   metric_t('work_ns', 1.0e9_r8*its_work)]
    end function metrics

    !> Seconds of a construct's work without the construct: the median of some windows, most of them not interrupted.
    real(r8) function work_seconds(self)
        class(openmp_overhead_t), intent(in) :: self
        type(call_t) :: request
        real(r8) :: window(windows)
        integer(i8) :: many
        integer :: i

        request = self%request
        request%team = self%memory(2)%address
        many = rounds
        do while (many*pw_overhead_reference(request, many) < window_seconds)
            many = 2*many
        end do
        do i = 1, windows
            window(i) = pw_overhead_reference(request, many)
        end do
        work_seconds = median(window)
    end function work_seconds

end module openmp_overhead
