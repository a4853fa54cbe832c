!> Loads or stores of words a stride apart.
!>
!> Source: A64FX micro-architecture guide (Fujitsu, 2021), basic access performance, strided access.
module strided
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int64_t
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: bandwidth_metrics, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_bytes, option_choice
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_text, only: to_text
    use pw_threads, only: thread_share
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8, line = line_bytes/word_bytes
    integer(i8), parameter :: untouched = 2_i8**40   ! added to the initial values; pass numbers are smaller
    integer(i8), parameter :: page_and_line = 4096 + line_bytes   ! each access in another page and another set of the caches

    type, extends(kernel_t), public :: strided_t
        private
        integer(i8) :: words = 0, stride = 0, passes = 0, total = 0
        logical :: loads = .true.
        integer(i8), pointer, contiguous :: a(:) => null()
    contains
        procedure :: declare_options
        procedure :: read_options
        procedure :: plan
        procedure :: initialise
        procedure :: run
        procedure :: validate
        procedure :: traffic
        procedure :: metrics
    end type strided_t

    interface
        !> The exclusive or of the words 1, 1 + stride, ... of a; then of those one line later; until each line, or with
        !> a stride below a line each of its words, was accessed.
        subroutine pw_strided_load(n, stride, line, a, total) bind(c)
            import :: c_int64_t
            integer(c_int64_t), intent(in), value :: n, stride, line
            integer(c_int64_t), intent(in) :: a(n)
            integer(c_int64_t), intent(out) :: total
        end subroutine pw_strided_load

        !> The same words set to `value`.
        subroutine pw_strided_store(n, stride, line, a, value) bind(c)
            import :: c_int64_t
            integer(c_int64_t), intent(in), value :: n, stride, line, value
            integer(c_int64_t), intent(inout) :: a(n)
        end subroutine pw_strided_store
    end interface

contains

    subroutine declare_options(self)
        class(strided_t), intent(inout) :: self

        call self%options%add('stride', option_bytes, to_text(page_and_line), &
                              'bytes from one access to the next: a power of two within a cache line, or whole lines', &
                              lowest=word_bytes, ladder='8,16,32,64,128,256,512,1024,2048,4096,'// &
                              to_text(page_and_line)//',8192,16384,65536,262144')
        call self%options%add('access', option_choice, 'load', 'kind of access', choices='load|store')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(strided_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer(i8) :: bytes

        call self%options%get('access', word)
        self%loads = word == 'load'
        call self%options%get('stride', bytes)
        self%stride = bytes/word_bytes
        if (modulo(bytes, line_bytes) /= 0 .and. (popcnt(bytes) /= 1 .or. bytes < word_bytes)) call error%raise(exit_usage, &
            '--stride must be a power of two within a cache line, or whole lines', 'strided', &
            'choose a multiple of '//to_text(line_bytes)//' bytes')
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(strided_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        associate (unused_self => self, unused_error => error)
        end associate
        wanted%elements = bytes/line_bytes*line
        wanted%element_bytes = word_bytes
        allocate (wanted%name(1), source=[character(16) :: 'a'])
        allocate (wanted%bytes(1), source=wanted%elements*word_bytes)
    end subroutine plan

    subroutine initialise(self, elements)
        class(strided_t), intent(inout) :: self
        integer(i8), intent(in) :: elements
        integer(i8) :: first, last, i

        self%words = elements
        self%passes = 0
        call c_f_pointer(self%memory(1)%address, self%a, [elements])
        associate (a => self%a)
            !$omp parallel private(first, last, i)
            call thread_share(elements, line, first, last)
            do i = first, last
                a(i) = i + untouched
            end do
            !$omp end parallel
        end associate
    end subroutine initialise

    !> A pass stores its number, and leaves the exclusive or of its loads in `total`.
    subroutine run(self, passes)
        class(strided_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: first, last, pass, partial, total

        total = 0
        associate (a => self%a)
            !$omp parallel private(first, last, pass, partial) reduction(ieor: total)
            call thread_share(self%words, line, first, last)
            partial = 0
            if (last >= first) then
                do pass = 1, passes
                    if (self%loads) then
                        call pw_strided_load(last - first + 1, self%stride, line, a(first), partial)
                    else
                        call pw_strided_store(last - first + 1, self%stride, line, a(first), self%passes + pass)
                    end if
                end do
            end if
            total = ieor(total, partial)
            !$omp end parallel
        end associate
        self%passes = self%passes + passes
        self%total = total
    end subroutine run

    !> The words of a line that a pass accesses are `step` apart.
    pure integer(i8) function step(self)
        class(strided_t), intent(in) :: self

        step = min(self%stride, line)
    end function step

    !> The same words again in the order of their addresses.
    subroutine validate(self, outcome)
        class(strided_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        integer(i8) :: i, total, wrong

        total = 0
        wrong = 0
        do i = 1, self%words
            if (modulo(i - 1, step(self)) == 0) then
                total = ieor(total, i + untouched)
                if (.not. self%loads .and. self%a(i) /= self%passes) wrong = wrong + 1
            else if (self%a(i) /= i + untouched) then
                wrong = wrong + 1
            end if
        end do
        if (self%loads .and. total /= self%total) wrong = wrong + 1
        outcome%method = 'the same words in the order of their addresses, and those between them: number of wrong words'
        outcome%error = real(wrong, r8)
        outcome%passed = outcome%error <= outcome%tolerance
    end subroutine validate

    !> One word per access; the hardware moves its line, once for all accesses to it, and reads it before a store.
    function traffic(self, passes) result(moved)
        class(strided_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved

        moved%bytes_stream = word_bytes*accesses(self, passes)
        moved%bytes_hardware = word_bytes*step(self)*accesses(self, passes)
        if (.not. self%loads) moved%bytes_hardware = 2*moved%bytes_hardware
    end function traffic

    pure real(r8) function accesses(self, passes)
        class(strided_t), intent(in) :: self
        integer(i8), intent(in) :: passes

        accesses = real(self%words/step(self)*passes, r8)
    end function accesses

    function metrics(self, passes, seconds) result(figures)
        class(strided_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = [metric_t('nanoseconds_per_access', 1.0e9_r8*seconds/accesses(self, passes)), &
                   bandwidth_metrics(self%traffic(passes), seconds)]
    end function metrics

end module strided
