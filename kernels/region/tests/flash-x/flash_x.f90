!> Stand-ins for what the Profiler unit needs of Flash-X: its Driver, and its timers, which count their calls.
module Driver_interface
    use, intrinsic :: iso_fortran_env, only: error_unit
    use pw_kinds, only: i4
    implicit none
    private

    public :: Driver_abort, Driver_getMype

    !> The rank that Driver_getMype returns.
    integer(i4), public :: rank = 0

contains

    subroutine Driver_abort(message)
        character(*), intent(in) :: message

        write (error_unit, '(a)') trim(message)
        error stop 1
    end subroutine Driver_abort

    subroutine Driver_getMype(communicator, me, axis)
        integer(i4), intent(in) :: communicator
        integer(i4), intent(out) :: me
        integer(i4), intent(in), optional :: axis

        if (communicator == 0 .or. present(axis)) call Driver_abort('Driver_getMype: another communicator')
        me = rank
    end subroutine Driver_getMype

end module Driver_interface

module timer_calls
    use pw_kinds, only: i4
    implicit none
    private

    integer(i4), public :: starts = 0, stops = 0   ! calls of Flash-X's own timers

end module timer_calls

subroutine Timers_startString(name)
    use pw_kinds, only: i4
    use timer_calls, only: starts
    implicit none
    character(*), intent(in) :: name

    if (len_trim(name) > 0) starts = starts + 1_i4
end subroutine Timers_startString

subroutine Timers_stopString(name)
    use pw_kinds, only: i4
    use timer_calls, only: stops
    implicit none
    character(*), intent(in) :: name

    if (len_trim(name) > 0) stops = stops + 1_i4
end subroutine Timers_stopString

!> Doubles the values of a block.
subroutine Eos_multiDim(mode, range, cells)
    use pw_kinds, only: i4, r8
    implicit none
    integer(i4), intent(in) :: mode, range(2, 3)
    real(r8), pointer, intent(in) :: cells(:, :, :, :)

    associate (first => range(1, :), last => range(2, :))
        cells(mode, first(1):last(1), first(2):last(2), first(3):last(3)) = &
            2.0_r8*cells(mode, first(1):last(1), first(2):last(2), first(3):last(3))
    end associate
end subroutine Eos_multiDim
