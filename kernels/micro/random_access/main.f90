!> Read-modify-write at pseudo-random places of a table.
!>
!> Source: HPC Challenge RandomAccess (Luszczek, Dongarra et al., 2005), with its sequence and rules.
module random_access
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int64_t
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: bandwidth_metrics, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_bytes, option_count
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_threads, only: thread_share
    implicit none
    private

    integer, parameter :: lanes = 128                ! as in random_access.h
    integer(i8), parameter :: polynomial = 7, word_bytes = 8
    real(r8), parameter :: tolerated_with_threads = 0.01_r8   ! share of wrong words that the HPCC rules allow for races

    type, extends(kernel_t), public :: random_access_t
        private
        integer(i8) :: words = 0, updates = 0, tuning = 0, passes = 0, threads = 1
        integer(i8), pointer, contiguous :: table(:) => null()
    contains
        procedure :: declare_options
        procedure :: read_options
        procedure :: plan
        procedure :: initialise
        procedure :: run
        procedure :: validate
        procedure :: traffic
        procedure :: metrics
    end type random_access_t

    public :: new_random_access

    interface
        !> The timed kernel of this build; see random_access.h.
        subroutine pw_random_access(steps, state, table, mask, tuning) bind(c)
            import :: c_int64_t, lanes
            integer(c_int64_t), intent(in), value :: steps, mask, tuning
            integer(c_int64_t), intent(inout) :: state(lanes), table(0:mask)
        end subroutine pw_random_access
    end interface

contains

    function new_random_access() result(kernel)
        type(random_access_t) :: kernel

        kernel%name = 'random_access'
        kernel%summary = 'updates at pseudo-random places of a table'
        kernel%default_working_set = '256MiB'
    end function new_random_access

    subroutine declare_options(self)
        class(random_access_t), intent(inout) :: self

        call self%options%add('updates', option_count, '1048576', 'updates per pass, over all threads', lowest=128_i8)
        select case (self%configuration%prefetch)
        case ('software')
            call self%options%add('prefetch-distance', option_count, '32', 'prefetch distance in lines (one per update), '// &
                                  'at most 128', lowest=1_i8, ladder='1,2,4,8,16,32,64,128')
        case ('block')
            call self%options%add('block-size', option_bytes, '4KiB', 'bytes of the lines (one per update) read in advance, '// &
                                  'at most 8 KiB', lowest=line_bytes, ladder='64,128,256,512,1KiB,2KiB,4KiB,8KiB')
        end select
    end subroutine declare_options

    subroutine read_options(self, error)
        class(random_access_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        integer(i8) :: value

        call self%options%get('threads', self%threads)
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

        associate (unused_self => self, unused_error => error)
        end associate
        wanted%elements = 2_i8**(int(bit_size(bytes)) - 1 - leadz(bytes/word_bytes))
        wanted%element_bytes = word_bytes
        allocate (wanted%name(1), source=[character(16) :: 'table'])
        allocate (wanted%bytes(1), source=wanted%elements*word_bytes)
    end subroutine plan

    !> Each word is set to its position.
    subroutine initialise(self, elements)
        class(random_access_t), intent(inout) :: self
        integer(i8), intent(in) :: elements
        integer(i8) :: first, last, i

        self%words = elements
        self%passes = 0
        call c_f_pointer(self%memory(1)%address, self%table, [elements])
        associate (table => self%table)
            !$omp parallel private(first, last, i)
            call thread_share(elements, line_bytes/word_bytes, first, last)
            do i = first, last
                table(i) = i - 1
            end do
            !$omp end parallel
        end associate
    end subroutine initialise

    !> Every pass makes the same updates, so that a second pass undoes the first.
    subroutine run(self, passes)
        class(random_access_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: state(lanes), steps, pass, first, last, starts(lanes, self%threads)
        integer :: k, thread

        steps = self%updates/(lanes*self%threads)
        do thread = 1, int(self%threads)
            do k = 1, lanes
                starts(k, thread) = sequence_value(steps*(k - 1 + lanes*(thread - 1_i8)))
            end do
        end do
        associate (table => self%table, words => self%words, tuning => self%tuning)
            !$omp parallel private(state, first, last, pass)
            call thread_share(self%threads, 1_i8, first, last)
            do pass = 1, passes
                state = starts(:, first)
                call pw_random_access(steps, state, table, words - 1, tuning)
            end do
            !$omp end parallel
        end associate
        self%passes = self%passes + passes
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

    !> The sequence again, value by value: after an odd number of passes it restores the table's initial
    !> state. An even number is made odd by another pass, because otherwise skipped work would also leave the initial state.
    subroutine validate(self, outcome)
        class(random_access_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        integer(i8) :: value, k, wrong, i

        if (modulo(self%passes, 2_i8) == 0) call self%run(1_i8)
        value = sequence_value(0_i8)
        do k = 1, self%updates
            value = doubled(value)
            i = iand(value, self%words - 1) + 1
            self%table(i) = ieor(self%table(i), value)
        end do
        wrong = 0
        do i = 1, self%words
            if (self%table(i) /= i - 1) wrong = wrong + 1
        end do
        outcome%method = 'the updates undone by a second algorithm, share of words that stay wrong'
        outcome%error = real(wrong, r8)/real(self%words, r8)
        if (self%threads > 1) outcome%tolerance = tolerated_with_threads
        outcome%passed = outcome%error <= outcome%tolerance
    end subroutine validate

    !> Each update reads and writes one word; the load already reads its line, so write-allocate adds nothing.
    function traffic(self, passes) result(moved)
        class(random_access_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved

        moved%bytes_stream = 2*word_bytes*real(self%updates*passes, r8)
        moved%bytes_hardware = moved%bytes_stream
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(random_access_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: updates

        updates = real(self%updates*passes, r8)
        figures = [metric_t('updates_per_s', updates/seconds), metric_t('nanoseconds_per_update', 1.0e9_r8*seconds/updates), &
                   bandwidth_metrics(self%traffic(passes), seconds)]
    end function metrics

end module random_access

program main
    use pw_harness, only: run_kernel
    use random_access, only: new_random_access, random_access_t
    implicit none
    type(random_access_t) :: kernel

    kernel = new_random_access()
    call run_kernel(kernel)
end program main
