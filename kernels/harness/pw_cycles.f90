!> The clock frequency of the core, measured without counters: by a chain of dependent additions, one per cycle.
module pw_cycles
    use, intrinsic :: iso_c_binding, only: c_int64_t
    use pw_kinds, only: i8, r8
    use pw_timer, only: wall_seconds
    implicit none
    private

    public :: clock_hertz

    integer(i8), parameter :: window = 200000_i8   ! cycles, some 50 us: most windows are not interrupted
    integer, parameter :: windows = 15

    interface
        !> See pw_cycles.h.
        integer(c_int64_t) function pw_cycles_pass(n) bind(c)
            import :: c_int64_t
            integer(c_int64_t), intent(in), value :: n
        end function pw_cycles_pass
    end interface

contains

    !> Present cycles per second of the calling thread's core, the maximum of some windows; 0 on processors whose additions
    !> do not take one cycle. Call it directly after the work to be expressed in cycles: clock frequencies follow the load.
    real(r8) function clock_hertz()
        real(r8) :: start, seconds
        integer(i8) :: cycles
        integer :: i

        clock_hertz = 0.0_r8
        do i = 1, windows
            start = wall_seconds()
            cycles = pw_cycles_pass(window)
            seconds = wall_seconds() - start
            clock_hertz = max(clock_hertz, real(cycles, r8)/seconds)
        end do
    end function clock_hertz

end module pw_cycles
