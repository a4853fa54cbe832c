!> Latency of loads that depend on each other: a random cycle through all cache lines of the working set.
!>
!> Source: McVoy and Staelin, lmbench: portable tools for performance analysis (1996).
module pointer_chase
    use, intrinsic :: iso_c_binding, only: c_int64_t, c_ptr
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_count
    use pw_record, only: metric_t, traffic_t, validation_t
    implicit none
    private

    integer(i8), parameter :: line_bytes = 64, word_bytes = 8

    type, extends(kernel_t), public :: chase_t
        private
        integer(i8) :: lines = 0, hops = 0, seed = 0, done = 0
        type(c_ptr) :: at
    contains
        procedure :: declare_options
        procedure :: read_options
        procedure :: plan
        procedure :: initialise
        procedure :: run
        procedure :: validate
        procedure :: traffic
        procedure :: metrics
    end type chase_t

    public :: new_chase

    interface
        type(c_ptr) function pw_chase(hops, start) bind(c)
            import :: c_int64_t, c_ptr
            integer(c_int64_t), intent(in), value :: hops
            type(c_ptr), intent(in), value :: start
        end function pw_chase

        subroutine pw_chase_join(n, line, seed, order) bind(c)
            import :: c_int64_t, c_ptr
            integer(c_int64_t), intent(in), value :: n, seed
            type(c_ptr), intent(in), value :: line
            integer(c_int64_t), intent(out) :: order(n)
        end subroutine pw_chase_join

        integer(c_int64_t) function pw_chase_place(link) bind(c)
            import :: c_int64_t, c_ptr
            type(c_ptr), intent(in), value :: link
        end function pw_chase_place
    end interface

contains

    function new_chase() result(kernel)
        type(chase_t) :: kernel

        kernel%name = 'pointer_chase'
        kernel%summary = 'latency of loads that depend on each other, along a random cycle of cache lines'
        kernel%default_working_set = '128MiB'
    end function new_chase

    subroutine declare_options(self)
        class(chase_t), intent(inout) :: self

        call self%options%add('hops', option_count, '262144', 'loads of a pass', lowest=1_i8)
        call self%options%add('seed', option_count, '1', 'chooses the order of the lines')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(chase_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        integer(i8) :: threads

        call self%options%get('hops', self%hops)
        call self%options%get('seed', self%seed)
        call self%options%get('threads', threads)
        if (threads > 1) call error%raise(exit_usage, 'pointer_chase follows one chain with one thread', 'pointer_chase', &
                                          'leave --threads at 1')
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(chase_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        associate (unused_self => self, unused_error => error)
        end associate
        wanted%elements = bytes/line_bytes
        wanted%element_bytes = line_bytes
        allocate (wanted%name(1), source=[character(16) :: 'lines'])
        allocate (wanted%bytes(1), source=wanted%elements*line_bytes)
    end subroutine plan

    subroutine initialise(self, elements)
        class(chase_t), intent(inout) :: self
        integer(i8), intent(in) :: elements
        integer(i8), allocatable :: order(:)

        self%lines = elements
        self%done = 0
        self%at = self%memory(1)%address
        allocate (order(elements))
        call pw_chase_join(elements, self%at, self%seed, order)
    end subroutine initialise

    subroutine run(self, passes)
        class(chase_t), intent(inout) :: self
        integer(i8), intent(in) :: passes

        self%at = pw_chase(self%hops*passes, self%at)
        self%done = self%done + self%hops*passes
    end subroutine run

    !> Where the chase stands against where so many steps along one cycle of all lines end.
    subroutine validate(self, outcome)
        class(chase_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome

        outcome%method = 'the place along the cycle against the number of hops, difference in lines'
        outcome%error = real(abs(pw_chase_place(self%at) - modulo(self%done, self%lines)), r8)
        outcome%passed = outcome%error <= outcome%tolerance
    end subroutine validate

    !> A word a hop, as the source names it; the hardware moves its line.
    function traffic(self, passes) result(moved)
        class(chase_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved

        moved%bytes_stream = real(word_bytes*self%hops*passes, r8)
        moved%bytes_hardware = real(line_bytes*self%hops*passes, r8)
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(chase_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = [metric_t('latency_ns', 1.0e9_r8*seconds/real(self%hops*passes, r8))]
    end function metrics

end module pointer_chase

program main
    use pointer_chase, only: chase_t, new_chase
    use pw_harness, only: run_kernel
    implicit none
    type(chase_t) :: kernel

    kernel = new_chase()
    call run_kernel(kernel)
end program main
