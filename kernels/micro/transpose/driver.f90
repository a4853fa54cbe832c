!> Transpose of a matrix, and the sum of a matrix and a transpose.
!>
!> Source: HPC Challenge PTRANS (Luszczek, Dongarra et al., 2005), whose C := A**T + C is the form `add`.
module transpose_kernel
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int64_t
    use pw_deviation, only: worse
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: bandwidth_metrics, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_choice
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_threads, only: thread_share
    implicit none
    private

    integer(i8), parameter :: element_bytes = 8, line = line_bytes/element_bytes    ! shares start at a cache line

    type, extends(kernel_t), public :: transpose_t
        private
        integer(i8) :: n = 0, leading = 0, add = 0, passes = 0
        logical :: tiled = .false., power = .false.
        real(r8), pointer, contiguous :: a(:, :) => null(), b(:, :) => null()
    contains
        procedure :: declare_options
        procedure :: read_options
        procedure :: plan
        procedure :: initialise
        procedure :: run
        procedure :: validate
        procedure :: traffic
        procedure :: metrics
    end type transpose_t

    interface
        !> The timed kernels of this build; see transpose.h. Columns count from 0.
        subroutine pw_transpose_naive(n, leading, first, last, a, b, add) bind(c)
            import :: c_double, c_int64_t
            integer(c_int64_t), intent(in), value :: n, leading, first, last, add
            real(c_double), intent(in) :: a(leading, n)
            real(c_double), intent(inout) :: b(leading, n)
        end subroutine pw_transpose_naive

        subroutine pw_transpose_tiled(n, leading, first, last, a, b, add) bind(c)
            import :: c_double, c_int64_t
            integer(c_int64_t), intent(in), value :: n, leading, first, last, add
            real(c_double), intent(in) :: a(leading, n)
            real(c_double), intent(inout) :: b(leading, n)
        end subroutine pw_transpose_tiled
    end interface

contains

    subroutine declare_options(self)
        class(transpose_t), intent(inout) :: self

        call self%options%add('form', option_choice, 'copy', 'b = transpose(a), or b = b + transpose(a)', choices='copy|add')
        call self%options%add('method', option_choice, 'tiled', 'plain loops, or tiles that fit caches and TLB', &
                              choices='naive|tiled')
        call self%options%add('leading-dimension', option_choice, 'padded', 'columns an odd number of cache lines apart, '// &
                              'or a power of two elements', choices='padded|power')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(transpose_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        associate (unused => error)
        end associate
        call self%options%get('form', word)
        self%add = merge(1_i8, 0_i8, word == 'add')
        call self%options%get('method', word)
        self%tiled = word == 'tiled'
        call self%options%get('leading-dimension', word)
        self%power = word == 'power'
    end subroutine read_options

    !> The two largest square matrices that fit.
    subroutine plan(self, bytes, wanted, error)
        class(transpose_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        integer(i8) :: words

        words = bytes/(2*element_bytes)
        self%n = int(sqrt(real(words, r8)), i8) + 1
        do while (self%n*leading_for(self, self%n) > words)
            self%n = self%n - 1
        end do
        if (self%n < 1) call error%raise(exit_usage, 'no matrix fits into the working set', 'transpose', 'choose a larger one')
        self%leading = leading_for(self, self%n)
        wanted%elements = self%n*self%n
        wanted%element_bytes = element_bytes
        allocate (wanted%name(2), source=[character(16) :: 'a', 'b'])
        allocate (wanted%bytes(2), source=self%n*self%leading*element_bytes)
    end subroutine plan

    pure integer(i8) function leading_for(self, n) result(leading)
        class(transpose_t), intent(in) :: self
        integer(i8), intent(in) :: n

        if (self%power) then
            leading = max(line, 2_i8**(bit_size(n) - leadz(n - 1)))
        else
            leading = line*ior((n + line - 1)/line, 1_i8)
        end if
    end function leading_for

    !> Every element of a has its own value, a whole number; so does b, with values that no result has.
    subroutine initialise(self, elements)
        class(transpose_t), intent(inout) :: self
        integer(i8), intent(in) :: elements
        integer(i8) :: first, last, i, j

        associate (unused => elements)
        end associate
        self%passes = 0
        call c_f_pointer(self%memory(1)%address, self%a, [self%leading, self%n])
        call c_f_pointer(self%memory(2)%address, self%b, [self%leading, self%n])
        associate (a => self%a, b => self%b, n => self%n)
            !$omp parallel private(first, last, i, j)
            call thread_share(n, line, first, last)
            do j = first, last
                do i = 1, n
                    a(i, j) = real(i + n*(j - 1), r8)
                    b(i, j) = -real(i, r8)
                end do
            end do
            !$omp end parallel
        end associate
    end subroutine initialise

    !> Each thread passes over its own columns of b: a is only read, so no thread waits.
    subroutine run(self, passes)
        class(transpose_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: first, last, pass

        associate (a => self%a, b => self%b, n => self%n, leading => self%leading)
            !$omp parallel private(first, last, pass)
            call thread_share(n, line, first, last)
            do pass = 1, passes
                if (self%tiled) then
                    call pw_transpose_tiled(n, leading, first - 1, last, a, b, self%add)
                else
                    call pw_transpose_naive(n, leading, first - 1, last, a, b, self%add)
                end if
            end do
            !$omp end parallel
        end associate
        self%passes = self%passes + passes
    end subroutine run

    !> Every element against its closed form; with `add`, a times the number of passes.
    subroutine validate(self, outcome)
        class(transpose_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        real(r8) :: error, expected
        integer(i8) :: first, last, i, j

        error = 0.0_r8
        associate (b => self%b, n => self%n)
            !$omp parallel private(first, last, i, j, expected) reduction(max: error)
            call thread_share(n, line, first, last)
            do j = first, last
                do i = 1, n
                    expected = real(j + n*(i - 1), r8)
                    if (self%add == 1) expected = expected*real(self%passes, r8) - real(i, r8)
                    error = worse(error, abs(b(i, j) - expected))
                end do
            end do
            !$omp end parallel
        end associate
        outcome%method = 'every element against its closed form, largest absolute difference'
        outcome%error = error
        outcome%tolerance = 0.0_r8
        outcome%passed = error <= outcome%tolerance
    end subroutine validate

    !> One element of a is loaded and one of b stored; `add` also loads the latter, so that write-allocate adds nothing.
    function traffic(self, passes) result(moved)
        class(transpose_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: words

        words = real(self%n*self%n, r8)*real(passes, r8)
        moved = self%per_element%times(words, self%configuration%stores)
        moved%bytes_stream = moved%bytes_stream + self%add*element_bytes*words
        moved%bytes_hardware = max(moved%bytes_stream, moved%bytes_hardware)
        moved%flops = self%add*words
    end function traffic

    !> PTRANS counts the bytes of one matrix.
    function metrics(self, passes, seconds) result(figures)
        class(transpose_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = [bandwidth_metrics(self%traffic(passes), seconds), &
                   metric_t('ptrans_gb_per_s', element_bytes*real(self%n*self%n, r8)*real(passes, r8)/seconds*1.0e-9_r8)]
    end function metrics

end module transpose_kernel
