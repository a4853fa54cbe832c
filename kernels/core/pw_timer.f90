!> Wall-clock and CPU time.
module pw_timer
    use pw_system_h, only: wall_seconds => pw_system_seconds, thread_seconds => pw_system_thread_seconds
    implicit none
    private

    public :: wall_seconds, thread_seconds

end module pw_timer
