!> What a kernel is to the shared main program: its options, arrays, timed work, validation and traffic.
module pw_kernel
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_options, only: options_t
    use pw_pages, only: paged_array_t
    use pw_record, only: configuration_t, metric_t, traffic_t, validation_t
    use pw_traffic, only: per_element_t
    implicit none
    private

    !> The arrays that a kernel needs for a working set; see `arrays_of`.
    type, public :: plan_t
        integer(i8) :: elements = 0, element_bytes = 0
        integer(i8) :: units = 0            !< of traffic in kernel.yaml per pass, if not the elements
        character(16), allocatable :: name(:)
        integer(i8), allocatable :: bytes(:)
    end type plan_t

    type, abstract, public :: kernel_t
        character(:), allocatable :: name, summary
        character(:), allocatable :: default_working_set   !< not set: from the machine's caches, for kernels that measure memory
        type(per_element_t) :: per_element                   !< traffic and flops in kernel.yaml; read_options may change it
        type(configuration_t) :: configuration
        type(options_t) :: options
        integer(i8) :: threads = 1
        type(paged_array_t), allocatable :: memory(:)        !< as planned
        integer(i8) :: elements = 0, units = 0               !< as planned; units: of `per_element`, in a pass
        integer(i8) :: passes = 0                            !< made since `initialise`
    contains
        procedure :: declare_options => no_options
        procedure :: read_options => nothing_to_read
        procedure(plan), deferred :: plan
        procedure(initialise), deferred :: initialise
        procedure(run), deferred :: run
        procedure(validate), deferred :: validate
        procedure :: traffic
        procedure :: metrics => rates
        procedure, non_overridable :: make_passes
    end type kernel_t

    abstract interface
        !> The arrays for a working set of `bytes`; their sum is at most this.
        subroutine plan(self, bytes, wanted, error)
            import :: error_t, i8, kernel_t, plan_t
            class(kernel_t), intent(inout) :: self
            integer(i8), intent(in) :: bytes
            type(plan_t), intent(out) :: wanted
            type(error_t), intent(inout) :: error
        end subroutine plan

        !> Fill the arrays in `self%memory`.
        subroutine initialise(self)
            import :: kernel_t
            class(kernel_t), intent(inout) :: self
        end subroutine initialise

        !> The work that is timed: `passes` passes over the working set, after `self%passes` others.
        subroutine run(self, passes)
            import :: i8, kernel_t
            class(kernel_t), intent(inout) :: self
            integer(i8), intent(in) :: passes
        end subroutine run

        !> Compare the result of all passes since `initialise` with a closed form or a second algorithm: method, error and
        !> tolerance.
        subroutine validate(self, outcome)
            import :: kernel_t, validation_t
            class(kernel_t), intent(inout) :: self
            type(validation_t), intent(out) :: outcome
        end subroutine validate
    end interface

    public :: arrays_of, bandwidth_metrics

contains

    !> Add the kernel's own options to `self%options`; none by default.
    subroutine no_options(self)
        class(kernel_t), intent(inout) :: self

    end subroutine no_options

    !> Read the kernel's own options; raise exit_usage if they are invalid.
    subroutine nothing_to_read(self, error)
        class(kernel_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

    end subroutine nothing_to_read

    !> `passes` more passes.
    subroutine make_passes(self, passes)
        class(kernel_t), intent(inout) :: self
        integer(i8), intent(in) :: passes

        call self%run(passes)
        self%passes = self%passes + passes
    end subroutine make_passes

    !> The plan of arrays with these names, separated by blanks: each of `elements` elements, or of `bytes` bytes.
    pure function arrays_of(names, elements, element_bytes, bytes) result(wanted)
        character(*), intent(in) :: names
        integer(i8), intent(in) :: elements, element_bytes
        integer(i8), intent(in), optional :: bytes(:)
        type(plan_t) :: wanted
        integer :: arrays, i

        arrays = count([(names(i:i) == ' ', i=1, len(names))]) + 1
        allocate (wanted%name(arrays))
        read (names, *) wanted%name
        wanted%elements = elements
        wanted%element_bytes = element_bytes
        wanted%bytes = spread(elements*element_bytes, 1, arrays)
        if (present(bytes)) wanted%bytes = bytes
    end function arrays_of

    !> Traffic of `passes` passes; by default that of kernel.yaml.
    function traffic(self, passes) result(moved)
        class(kernel_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved

        moved = self%per_element%times(real(self%units*passes, r8), self%configuration%stores)
    end function traffic

    !> The figures of `passes` passes in `seconds`, the headline first; by default, bandwidths and arithmetic, if there is any.
    function rates(self, passes, seconds) result(figures)
        class(kernel_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(traffic_t) :: moved

        moved = self%traffic(passes)
        figures = bandwidth_metrics(moved, seconds)
        if (moved%flops > 0.0_r8) figures = [figures, metric_t('gflop_per_s', moved%flops/seconds*1.0e-9_r8)]
    end function rates

    !> Bandwidth by both conventions, stream first, then hardware.
    function bandwidth_metrics(moved, seconds) result(figures)
        type(traffic_t), intent(in) :: moved
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = [metric_t('bandwidth_stream_gb_per_s', moved%bytes_stream/seconds*1.0e-9_r8), &
                   metric_t('bandwidth_hardware_gb_per_s', moved%bytes_hardware/seconds*1.0e-9_r8)]
    end function bandwidth_metrics

end module pw_kernel
