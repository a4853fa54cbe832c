!> The driver of streaming kernels: one to four arrays of any type, passed over from start to end.
!>
!> A kernel is its facts (`streams_t`), the closed form of an element, and timed code made by pw_stream.h.
module pw_streams
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t, c_null_ptr, c_ptr
    use pw_ahead, only: ahead_t, declare_ahead, read_ahead
    use pw_deviation, only: worse
    use pw_elements, only: element_at, element_bytes, element_types, first_integer_type, pw_elements_get, pw_elements_put
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: bandwidth_metrics, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_simd, only: place_of, simd_names, words_had
    use pw_threads, only: thread_number, thread_share
    implicit none
    private

    integer(i8), parameter :: grain = 64           ! elements; whole lines of every type, so that threads share none
    integer(i8), parameter :: chunk = 512
    integer(i8), parameter :: sign_period = 4096   ! in reductions, so that sums stay small and exact in every type

    !> struct pw_stream_call.
    type, bind(c) :: call_t
        integer(c_int64_t) :: passes = 0, elements = 0
        type(c_ptr) :: array(4) = c_null_ptr
        integer(c_int64_t) :: distance = 0, block = 0, zero_ahead = 0
        real(c_double) :: scalar = 0.0_c_double, sum = 0.0_c_double
        integer(c_int32_t) :: type = 1, simd = 1, fused = 0, by_prefetch = 0
    end type call_t

    abstract interface
        !> What a pass makes of element i of the arrays, x = [a(i), b(i), c(i), d(i)], and the scalar s: the new a(i), or of
        !> a reduction the summand.
        pure real(r8) function element(x, s)
            import :: r8
            real(r8), intent(in) :: x(4), s
        end function element
    end interface

    !> Facts of a streaming kernel. The arrays are a, b, c, d in this order.
    type, extends(kernel_t), public :: streams_t
        integer :: arrays = 1, loads = 0, stores = 1
        integer :: flops = 0                    !< per element
        logical :: updates = .false.            !< it reads a as well: a second pass takes the first one back
        logical :: flips = .false.              !< the scalar changes its sign after every pass
        logical :: reduces = .false.            !< it sums over all elements and stores nothing
        real(r8) :: scalar = 3.0_r8
        procedure(element), pointer, nopass :: element => null()
        integer(i8), private :: elements = 0, passes = 0, threads = 1
        type(call_t), private :: request
        real(r8), allocatable, private :: sums(:)   ! of each thread's last pass
    contains
        procedure :: declare_options
        procedure :: read_options
        procedure :: plan
        procedure :: initialise
        procedure :: run
        procedure :: validate
        procedure :: traffic
        procedure :: metrics
        procedure, private :: initial
    end type streams_t

    interface
        integer(c_int32_t) function pw_stream_run(request) bind(c)
            import :: c_int32_t, call_t
            type(call_t), intent(inout) :: request
        end function pw_stream_run
    end interface

contains

    subroutine declare_options(self)
        class(streams_t), intent(inout) :: self

        associate (options => self%options)
            call options%add('type', option_choice, 'fp64', 'type of the elements, of those that this build has', &
                             choices=words_had(element_types, type_status))
            call options%add('simd', option_choice, 'compiler', 'width of the vectors in bits, of fp64 and of sums of '// &
                             'int64: as the build makes it, none, or so many', choices=words_had(simd_names, width_status))
            call declare_ahead(options, self%configuration, 'input', least=1536_i8)
        end associate
    end subroutine declare_options

    subroutine read_options(self, error)
        class(streams_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: type_name, width
        type(ahead_t) :: ahead

        call self%options%get('threads', self%threads)
        self%request = call_t()
        self%request%scalar = self%scalar
        call self%options%get('type', type_name)
        self%request%type = place_of(type_name, element_types)
        call self%options%get('simd', width)
        self%request%simd = place_of(width, simd_names)
        call read_ahead(self%options, self%configuration, ahead, error)
        self%request%distance = ahead%distance
        self%request%zero_ahead = ahead%zero
        self%request%block = ahead%block/max(1, self%loads)
        self%request%fused = ahead%fused
        self%request%by_prefetch = ahead%by_prefetch

        if (pw_stream_run(self%request) /= 0) &
            call error%raise(exit_usage, 'there are no vectors of '//width//' bits for '//type_name, 'pw_streams', &
                             'take --type fp64, or of sums int64 in vectors, for widths other than compiler')
    end subroutine read_options

    integer(c_int32_t) function type_status(place)
        integer(c_int32_t), intent(in) :: place
        type(call_t) :: request

        request%type = place
        type_status = pw_stream_run(request)
    end function type_status

    integer(c_int32_t) function width_status(place)
        integer(c_int32_t), intent(in) :: place
        type(call_t) :: request

        request%simd = place
        width_status = pw_stream_run(request)
    end function width_status

    subroutine plan(self, bytes, wanted, error)
        class(streams_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        integer :: i

        associate (unused => error)
        end associate
        wanted%element_bytes = element_bytes(self%request%type)
        wanted%elements = bytes/(self%arrays*wanted%element_bytes)
        allocate (wanted%name(self%arrays))
        do i = 1, self%arrays
            wanted%name(i) = 'abcd'(i:i)
        end do
        allocate (wanted%bytes(self%arrays), source=wanted%elements*wanted%element_bytes)
    end subroutine plan

    subroutine initialise(self, elements)
        class(streams_t), intent(inout) :: self
        integer(i8), intent(in) :: elements
        integer(i8) :: first, last, i, k
        integer :: j
        integer(c_int32_t) :: status
        real(r8) :: values(chunk)

        self%elements = elements
        self%passes = 0
        if (allocated(self%sums)) deallocate (self%sums)
        allocate (self%sums(0:self%threads - 1), source=0.0_r8)
        !$omp parallel private(first, last, i, j, k, values, status)
        call thread_share(elements, grain, first, last)
        do j = 1, self%arrays
            do i = first, last, chunk
                do k = i, min(i + chunk - 1, last)
                    values(k - i + 1) = self%initial(j, k)
                end do
                status = pw_elements_put(self%request%type, self%memory(j)%address, i - 1, min(chunk, last - i + 1), values)
            end do
        end do
        !$omp end parallel
    end subroutine initialise

    !> First value of element i of array j: small whole numbers, which all types hold, and whose combinations they hold.
    !> An a that is only written gets a value that no result has, so that a store left out is seen. Summands change
    !> sign from time to time, so that sums stay small.
    pure real(r8) function initial(self, j, i)
        class(streams_t), intent(in) :: self
        integer, intent(in) :: j
        integer(i8), intent(in) :: i

        select case (j)
        case (1)
            initial = -1.0_r8
            if (self%updates) initial = real(1_i8 + iand(i, 7_i8), r8)
            if (self%reduces) initial = real((1_i8 + iand(i, 7_i8))*(1_i8 - 2_i8*iand(i/sign_period, 1_i8)), r8)
        case (2)
            initial = real(1_i8 + iand(i, 15_i8), r8)
        case (3)
            initial = real(1_i8 + iand(shiftr(i, 2), 7_i8), r8)
        case default
            initial = real(1_i8 + iand(shiftr(i, 4), 7_i8), r8)
        end select
    end function initial

    !> Each thread makes its passes over its own share: nothing is shared, so nothing waits.
    subroutine run(self, passes)
        class(streams_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: first, last
        integer(c_int32_t) :: status
        type(call_t) :: request
        integer :: j

        !$omp parallel private(first, last, request, status, j)
        call thread_share(self%elements, grain, first, last)
        if (last >= first) then
            request = self%request
            request%passes = passes
            request%elements = last - first + 1
            if (self%flips .and. modulo(self%passes, 2_i8) == 1) request%scalar = -self%scalar
            do j = 1, self%arrays
                request%array(j) = element_at(self%memory(j)%address, request%type, first)
            end do
            status = pw_stream_run(request)
            self%sums(thread_number()) = request%sum
        end if
        !$omp end parallel
        self%passes = self%passes + passes
    end subroutine run

    !> Every element, or of a reduction every thread's sum, against the closed form. An update is undone by every second
    !> pass; an even number of passes would look like work left undone, and gets another one.
    subroutine validate(self, outcome)
        class(streams_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        real(r8) :: values(chunk), error, expected, modulus
        integer(i8) :: first, last, i, k
        integer(c_int32_t) :: status
        integer :: j

        if (self%updates .and. modulo(self%passes, 2_i8) == 0) call self%run(1_i8)
        error = 0.0_r8
        modulus = 0.0_r8    ! integers wrap
        if (self%request%type >= first_integer_type) &
            modulus = 2.0_r8**(8*element_bytes(self%request%type))
        !$omp parallel private(first, last, i, j, k, values, expected, status) reduction(max: error)
        call thread_share(self%elements, grain, first, last)
        expected = 0.0_r8
        do i = first, last, chunk
            if (.not. self%reduces) &
                status = pw_elements_get(self%request%type, self%memory(1)%address, i - 1, min(chunk, last - i + 1), values)
            do k = i, min(i + chunk - 1, last)
                associate (once => self%element([(self%initial(j, k), j=1, 4)], self%scalar))
                    if (self%reduces) then
                        expected = expected + once
                    else
                        error = worse(error, abs(values(k - i + 1) - once))
                    end if
                end associate
            end do
        end do
        if (self%reduces .and. last >= first) then
            expected = self%sums(thread_number()) - expected
            if (modulus > 0.0_r8) expected = modulo(expected, modulus)
            error = worse(error, abs(expected))
        end if
        !$omp end parallel
        outcome%method = 'every element against its closed form, largest absolute difference'
        if (self%reduces) outcome%method = 'each thread''s sum against the exact one, largest absolute difference'
        outcome%error = error
        outcome%tolerance = 0.0_r8
        outcome%passed = error <= outcome%tolerance
    end subroutine validate

    !> A store through the caches first reads its line (write-allocate), unless the kernel reads the line anyway.
    function traffic(self, passes) result(moved)
        class(streams_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: elements, bytes

        elements = real(self%elements*passes, r8)
        bytes = elements*real(element_bytes(self%request%type), r8)
        moved%bytes_stream = (self%loads + self%stores)*bytes
        moved%bytes_hardware = moved%bytes_stream
        if (self%configuration%stores == 'regular' .and. .not. self%updates) &
            moved%bytes_hardware = (self%loads + 2*self%stores)*bytes
        if (self%request%type < first_integer_type) moved%flops = self%flops*elements
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(streams_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(traffic_t) :: moved

        moved = self%traffic(passes)
        figures = bandwidth_metrics(moved, seconds)
        if (moved%flops > 0.0_r8) figures = [figures, metric_t('gflop_per_s', moved%flops/seconds*1.0e-9_r8)]
    end function metrics

end module pw_streams
