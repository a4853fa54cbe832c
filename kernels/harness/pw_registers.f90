!> The driver of kernels that work in registers: each element of an array is loaded, undergoes many operations, and is
!> stored.
!>
!> A pass may be undone by the next one; the check requires an odd number of passes.
module pw_registers
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_ptr
    use pw_deviation, only: worse
    use pw_elements, only: element_at, element_bytes, pw_elements_get, pw_elements_put
    use pw_error, only: error_t
    use pw_harness, only: kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_record, only: traffic_t, validation_t
    use pw_threads, only: thread_share
    implicit none
    private

    !> Elements of the smallest array: whole groups of 10 and of 20 vectors of every width up to 512 bits.
    integer(i8), parameter, public :: register_grain = 320

    !> Properties of such a kernel, set by read_options.
    type, extends(kernel_t), abstract, public :: registers_t
        integer(c_int32_t) :: type = 1                  !< of the elements, an index into element_types
        integer(i8) :: threads = 1
        integer :: flops = 0                            !< per element and pass
        real(r8) :: tolerance = 0.0_r8                  !< relative, of an element
        integer(i8) :: elements = 0
        integer(i8), private :: passes = 0
    contains
        procedure :: plan
        procedure :: initialise
        procedure :: run
        procedure :: validate
        procedure :: traffic
        procedure(initial), deferred :: initial
        procedure(expected), deferred :: expected
        procedure(work), deferred :: work
    end type registers_t

    abstract interface
        !> The initial value of element i (from 1): a number that the type represents.
        pure real(r8) function initial(self, i)
            import :: i8, r8, registers_t
            class(registers_t), intent(in) :: self
            integer(i8), intent(in) :: i
        end function initial

        !> The result of an odd number of passes on x; not 0.
        pure real(r8) function expected(self, x)
            import :: r8, registers_t
            class(registers_t), intent(in) :: self
            real(r8), intent(in) :: x
        end function expected

        !> The work that is timed: `passes` passes over n elements from x on, after `before` others.
        subroutine work(self, before, passes, n, x)
            import :: c_ptr, i8, registers_t
            class(registers_t), intent(in) :: self
            integer(i8), intent(in) :: before, passes, n
            type(c_ptr), intent(in) :: x
        end subroutine work
    end interface

contains

    !> The working set only feeds the registers: at least one piece per thread.
    subroutine plan(self, bytes, wanted, error)
        class(registers_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        associate (unused => error)
        end associate
        wanted%element_bytes = element_bytes(self%type)
        wanted%elements = max(self%threads, bytes/(wanted%element_bytes*register_grain))*register_grain
        allocate (wanted%name(1), source=[character(16) :: 'x'])
        allocate (wanted%bytes(1), source=wanted%elements*wanted%element_bytes)
    end subroutine plan

    subroutine initialise(self, elements)
        class(registers_t), intent(inout) :: self
        integer(i8), intent(in) :: elements
        integer(i8) :: i
        integer(c_int32_t) :: status

        self%elements = elements
        self%passes = 0
        status = pw_elements_put(self%type, self%memory(1)%address, 0_i8, elements, [(self%initial(i), i=1, elements)])
    end subroutine initialise

    !> Each thread has at least one piece.
    subroutine run(self, passes)
        class(registers_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: first, last

        !$omp parallel private(first, last)
        call thread_share(self%elements, register_grain, first, last)
        call self%work(self%passes, passes, last - first + 1, element_at(self%memory(1)%address, self%type, first))
        !$omp end parallel
        self%passes = self%passes + passes
    end subroutine run

    !> Every element against its closed form. After an even number of passes one more is made: many operations undo
    !> every second one, and skipped work would not be detected.
    subroutine validate(self, outcome)
        class(registers_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        real(r8), allocatable :: values(:)
        real(r8) :: wanted
        integer(i8) :: i
        integer(c_int32_t) :: status

        if (modulo(self%passes, 2_i8) == 0) call self%run(1_i8)
        allocate (values(self%elements))
        status = pw_elements_get(self%type, self%memory(1)%address, 0_i8, self%elements, values)
        outcome%error = 0.0_r8
        do i = 1, self%elements
            wanted = self%expected(self%initial(i))
            outcome%error = worse(outcome%error, abs(values(i) - wanted)/abs(wanted))
        end do
        outcome%method = 'every element against its closed form, largest relative difference'
        outcome%tolerance = self%tolerance
        outcome%passed = outcome%error <= outcome%tolerance
    end subroutine validate

    function traffic(self, passes) result(moved)
        class(registers_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: elements

        elements = real(self%elements*passes, r8)
        moved%bytes_stream = 2*elements*real(element_bytes(self%type), r8)
        moved%bytes_hardware = moved%bytes_stream
        moved%flops = self%flops*elements
    end function traffic

end module pw_registers
