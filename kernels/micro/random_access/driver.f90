!> Read-modify-write at pseudo-random places of a table.
!>
!> Source: HPC Challenge RandomAccess (Luszczek, Dongarra et al., 2005), with its sequence and rules.
module random_access
    use, intrinsic :: iso_c_binding, only: c_bool, c_f_pointer
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, bandwidth_metrics, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_bytes, option_count, rules_t
    use pw_record, only: metric_t, validation_t
    use pw_threads, only: thread_share
    use random_access_h, only: lanes, polynomial, pw_random_access
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8
    integer(i8), parameter :: updates_per_word = 4            ! of a full run, by the HPCC rules
    ! Share of wrong words that the HPCC rules allow for races of threads in a full run, in a table much larger than the caches.
    ! Those of several full runs add up; a table that is wrong by half shows nothing.
    real(r8), parameter :: tolerated_with_threads = 0.01_r8, most_tolerated = 0.5_r8
    ! Updates of a thread whose stores wait for their cache lines, at most: the entries of Zen 4's store queue.
    integer(i8), parameter :: in_flight = 64

    type, extends(kernel_t), public :: random_access_t
        private
        integer(i8) :: updates = 0, tuning = 0
        integer(i8) :: full_run = 1           ! passes of a full run; the next full run begins with the same numbers
        integer(i8) :: touched_bytes = 0      ! of the cache lines that were updated
        integer(i8), allocatable :: starts(:, :), state(:, :)   ! (lanes, threads): numbers before the first and the next update
        integer(i8), pointer, contiguous :: table(:) => null()
    contains
        procedure :: declare_options, read_options, plan, initialise, run, validate, metrics
        procedure, private :: steps, full_runs, lost_in_full_run
    end type random_access_t

contains

    subroutine declare_options(self)
        class(random_access_t), intent(inout) :: self

        call self%options%add('updates', option_count, '1048576', 'updates per pass, over all threads', rules_t(lowest=128_i8))
        select case (self%configuration%prefetch)
        case ('software')
            call self%options%add('prefetch-distance', option_count, '32', 'prefetch distance in lines (one per update), at '// &
                                  'most 128', rules_t(lowest=1_i8), '1,2,4,8,16,32,64,128')
        case ('block')
            call self%options%add('block-size', option_bytes, '4KiB', 'bytes of the lines (one per update) read in advance, at '// &
                                  'most 8 KiB', rules_t(lowest=line_bytes), '64,128,256,512,1KiB,2KiB,4KiB,8KiB')
        end select
    end subroutine declare_options

    subroutine read_options(self, error)
        class(random_access_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        integer(i8) :: value

        call self%options%get('updates', self%updates)
        self%updates = self%updates/(lanes*self%threads)*lanes*self%threads
        if (self%updates == 0) then
            call error%raise(exit_usage, 'too few --updates for the threads', 'random_access', 'choose at least 128 per thread')
            return
        end if
        select case (self%configuration%prefetch)
        case ('software')
            call self%options%get('prefetch-distance', value)
            self%tuning = value
        case ('block')
            call self%options%get('block-size', value)
            self%tuning = value/line_bytes
        end select
        if (self%tuning > lanes) call error%raise(exit_usage, 'at most 128 updates are known in advance', 'random_access', &
            'choose a --prefetch-distance of at most 128 or a --block-size of at most 8KiB')
    end subroutine read_options

    !> One table; its number of words is a power of two, at most the working set.
    subroutine plan(self, bytes, wanted, error)
        class(random_access_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        wanted = arrays_of('table', 2_i8**(int(bit_size(bytes)) - 1 - leadz(bytes/word_bytes)), word_bytes)
        wanted%units = self%updates
    end subroutine plan

    !> Each word is set to its position. Every lane of every thread gets a piece of a full run's numbers, and each pass makes
    !> the next part of all pieces.
    subroutine initialise(self)
        class(random_access_t), intent(inout) :: self
        integer(i8) :: first, last, i, piece
        integer :: k, thread

        self%full_run = (updates_per_word*self%elements + self%updates - 1)/self%updates
        piece = self%full_run*self%steps()
        if (allocated(self%starts)) deallocate (self%starts)
        allocate (self%starts(lanes, self%threads))
        do thread = 1, int(self%threads)
            do k = 1, lanes
                self%starts(k, thread) = sequence_value(piece*(k - 1 + lanes*(thread - 1_i8)))
            end do
        end do
        self%state = self%starts
        call c_f_pointer(self%memory(1)%address, self%table, [self%elements])
        associate (table => self%table)
            !$omp parallel private(first, last, i)
            call thread_share(self%elements, line_bytes/word_bytes, first, last)
            do i = first, last
                table(i) = i - 1
            end do
            !$omp end parallel
        end associate
    end subroutine initialise

    !> Updates of a pass per lane.
    pure integer(i8) function steps(self)
        class(random_access_t), intent(in) :: self

        steps = self%updates/(lanes*self%threads)
    end function steps

    !> The sequence advances from pass to pass, so that no pass finds its words in a cache. After a full run it begins again,
    !> and the second full run undoes the first.
    subroutine run(self, passes)
        class(random_access_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: state(lanes), pass, first, last

        associate (table => self%table, words => self%elements, tuning => self%tuning, steps => self%steps())
            !$omp parallel private(state, first, last, pass)
            call thread_share(self%threads, 1_i8, first, last)
            state = self%state(:, first)
            do pass = self%passes, self%passes + passes - 1
                if (modulo(pass, self%full_run) == 0) state = self%starts(:, first)
                call pw_random_access(steps, state, table, words - 1, tuning)
            end do
            self%state(:, first) = state
            !$omp end parallel
        end associate
    end subroutine run

    !> Value number n (from 0) of the sequence that starts with 1: x^n modulo the polynomial, by squaring.
    pure integer(i8) function sequence_value(n) result(value)
        integer(i8), intent(in) :: n
        integer :: bit

        value = 1
        do bit = int(bit_size(n)) - leadz(n) - 1, 0, -1
            value = product_mod(value, value)
            if (btest(n, bit)) value = doubled(value)
        end do
    end function sequence_value

    pure elemental integer(i8) function doubled(value)
        integer(i8), intent(in) :: value

        doubled = ieor(shiftl(value, 1), iand(shifta(value, 63), polynomial))
    end function doubled

    pure integer(i8) function product_mod(x, y) result(total)
        integer(i8), intent(in) :: x, y
        integer :: bit

        total = 0
        do bit = int(bit_size(y)) - 1, 0, -1
            total = doubled(total)
            if (btest(y, bit)) total = ieor(total, x)
        end do
    end function product_mod

    !> The sequence again, value by value: it undoes the updates of all passes that later ones did not undo, which restores
    !> the table's initial state. Where nothing is left to undo, another pass is made, because skipped work would also leave
    !> the initial state.
    subroutine validate(self, outcome)
        class(random_access_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        integer(i8) :: phase, first, last, wrong, i
        logical(c_bool), allocatable :: touched(:)

        if (modulo(self%passes, 2*self%full_run) == 0) call self%make_passes(1_i8)
        phase = modulo(self%passes, 2*self%full_run)
        first = max(0_i8, phase - self%full_run)
        last = min(phase, self%full_run) - 1
        allocate (touched(0:max(0_i8, self%elements*word_bytes/line_bytes - 1)), source=.false._c_bool)
        !$omp parallel do schedule(dynamic)
        do i = 0, lanes*self%threads - 1
            call undo(self, i, first, last, touched)
        end do
        wrong = 0
        do i = 1, self%elements
            if (self%table(i) /= i - 1) wrong = wrong + 1
        end do
        self%touched_bytes = min(count(touched, kind=i8)*line_bytes, self%elements*word_bytes)
        outcome%method = 'the updates undone by a second algorithm, share of words that stay wrong'
        outcome%error = real(wrong, r8)/real(min(self%elements, (last - first + 1)*self%updates), r8)
        if (self%threads > 1) outcome%tolerance = min(most_tolerated, self%lost_in_full_run()*max(1.0_r8, self%full_runs()))
    end subroutine validate

    !> The full runs in all passes: a pass may be several, or a part of one.
    pure function full_runs(self) result(number)
        class(random_access_t), intent(in) :: self
        real(r8) :: number

        number = real(self%passes*self%updates, r8)/real(updates_per_word*self%elements, r8)
    end function full_runs

    !> The share of words that a full run of several threads may leave wrong. An update is lost if another thread updates the word
    !> while it is in flight: the smaller the table, the likelier.
    pure function lost_in_full_run(self) result(share)
        class(random_access_t), intent(in) :: self
        real(r8) :: share

        share = max(tolerated_with_threads, real(updates_per_word*(self%threads - 1)*in_flight, r8)/real(self%elements, r8))
    end function lost_in_full_run

    !> The numbers of a piece (from 0): marks the lines that its passes touched, and undoes the updates of the passes `first` to
    !> `last` (from 0) of a full run.
    subroutine undo(self, piece, first, last, touched)
        type(random_access_t), intent(inout) :: self
        integer(i8), intent(in) :: piece, first, last
        logical(c_bool), intent(inout) :: touched(0:)
        integer(i8) :: value, pass, step, word, line
        logical(c_bool) :: known

        value = sequence_value(piece*self%full_run*self%steps())
        do pass = 0, min(self%passes, self%full_run) - 1
            do step = 1, self%steps()
                value = doubled(value)
                word = iand(value, self%elements - 1)
                line = word*word_bytes/line_bytes
                !$omp atomic read
                known = touched(line)
                if (.not. known) then
                    !$omp atomic write
                    touched(line) = .true._c_bool
                end if
                if (pass < first .or. pass > last) cycle
                if (self%threads == 1) then
                    self%table(word + 1) = ieor(self%table(word + 1), value)
                else
                    !$omp atomic
                    self%table(word + 1) = ieor(self%table(word + 1), value)
                end if
            end do
        end do
    end subroutine undo

    function metrics(self, passes, seconds) result(figures)
        class(random_access_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: updates

        updates = real(self%updates*passes, r8)
        figures = [metric_t('updates_per_s', updates/seconds), metric_t('nanoseconds_per_update', 1.0e9_r8*seconds/updates), &
                   bandwidth_metrics(self%traffic(passes), seconds), metric_t('touched_bytes', real(self%touched_bytes, r8))]
    end function metrics

end module random_access
