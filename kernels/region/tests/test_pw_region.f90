!> A region's time and counts; where nothing can be counted the reason is given and nothing fails.
program test_pw_region
    use pw_kinds, only: i8, r8
    use pw_region, only: counters_t, region_t
    use pw_timer, only: wall_seconds
    implicit none
    type(counters_t) :: counters
    type(region_t) :: region
    character(64), allocatable :: names(:)
    integer, allocatable :: memory(:)
    real(r8) :: start, seconds, outside
    integer :: i

    call counters%open()
    region%name = 'touch'
    start = wall_seconds()
    do i = 1, 3
        call region%begin(counters)
        allocate (memory(4000000), source=i)
        if (sum(int(memory, i8)) /= 4000000_i8*i) error stop 'wrong sum'
        deallocate (memory)
        call region%end(counters, seconds)
    end do
    outside = wall_seconds() - start
    if (region%calls /= 3) error stop 'calls'
    if (region%seconds <= 0.0_r8 .or. region%seconds > outside) error stop 'seconds'
    if (seconds > region%seconds) error stop 'the last passage is longer than all'
    if (counters%counting()) then
        names = counters%event_names()
        print '(a,i0)', trim(names(1))//' ', region%counts(1)
        if (.not. region%counts_valid .or. region%counts(1) <= 0) error stop 'nothing was counted'
    else
        print '(a)', 'unavailable: '//counters%reason
        if (len(counters%reason) == 0) error stop 'no reason given'
    end if
    call counters%close()
    if (counters%counting()) error stop 'closed counters count'
end program test_pw_region
