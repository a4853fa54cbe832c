!> Regions of many threads.
program test_pw_region_threads
    use omp_lib, only: omp_get_thread_num, omp_set_num_threads
    use, intrinsic :: iso_fortran_env, only: int8
    use expectations, only: expect, expect_fault, region_at, fresh_memory
    use pw_error, only: error_t
    use pw_kinds, only: i4, i8, r8
    use pw_record, only: counters_record_t, region_record_t
    use pw_region, only: region_begin, region_begin_team, region_end, region_end_team, region_handle, regions_collect, &
        regions_counters, regions_open, regions_reset
    use pw_system, only: base_page_size
    implicit none
    integer, parameter :: threads = 24

    call regions_open()
    call forked()
    call teams()
    call uneven()
    call unlike()
    call smaller()
    call unbalanced()

contains

    !> Regions of threads are inside those open before the fork, while the initial thread works with them.
    subroutine forked()
        type(region_record_t), allocatable :: regions(:)
        type(region_record_t) :: hydro, eos
        type(error_t) :: error
        integer(i4) :: of_eos
        integer :: i, step

        of_eos = region_handle('eos')
        do step = 1, 5
            call region_begin('step')
            call region_begin('hydro')
            !$omp parallel do num_threads(threads) schedule(static)
            do i = 1, 100*threads
                call region_begin(of_eos)
                if (modulo(i, 10) == 0) then
                    call region_begin('table')
                    call region_end('table')
                end if
                call region_end(of_eos)
            end do
            call region_end('hydro')
            call region_end('step')
        end do
        call regions_collect(regions, error)
        call expect(.not. error%failed(), 'a fault')
        call expect(size(regions) == 4, 'number of paths')
        hydro = region_at(regions, 'step/hydro', 5, 1)
        eos = region_at(regions, 'step/hydro/eos', 500*threads, threads)
        call expect(eos%seconds >= eos%seconds_mean, 'the most is less than the mean')
        call expect(eos%seconds_mean > eos%seconds_exclusive, 'exclusive time')
        ! Only the initial thread's share is inside its own region.
        call expect(hydro%seconds_exclusive < hydro%seconds, 'the time inside of the forking thread')
        eos = region_at(regions, 'step/hydro/eos/table', 50*threads, threads)
        call regions_reset()
    end subroutine forked

    !> A region of the team counts on all its threads, with the time of the thread that began it.
    subroutine teams()
        type(region_record_t), allocatable :: regions(:)
        type(region_record_t) :: compute, inner
        type(counters_record_t) :: counters
        type(error_t) :: error
        integer(i4) :: of_compute
        real(r8) :: seconds, passages
        integer :: i, call_number

        of_compute = region_handle('compute')
        passages = 0.0_r8
        call omp_set_num_threads(threads)
        do call_number = 1, 3
            call region_begin_team(of_compute)
            !$omp parallel do schedule(static)
            do i = 1, threads
                call region_begin('part')
                call touch_pages(64_i8)
                call region_end('part')
            end do
            call region_end_team(of_compute, seconds)
            passages = passages + seconds
        end do
        call regions_collect(regions, error)
        call expect(.not. error%failed(), 'a fault')
        call expect(size(regions) == 2, 'number of paths')
        compute = region_at(regions, 'compute', 3*threads, threads)
        inner = region_at(regions, 'compute/part', 3*threads, threads)
        call expect(abs(compute%seconds - passages) < 1.0e-9_r8, 'time of the team')
        call expect(abs(compute%seconds - compute%seconds_mean) < 1.0e-9_r8, 'all have the same')
        counters = regions_counters(regions, 'compute')
        if (.not. allocated(counters%unavailable)) then
            call expect(index(counters%event(1), 'PAGE-FAULTS') > 0, 'the first event')
            print '(a,i0)', 'page faults ', counters%count(1)
            call expect(compute%count(1) >= 3*64*threads, 'page faults of all threads')
            call expect(inner%count(1) <= compute%count(1), 'inside more than outside')
            call expect(inner%most(1) >= 3*64, 'page faults of the thread with the most')
        end if
        call regions_reset()
    end subroutine teams

    !> One thread has ten times the work of the others.
    subroutine uneven()
        type(region_record_t), allocatable :: regions(:)
        type(region_record_t) :: region
        type(error_t) :: error
        integer :: i

        !$omp parallel do num_threads(threads) schedule(static)
        do i = 1, threads
            call region_begin('uneven')
            call touch_pages(merge(1280_i8, 128_i8, i == 2))
            call region_end('uneven')
        end do
        call regions_collect(regions, error)
        call expect(.not. error%failed(), 'a fault')
        region = region_at(regions, 'uneven', threads, threads)
        call expect(size(region%most) == size(region%count), 'number of events')
        if (size(region%count) > 0) then
            call expect(region%most(1) >= 1280, 'of the thread with the most')
            call expect(region%most(1) + 128*(threads - 1) <= region%count(1), 'of one thread')
        end if
        call regions_reset()
    end subroutine uneven

    !> Threads in different regions at once.
    subroutine unlike()
        type(region_record_t), allocatable :: regions(:)
        type(region_record_t) :: region
        type(error_t) :: error
        integer :: thread

        !$omp parallel num_threads(threads) private(thread)
        thread = omp_get_thread_num()
        if (modulo(thread, 2) == 0) then
            call region_begin('even')
            !$omp barrier
            call region_end('even')
        else
            call region_begin('odd')
            !$omp barrier
            call region_end('odd')
        end if
        !$omp end parallel
        call regions_collect(regions, error)
        call expect(.not. error%failed(), 'a fault')
        region = region_at(regions, 'even', threads/2, threads/2)
        region = region_at(regions, 'odd', threads/2, threads/2)
        call regions_reset()
    end subroutine unlike

    !> Teams of changing size: threads end and new ones start.
    subroutine smaller()
        type(region_record_t), allocatable :: regions(:)
        type(region_record_t) :: region
        type(error_t) :: error
        integer :: n, calls

        calls = 0
        do n = 1, 12
            !$omp parallel num_threads(1 + modulo(5*n, 13)) reduction(+:calls)
            call region_begin('changing')
            calls = calls + 1
            call region_end('changing')
            !$omp end parallel
        end do
        call regions_collect(regions, error)
        call expect(.not. error%failed(), 'a fault')
        region = region_at(regions, 'changing', calls)
        call expect(region%threads >= 13 .and. region%threads <= 24, 'threads replaced by others')
        call regions_reset()
    end subroutine smaller

    !> A thread that leaves a region open.
    subroutine unbalanced()
        type(region_record_t), allocatable :: regions(:)
        type(error_t) :: error
        integer :: thread

        !$omp parallel num_threads(3) private(thread)
        thread = omp_get_thread_num()
        if (thread == threads/12) call region_begin('left')
        !$omp end parallel
        call regions_collect(regions, error)
        call expect_fault(error, ["'left'"])
    end subroutine unbalanced

    !> Touch this many untouched pages.
    subroutine touch_pages(pages)
        integer(i8), intent(in) :: pages
        integer(int8), pointer, contiguous :: memory(:)
        integer(i8) :: i

        call fresh_memory(pages*base_page_size(), memory)
        do i = 1, size(memory, kind=i8), base_page_size()
            memory(i) = 1_int8
        end do
    end subroutine touch_pages

end program test_pw_region_threads
