!> Regions of one thread: paths, nested times, recursion, and incorrect nesting.
program test_pw_region
    use expectations, only: busy, expect, expect_fault, region_at
    use pw_error, only: error_t
    use pw_kinds, only: i4, r8
    use pw_record, only: counters_record_t, region_record_t
    use pw_region, only: region_begin, region_end, region_handle, regions_collect, regions_cost, regions_counters, &
        regions_open, regions_print, regions_reset
    use pw_timer, only: wall_seconds
    implicit none
    logical :: undisturbed
    integer :: try

    call regions_open()
    do try = 1, 20
        call nesting(undisturbed)
        if (undisturbed) exit
    end do
    call expect(undisturbed, 'a timer around a region differs by more than 1 %')
    call recursion()
    call mismatches()
    call names()
    call depth()
    call costs()

contains

    !> `agrees`: a timer around the regions agrees with them to 1 %; other processes on the machine may prevent that.
    subroutine nesting(agrees)
        logical, intent(out) :: agrees
        type(region_record_t), allocatable :: regions(:)
        type(region_record_t) :: step, hydro, eos
        type(error_t) :: error
        integer(i4) :: of_hydro, of_eos
        real(r8) :: start, outside, seconds, passages
        integer :: i, j

        of_hydro = region_handle('hydro')
        of_eos = region_handle('eos')
        call expect(of_hydro == region_handle('hydro  ') .and. of_hydro /= of_eos, 'handles')
        passages = 0.0_r8
        start = wall_seconds()
        do i = 1, 3
            call region_begin('step')
            call region_begin(of_hydro)
            do j = 1, 2
                call region_begin(of_eos)
                call busy(0.002_r8)
                call region_end(of_eos)
            end do
            call busy(0.003_r8)
            call region_end(of_hydro)
            call region_begin(of_eos)
            call region_end(of_eos)
            call region_end('step', seconds)
            passages = passages + seconds
        end do
        outside = wall_seconds() - start
        call regions_collect(regions, error)
        call expect(.not. error%failed(), 'a fault')
        call expect(size(regions) == 4, 'number of paths')
        step = region_at(regions, 'step', 3, 1)
        hydro = region_at(regions, 'step/hydro', 3, 1)
        eos = region_at(regions, 'step/hydro/eos', 6, 1)
        call expect(eos%name == 'eos', 'the name')
        ! Timers around and inside agree.
        call expect(abs(step%seconds - passages) < 1.0e-9_r8, 'passages')
        call expect(step%seconds <= outside, 'the region is longer than a timer around it')
        agrees = step%seconds > 0.99_r8*outside
        call expect(eos%seconds >= 0.012_r8 .and. hydro%seconds >= eos%seconds + 0.009_r8, 'inclusive time')
        call expect(abs(hydro%seconds_exclusive - (hydro%seconds - eos%seconds)) < 1.0e-8_r8, 'exclusive time')
        call expect(abs(eos%seconds_exclusive - eos%seconds) < 1.0e-9_r8, 'exclusive time of an innermost region')
        eos = region_at(regions, 'step/eos', 3, 1)
        call expect(abs(step%seconds_exclusive - (step%seconds - hydro%seconds - eos%seconds)) < 1.0e-8_r8, 'of the outermost')
        call expect(all(abs(regions%seconds - regions%seconds_mean) < 1.0e-12_r8), 'the mean of one thread')
        call expect(regions(1)%path == 'step' .and. regions(2)%path == 'step/hydro', 'order')
        call regions_reset()
        call regions_collect(regions, error)
        call expect(size(regions) == 0 .and. .not. error%failed(), 'reset')
    end subroutine nesting

    !> A region inside itself is one region; through another region it is not.
    subroutine recursion()
        type(region_record_t), allocatable :: regions(:)
        type(region_record_t) :: tree, other
        type(error_t) :: error
        real(r8) :: start

        start = wall_seconds()
        call descend(200)
        start = wall_seconds() - start
        call region_begin('tree')
        call region_begin('leaf')
        call region_begin('tree')
        call region_end('tree')
        call region_end('leaf')
        call region_end('tree')
        call regions_collect(regions, error)
        call expect(.not. error%failed(), 'a fault')
        tree = region_at(regions, 'tree', 202, 1)
        call expect(tree%seconds < 1.1_r8*start + 1.0e-3_r8, 'time is counted once')
        call expect(tree%seconds >= 0.9e-2_r8, 'time of all levels')
        other = region_at(regions, 'tree/leaf/tree', 1, 1)
        call regions_reset()
    end subroutine recursion

    recursive subroutine descend(levels)
        integer, intent(in) :: levels

        call region_begin('tree')
        call busy(5.0e-5_r8)
        if (levels > 0) call descend(levels - 1)
        call region_end('tree')
    end subroutine descend

    subroutine mismatches()
        type(region_record_t), allocatable :: regions(:)
        type(region_record_t) :: region
        type(error_t) :: error, first, second, third, fourth

        ! The end of an outer region ends those inside.
        call region_begin('outer')
        call region_begin('inner')
        call region_end('outer', error=error)
        call expect_fault(error, ["'outer'", "'inner'"])
        call region_end('inner', error=first)
        call expect_fault(first, ["'inner'"])
        ! The end of a region that has not begun changes nothing.
        call region_begin('outer')
        call region_end('never', error=second)
        call expect_fault(second, ["'never'", "'outer'"])
        call region_end('outer')
        call regions_collect(regions, error=third)
        call expect(.not. third%failed(), 'faults already returned are raised again')
        region = region_at(regions, 'outer', 2, 1)
        call expect(size(regions) == 1, 'the call of the inner region counts')
        call regions_reset()
        ! Without an argument for it, the first fault is recorded.
        call region_begin('here')
        call region_end('there')
        call region_end('nowhere')
        call region_end('here')
        call regions_collect(regions, error=third)
        call expect_fault(third, ["'there'", "'here' "])
        call region_begin('open')
        call regions_collect(regions, fourth)
        call expect_fault(fourth, ["'open'"])
        call region_end('open')
        call regions_reset()
    end subroutine mismatches

    subroutine names()
        type(error_t) :: empty, slash, long, handle

        call region_begin('', error=empty)
        call expect_fault(empty, ["''"])
        call region_end('a/b', error=slash)
        call expect_fault(slash, ["'a/b'"])
        call region_begin(repeat('x', 64), error=long)
        call expect_fault(long, ['63'])
        call region_begin(-1, error=handle)
        call expect(.not. handle%failed(), 'a fault reported twice')
    end subroutine names

    !> More nested regions than possible.
    subroutine depth()
        type(error_t) :: error
        integer :: i

        do i = 1, 65
            call region_begin(merge('even', 'odd ', modulo(i, 2) == 0), error=error)
            call expect(error%failed() .eqv. i == 65, 'depth')
        end do
        call expect_fault(error, ['64'])
        do i = 64, 1, -1
            call region_end(merge('even', 'odd ', modulo(i, 2) == 0))
        end do
        call regions_reset()
    end subroutine depth

    subroutine costs()
        type(region_record_t), allocatable :: regions(:)
        type(counters_record_t) :: counters
        type(error_t) :: error
        real(r8) :: pair, inside

        call region_begin('around')
        call regions_cost(pair, inside)
        call region_end('around')
        call regions_collect(regions, error)
        call expect(size(regions) == 1, 'the cost shows as a region')
        call expect(abs(regions(1)%seconds_exclusive - regions(1)%seconds) < 1.0e-9_r8, 'the cost shows inside')
        call expect(inside > 0.0_r8 .and. pair > inside, 'cost')
        counters = regions_counters(regions, 'around')
        print '(a,f0.0,a,f0.0,a)', 'an empty region costs ', 1.0e9_r8*pair, ' ns, ', 1.0e9_r8*inside, ' ns of them inside'
        call regions_print()
    end subroutine costs

end program test_pw_region
