!> Throughput and latency of arithmetic operations.
!>
!> Source: A64FX microarchitecture guide (Fujitsu, 2021), performance of basic kernels.
module arithmetic
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_ptr
    use arithmetic_h, only: call_t => arithmetic_call_t, pw_arithmetic_run, steps => arithmetic_steps
    use pw_cycles, only: clock_hertz
    use pw_elements, only: element_bytes, element_types, first_integer_type
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8, r4, r8
    use pw_options, only: option_choice
    use pw_record, only: metric_t
    use pw_registers, only: registers_t
    use pw_simd, only: choice_of, place_of, simd_names, words_available
    use pw_traffic, only: per_element_t
    use pw_values, only: mixed
    implicit none
    private

    ! In the order of the numbers in arithmetic.h.
    character(8), parameter :: operations(13) = ['add     ', 'sub     ', 'mul     ', 'div     ', 'sqrt    ', 'fma     ', &
        'min     ', 'max     ', 'abs     ', 'sign    ', 'to_fp32 ', 'to_int64', 'to_int32']
    integer, parameter :: add = 1, sub = 2, mul = 3, div = 4, root = 5, fma = 6, min_of = 7, max_of = 8, abs_of = 9, sign_of = 10, &
        to_fp32 = 11, to_int64 = 12, to_int32 = 13
    real(r8), parameter :: dividend = 720720.0_r8         ! a multiple of 1 to 16
    real(r8), parameter :: bound = 20.0_r8                ! of min and max: above the numbers 1 to 16
    real(r8), parameter :: addend = 3.7_r8                ! of sqrt(x) + addend, which converges
    integer, parameter :: converged = 200                 ! steps after which it no longer changes

    type, extends(registers_t), public :: arithmetic_t
        private
        type(call_t) :: request
        integer(i8) :: lanes = 1
    contains
        procedure :: declare_options, read_options, initial, expected, operate, metrics
    end type arithmetic_t

contains

    subroutine declare_options(self)
        class(arithmetic_t), intent(inout) :: self

        associate (options => self%options)
            call options%add('operation', option_choice, 'fma', 'operation; a conversion includes the way back', &
                             values=words_available(operations, any_operation))
            call options%add('type', option_choice, 'fp64', 'type of the numbers', values='fp64|fp32|int64|int32')
            call options%add('simd', option_choice, 'compiler', 'SIMD width in bits: the build''s, none, or this width', &
                             values=words_available(simd_names, width_status))
            call options%add('measure', option_choice, 'throughput', 'independent operations, or each operation on the '// &
                             'previous result', values='throughput|latency')
        end associate
    end subroutine declare_options

    integer(c_int32_t) function any_operation(place)
        integer(c_int32_t), intent(in) :: place
        type(call_t) :: request

        request = call_t(operation=place, type=1, simd=place_of('scalar', simd_names))
        any_operation = pw_arithmetic_run(request)
    end function any_operation

    integer(c_int32_t) function width_status(place)
        integer(c_int32_t), intent(in) :: place
        type(call_t) :: request

        request = call_t(operation=1, type=1, simd=place)
        width_status = pw_arithmetic_run(request)
    end function width_status

    subroutine read_options(self, error)
        class(arithmetic_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer(i8), parameter :: width_bytes(2:6) = [0_i8, 16_i8, 32_i8, 64_i8, 0_i8]

        self%request = call_t()
        self%request%operation = choice_of(self%options, 'operation', operations)
        self%type = choice_of(self%options, 'type', element_types)
        self%request%type = self%type
        self%request%simd = choice_of(self%options, 'simd', simd_names)
        call self%options%get('measure', word)
        self%request%one_chain = merge(1_c_int32_t, 0_c_int32_t, word == 'latency')
        select case (self%request%operation)
        case (add, sub, fma)
            self%request%a = 1.0_r8
            self%request%flips = 1
        case (mul)
            self%request%a = -1.0_r8
        case (div)
            self%request%a = dividend
        case (root)
            self%request%a = addend
        case (min_of, max_of)
            self%request%a = bound
        case (sign_of)
            self%request%a = -1.0_r8
        end select
        if (pw_arithmetic_run(self%request) /= 0) then
            call self%options%get('simd', word)
            call error%raise(exit_usage, 'no '//trim(operations(self%request%operation))//' of '// &
                             trim(element_types(self%type))//' with --simd '//word, 'arithmetic', &
                             'choose another width, or another type: integers have no sqrt, fma, '// &
                             'sign or conversions')
            return
        end if
        self%lanes = max(1_i8, width_bytes(self%request%simd)/element_bytes(self%type))
        self%per_element = per_element_t(loads=1.0_r8, stores=1.0_r8, element_bytes=real(element_bytes(self%type), r8))
        self%tolerance = 0.0_r8
        if (self%type >= first_integer_type) return
        if (self%request%operation <= fma) self%per_element%flops = &
            real(merge(2, 1, self%request%operation == fma)*steps, r8)
        ! Quotients and roots are rounded at each step.
        if (any(self%request%operation == [div, root])) &
            self%tolerance = 16*merge(epsilon(1.0_r8), real(epsilon(1.0_r4), r8), element_bytes(self%type) == 8)
    end subroutine read_options

    !> The initial value of element i: the operation changes it, and results are exact except for roots and quotients.
    pure real(r8) function initial(self, i)
        class(arithmetic_t), intent(in) :: self
        integer(i8), intent(in) :: i

        initial = real(1_i8 + iand(mixed(i, 1), 15_i8), r8)
        select case (self%request%operation)
        case (min_of)
            initial = bound + initial
        case (abs_of)
            initial = -initial
        case (div, root)
            if (self%type < first_integer_type) initial = initial + 0.375_r8
        case (to_fp32)
            initial = initial + 2.0_r8**(-40)
        case (to_int32, to_int64)
            initial = initial + 0.25_r8
        end select
    end function initial

    !> The result of an odd number of steps on x, or of a pass with a positive summand after pairs of passes.
    pure real(r8) function expected(self, x)
        class(arithmetic_t), intent(in) :: self
        real(r8), intent(in) :: x
        integer :: step

        expected = x
        select case (self%request%operation)
        case (add, fma)
            expected = x + real(steps, r8)
        case (sub)
            expected = x - real(steps, r8)
        case (mul)
            expected = -x
        case (div)
            expected = dividend/x
        case (root)
            do step = 1, converged
                expected = sqrt(expected) + self%request%a
            end do
        case (min_of)
            expected = min(x, self%request%a)
        case (max_of)
            expected = max(x, self%request%a)
        case (abs_of)
            expected = abs(x)
        case (sign_of)
            expected = sign(x, self%request%a)
        case (to_fp32)
            expected = real(real(x, r4), r8)
        case (to_int32, to_int64)
            expected = aint(x)
        end select
    end function expected

    subroutine operate(self, passes, n, x)
        class(arithmetic_t), intent(in) :: self
        integer(i8), intent(in) :: passes, n
        type(c_ptr), intent(in) :: x
        integer(c_int32_t) :: status
        type(call_t) :: request

        request = self%request
        request%passes = passes
        request%elements = n
        request%x = x
        if (request%flips == 1 .and. modulo(self%passes, 2_i8) == 1) request%a = -request%a
        status = pw_arithmetic_run(request)
    end subroutine operate

    !> Results of all threads; a conversion and its reverse count as two.
    pure real(r8) function results(self, passes)
        class(arithmetic_t), intent(in) :: self
        integer(i8), intent(in) :: passes

        results = real(steps*self%elements*passes, r8)
        if (self%request%operation >= to_fp32) results = 2*results
    end function results

    function metrics(self, passes, seconds) result(figures)
        class(arithmetic_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: hertz, rate, an_operation

        hertz = clock_hertz()
        rate = results(self, passes)/seconds
        an_operation = real(self%lanes*self%threads, r8)/rate
        figures = [metric_t('nanoseconds_per_operation', 1.0e9_r8*an_operation), metric_t('gop_per_s', rate*1.0e-9_r8)]
        if (hertz > 0.0_r8) figures = [metric_t('cycles_per_operation', an_operation*hertz), figures, &
            metric_t('results_per_cycle', rate/(hertz*real(self%threads, r8))), metric_t('clock_ghz', hertz*1.0e-9_r8)]
    end function metrics

end module arithmetic
