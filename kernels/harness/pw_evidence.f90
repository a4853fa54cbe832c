!> What the main programs of kernels and mini-apps record: first touch, counts, version.
module pw_evidence
    use, intrinsic :: iso_c_binding, only: c_f_pointer
    use, intrinsic :: iso_fortran_env, only: int8, output_unit
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t
    use pw_record, only: configuration_t, record_t, validation_t
    use pw_region, only: regions_collect, regions_cost, regions_counters
    use pw_system, only: base_page_size, page_faults
    use pw_text, only: to_text
    use pw_threads, only: thread_share
    use pw_timer, only: thread_seconds, wall_seconds
    implicit none
    private

    !> The cost of the first touch: time, and page faults.
    type, public :: first_touch_t
        real(r8) :: seconds = 0.0_r8
        integer(i8) :: minor = 0, major = 0
    end type first_touch_t

    public :: first_touch_all, put_regions, median, outcome, print_version

contains

    !> First touch: one store in each base page, by the thread that will use it, or all by the first thread. Where others start
    !> on the same CPUs (`in_turns`), its time is the CPU time of the first thread.
    subroutine first_touch_all(memory, parallel, in_turns, first_touched)
        type(paged_array_t), intent(in) :: memory(:)
        logical, intent(in) :: parallel, in_turns
        type(first_touch_t), intent(out) :: first_touched
        integer(int8), pointer, contiguous :: bytes(:)
        integer(i8) :: first, last, page, minor, major
        integer :: i
        real(r8) :: start

        page = base_page_size()
        call page_faults(first_touched%minor, first_touched%major)
        start = seconds(in_turns)
        do i = 1, size(memory)
            call c_f_pointer(memory(i)%address, bytes, [memory(i)%bytes])
            if (parallel) then
                !$omp parallel private(first, last)
                call thread_share(memory(i)%bytes, page, first, last)
                call touch(bytes, first, last, page)
                !$omp end parallel
            else
                call touch(bytes, 1_i8, memory(i)%bytes, page)
            end if
        end do
        first_touched%seconds = seconds(in_turns) - start
        call page_faults(minor, major)
        first_touched%minor = minor - first_touched%minor
        first_touched%major = major - first_touched%major
    end subroutine first_touch_all

    !> The time so far, on the clock for a first touch.
    real(r8) function seconds(in_turns)
        logical, intent(in) :: in_turns

        if (in_turns) then
            seconds = thread_seconds()
        else
            seconds = wall_seconds()
        end if
    end function seconds

    subroutine touch(bytes, first, last, page)
        integer(int8), intent(inout) :: bytes(:)
        integer(i8), intent(in) :: first, last, page
        integer(i8) :: i

        do i = first, last, page
            bytes(i) = 0_int8
        end do
        if (last >= first) bytes(last) = 0_int8
    end subroutine touch

    !> Record all regions, and as the record's counters those of the region with the path `whole`, outside of parallel
    !> regions. Exit code 1 if regions do not nest.
    subroutine put_regions(record, whole, error)
        type(record_t), intent(inout) :: record
        character(*), intent(in) :: whole
        type(error_t), intent(inout) :: error
        real(r8) :: inside

        call regions_collect(record%regions, error)
        record%counters = regions_counters(record%regions, whole)
        call regions_cost(record%region_cost, inside)
    end subroutine put_regions

    !> The median.
    pure real(r8) function median(values)
        real(r8), intent(in) :: values(:)
        real(r8) :: sorted(size(values)), kept
        integer :: i, j, n

        sorted = values
        n = size(sorted)
        do i = 2, n
            kept = sorted(i)
            do j = i - 1, 1, -1
                if (sorted(j) <= kept) exit
                sorted(j + 1) = sorted(j)
            end do
            sorted(j + 1) = kept
        end do
        median = 0.5_r8*(sorted((n + 1)/2) + sorted(n/2 + 1))
    end function median

    !> The build, for --version.
    subroutine print_version(program, configuration)
        character(*), intent(in) :: program
        type(configuration_t), intent(in) :: configuration

        write (output_unit, '(a)') program//' '//configuration%version, &
            'compiler   '//configuration%compiler//' ('//configuration%compiler_version//')', &
            'options    '//configuration%compiler_options, &
            'hugepages  '//configuration%hugepages, &
            'prefetch   '//configuration%prefetch, &
            'stores     '//configuration%stores, &
            'loop       '//configuration%loop
        if (allocated(configuration%library_file)) then
            if (len(configuration%library_file) > 0) &
                write (output_unit, '(a)') 'library    '//configuration%library//': '//configuration%library_file
        end if
    end subroutine print_version

    !> A validation's result as text.
    pure function outcome(validation) result(text)
        type(validation_t), intent(in) :: validation
        character(:), allocatable :: text

        if (validation%passed) then
            text = 'passed'
        else
            text = 'FAILED (error '//to_text(validation%error, 'es10.3')//', tolerance '// &
                   to_text(validation%tolerance, 'es10.3')//')'
        end if
    end function outcome

end module pw_evidence
