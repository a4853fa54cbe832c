!> y(i) = y(i) + c*x(i) with complex numbers in both layouts.
!>
!> Source: A64FX micro-architecture guide (Fujitsu, 2021), structure loads and stores of complex arrays.
module zaxpy
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int64_t
    use pw_deviation, only: worse, worst_of
    use pw_error, only: error_t
    use pw_harness, only: arrays_of, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_choice
    use pw_shares, only: shared_kernel_t
    use pw_values, only: mixed
    implicit none
    private

    integer(i8), parameter :: part_bytes = 8
    integer(i8), parameter :: line = line_bytes/part_bytes   ! elements: shares start at a cache line in both layouts
    complex(r8), parameter :: c = (3.0_r8, -2.0_r8)

    type, extends(shared_kernel_t), public :: zaxpy_t
        private
        logical :: together = .true.
        complex(r8), pointer, contiguous :: x(:) => null(), y(:) => null()
        real(r8), pointer, contiguous :: x_re(:) => null(), x_im(:) => null(), y_re(:) => null(), y_im(:) => null()
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation
    end type zaxpy_t

    interface
        subroutine pw_zaxpy_aos(n, c_re, c_im, x, y) bind(c)
            import :: c_double, c_int64_t
            integer(c_int64_t), intent(in), value :: n
            real(c_double), intent(in), value :: c_re, c_im
            complex(c_double), intent(in) :: x(n)
            complex(c_double), intent(inout) :: y(n)
        end subroutine pw_zaxpy_aos

        subroutine pw_zaxpy_soa(n, c_re, c_im, x_re, x_im, y_re, y_im) bind(c)
            import :: c_double, c_int64_t
            integer(c_int64_t), intent(in), value :: n
            real(c_double), intent(in), value :: c_re, c_im
            real(c_double), intent(in) :: x_re(n), x_im(n)
            real(c_double), intent(inout) :: y_re(n), y_im(n)
        end subroutine pw_zaxpy_soa
    end interface

contains

    subroutine declare_options(self)
        class(zaxpy_t), intent(inout) :: self

        call self%options%add('layout', option_choice, 'aos', 'parts of a number adjacent (array of structures), or in '// &
                              'separate arrays (structure of arrays)', values='aos|soa')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(zaxpy_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        call self%options%get('layout', word)
        self%together = word == 'aos'
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(zaxpy_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        associate (elements => bytes/(4*part_bytes))
            if (self%together) then
                wanted = arrays_of('x y', elements, 2*part_bytes)
            else
                wanted = arrays_of('x_re x_im y_re y_im', elements, 2*part_bytes, spread(elements*part_bytes, 1, 4))
            end if
        end associate
    end subroutine plan

    subroutine connect(self)
        class(zaxpy_t), intent(inout) :: self

        self%grain = line
        self%method = 'every element against its closed form, largest absolute difference of a part'
        if (self%together) then
            call c_f_pointer(self%memory(1)%address, self%x, [self%elements])
            call c_f_pointer(self%memory(2)%address, self%y, [self%elements])
        else
            call c_f_pointer(self%memory(1)%address, self%x_re, [self%elements])
            call c_f_pointer(self%memory(2)%address, self%x_im, [self%elements])
            call c_f_pointer(self%memory(3)%address, self%y_re, [self%elements])
            call c_f_pointer(self%memory(4)%address, self%y_im, [self%elements])
        end if
    end subroutine connect

    !> Small whole numbers, so that the sums are exact with and without fused multiply-add.
    subroutine fill(self, first, last)
        class(zaxpy_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i

        do i = first, last
            if (self%together) then
                self%x(i) = x_value(i)
                self%y(i) = 1.0_r8
            else
                self%x_re(i) = real(x_value(i), r8)
                self%x_im(i) = aimag(x_value(i))
                self%y_re(i) = 1.0_r8
                self%y_im(i) = 0.0_r8
            end if
        end do
    end subroutine fill

    pure elemental complex(r8) function x_value(i)
        integer(i8), intent(in) :: i

        x_value = cmplx(1_i8 + iand(mixed(i, 1), 63_i8), 1_i8 + iand(mixed(i, 2), 63_i8), r8)
    end function x_value

    subroutine work(self, passes, first, last)
        class(zaxpy_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass

        do pass = 1, passes
            if (self%together) then
                associate (x => self%x, y => self%y)
                    call pw_zaxpy_aos(last - first + 1, real(c, r8), aimag(c), x(first), y(first))
                end associate
            else
                associate (x_re => self%x_re, x_im => self%x_im, y_re => self%y_re, y_im => self%y_im)
                    call pw_zaxpy_soa(last - first + 1, real(c, r8), aimag(c), x_re(first), x_im(first), y_re(first), y_im(first))
                end associate
            end if
        end do
    end subroutine work

    !> Every element against its initial value plus one product per pass.
    real(r8) function deviation(self, first, last) result(error)
        class(zaxpy_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        complex(r8) :: difference
        integer(i8) :: i

        error = 0.0_r8
        do i = first, last
            if (self%together) then
                difference = self%y(i)
            else
                difference = cmplx(self%y_re(i), self%y_im(i), r8)
            end if
            difference = difference - (1.0_r8 + real(self%passes, r8)*(c*x_value(i)))
            error = worse(error, worst_of([abs(difference%re), abs(difference%im)]))
        end do
    end function deviation

end module zaxpy
