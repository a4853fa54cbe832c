!> Independent multiply-adds: x(i) = x(i)*a + b, many times each, in registers.
module peak_flops
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int32_t, c_loc
    use pw_cycles, only: clock_hertz
    use pw_error, only: error_t
    use pw_harness, only: kernel_t, plan_t
    use pw_kinds, only: i8, r4, r8
    use pw_options, only: option_choice
    use pw_peak, only: peak_call_t, peak_grain, peak_steps, pw_peak_run
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_simd, only: place_of, simd_names, words_had
    use pw_threads, only: thread_share
    implicit none
    private

    character(4), parameter :: types(2) = ['fp64', 'fp32']
    integer(i8), parameter :: type_bytes(2) = [8_i8, 4_i8]

    type, extends(kernel_t), public :: peak_flops_t
        private
        type(peak_call_t) :: request
        integer(i8) :: elements = 0, passes = 0, threads = 1
        real(r8), pointer, contiguous :: x(:) => null()
        real(r4), pointer, contiguous :: single(:) => null()
    contains
        procedure :: declare_options
        procedure :: read_options
        procedure :: plan
        procedure :: initialise
        procedure :: run
        procedure :: validate
        procedure :: traffic
        procedure :: metrics
    end type peak_flops_t

contains

    subroutine declare_options(self)
        class(peak_flops_t), intent(inout) :: self

        call self%options%add('type', option_choice, 'fp64', 'type of the numbers', choices='fp64|fp32')
        call self%options%add('simd', option_choice, 'compiler', 'width of the vectors in bits: as the build''s flags ask for, '// &
                              'none, so many, or what the processor has (vla)', choices=words_had(simd_names, width_status))
    end subroutine declare_options

    integer(c_int32_t) function width_status(place)
        integer(c_int32_t), intent(in) :: place
        type(peak_call_t) :: request

        request%simd = place
        width_status = pw_peak_run(request)
    end function width_status

    subroutine read_options(self, error)
        class(peak_flops_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        associate (unused => error)
        end associate
        self%request = peak_call_t()
        call self%options%get('type', word)
        self%request%type = place_of(word, types)
        call self%options%get('simd', word)
        self%request%simd = place_of(word, simd_names)
        call self%options%get('threads', self%threads)
    end subroutine read_options

    !> The working set only feeds the registers: at least a piece a thread.
    subroutine plan(self, bytes, wanted, error)
        class(peak_flops_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        associate (unused => error)
        end associate
        wanted%element_bytes = type_bytes(self%request%type)
        wanted%elements = max(self%threads, bytes/(wanted%element_bytes*peak_grain))*peak_grain
        allocate (wanted%name(1), source=[character(16) :: 'x'])
        allocate (wanted%bytes(1), source=wanted%elements*wanted%element_bytes)
    end subroutine plan

    !> Small whole numbers, so that all results are exact: a pass adds or takes away as much as it has steps.
    subroutine initialise(self, elements)
        class(peak_flops_t), intent(inout) :: self
        integer(i8), intent(in) :: elements
        integer(i8) :: i

        self%elements = elements
        self%passes = 0
        nullify (self%x, self%single)
        if (self%request%type == 1) then
            call c_f_pointer(self%memory(1)%address, self%x, [elements])
            self%x = [(initial(i), i=1, elements)]
        else
            call c_f_pointer(self%memory(1)%address, self%single, [elements])
            self%single = [(real(initial(i), r4), i=1, elements)]
        end if
    end subroutine initialise

    pure real(r8) function initial(i)
        integer(i8), intent(in) :: i

        initial = real(iand(i, 63_i8), r8)
    end function initial

    subroutine run(self, passes)
        class(peak_flops_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        type(peak_call_t) :: request
        integer(i8) :: first, last
        integer(c_int32_t) :: status

        !$omp parallel private(first, last, request, status)
        call thread_share(self%elements, peak_grain, first, last)
        request = self%request
        request%passes = passes
        request%elements = last - first + 1
        if (modulo(self%passes, 2_i8) == 1) request%summand = -request%summand
        if (associated(self%x)) then
            request%x = c_loc(self%x(first))
        else
            request%x = c_loc(self%single(first))
        end if
        status = pw_peak_run(request)
        !$omp end parallel
        self%passes = self%passes + passes
    end subroutine run

    !> Every element against its closed form. Every second pass takes back what the one before it did: of an even number
    !> nothing would be seen, and another one is made.
    subroutine validate(self, outcome)
        class(peak_flops_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        real(r8) :: found
        integer(i8) :: i

        if (modulo(self%passes, 2_i8) == 0) call self%run(1_i8)
        outcome%error = 0.0_r8
        do i = 1, self%elements
            if (associated(self%x)) then
                found = self%x(i)
            else
                found = real(self%single(i), r8)
            end if
            outcome%error = max(outcome%error, abs(found - (initial(i) + real(peak_steps, r8))))
        end do
        outcome%method = 'every element against its closed form, largest absolute difference'
        outcome%passed = outcome%error <= outcome%tolerance
    end subroutine validate

    function traffic(self, passes) result(moved)
        class(peak_flops_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: elements

        elements = real(self%elements*passes, r8)
        moved%bytes_stream = 2*elements*real(type_bytes(self%request%type), r8)
        moved%bytes_hardware = moved%bytes_stream
        moved%flops = real(2*peak_steps, r8)*elements
    end function traffic

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

program main
    use peak_flops, only: peak_flops_t
    use pw_harness, only: run_kernel
    implicit none
    type(peak_flops_t) :: kernel

    kernel%name = 'peak_flops'
    kernel%summary = 'independent multiply-adds in registers, the most arithmetic of a core'
    kernel%default_working_set = '8KiB'
    call run_kernel(kernel)
end program main
