!> Measured regions: named, nestable stretches of code with their calls, seconds and event counts per thread.
!>
!> `region_begin` and `region_end` take a name, or the handle that `region_handle` looked up once. A region that begins inside
!> others has the path of their names, 'step/hydro/eos', even if the others were begun before the thread was forked.
!> The environment selects the events; see region.h, and docs/how-to/regions.md.
!>
!> Regions that do not nest are faults. The procedure that detects the first fault raises it if it is given `error`;
!> otherwise `regions_collect` does.
module pw_region
    !$ use omp_lib, only: omp_get_thread_num
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_int64_t, c_null_char, c_null_ptr, c_ptr
    use, intrinsic :: iso_fortran_env, only: output_unit
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: i4, i8, r8
    use pw_record, only: counters_record_t, region_record_t
    use pw_region_h, only: pw_mark_array, pw_region_begin, pw_region_end_after, pw_region_end_timed, pw_region_handle, &
        pw_region_handle_uncounted, pw_regions_event, pw_regions_merge, pw_regions_print, pw_regions_refused, pw_regions_source, &
        pw_regions_take_fault, pw_regions_total, pw_regions_unavailable, regions_cost => pw_regions_cost, &
        regions_reset => pw_regions_reset, total_t => pw_region_total_t
    use pw_text, only: from_c
    implicit none
    private

    public :: region_handle, region_begin, region_end, region_begin_team, region_end_team
    public :: regions_open, regions_collect, regions_counters, regions_reset, regions_cost, regions_print
    public :: region_fault, mark_array

    !> Begin a region, by handle or name.
    interface region_begin
        procedure :: begin_by_handle, begin_by_name
    end interface region_begin

    !> End it; `seconds` is the time of this call.
    interface region_end
        procedure :: end_by_handle, end_by_name
    end interface region_end

    integer, parameter :: text_length = 1024

    !> A region of the team (see `region_begin_team`) with the sums of its owner.
    type, public :: region_t
        character(:), allocatable :: name
        integer(i8) :: calls = 0
        real(r8) :: seconds = 0.0_r8
        integer(i4), private :: handle = -1
    contains
        procedure :: begin => begin_owned
        procedure :: end => end_owned
    end type region_t

    interface
        !> By hand, because `events` may be NULL.
        integer(c_int32_t) function c_open(events) bind(c, name='pw_regions_open')
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: events
        end function c_open
    end interface

contains

    !> Start the counters unless a region did, so that their start does not count in the first region.
    subroutine regions_open()
        integer(c_int32_t) :: n_events

        n_events = c_open(c_null_ptr)
    end subroutine regions_open

    !> Look a name up once: the handle, or -1 with a fault recorded if the name is empty, has '/' or more than 63
    !> characters, or there are too many. Any thread may call this. `counted` false: time only, for calls that are too short
    !> for reading counters; the first look-up of a name decides.
    integer(i4) function region_handle(name, counted) result(handle)
        character(*), intent(in) :: name
        logical, intent(in), optional :: counted

        if (present(counted)) then
            if (.not. counted) then
                handle = pw_region_handle_uncounted(trim(name)//c_null_char)
                return
            end if
        end if
        handle = pw_region_handle(trim(name)//c_null_char)
    end function region_handle

    !> Report an array and its memory to a tracer (marks.h); without one it has no effect.
    subroutine mark_array(name, address, bytes)
        character(*), intent(in) :: name
        type(c_ptr), intent(in) :: address
        integer(i8), intent(in) :: bytes

        call pw_mark_array(trim(name), int(len_trim(name), c_int32_t), address, bytes)
    end subroutine mark_array

    subroutine begin_by_handle(handle, error)
        integer(i4), intent(in) :: handle
        type(error_t), intent(inout), optional :: error

        if (pw_region_begin(handle) /= 0) call region_fault(error)
    end subroutine begin_by_handle

    subroutine begin_by_name(name, error)
        character(*), intent(in) :: name
        type(error_t), intent(inout), optional :: error

        call begin_by_handle(region_handle(name), error)
    end subroutine begin_by_name

    subroutine end_by_handle(handle, seconds, error)
        integer(i4), intent(in) :: handle
        real(r8), intent(out), optional :: seconds
        type(error_t), intent(inout), optional :: error
        integer(c_int64_t) :: nanoseconds

        if (pw_region_end_timed(handle, nanoseconds) /= 0) call region_fault(error)
        if (present(seconds)) seconds = 1.0e-9_r8*nanoseconds
    end subroutine end_by_handle

    subroutine end_by_name(name, seconds, error)
        character(*), intent(in) :: name
        real(r8), intent(out), optional :: seconds
        type(error_t), intent(inout), optional :: error

        call end_by_handle(region_handle(name), seconds, error)
    end subroutine end_by_name

    !> Begin a region, outside of parallel regions, that counts on all threads of the parallel regions inside it. Its time is
    !> that of the calling thread: the others begin before it and end after it.
    subroutine region_begin_team(handle, error)
        integer(i4), intent(in) :: handle
        type(error_t), intent(inout), optional :: error
        integer(c_int32_t) :: status

        !$omp parallel private(status)
        !$ if (omp_get_thread_num() /= 0) status = pw_region_begin(handle)
        !$omp end parallel
        status = pw_region_begin(handle)
        if (status /= 0) call region_fault(error)
    end subroutine region_begin_team

    !> End it; `seconds` is the time of this call.
    subroutine region_end_team(handle, seconds, error)
        integer(i4), intent(in) :: handle
        real(r8), intent(out), optional :: seconds
        type(error_t), intent(inout), optional :: error
        integer(c_int64_t) :: nanoseconds
        integer(c_int32_t) :: status
        !$ integer(c_int32_t) :: ended

        status = pw_region_end_timed(handle, nanoseconds)
        !$omp parallel private(ended)
        !$ if (omp_get_thread_num() /= 0) ended = pw_region_end_after(handle, nanoseconds)
        !$omp end parallel
        if (status /= 0) call region_fault(error)
        if (present(seconds)) seconds = 1.0e-9_r8*nanoseconds
    end subroutine region_end_team

    !> Raise the first recorded fault, if any, if `error` is present.
    subroutine region_fault(error)
        type(error_t), intent(inout), optional :: error
        character(kind=c_char) :: text(text_length)

        if (.not. present(error)) return
        if (pw_regions_take_fault(text, int(text_length, c_int32_t)) == 0) return
        call error%raise(exit_check, from_c(text), 'pw_region', &
                         'end every region inside the region in which it began')
    end subroutine region_fault

    !> The sums of all threads, outside of parallel regions: each path after the one that contains it. Exit code 1 if regions
    !> did not nest, or if one is still open.
    subroutine regions_collect(regions, error)
        type(region_record_t), allocatable, intent(out) :: regions(:)
        type(error_t), intent(inout) :: error
        type(total_t) :: total
        integer(c_int32_t) :: n_events, i

        n_events = c_open(c_null_ptr)
        allocate (regions(pw_regions_merge()))
        do i = 1, size(regions)
            call pw_regions_total(i - 1_c_int32_t, total)
            regions(i)%name = from_c(total%name)
            regions(i)%path = from_c(total%path)
            regions(i)%calls = total%calls
            regions(i)%threads = total%threads
            regions(i)%seconds = total%seconds
            regions(i)%seconds_mean = total%seconds_mean
            regions(i)%seconds_exclusive = total%seconds_exclusive
            if (total%counted /= 0) then
                regions(i)%count = total%counts(:n_events)
                regions(i)%most = total%most(:n_events)
            else
                allocate (regions(i)%count(0), regions(i)%most(0))
            end if
        end do
        call region_fault(error)
    end subroutine regions_collect

    !> The counts of the region with this path, or why there are none.
    function regions_counters(regions, path) result(counted)
        type(region_record_t), intent(in) :: regions(:)
        character(*), intent(in) :: path
        type(counters_record_t) :: counted
        character(kind=c_char) :: name(text_length), reason(text_length)
        integer(c_int32_t), parameter :: length = text_length
        integer(c_int32_t) :: n_events, n_refused, i

        n_events = c_open(c_null_ptr)
        call pw_regions_unavailable(reason, length)
        if (len(from_c(reason)) > 0) counted%unavailable = from_c(reason)
        call pw_regions_source(name, length)
        counted%source = from_c(name)
        n_refused = 0
        do while (pw_regions_refused(n_refused, name, reason, length) /= 0)
            n_refused = n_refused + 1
        end do
        allocate (counted%refused(n_refused))
        do i = 1, n_refused
            if (pw_regions_refused(i - 1_c_int32_t, name, reason, length) == 0) exit
            counted%refused(i)%event = from_c(name)
            counted%refused(i)%reason = from_c(reason)
        end do
        counted%event = event_list(n_events)
        if (allocated(counted%unavailable)) return
        do i = 1, size(regions)
            if (regions(i)%path /= path) cycle
            if (size(regions(i)%count) == n_events) then
                counted%count = regions(i)%count
            else
                counted%unavailable = 'the counters could not be read on all threads'
            end if
            return
        end do
        counted%unavailable = "there was no region '"//path//"'"
    end function regions_counters

    function event_list(n_events) result(names)
        integer(c_int32_t), intent(in) :: n_events
        character(128), allocatable :: names(:)
        character(kind=c_char) :: buffer(128)
        integer(c_int32_t) :: i

        allocate (names(n_events))
        do i = 1, n_events
            call pw_regions_event(i - 1_c_int32_t, buffer, size(buffer, kind=c_int32_t))
            names(i) = from_c(buffer)
        end do
    end function event_list

    !> Print a table of all regions to standard output.
    subroutine regions_print()
        flush (output_unit)
        call pw_regions_print()
    end subroutine regions_print

    subroutine begin_owned(self, error)
        class(region_t), intent(inout) :: self
        type(error_t), intent(inout), optional :: error

        if (self%handle < 0) self%handle = region_handle(self%name)
        call region_begin_team(self%handle, error)
    end subroutine begin_owned

    subroutine end_owned(self, seconds, error)
        class(region_t), intent(inout) :: self
        real(r8), intent(out), optional :: seconds
        type(error_t), intent(inout), optional :: error
        real(r8) :: elapsed

        call region_end_team(self%handle, elapsed, error)
        self%calls = self%calls + 1
        self%seconds = self%seconds + elapsed
        if (present(seconds)) seconds = elapsed
    end subroutine end_owned

end module pw_region
