!> Compares counts with known events: the first touch of fresh pages. Prints the counters as a record shows them.
program test_pw_region_counts
    use, intrinsic :: iso_fortran_env, only: int8
    use expectations, only: expect, fresh_memory
    use pw_error, only: error_t
    use pw_kinds, only: i8
    use pw_record, only: counters_record_t, region_record_t
    use pw_region, only: region_begin, region_end, region_handle, regions_collect, regions_counters, regions_open
    use pw_system, only: base_page_size
    implicit none
    integer(i8), parameter :: pages = 1000
    type(region_record_t), allocatable :: regions(:)
    type(counters_record_t) :: counters
    type(error_t) :: error
    integer(int8), pointer, contiguous :: memory(:)
    integer(i8) :: i, page
    integer :: e

    page = base_page_size()
    call fresh_memory(pages*page, memory)
    call regions_open()
    ! The pages of the code and the stack that regions need.
    call region_begin('touch')
    call region_end('touch')
    call region_begin('empty')
    call region_end('empty')
    call region_begin('touch')
    do i = 1, pages*page, page
        memory(i) = 1_int8
    end do
    call region_end('touch')
    call region_begin('again')
    do i = 1, pages*page, page
        memory(i) = 2_int8
    end do
    call region_end('again')
    call region_begin(region_handle('time alone', counted=.false.))
    call region_end('time alone')
    call regions_collect(regions, error)
    call expect(regions(4)%name == 'time alone' .and. size(regions(4)%count) == 0, 'counts of a region without')
    call expect(.not. error%failed(), 'a fault')
    counters = regions_counters(regions, 'touch')
    print '(a)', 'source '//counters%source
    if (allocated(counters%unavailable)) then
        print '(a)', 'unavailable '//counters%unavailable
        call expect(len(counters%unavailable) > 0, 'no reason')
    else
        do e = 1, size(counters%event)
            print '(a,3(1x,i0))', 'count '//trim(counters%event(e)), regions(1)%count(e), regions(2)%count(e), &
                regions(3)%count(e)
            select case (counters%event(e))
            case ('perf::PAGE-FAULTS', 'minor-faults')
                call expect(abs(counters%count(e) - pages) <= 8, 'page faults')
                call expect(regions(2)%count(e) <= 8 .and. regions(3)%count(e) <= 8, 'page faults where none occur')
            case ('perf::TASK-CLOCK')
                call expect(counters%count(e) > 0 .and. counters%count(e) < nint(2.0e9*regions(1)%seconds, i8) + 1000000, 'clock')
            case ('major-faults')
                call expect(counters%count(e) == 0, 'major faults')
            end select
        end do
    end if
    do e = 1, size(counters%refused)
        print '(a)', 'refused '//counters%refused(e)%event//': '//counters%refused(e)%reason
    end do

end program test_pw_region_counts
