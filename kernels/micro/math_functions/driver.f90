!> Mathematical functions of many arguments at once, with time and error.
!>
!> Source: A64FX microarchitecture guide (Fujitsu, 2021), performance of basic kernels.
module math_functions
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t, c_loc, c_null_ptr, c_ptr
    use pw_cycles, only: clock_hertz
    use pw_deviation, only: worse
    use pw_elements, only: element_at, element_bytes, element_types
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice, option_count
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_simd, only: place_of
    use pw_text, only: to_text
    use pw_threads, only: thread_share
    implicit none
    private

    ! In the order of the numbers in math_functions.h.
    character(4), parameter :: functions(9) = ['exp ', 'log ', 'sin ', 'cos ', 'tan ', 'pow ', 'sqrt', 'cbrt', 'erf ']
    character(7), parameter :: calls(3) = ['fortran', 'c      ', 'direct ']
    integer(i8), parameter :: grain = 16, chunk = 1024
    !> The error bound that libraries document for their vector functions: 4 units in the last place.
    real(r8), parameter :: tolerance = 4.0_r8

    type, extends(kernel_t), public :: math_functions_t
        private
        integer(c_int32_t) :: function = 1, type = 1, call = 1
        integer(i8) :: elements = 0, samples = 0, threads = 1
        real(r8) :: largest = 0.0_r8              ! error of the samples
    contains
        procedure :: declare_options
        procedure :: read_options
        procedure :: plan
        procedure :: initialise
        procedure :: run
        procedure :: validate
        procedure :: traffic
        procedure :: metrics
    end type math_functions_t

    interface
        !> The timed kernel; see math_functions.h.
        integer(c_int32_t) function pw_math(function, type, call, n, x, z, y) bind(c)
            import :: c_int32_t, c_int64_t, c_ptr
            integer(c_int32_t), intent(in), value :: function, type, call
            integer(c_int64_t), intent(in), value :: n
            type(c_ptr), intent(in), value :: x, z, y
        end function pw_math

        !> See math_functions.h.
        subroutine pw_math_arguments(function, type, first, n, x, z) bind(c)
            import :: c_int32_t, c_int64_t, c_ptr
            integer(c_int32_t), intent(in), value :: function, type
            integer(c_int64_t), intent(in), value :: first, n
            type(c_ptr), intent(in), value :: x, z
        end subroutine pw_math_arguments

        real(c_double) function pw_math_error(function, type, n, x, z, y) bind(c)
            import :: c_double, c_int32_t, c_int64_t, c_ptr
            integer(c_int32_t), intent(in), value :: function, type
            integer(c_int64_t), intent(in), value :: n
            type(c_ptr), intent(in), value :: x, z, y
        end function pw_math_error

        integer(c_int32_t) function pw_math_reference_bits() bind(c)
            import :: c_int32_t
        end function pw_math_reference_bits
    end interface

contains

    subroutine declare_options(self)
        class(math_functions_t), intent(inout) :: self

        associate (options => self%options)
            call options%add('function', option_choice, 'exp', 'function', &
                             choices='exp|log|sin|cos|tan|pow|sqrt|cbrt|erf')
            call options%add('type', option_choice, 'fp64', 'type of the numbers', choices='fp64|fp32')
            call options%add('call', option_choice, 'fortran', 'a compiled loop in Fortran or C, or '// &
                             'explicit calls of the library''s vector functions', choices='fortran|c|direct')
            call options%add('error-samples', option_count, '50000', 'arguments whose results are compared with quad precision', &
                             lowest=grain)
        end associate
    end subroutine declare_options

    subroutine read_options(self, error)
        class(math_functions_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: name, type_name, call_name

        call self%options%get('threads', self%threads)
        call self%options%get('error-samples', self%samples)
        call self%options%get('function', name)
        self%function = place_of(name, functions)
        call self%options%get('type', type_name)
        self%type = place_of(type_name, element_types)
        call self%options%get('call', call_name)
        self%call = place_of(call_name, calls)
        if (pw_math(self%function, self%type, self%call, 0_i8, c_null_ptr, c_null_ptr, c_null_ptr) /= 0) &
            call error%raise(exit_usage, 'this build has no '//name//' of '//type_name//' with --call '//call_name, &
                             'math_functions', 'use --call fortran or c, or a build with mathlib=libmvec or sleef')
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(math_functions_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        associate (unused => error)
        end associate
        wanted%element_bytes = element_bytes(self%type)
        wanted%elements = max(self%threads, bytes/(3*wanted%element_bytes*grain))*grain
        allocate (wanted%name(3), source=['x               ', 'z               ', 'y               '])
        allocate (wanted%bytes(3), source=wanted%elements*wanted%element_bytes)
    end subroutine plan

    !> The arguments; and the error of the samples, before anything is timed.
    subroutine initialise(self, elements)
        class(math_functions_t), intent(inout) :: self
        integer(i8), intent(in) :: elements
        real(r8), target :: x(chunk), z(chunk), y(chunk)
        integer(i8) :: first, n
        integer(c_int32_t) :: status

        self%elements = elements
        call pw_math_arguments(self%function, self%type, 0_i8, elements, self%memory(1)%address, self%memory(2)%address)
        self%largest = 0.0_r8
        y = 0.0_r8
        do first = 0, self%samples - 1, chunk
            n = min(chunk, (self%samples - first + grain - 1)/grain*grain)
            call pw_math_arguments(self%function, self%type, elements + first, n, c_loc(x), c_loc(z))
            status = pw_math(self%function, self%type, self%call, n, c_loc(x), c_loc(z), c_loc(y))
            self%largest = worse(self%largest, pw_math_error(self%function, self%type, n, c_loc(x), c_loc(z), c_loc(y)))
        end do
    end subroutine initialise

    subroutine run(self, passes)
        class(math_functions_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: first, last, pass
        integer(c_int32_t) :: status
        type(c_ptr) :: x, z, y

        !$omp parallel private(first, last, pass, status, x, z, y)
        call thread_share(self%elements, grain, first, last)
        if (last >= first) then
            ! Once instead of in every pass: with LLVM they take as long as a hundred values of exp.
            x = element_at(self%memory(1)%address, self%type, first)
            z = element_at(self%memory(2)%address, self%type, first)
            y = element_at(self%memory(3)%address, self%type, first)
            do pass = 1, passes
                status = pw_math(self%function, self%type, self%call, last - first + 1, x, z, y)
            end do
        end if
        !$omp end parallel
    end subroutine run

    !> All results that were timed, and the samples.
    subroutine validate(self, outcome)
        class(math_functions_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome

        outcome%error = worse(self%largest, pw_math_error(self%function, self%type, self%elements, self%memory(1)%address, &
                                                          self%memory(2)%address, self%memory(3)%address))
        outcome%method = 'every result, and those of '//to_text(self%samples)//' samples, against the C library''s with '// &
                         to_text(int(pw_math_reference_bits(), i8))//' bits, largest error in units in the last place'
        outcome%tolerance = tolerance
        outcome%passed = outcome%error <= outcome%tolerance
    end subroutine validate

    function traffic(self, passes) result(moved)
        class(math_functions_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved

        moved%bytes_stream = real(merge(3, 2, functions(self%function) == 'pow')*element_bytes(self%type)*self%elements*passes, r8)
        moved%bytes_hardware = moved%bytes_stream
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(math_functions_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: hertz, a_call

        hertz = clock_hertz()
        a_call = seconds/real(self%elements*passes, r8)
        figures = [metric_t('nanoseconds_per_call', 1.0e9_r8*a_call*real(self%threads, r8)), &
                   metric_t('largest_error_ulp', self%largest), metric_t('gcalls_per_s', 1.0e-9_r8/a_call)]
        if (hertz > 0.0_r8) figures = [figures, metric_t('cycles_per_call', a_call*hertz*real(self%threads, r8)), &
                                       metric_t('clock_ghz', hertz*1.0e-9_r8)]
    end function metrics

end module math_functions
