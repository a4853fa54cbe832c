!> Transpose of a matrix, and the sum of a matrix and a transpose.
!>
!> Source: HPC Challenge PTRANS (Luszczek, Dongarra et al., 2005), whose C := A**T + C is the form `add`.
module transpose_kernel
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int64_t
    use pw_deviation, only: worse
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, bandwidth_metrics, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_choice
    use pw_record, only: metric_t
    use pw_shares, only: shared_kernel_t
    use pw_traffic, only: per_element_t
    implicit none
    private

    integer(i8), parameter :: element_bytes = 8, line = line_bytes/element_bytes    ! shares start at a cache line

    type, extends(shared_kernel_t), public :: transpose_t
        private
        integer(i8) :: n = 0, leading = 0, add = 0
        logical :: tiled = .false., power = .false.
        real(r8), pointer, contiguous :: a(:, :) => null(), b(:, :) => null()
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, metrics
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

        call self%options%add('form', option_choice, 'copy', 'b = transpose(a), or b = b + transpose(a)', values='copy|add')
        call self%options%add('method', option_choice, 'tiled', 'plain loops, or tiles that fit caches and TLB', &
                              values='naive|tiled')
        call self%options%add('leading-dimension', option_choice, 'padded', 'columns an odd number of cache lines apart, or a '// &
                              'power of two elements', values='padded|power')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(transpose_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        associate (unused => error)
        end associate
        call self%options%get('form', word)
        self%add = merge(1_i8, 0_i8, word == 'add')
        if (self%add == 1) self%per_element = per_element_t(loads=2.0_r8, stores=1.0_r8, flops=1.0_r8)    ! b is read anyway
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
        wanted = arrays_of('a b', self%n*self%n, element_bytes, spread(self%n*self%leading*element_bytes, 1, 2))
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

    subroutine connect(self)
        class(transpose_t), intent(inout) :: self

        self%items = self%n
        self%grain = line
        call c_f_pointer(self%memory(1)%address, self%a, [self%leading, self%n])
        call c_f_pointer(self%memory(2)%address, self%b, [self%leading, self%n])
    end subroutine connect

    !> Every element of a has its own value, a whole number; so does b, with values that no result has.
    subroutine fill(self, first, last)
        class(transpose_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i, j

        do j = first, last
            do i = 1, self%n
                self%a(i, j) = real(i + self%n*(j - 1), r8)
                self%b(i, j) = -real(i, r8)
            end do
        end do
    end subroutine fill

    !> Each thread passes over its own columns of b; a is only read.
    subroutine work(self, passes, first, last)
        class(transpose_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass

        do pass = 1, passes
            if (self%tiled) then
                call pw_transpose_tiled(self%n, self%leading, first - 1, last, self%a, self%b, self%add)
            else
                call pw_transpose_naive(self%n, self%leading, first - 1, last, self%a, self%b, self%add)
            end if
        end do
    end subroutine work

    !> Every element against its closed form; with `add`, a times the number of passes.
    real(r8) function deviation(self, first, last) result(error)
        class(transpose_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        real(r8) :: expected
        integer(i8) :: i, j

        error = 0.0_r8
        do j = first, last
            do i = 1, self%n
                expected = real(j + self%n*(i - 1), r8)
                if (self%add == 1) expected = expected*real(self%passes, r8) - real(i, r8)
                error = worse(error, abs(self%b(i, j) - expected))
            end do
        end do
    end function deviation

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
