!> Wall-clock and CPU time.
module pw_timer
    use, intrinsic :: iso_c_binding, only: c_double
    implicit none
    private

    public :: wall_seconds, thread_seconds

    interface
        !> Seconds on the monotonic clock (`clock_gettime(CLOCK_MONOTONIC)`, resolution 1 ns on Linux),
        !> from an arbitrary start.
        real(c_double) function wall_seconds() bind(c, name='pw_system_seconds')
            import :: c_double
        end function wall_seconds

        !> CPU time of this thread in seconds (`CLOCK_THREAD_CPUTIME_ID`).
        real(c_double) function thread_seconds() bind(c, name='pw_system_thread_seconds')
            import :: c_double
        end function thread_seconds
    end interface

end module pw_timer
