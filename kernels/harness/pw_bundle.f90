!> The driver of kernels that pass over many streams of fp64 at once: arrays with a component a stream.
!>
!> A kernel is its facts (`bundle_t`), the closed form of an element, and timed code made of pw_bundle.h.
module pw_bundle
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int32_t, c_int64_t, c_loc, c_null_ptr, c_ptr
    use pw_ahead, only: ahead_t, declare_ahead, read_ahead
    use pw_deviation, only: worse
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: bandwidth_metrics, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_threads, only: thread_number, thread_share
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8, line = line_bytes/word_bytes            ! elements of a cache line
    integer(i8), parameter :: grain = 64                    ! elements; whole lines, so that threads share none

    !> struct pw_bundle_call.
    type, bind(c) :: call_t
        integer(c_int64_t) :: passes = 0, elements = 0, stride = 0, inputs = 0, outputs = 0
        type(c_ptr) :: in = c_null_ptr, out = c_null_ptr
        integer(c_int64_t) :: distance = 0, block = 0, zero_ahead = 0
        real(c_double) :: scalar = 0.0_c_double, sum = 0.0_c_double
        integer(c_int32_t) :: fused = 0, by_prefetch = 0
    end type call_t

    abstract interface
        !> What a pass makes of one element of all inputs and, in an update, of the old outputs: the new outputs, or of a
        !> reduction the one summand.
        pure subroutine element(inputs, old, s, new)
            import :: r8
            real(r8), intent(in) :: inputs(:), old(:), s
            real(r8), intent(out) :: new(:)
        end subroutine element
    end interface

    !> Facts of such a kernel. Without outputs it is a reduction: it sums over all elements.
    type, extends(kernel_t), public :: bundle_t
        integer :: inputs = 1, outputs = 1              !< streams that are read only; that are written
        integer :: loads = 1, stores = 1, flops = 0     !< per element of all streams together
        logical :: updates = .false.                    !< it reads the outputs as well: every second pass takes one back
        real(r8) :: scalar = 0.0_r8                     !< in an update it changes its sign after every pass
        procedure(element), pointer, nopass :: element => null()
        integer(i8), private :: elements = 0, passes = 0, threads = 1
        type(call_t), private :: request
        real(r8), allocatable, private :: sums(:)       ! of each thread's last pass
    contains
        procedure :: declare_options
        procedure :: read_options
        procedure :: plan
        procedure :: initialise
        procedure :: run
        procedure :: validate
        procedure :: traffic
        procedure :: metrics
        procedure, private :: first_output
        procedure, private :: streams_of
    end type bundle_t

    interface
        subroutine pw_bundle_run(request) bind(c)
            import :: call_t
            type(call_t), intent(inout) :: request
        end subroutine pw_bundle_run
    end interface

contains

    subroutine declare_options(self)
        class(bundle_t), intent(inout) :: self

        call declare_ahead(self%options, self%configuration, 'stream', least=4096_i8)
    end subroutine declare_options

    subroutine read_options(self, error)
        class(bundle_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        type(ahead_t) :: ahead

        call self%options%get('threads', self%threads)
        self%request = call_t()
        self%request%inputs = self%inputs
        self%request%outputs = self%outputs
        call read_ahead(self%options, self%configuration, ahead, error)
        self%request%distance = ahead%distance
        self%request%zero_ahead = ahead%zero
        self%request%block = ahead%block/merge(self%inputs + self%outputs, self%inputs, self%updates)
        self%request%fused = ahead%fused
        self%request%by_prefetch = ahead%by_prefetch
    end subroutine read_options

    !> Streams are 8k+5 lines long and follow each other: the starts of 64 of them then differ within a page, and compete
    !> neither for the same cache sets nor look alike to the memory disambiguation.
    subroutine plan(self, bytes, wanted, error)
        class(bundle_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        integer(i8) :: lines

        lines = bytes/(line_bytes*(self%inputs + self%outputs))
        lines = lines - modulo(lines - 5_i8, 8_i8)
        if (lines < 5) then
            call error%raise(exit_usage, 'the working set has less than five cache lines a stream', 'pw_bundle', &
                             'give a larger --working-set')
            return
        end if
        wanted%element_bytes = word_bytes
        wanted%elements = lines*line
        wanted%name = [character(16) :: 'in', 'out']
        wanted%bytes = lines*line_bytes*[self%inputs, self%outputs]
        if (self%outputs == 0) then
            wanted%name = wanted%name(:1)
            wanted%bytes = wanted%bytes(:1)
        end if
    end subroutine plan

    subroutine initialise(self, elements)
        class(bundle_t), intent(inout) :: self
        integer(i8), intent(in) :: elements
        real(r8), pointer, contiguous :: in(:, :), out(:, :)
        integer(i8) :: first, last, i
        integer :: j

        self%elements = elements
        self%passes = 0
        if (allocated(self%sums)) deallocate (self%sums)
        allocate (self%sums(0:self%threads - 1), source=0.0_r8)
        call self%streams_of(in, out)
        !$omp parallel private(first, last, i, j)
        call thread_share(elements, grain, first, last)
        do j = 1, self%inputs
            do i = first, last
                in(i, j) = input(j, i)
            end do
        end do
        do j = 1, self%outputs
            do i = first, last
                out(i, j) = self%first_output(j, i)
            end do
        end do
        !$omp end parallel
    end subroutine initialise

    subroutine streams_of(self, in, out)
        class(bundle_t), intent(in) :: self
        real(r8), pointer, contiguous, intent(out) :: in(:, :), out(:, :)

        call c_f_pointer(self%memory(1)%address, in, [self%elements, int(self%inputs, i8)])
        nullify (out)
        if (self%outputs > 0) call c_f_pointer(self%memory(2)%address, out, [self%elements, int(self%outputs, i8)])
    end subroutine streams_of

    !> Element i of input j: small whole numbers, whose sums and products are exact; neighbouring streams differ.
    pure real(r8) function input(j, i)
        integer, intent(in) :: j
        integer(i8), intent(in) :: i

        input = real(1_i8 + iand(shiftr(i, modulo(j, 5)) + j, 7_i8), r8)
    end function input

    !> First value of element i of output j: unless it is updated, one that no result has, so that a store left out is seen.
    pure real(r8) function first_output(self, j, i)
        class(bundle_t), intent(in) :: self
        integer, intent(in) :: j
        integer(i8), intent(in) :: i

        first_output = -1.0_r8
        if (self%updates) first_output = real(1_i8 + iand(i + j, 15_i8), r8)
    end function first_output

    !> Each thread makes its passes over its own share: nothing is shared, so nothing waits.
    subroutine run(self, passes)
        class(bundle_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        real(r8), pointer, contiguous :: in(:, :), out(:, :)
        integer(i8) :: first, last
        type(call_t) :: request

        call self%streams_of(in, out)
        !$omp parallel private(first, last, request)
        call thread_share(self%elements, grain, first, last)
        if (last >= first) then
            request = self%request
            request%passes = passes
            request%elements = last - first + 1
            request%stride = self%elements
            request%in = c_loc(in(first, 1))
            if (self%outputs > 0) request%out = c_loc(out(first, 1))
            request%scalar = self%scalar
            if (self%updates .and. modulo(self%passes, 2_i8) == 1) request%scalar = -self%scalar
            call pw_bundle_run(request)
            self%sums(thread_number()) = request%sum
        end if
        !$omp end parallel
        self%passes = self%passes + passes
    end subroutine run

    !> Every element, or of a reduction every thread's sum, against the closed form. An update is undone by every second
    !> pass; an even number of passes would look like work left undone, and gets another one.
    subroutine validate(self, outcome)
        class(bundle_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        real(r8), pointer, contiguous :: in(:, :), out(:, :)
        real(r8) :: inputs(self%inputs), old(self%outputs), new(max(1, self%outputs)), error, expected
        integer(i8) :: first, last, i
        integer :: j

        if (self%updates .and. modulo(self%passes, 2_i8) == 0) call self%run(1_i8)
        call self%streams_of(in, out)
        error = 0.0_r8
        !$omp parallel private(first, last, i, j, inputs, old, new, expected) reduction(max: error)
        call thread_share(self%elements, grain, first, last)
        expected = 0.0_r8
        do i = first, last
            do j = 1, self%inputs
                inputs(j) = input(j, i)
            end do
            do j = 1, self%outputs
                old(j) = self%first_output(j, i)
            end do
            call self%element(inputs, old, self%scalar, new)
            expected = expected + new(1)
            do j = 1, self%outputs
                error = worse(error, abs(out(i, j) - new(j)))
            end do
        end do
        if (self%outputs == 0 .and. last >= first) error = worse(error, abs(self%sums(thread_number()) - expected))
        !$omp end parallel
        outcome%method = 'every element against its closed form, largest absolute difference'
        if (self%outputs == 0) outcome%method = 'each thread''s sum against the exact one, largest absolute difference'
        outcome%error = error
        outcome%tolerance = 0.0_r8
        outcome%passed = error <= outcome%tolerance
    end subroutine validate

    !> A store through the caches first reads its line (write-allocate), unless the kernel reads the line anyway.
    function traffic(self, passes) result(moved)
        class(bundle_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: elements, element_bytes

        elements = real(self%elements*passes, r8)
        element_bytes = real(word_bytes, r8)
        moved%bytes_stream = (self%loads + self%stores)*element_bytes*elements
        moved%bytes_hardware = moved%bytes_stream
        if (self%configuration%stores == 'regular' .and. .not. self%updates) &
            moved%bytes_hardware = (self%loads + 2*self%stores)*element_bytes*elements
        moved%flops = self%flops*elements
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(bundle_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(traffic_t) :: moved

        moved = self%traffic(passes)
        figures = [bandwidth_metrics(moved, seconds), metric_t('gflop_per_s', moved%flops/seconds*1.0e-9_r8)]
    end function metrics

end module pw_bundle
