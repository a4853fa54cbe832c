!> Shared code of the region tests.
module expectations
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_intptr_t, c_long, c_null_ptr, c_ptr, c_size_t
    use, intrinsic :: iso_fortran_env, only: int8
    use pw_error, only: error_t, exit_check
    use pw_kinds, only: i8, r8
    use pw_record, only: region_record_t
    use pw_timer, only: wall_seconds
    implicit none
    private

    public :: expect, expect_fault, busy, region_at, fresh_memory

    interface
        type(c_ptr) function c_mmap(address, length, protection, flags, file, offset) bind(c, name='mmap')
            import :: c_int, c_long, c_ptr, c_size_t
            type(c_ptr), value :: address
            integer(c_size_t), value :: length
            integer(c_int), value :: protection, flags, file
            integer(c_long), value :: offset
        end function c_mmap

        integer(c_int) function c_madvise(address, length, advice) bind(c, name='madvise')
            import :: c_int, c_ptr, c_size_t
            type(c_ptr), value :: address
            integer(c_size_t), value :: length
            integer(c_int), value :: advice
        end function c_madvise
    end interface

contains

    subroutine expect(right, label)
        logical, intent(in) :: right
        character(*), intent(in) :: label

        if (right) return
        print '(a)', 'wrong: '//label
        error stop 1
    end subroutine expect

    !> The error has exit code 1, and its message contains all these names.
    subroutine expect_fault(error, words)
        type(error_t), intent(in) :: error
        character(*), intent(in) :: words(:)
        integer :: i

        call expect(error%failed(), 'no fault with '//words(1))
        call expect(error%code == exit_check, 'exit code')
        do i = 1, size(words)
            call expect(index(error%message, trim(words(i))) > 0, trim(words(i))//' is missing in: '//error%message)
        end do
    end subroutine expect_fault

    !> Keep the thread busy for this time [s].
    subroutine busy(seconds)
        real(r8), intent(in) :: seconds
        real(r8) :: start

        start = wall_seconds()
        do while (wall_seconds() - start < seconds)
        end do
    end subroutine busy

    !> The region with this path, which must have these calls and threads.
    function region_at(regions, path, calls, threads) result(region)
        type(region_record_t), intent(in) :: regions(:)
        character(*), intent(in) :: path
        integer, intent(in) :: calls
        integer, intent(in), optional :: threads
        type(region_record_t) :: region
        integer :: i

        do i = 1, size(regions)
            if (regions(i)%path /= path) cycle
            region = regions(i)
            print '(a,2(1x,i0),3(1x,es10.3))', path, region%calls, region%threads, region%seconds, region%seconds_mean, &
                region%seconds_exclusive
            call expect(region%calls == int(calls, i8), 'calls of '//path)
            if (present(threads)) call expect(region%threads == threads, 'threads of '//path)
            return
        end do
        call expect(.false., 'no region '//path)
    end function region_at

    !> Untouched base pages.
    subroutine fresh_memory(bytes, memory)
        integer(i8), intent(in) :: bytes
        integer(int8), pointer, contiguous, intent(out) :: memory(:)
        integer(c_int), parameter :: read_write = 3, private_anonymous = 34, no_huge_pages = 15   ! Linux
        type(c_ptr) :: address
        integer(c_int) :: status

        address = c_mmap(c_null_ptr, bytes, read_write, private_anonymous, -1_c_int, 0_c_long)
        call expect(transfer(address, 0_c_intptr_t) /= -1, 'mmap')
        status = c_madvise(address, bytes, no_huge_pages)
        call c_f_pointer(address, memory, [bytes])
    end subroutine fresh_memory

end module expectations
