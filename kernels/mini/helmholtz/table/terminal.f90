!> For programs that take many seconds: handle interrupts and show progress (terminal.h).
module eos_table_terminal
    use, intrinsic :: iso_c_binding, only: c_int32_t
    use, intrinsic :: iso_fortran_env, only: error_unit
    use pw_kinds, only: i8, r8
    use pw_text, only: to_text
    use pw_timer, only: wall_seconds
    implicit none
    private

    integer, parameter :: bar = 40          ! characters
    integer, parameter :: line_percent = 10 ! interval of printed lines without a terminal

    !> Progress on standard error: a bar if that is a terminal, a line at each 10 % otherwise.
    type, public :: progress_t
        private
        character(:), allocatable :: program
        integer(i8) :: total = 1, done = 0
        integer :: shown = -1
        real(r8) :: begin = 0.0_r8
        logical :: terminal = .false.
    contains
        procedure :: start
        procedure :: advance
        procedure :: finish
    end type progress_t

    interface
        subroutine watch_signals() bind(c, name='pw_terminal_watch')
        end subroutine watch_signals

        integer(c_int32_t) function c_signal() bind(c, name='pw_terminal_signal')
            import :: c_int32_t
        end function c_signal

        subroutine end_by_signal() bind(c, name='pw_terminal_end')
        end subroutine end_by_signal

        integer(c_int32_t) function c_seen() bind(c, name='pw_terminal_seen')
            import :: c_int32_t
        end function c_seen
    end interface

    public :: watch_signals, end_by_signal, interrupted

contains

    !> Whether a signal requested termination.
    logical function interrupted()
        interrupted = c_signal() /= 0
    end function interrupted

    !> Begin; the work has `total` pieces.
    subroutine start(self, program, total)
        class(progress_t), intent(inout) :: self
        character(*), intent(in) :: program
        integer(i8), intent(in) :: total

        self%program = program
        self%total = max(1_i8, total)
        self%begin = wall_seconds()
        self%terminal = c_seen() /= 0
    end subroutine start

    !> Report this many more finished pieces. One thread at a time.
    subroutine advance(self, pieces)
        class(progress_t), intent(inout) :: self
        integer(i8), intent(in) :: pieces
        integer :: percent, filled

        self%done = self%done + pieces
        percent = int(100*self%done/self%total)
        if (.not. self%terminal) percent = percent - modulo(percent, line_percent)
        if (percent <= self%shown) return
        self%shown = percent
        if (self%terminal) then
            filled = int(bar*self%done/self%total)
            write (error_unit, '(a)', advance='no') achar(13)//self%program//' ['//repeat('#', filled)// &
                repeat('.', bar - filled)//'] '//to_text(percent)//' %  '//to_text(wall_seconds() - self%begin, 'f0.1')//' s '
        else if (percent > 0) then
            write (error_unit, '(a)') self%program//': '//to_text(percent)//' %'
        end if
        flush (error_unit)
    end subroutine advance

    !> End the line of the bar.
    subroutine finish(self)
        class(progress_t), intent(inout) :: self

        if (self%terminal .and. self%shown >= 0) write (error_unit, '(a)') ''
    end subroutine finish

end module eos_table_terminal
