!> The driver of kernels that work in registers: each element of an array is loaded, undergoes many operations, and is
!> stored.
!>
!> A pass may be undone by the next one; the check requires an odd number of passes.
module pw_registers
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_ptr
    use pw_deviation, only: worse
    use pw_elements, only: element_at, element_bytes, pw_elements_get, pw_elements_put
    use pw_error, only: error_t
    use pw_harness, only: arrays_of, plan_t
    use pw_kinds, only: i8, r8
    use pw_shares, only: shared_kernel_t
    implicit none
    private

    !> Elements of the smallest array: whole groups of 10 and of 20 vectors of every width up to 512 bits.
    integer(i8), parameter, public :: register_grain = 320

    !> Properties of such a kernel, set by read_options.
    type, extends(shared_kernel_t), abstract, public :: registers_t
        integer(c_int32_t) :: type = 1                  !< of the elements, an index into element_types
    contains
        procedure :: plan, connect, fill, work, deviation
        procedure(initial), deferred :: initial
        procedure(expected), deferred :: expected
        procedure(operate), deferred :: operate
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

        !> The work that is timed: `passes` passes over n elements from x on.
        subroutine operate(self, passes, n, x)
            import :: c_ptr, i8, registers_t
            class(registers_t), intent(in) :: self
            integer(i8), intent(in) :: passes, n
            type(c_ptr), intent(in) :: x
        end subroutine operate
    end interface

contains

    !> The working set only feeds the registers: at least one piece per thread.
    subroutine plan(self, bytes, wanted, error)
        class(registers_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        associate (bytes_each => element_bytes(self%type))
            wanted = arrays_of('x', max(self%threads, bytes/(bytes_each*register_grain))*register_grain, bytes_each)
        end associate
    end subroutine plan

    subroutine connect(self)
        class(registers_t), intent(inout) :: self

        self%grain = register_grain
        self%undoes = .true.
        self%method = 'every element against its closed form, largest relative difference'
    end subroutine connect

    subroutine fill(self, first, last)
        class(registers_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i, start
        integer(c_int32_t) :: status

        do start = first, last, register_grain
            status = pw_elements_put(self%type, self%memory(1)%address, start - 1, register_grain, &
                                     [(self%initial(i), i=start, start + register_grain - 1)])
        end do
    end subroutine fill

    subroutine work(self, passes, first, last)
        class(registers_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last

        call self%operate(passes, last - first + 1, element_at(self%memory(1)%address, self%type, first))
    end subroutine work

    !> Every element against its closed form, after an odd number of passes.
    real(r8) function deviation(self, first, last) result(error)
        class(registers_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        real(r8) :: values(register_grain), wanted
        integer(i8) :: i, start
        integer(c_int32_t) :: status

        error = 0.0_r8
        do start = first, last, register_grain
            status = pw_elements_get(self%type, self%memory(1)%address, start - 1, register_grain, values)
            do i = 1, register_grain
                wanted = self%expected(self%initial(start + i - 1))
                error = worse(error, abs(values(i) - wanted)/abs(wanted))
            end do
        end do
    end function deviation

end module pw_registers
