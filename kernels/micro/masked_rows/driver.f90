!> Sums over short rows: y(i,j) = y(i,j) + x(i,j), one masked vector per row.
!>
!> Source: A64FX microarchitecture guide (Fujitsu, 2021), store fetch interlock of stores whose mask is 0.
module masked_rows
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int32_t, c_int64_t
    use pw_cycles, only: clock_hertz
    use pw_deviation, only: worse
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, bandwidth_metrics, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_choice, option_count, rules_t
    use pw_record, only: metric_t
    use pw_shares, only: shared_kernel_t
    use pw_simd, only: chosen, simd_names, words_available
    use pw_values, only: mixed
    implicit none
    private

    integer(i8), parameter :: longest = 8, number_bytes = 8
    integer(i8), parameter :: grain = line_bytes/number_bytes    ! rows: whole lines for every length

    type, extends(shared_kernel_t), public :: masked_rows_t
        private
        integer(i8) :: length = 0, leading = 0, rows = 0
        integer(c_int32_t) :: simd = 1
        real(r8), pointer, contiguous :: y(:, :) => null(), x(:, :) => null()
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, metrics
    end type masked_rows_t

    interface
        !> The timed kernel; see masked_rows.h.
        integer(c_int32_t) function pw_masked_rows(simd, length, rows, leading, y, x) bind(c)
            import :: c_double, c_int32_t, c_int64_t
            integer(c_int32_t), intent(in), value :: simd
            integer(c_int64_t), intent(in), value :: length, rows, leading
            real(c_double), intent(inout) :: y(*)
            real(c_double), intent(in) :: x(*)
        end function pw_masked_rows
    end interface

contains

    subroutine declare_options(self)
        class(masked_rows_t), intent(inout) :: self

        associate (options => self%options)
            call options%add('row-length', option_count, '6', 'numbers per row, 1 to 8', rules_t(lowest=1_i8), '1,2,3,4,5,6,7,8')
            call options%add('rows', option_choice, 'dense', 'rows contiguous, or padded to start at every eighth number', &
                             values='dense|padded')
            call options%add('simd', option_choice, 'compiler', 'as compiled, number by number, or masked vectors of this '// &
                             'number of bits', values=words_available(simd_names, width_status))
        end associate
    end subroutine declare_options

    integer(c_int32_t) function width_status(place)
        integer(c_int32_t), intent(in) :: place
        real(r8) :: none(longest)

        none = 0.0_r8
        width_status = pw_masked_rows(place, 1_i8, 0_i8, longest, none, none)
    end function width_status

    subroutine read_options(self, error)
        class(masked_rows_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        call self%options%get('row-length', self%length)
        call self%options%get('rows', word)
        self%leading = merge(longest, self%length, word == 'padded')
        self%simd = chosen(self%options, 'simd', simd_names)
        if (self%length > longest) &
            call error%raise(exit_usage, 'a row has at most 8 numbers', 'masked_rows', 'choose a --row-length of 1 to 8')
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(masked_rows_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        self%rows = max(bytes/(2*number_bytes*self%leading)/grain, 1_i8)*grain
        wanted = arrays_of('y x', self%rows*self%length, number_bytes, spread(self%rows*self%leading*number_bytes, 1, 2))
    end subroutine plan

    subroutine connect(self)
        class(masked_rows_t), intent(inout) :: self

        self%items = self%rows
        self%grain = grain
        self%method = 'every number, with the padding, against its closed form, largest absolute difference'
        call c_f_pointer(self%memory(1)%address, self%y, [self%leading, self%rows])
        call c_f_pointer(self%memory(2)%address, self%x, [self%leading, self%rows])
    end subroutine connect

    !> Whole numbers, so that sums are exact; the padding too.
    subroutine fill(self, first, last)
        class(masked_rows_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i, j

        do j = first, last
            do i = 1, self%leading
                self%y(i, j) = initial(i, j)
                self%x(i, j) = increment(i, j)
            end do
        end do
    end subroutine fill

    pure real(r8) function initial(i, j)
        integer(i8), intent(in) :: i, j

        initial = real(iand(mixed(i, int(j)), 127_i8), r8)
    end function initial

    pure real(r8) function increment(i, j)
        integer(i8), intent(in) :: i, j

        increment = real(1_i8 + iand(mixed(-i, int(j)), 15_i8), r8)
    end function increment

    subroutine work(self, passes, first, last)
        class(masked_rows_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass
        integer(c_int32_t) :: status

        associate (y => self%y, x => self%x)
            do pass = 1, passes
                status = pw_masked_rows(self%simd, self%length, last - first + 1, self%leading, y(1, first), x(1, first))
            end do
        end associate
    end subroutine work

    !> Every number against its closed form; the padding must be unchanged.
    real(r8) function deviation(self, first, last) result(error)
        class(masked_rows_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        real(r8) :: expected
        integer(i8) :: i, j

        error = 0.0_r8
        do j = first, last
            do i = 1, self%leading
                expected = initial(i, j)
                if (i <= self%length) expected = expected + real(self%passes, r8)*increment(i, j)
                error = worse(error, abs(self%y(i, j) - expected))
            end do
        end do
    end function deviation

    function metrics(self, passes, seconds) result(figures)
        class(masked_rows_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: hertz, a_row

        hertz = clock_hertz()
        a_row = seconds*real(min(self%threads, self%rows/grain), r8)/real(self%rows*passes, r8)
        figures = [metric_t('nanoseconds_per_row', 1.0e9_r8*a_row)]
        if (hertz > 0.0_r8) figures = [figures, metric_t('cycles_per_row', a_row*hertz), metric_t('clock_ghz', hertz*1.0e-9_r8)]
        figures = [figures, bandwidth_metrics(self%traffic(passes), seconds)]
    end function metrics

end module masked_rows
