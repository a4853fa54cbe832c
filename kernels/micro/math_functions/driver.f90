!> Mathematical functions of many arguments at once, with time and error.
!>
!> Source: A64FX microarchitecture guide (Fujitsu, 2021), performance of basic kernels.
module math_functions
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_loc, c_null_ptr, c_ptr
    use math_functions_h, only: pw_math, pw_math_arguments, pw_math_error, pw_math_reference_bits
    use pw_cycles, only: cycle_metrics
    use pw_deviation, only: worse
    use pw_elements, only: element_at, element_bytes, element_types
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice, option_count, rules_t
    use pw_record, only: metric_t
    use pw_shares, only: shared_kernel_t
    use pw_simd, only: choice_of, words_available
    use pw_text, only: to_text
    use pw_traffic, only: per_element_t
    implicit none
    private

    ! In the order of the numbers in math_functions.h.
    character(5), parameter :: functions(18) = ['exp  ', 'log  ', 'sin  ', 'cos  ', 'tan  ', 'pow  ', 'sqrt ', 'cbrt ', 'erf  ', &
        'atan ', 'atan2', 'exp10', 'log10', 'mod  ', 'int  ', 'nint ', 'aint ', 'anint']
    !> Functions of two arguments, and those with exact results.
    character(5), parameter :: binary(3) = ['pow  ', 'atan2', 'mod  ']
    character(5), parameter :: exact(5) = ['mod  ', 'int  ', 'nint ', 'aint ', 'anint']
    character(7), parameter :: calls(3) = ['fortran', 'c      ', 'direct ']
    integer(i8), parameter :: grain = 16, chunk = 1024, longest = 2_i8**32
    !> The error bound that libraries document for their vector functions: 4 units in the last place.
    real(r8), parameter :: tolerance = 4.0_r8

    type, extends(shared_kernel_t), public :: math_functions_t
        private
        integer(c_int32_t) :: function = 1, type = 1, call = 1
        integer(i8) :: samples = 0, length = 0
        real(r8) :: largest = 0.0_r8              ! error of the samples
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, metrics
        procedure, private :: at
    end type math_functions_t

contains

    subroutine declare_options(self)
        class(math_functions_t), intent(inout) :: self

        associate (options => self%options)
            call options%add('function', option_choice, 'exp', 'function', values=words_available(functions))
            call options%add('type', option_choice, 'fp64', 'type of the numbers', values='fp64|fp32')
            call options%add('call', option_choice, 'fortran', 'a compiled loop in Fortran or C, or explicit calls of the '// &
                             'library''s vector functions', values=words_available(calls))
            call options%add('length', option_count, '0', 'arguments per call, instead of --working-set; 0: as many as '// &
                             'fit into it; with --call direct a multiple of '//to_text(grain), values= &
                             '1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384')
            call options%add('error-samples', option_count, '50000', 'arguments whose results are compared with quad precision', &
                             rules_t(lowest=grain))
        end associate
    end subroutine declare_options

    subroutine read_options(self, error)
        class(math_functions_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        call self%options%get('error-samples', self%samples)
        call self%options%get('length', self%length)
        self%function = choice_of(self%options, 'function', functions)
        self%type = choice_of(self%options, 'type', element_types)
        self%per_element = per_element_t(loads=merge(2.0_r8, 1.0_r8, any(functions(self%function) == binary)), stores=1.0_r8, &
                                         element_bytes=real(element_bytes(self%type), r8))
        self%call = choice_of(self%options, 'call', calls)
        if (modulo(self%length, grain) /= 0 .and. calls(self%call) == 'direct') then
            call error%raise(exit_usage, '--call direct with --length '//to_text(self%length)//' has a part of a vector', &
                             'math_functions', 'choose a multiple of '//to_text(grain)//', or --call fortran or c')
        else if (self%length > longest) then
            call error%raise(exit_usage, '--length is above '//to_text(longest), 'math_functions', 'choose fewer arguments')
        else if (pw_math(self%function, self%type, self%call, 0_i8, c_null_ptr, c_null_ptr, c_null_ptr) /= 0) then
            call error%raise(exit_usage, 'this build has no '//trim(functions(self%function))//' of '// &
                             trim(element_types(self%type))//' with --call '//trim(calls(self%call)), &
                             'math_functions', 'use --call fortran or c, or a build with mathlib=libmvec or sleef')
        end if
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(math_functions_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        associate (bytes_each => element_bytes(self%type))
            if (self%length > 0) then
                wanted = arrays_of('x z y', self%threads*self%length, bytes_each)
            else
                wanted = arrays_of('x z y', max(self%threads, bytes/(3*bytes_each*grain))*grain, bytes_each)
            end if
        end associate
    end subroutine plan

    !> The error of the samples, before anything is timed.
    subroutine connect(self)
        class(math_functions_t), intent(inout) :: self
        real(r8), target :: x(chunk), z(chunk), y(chunk)
        integer(i8) :: first, n
        integer(c_int32_t) :: status

        self%grain = merge(self%length, grain, self%length > 0)
        self%tolerance = merge(0.0_r8, tolerance, any(functions(self%function) == exact))
        self%method = 'every result, and those of '//to_text(self%samples)//' samples, against the C library''s with '// &
                      to_text(int(pw_math_reference_bits(), i8))//' bits, largest error in units in the last place'
        self%largest = 0.0_r8
        y = 0.0_r8
        do first = 0, self%samples - 1, chunk
            n = min(chunk, (self%samples - first + grain - 1)/grain*grain)
            call pw_math_arguments(self%function, self%type, self%elements + first, n, c_loc(x), c_loc(z))
            status = pw_math(self%function, self%type, self%call, n, c_loc(x), c_loc(z), c_loc(y))
            self%largest = worse(self%largest, pw_math_error(self%function, self%type, n, c_loc(x), c_loc(z), c_loc(y)))
        end do
    end subroutine connect

    !> Address of element i of an array: 1 is x, 2 is z, 3 is y.
    type(c_ptr) function at(self, array, i)
        class(math_functions_t), intent(in) :: self
        integer, intent(in) :: array
        integer(i8), intent(in) :: i

        at = element_at(self%memory(array)%address, self%type, i)
    end function at

    subroutine fill(self, first, last)
        class(math_functions_t), intent(in) :: self
        integer(i8), intent(in) :: first, last

        call pw_math_arguments(self%function, self%type, first - 1, last - first + 1, self%at(1, first), self%at(2, first))
    end subroutine fill

    subroutine work(self, passes, first, last)
        class(math_functions_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass
        integer(c_int32_t) :: status
        type(c_ptr) :: x, z, y

        ! Once instead of in every pass: with LLVM they take as long as a hundred values of exp.
        x = self%at(1, first)
        z = self%at(2, first)
        y = self%at(3, first)
        do pass = 1, passes
            status = pw_math(self%function, self%type, self%call, last - first + 1, x, z, y)
        end do
    end subroutine work

    !> All results that were timed, and the samples.
    real(r8) function deviation(self, first, last) result(error)
        class(math_functions_t), intent(in) :: self
        integer(i8), intent(in) :: first, last

        error = worse(self%largest, pw_math_error(self%function, self%type, last - first + 1, self%at(1, first), &
                                                  self%at(2, first), self%at(3, first)))
    end function deviation

    function metrics(self, passes, seconds) result(figures)
        class(math_functions_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: a_call

        a_call = seconds/real(self%elements*passes, r8)
        figures = [cycle_metrics('call', a_call*real(self%threads, r8)), metric_t('largest_error_ulp', self%largest), &
                   metric_t('gcalls_per_s', 1.0e-9_r8/a_call)]
    end function metrics

end module math_functions
