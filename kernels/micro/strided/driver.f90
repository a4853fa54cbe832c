!> Loads or stores of words a stride apart.
!>
!> Source: A64FX micro-architecture guide (Fujitsu, 2021), basic access performance, strided access.
module strided
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int64_t
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, bandwidth_metrics, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_bytes, option_choice, rules_t
    use pw_record, only: metric_t
    use pw_shares, only: shared_kernel_t
    use pw_system, only: base_page_size
    use pw_text, only: to_text
    use pw_threads, only: thread_number
    use pw_traffic, only: per_element_t
    use pw_values, only: distinct_word
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8, line = line_bytes/word_bytes

    type, extends(shared_kernel_t), public :: strided_t
        private
        integer(i8) :: stride = 0
        logical :: loads = .true.
        integer(i8), pointer, contiguous :: a(:) => null()
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, metrics
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
        character(:), allocatable :: page_and_line   ! each access in another page and another set of the caches
        integer(i8), parameter :: small = 4096

        page_and_line = to_text(base_page_size() + line_bytes)
        call self%options%add('stride', option_bytes, page_and_line, 'bytes from one access to the next: a power of '// &
                              'two within a cache line, or whole lines', rules_t(lowest=word_bytes), &
                              '8,16,32,64,128,256,512,1024,2048,4096,'// &
                              trim(merge(page_and_line//',8192,16384,65536', '8192,16384,65536,'//page_and_line, &
                                         base_page_size() == small))//',262144')
        call self%options%add('access', option_choice, 'load', 'kind of access', values='load|store')
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
        ! One word per access; the hardware moves its line, once for all accesses to it, and reads it before a store.
        self%per_element = per_element_t(loads=1.0_r8, lines=merge(1.0_r8, 2.0_r8, self%loads)*real(step(self), r8)/line)
        if (modulo(bytes, line_bytes) /= 0 .and. (popcnt(bytes) /= 1 .or. bytes < word_bytes)) call error%raise(exit_usage, &
            '--stride must be a power of two within a cache line, or whole lines', 'strided', &
            'choose a multiple of '//to_text(line_bytes)//' bytes')
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(strided_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        wanted = arrays_of('a', bytes/line_bytes*line, word_bytes)
        wanted%units = wanted%elements/step(self)
    end subroutine plan

    subroutine connect(self)
        class(strided_t), intent(inout) :: self

        self%grain = line
        self%method = 'the same words in the order of their addresses, and those between them: wrong words of a thread'
        call c_f_pointer(self%memory(1)%address, self%a, [self%elements])
    end subroutine connect

    subroutine fill(self, first, last)
        class(strided_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i

        do i = first, last
            self%a(i) = distinct_word(i)
        end do
    end subroutine fill

    !> A pass stores its number, or leaves the exclusive or of its loads in `totals`.
    subroutine work(self, passes, first, last)
        class(strided_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass, partial

        partial = 0
        associate (a => self%a)
            do pass = 1, passes
                if (self%loads) then
                    call pw_strided_load(last - first + 1, self%stride, line, a(first), partial)
                else
                    call pw_strided_store(last - first + 1, self%stride, line, a(first), self%passes + pass)
                end if
            end do
        end associate
        self%totals(1, thread_number()) = partial
    end subroutine work

    !> The words of a line that a pass accesses are `step` apart.
    pure integer(i8) function step(self)
        class(strided_t), intent(in) :: self

        step = min(self%stride, line)
    end function step

    !> The same words again in the order of their addresses.
    real(r8) function deviation(self, first, last) result(wrong)
        class(strided_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i, total

        total = self%totals(1, thread_number())
        wrong = 0.0_r8
        do i = first, last
            if (modulo(i - 1, step(self)) == 0) then
                total = ieor(total, distinct_word(i))       ! 0 in the end
                if (.not. self%loads .and. self%a(i) /= self%passes) wrong = wrong + 1
            else if (self%a(i) /= distinct_word(i)) then
                wrong = wrong + 1
            end if
        end do
        if (self%loads .and. total /= 0) wrong = wrong + 1
    end function deviation

    function metrics(self, passes, seconds) result(figures)
        class(strided_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = [metric_t('nanoseconds_per_access', 1.0e9_r8*seconds/real(self%units*passes, r8)), &
                   bandwidth_metrics(self%traffic(passes), seconds)]
    end function metrics

end module strided
