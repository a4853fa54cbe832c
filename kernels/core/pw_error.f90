!> Errors: what failed, where, and what the user can do about it.
!>
!> Procedures return an `error_t`; only main programs stop, by calling `stop_on`.
module pw_error
    use, intrinsic :: iso_c_binding, only: c_int
    use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
    implicit none
    private

    integer, parameter, public :: exit_ok = 0      !< ran, and the result was right
    integer, parameter, public :: exit_check = 1   !< a result failed its check
    integer, parameter, public :: exit_usage = 2   !< the command line is wrong
    integer, parameter, public :: exit_pages = 3   !< the page policy is unavailable
    integer, parameter, public :: exit_system = 4  !< the system refused something else: a file, memory

    type, public :: error_t
        integer :: code = exit_ok
        character(:), allocatable :: message, place, remedy
    contains
        procedure :: raise
        procedure :: failed
    end type error_t

    public :: report_error, stop_on, end_program

    interface
        subroutine c_exit(status) bind(c, name='exit')
            import :: c_int
            integer(c_int), value :: status
        end subroutine c_exit
    end interface

contains

    !> Record a failure: `code` is the exit status of a main program that stops on it,
    !> `place` the procedure, `remedy` what the user can do.
    subroutine raise(self, code, message, place, remedy)
        class(error_t), intent(inout) :: self
        integer, intent(in) :: code
        character(*), intent(in) :: message, place, remedy

        self%code = code
        self%message = message
        self%place = place
        self%remedy = remedy
    end subroutine raise

    !> Whether something failed.
    pure logical function failed(self)
        class(error_t), intent(in) :: self

        failed = self%code /= exit_ok
    end function failed

    !> Report on standard error what failed in `program` and what to do.
    subroutine report_error(program, error)
        character(*), intent(in) :: program
        type(error_t), intent(in) :: error

        write (error_unit, '(a)') program//': error: '//error%message
        if (len(error%remedy) > 0) write (error_unit, '(a)') '  remedy: '//error%remedy
    end subroutine report_error

    !> For main programs only: if `error` holds a failure, report it and end with its code.
    subroutine stop_on(program, error)
        character(*), intent(in) :: program
        type(error_t), intent(in) :: error

        if (.not. error%failed()) return
        flush (output_unit)
        call report_error(program, error)
        call end_program(error%code)
    end subroutine stop_on

    !> For main programs only: end with the exit status `code`. STOP would also write it to standard error; its `quiet` needs
    !> gfortran 12.
    subroutine end_program(code)
        integer, intent(in) :: code

        flush (output_unit)
        flush (error_unit)
        call c_exit(int(code, c_int))
    end subroutine end_program

end module pw_error
