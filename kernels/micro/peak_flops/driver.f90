!> Independent multiply-adds: x(i) = x(i)*a + b, many times each, in registers.
module peak_flops
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_ptr
    use pw_cycles, only: clock_hertz
    use pw_elements, only: element_bytes, element_types
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice
    use pw_peak, only: peak_call, peak_call_t, pw_peak_steps, pw_peak_run
    use pw_record, only: metric_t, traffic_t
    use pw_registers, only: registers_t
    use pw_simd, only: choice_of, simd_names, words_available
    use pw_values, only: mixed
    implicit none
    private

    type, extends(registers_t), public :: peak_flops_t
        private
        integer(c_int32_t) :: simd = 1
    contains
        procedure :: declare_options, read_options, initial, expected, operate, metrics
    end type peak_flops_t

contains

    subroutine declare_options(self)
        class(peak_flops_t), intent(inout) :: self

        call self%options%add('type', option_choice, 'fp64', 'type of the numbers', values='fp64|fp32')
        call self%options%add('simd', option_choice, 'compiler', 'SIMD width in bits: the build''s, none, this width, or the '// &
                              'processor''s (vla)', values=words_available(simd_names, width_status))
    end subroutine declare_options

    integer(c_int32_t) function width_status(place)
        integer(c_int32_t), intent(in) :: place
        type(peak_call_t) :: request

        request = peak_call
        request%simd = place
        width_status = pw_peak_run(request)
    end function width_status

    subroutine read_options(self, error)
        class(peak_flops_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        self%type = choice_of(self%options, 'type', element_types)
        self%simd = choice_of(self%options, 'simd', simd_names)
        self%per_element%element_bytes = real(element_bytes(self%type), r8)
    end subroutine read_options

    !> Small whole numbers, so that all results are exact: a pass adds or subtracts its number of steps.
    pure real(r8) function initial(self, i)
        class(peak_flops_t), intent(in) :: self
        integer(i8), intent(in) :: i

        initial = real(iand(mixed(i, 1), 63_i8), r8)
    end function initial

    pure real(r8) function expected(self, x)
        class(peak_flops_t), intent(in) :: self
        real(r8), intent(in) :: x

        expected = x + real(pw_peak_steps, r8)
    end function expected

    !> Every second pass undoes the previous one.
    subroutine operate(self, passes, n, x)
        class(peak_flops_t), intent(in) :: self
        integer(i8), intent(in) :: passes, n
        type(c_ptr), intent(in) :: x
        type(peak_call_t) :: request
        integer(c_int32_t) :: status

        request = peak_call
        request%type = self%type
        request%simd = self%simd
        request%passes = passes
        request%elements = n
        request%x = x
        if (modulo(self%passes, 2_i8) == 1) request%summand = -request%summand
        status = pw_peak_run(request)
    end subroutine operate

    function metrics(self, passes, seconds) result(figures)
        class(peak_flops_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(traffic_t) :: done
        real(r8) :: hertz

        hertz = clock_hertz()
        done = self%traffic(passes)
        figures = [metric_t('gflop_per_s', done%flops/seconds*1.0e-9_r8)]
        if (hertz > 0.0_r8) figures = &
            [figures, metric_t('flops_per_cycle', done%flops/(seconds*hertz*real(self%threads, r8))), &
             metric_t('clock_ghz', hertz*1.0e-9_r8)]
    end function metrics

end module peak_flops
