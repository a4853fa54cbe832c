!> Latency of dependent loads on one thread while the others load and store lines at a rate.
!>
!> Source: Esmaili-Dokht et al., A Mess of memory system benchmarking, simulation and application profiling (MICRO 2024); Intel,
!> Memory Latency Checker, --loaded_latency.
module loaded_latency
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int32_t, c_loc, c_ptr
    use loaded_latency_h, only: load_done_t => pw_load_done_t, pw_chase_and_stop, pw_load_until
    use pw_error, only: error_t, exit_usage
    use pw_evidence, only: median
    use pw_harness, only: arrays_of, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_links, only: join_cycle, place_on_cycle
    use pw_options, only: option_choice, option_count, rules_t
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_text, only: bytes_to_text, to_text
    use pw_threads, only: thread_number
    use pw_timer, only: wall_seconds
    use pw_traffic, only: per_element_t
    use pw_values, only: mixed
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8, line_words = line_bytes/word_bytes
    !> The bits that sums are compared in; products of two such numbers do not overflow.
    integer(i8), parameter :: low_bits = 2_i8**31 - 1
    !> Iterations after which a thread at the latest looks whether the chase has ended: about a millisecond.
    integer(i8), parameter :: most_delay = 1000000_i8

    !> A call of `run`: seconds per hop of the chase alone, and the groups per second of all loading threads.
    type :: call_t
        integer(i8) :: passes = 0
        real(r8) :: hop_seconds = 0.0_r8, rate = 0.0_r8
    end type call_t

    type, extends(kernel_t), public :: loaded_latency_t
        private
        integer(i8) :: hops = 0, delay = 0
        integer(i8) :: reads = 0, writes = 0, groups = 0     ! lines of a group; groups of a thread
        type(c_ptr) :: at(1)
        integer(i8), pointer, contiguous :: load(:, :) => null()   ! word, line
        type(load_done_t), allocatable :: done(:)                  ! by thread, from 1: thread 0 chases
        type(call_t), allocatable :: calls(:)
    contains
        procedure :: declare_options, read_options, plan, initialise, run, validate, traffic, metrics
        procedure, private :: first_line, typical, wrong_words
    end type loaded_latency_t

contains

    subroutine declare_options(self)
        class(loaded_latency_t), intent(inout) :: self

        call self%options%add('read-share', option_choice, '1.0', 'share of reads in the traffic of the load, of which '// &
                              'regular stores read their lines too', values='1.0|0.75|0.5')
        call self%options%add('delay', option_count, '0', 'wait of a loading thread after each cache line, in iterations of '// &
                              'an empty loop, at most '//to_text(most_delay), rules_t(lowest=0_i8), &
                              '0,10,20,40,60,100,200,500,2000,20000')
        call self%options%add('hops', option_count, '32768', 'dependent loads per pass', rules_t(lowest=16_i8))
    end subroutine declare_options

    !> Groups of lines with the requested share of reads among all lines that move.
    subroutine read_options(self, error)
        class(loaded_latency_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: share
        logical :: regular

        call self%options%get('hops', self%hops)
        call self%options%get('delay', self%delay)
        call self%options%get('read-share', share)
        if (self%delay > most_delay) call error%raise(exit_usage, '--delay '//to_text(self%delay)//' is more than '// &
            to_text(most_delay), 'loaded_latency', 'use --threads 1 for the latency without load')
        regular = self%configuration%stores == 'regular'
        select case (share)
        case ('1.0')
            self%reads = 4
            self%writes = 0
        case ('0.75')
            self%reads = merge(4, 3, regular)
            self%writes = merge(2, 1, regular)
        case default
            self%reads = merge(0, 2, regular)
            self%writes = 2
        end select
        self%per_element = per_element_t(loads=real(self%reads, r8), stores=real(self%writes, r8), &
            write_allocate=real(self%writes, r8), element_bytes=real(line_bytes, r8))
    end subroutine read_options

    !> Half of the memory is chased, the other half is that of the load, in equal parts of the loading threads.
    subroutine plan(self, bytes, wanted, error)
        class(loaded_latency_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        integer(i8) :: loading

        wanted = arrays_of('chase load', bytes/(2*line_bytes), line_bytes)
        loading = max(1_i8, self%threads - 1)
        self%groups = wanted%elements/loading/(self%reads + self%writes)
        if (self%groups < 1) call error%raise(exit_usage, 'a loading thread has no group of lines', 'loaded_latency', &
            'choose a --working-set of '//bytes_to_text(2*loading*(self%reads + self%writes)*line_bytes)//' or more')
    end subroutine plan

    subroutine initialise(self)
        class(loaded_latency_t), intent(inout) :: self
        integer(i8) :: line, word

        call join_cycle(self%elements, self%memory(1)%address, 0_i8, self%elements, 1_i8, self%at)
        call c_f_pointer(self%memory(2)%address, self%load, [line_words, self%elements])
        !$omp parallel do private(word)
        do line = 1, self%elements
            do word = 1, line_words
                self%load(word, line) = mixed(line, 1) + word
            end do
        end do
        !$omp end parallel do
        if (allocated(self%done)) deallocate (self%done)
        allocate (self%done(self%threads - 1))
        self%calls = [call_t ::]
    end subroutine initialise

    !> The first line of a loading thread, from 1.
    pure integer(i8) function first_line(self, thread)
        class(loaded_latency_t), intent(in) :: self
        integer, intent(in) :: thread

        first_line = (thread - 1)*self%groups*(self%reads + self%writes) + 1
    end function first_line

    !> All threads load before the chase begins, and until it ends. Each has its own clock: a thread that the system interrupts
    !> delays the start and the end for all.
    subroutine run(self, passes)
        class(loaded_latency_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        real(r8), parameter :: resolution = 1.0e-9_r8
        real(r8) :: rate, seconds, start
        integer(c_int32_t) :: stop
        integer(i8) :: groups
        integer :: thread, started, loading

        stop = 0
        started = 0
        rate = 0.0_r8
        seconds = 0.0_r8
        !$omp parallel private(thread, start, groups, loading) reduction(+: rate, seconds)
        thread = thread_number()
        if (thread == 0) then
            loading = 0
            do while (loading < self%threads - 1)
                !$omp atomic read
                loading = started
            end do
            start = wall_seconds()
            call pw_chase_and_stop(self%hops*passes, self%at(1), stop)
            seconds = wall_seconds() - start
        else
            groups = self%done(thread)%groups
            !$omp atomic update
            started = started + 1
            start = wall_seconds()
            call pw_load_until(stop, c_loc(self%load(1, self%first_line(thread))), self%groups, self%reads, self%writes, &
                               self%delay, self%done(thread))
            rate = real(self%done(thread)%groups - groups, r8)/max(wall_seconds() - start, resolution)
        end if
        !$omp end parallel
        self%calls = [self%calls, call_t(passes, seconds/real(self%hops*passes, r8), rate)]
    end subroutine run

    !> The medians of the calls with so many passes.
    function typical(self, passes) result(median_call)
        class(loaded_latency_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(call_t) :: median_call

        associate (counts => self%calls%passes == passes)
            median_call = call_t(passes, median(pack(self%calls%hop_seconds, counts)), median(pack(self%calls%rate, counts)))
        end associate
    end function typical

    !> The end of the chase against the computed end of its hops, and the work of each loading thread.
    subroutine validate(self, outcome)
        class(loaded_latency_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        integer :: thread

        outcome%method = 'lines between the end of the chase and that of its hops; low bits of sums, and every word, of the load'
        outcome%error = real(abs(place_on_cycle(self%at(1)) - modulo(self%hops*self%passes, self%elements)), r8)
        do thread = 1, size(self%done)
            outcome%error = outcome%error + real(self%wrong_words(thread), r8)
        end do
    end subroutine validate

    !> Words of a loading thread's lines that are not those of the latest store; and 1 if the sum is not that of the loaded
    !> lines. No subset of the lines has the sum of another.
    integer(i8) function wrong_words(self, thread) result(wrong)
        class(loaded_latency_t), intent(in) :: self
        integer, intent(in) :: thread
        integer(i8) :: first, group, line, loads, sum, latest

        wrong = 0
        sum = 0
        first = self%first_line(thread)
        associate (done => self%done(thread)%groups)
            do group = 0, self%groups - 1
                loads = (done - group + self%groups - 1)/self%groups
                do line = first + group*self%reads, first + (group + 1)*self%reads - 1
                    sum = iand(sum + iand(loads, low_bits)*iand(line_words*mixed(line, 1), low_bits), low_bits)
                    sum = iand(sum + iand(loads, low_bits)*(line_words*(line_words + 1)/2), low_bits)
                end do
                line = first + self%groups*self%reads + group*self%writes
                latest = group + 1 + (loads - 1)*self%groups
                if (loads > 0) wrong = wrong + count(self%load(:, line:line + self%writes - 1) /= latest, kind=i8)
            end do
            if (iand(self%done(thread)%sum, low_bits) /= sum) wrong = wrong + 1
        end associate
    end function wrong_words

    !> Of the load, and one word per hop, whose line the hardware moves.
    function traffic(self, passes) result(moved)
        class(loaded_latency_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        type(call_t) :: median_call
        real(r8) :: hops

        median_call = self%typical(passes)
        hops = real(self%hops*passes, r8)
        moved = self%per_element%times(median_call%rate*median_call%hop_seconds*hops, self%configuration%stores)
        moved%bytes_stream = moved%bytes_stream + word_bytes*hops
        moved%bytes_hardware = moved%bytes_hardware + line_bytes*hops
    end function traffic

    !> From the clocks of the threads; `seconds` also contains their start and end.
    function metrics(self, passes, seconds) result(figures)
        class(loaded_latency_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(call_t) :: median_call
        type(traffic_t) :: per_second

        median_call = self%typical(passes)
        per_second = self%per_element%times(median_call%rate, self%configuration%stores)
        figures = [metric_t('latency_ns', 1.0e9_r8*median_call%hop_seconds), &
                   metric_t('load_bandwidth_hardware_gb_per_s', per_second%bytes_hardware*1.0e-9_r8), &
                   metric_t('load_bandwidth_stream_gb_per_s', per_second%bytes_stream*1.0e-9_r8)]
    end function metrics

end module loaded_latency
