!> The driver of kernels that add rows of one array to another in place, y(i,j) = y(i,j) + x(i,j), with whole numbers of any type.
!>
!> Rows may have padding, and accesses may begin anywhere: every number is validated, also those that must not change.
module pw_in_place
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_null_ptr, c_ptr
    use pw_cycles, only: cycle_metrics
    use pw_deviation, only: worse, worst_of
    use pw_elements, only: element_at, pw_elements_get, pw_elements_put
    use pw_harness, only: bandwidth_metrics
    use pw_kinds, only: i8, r8
    use pw_record, only: metric_t
    use pw_shares, only: shared_kernel_t
    use pw_values, only: mixed
    implicit none
    private

    !> A kernel of this kind; it sets all of these before `fill`.
    type, extends(shared_kernel_t), abstract, public :: in_place_t
        integer(c_int32_t) :: type = 1           !< an index into element_types
        integer(i8) :: length = 0, leading = 0   !< numbers of a row that change, and with its padding
        integer(i8) :: rows = 0
        type(c_ptr) :: y = c_null_ptr, x = c_null_ptr
        character(:), allocatable :: row         !< its name in metrics
    contains
        procedure :: fill, deviation, metrics
        procedure :: at
    end type in_place_t

contains

    !> Address of row j of y or x.
    type(c_ptr) function at(self, array, j)
        class(in_place_t), intent(in) :: self
        type(c_ptr), intent(in) :: array
        integer(i8), intent(in) :: j

        at = element_at(array, self%type, (j - 1)*self%leading + 1)
    end function at

    subroutine fill(self, first, last)
        class(in_place_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i, j
        integer(c_int32_t) :: status

        associate (n => self%leading)
            do j = first, last
                status = pw_elements_put(self%type, self%at(self%y, j), 0_i8, n, [(initial(i, j), i=1, n)])
                status = pw_elements_put(self%type, self%at(self%x, j), 0_i8, n, [(increment(i, j), i=1, n)])
            end do
        end associate
    end subroutine fill

    pure real(r8) function initial(i, j)
        integer(i8), intent(in) :: i, j

        initial = real(iand(mixed(i, int(j)), 1023_i8), r8)
    end function initial

    pure real(r8) function increment(i, j)
        integer(i8), intent(in) :: i, j

        increment = real(1_i8 + iand(mixed(-i, int(j)), 255_i8), r8)
    end function increment

    !> Every number against its closed form, the padding too.
    real(r8) function deviation(self, first, last) result(error)
        class(in_place_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        real(r8) :: numbers(self%leading), additions
        integer(i8) :: i, j
        integer(c_int32_t) :: status

        error = 0.0_r8
        additions = real(self%passes, r8)
        if (self%undoes) additions = real(modulo(self%passes, 2_i8), r8)
        do j = first, last
            status = pw_elements_get(self%type, self%at(self%y, j), 0_i8, self%leading, numbers)
            do i = 1, self%leading
                numbers(i) = numbers(i) - initial(i, j)
                if (i <= self%length) numbers(i) = numbers(i) - additions*increment(i, j)
            end do
            error = worse(error, worst_of(abs(numbers)))
        end do
    end function deviation

    function metrics(self, passes, seconds) result(figures)
        class(in_place_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        associate (workers => real(min(self%threads, self%rows/self%grain), r8))
            figures = [cycle_metrics(self%row, seconds*workers/real(self%rows*passes, r8)), &
                       bandwidth_metrics(self%traffic(passes), seconds)]
        end associate
    end function metrics

end module pw_in_place
