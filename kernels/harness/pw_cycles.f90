!> The clock frequency of the core, measured without counters: by a chain of dependent additions, one per cycle.
module pw_cycles
    use pw_harness_h, only: pw_cycles_pass
    use pw_kinds, only: i8, r8
    use pw_record, only: metric_t
    use pw_timer, only: wall_seconds
    implicit none
    private

    public :: clock_hertz, cycle_metrics

    integer(i8), parameter :: window = 200000_i8   ! cycles, some 50 us: most windows are not interrupted
    integer, parameter :: windows = 15

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

    !> The time of one such thing, as an access, in nanoseconds and, where the clock is known, in cycles.
    function cycle_metrics(thing, seconds) result(figures)
        character(*), intent(in) :: thing
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: hertz

        hertz = clock_hertz()
        figures = [metric_t('nanoseconds_per_'//thing, 1.0e9_r8*seconds)]
        if (hertz > 0.0_r8) &
            figures = [figures, metric_t('cycles_per_'//thing, seconds*hertz), metric_t('clock_ghz', hertz*1.0e-9_r8)]
    end function cycle_metrics

end module pw_cycles
