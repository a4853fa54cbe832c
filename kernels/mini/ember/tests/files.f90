!> Shared by the tests of ember that write files: the bytes of files, and errors that name them.
module ember_test_files
    use, intrinsic :: iso_fortran_env, only: int8
    use ember_parallel, only: comm_t
    use ember_testing, only: expect
    use pw_error, only: error_t
    use pw_text, only: to_text
    implicit none
    private

    public :: expect_error, expect_no_file, expect_same_files, get_bytes, put_bytes, remove_file

contains

    subroutine get_bytes(name, bytes)
        character(*), intent(in) :: name
        integer(int8), allocatable, intent(out) :: bytes(:)
        integer :: unit, length

        open (newunit=unit, file=name, access='stream', form='unformatted', action='read', status='old')
        inquire (unit=unit, size=length)
        allocate (bytes(length))
        read (unit) bytes
        close (unit)
    end subroutine get_bytes

    !> Rank 0 writes the file, the others wait for it.
    subroutine put_bytes(comm, name, bytes)
        type(comm_t), intent(in) :: comm
        character(*), intent(in) :: name
        integer(int8), intent(in) :: bytes(:)
        integer :: unit

        call comm%barrier()
        if (comm%rank == 0) then
            open (newunit=unit, file=name, access='stream', form='unformatted', action='write', status='replace')
            write (unit) bytes
            close (unit)
        end if
        call comm%barrier()
    end subroutine put_bytes

    !> Remove the file of an earlier run, if there is one.
    subroutine remove_file(name)
        character(*), intent(in) :: name
        integer :: unit

        open (newunit=unit, file=name)
        close (unit, status='delete')
    end subroutine remove_file

    !> Neither the file nor its temporary file exists.
    subroutine expect_no_file(name)
        character(*), intent(in) :: name
        logical :: whole, part

        inquire (file=name, exist=whole)
        inquire (file=name//'.part', exist=part)
        call expect(.not. whole .and. .not. part, name//' exists')
    end subroutine expect_no_file

    subroutine expect_same_files(a, b)
        character(*), intent(in) :: a, b
        integer(int8), allocatable :: bytes_a(:), bytes_b(:)
        logical :: equal

        call get_bytes(a, bytes_a)
        call get_bytes(b, bytes_b)
        equal = size(bytes_a) == size(bytes_b)
        if (equal) equal = all(bytes_a == bytes_b)
        call expect(equal, 'bytes of '//a)
    end subroutine expect_same_files

    !> Expect an error with this code, a message that contains both texts, and a remedy, which contains `remedy`; `error` can
    !> be reused.
    subroutine expect_error(error, code, text, further, remedy)
        type(error_t), intent(inout) :: error
        integer, intent(in) :: code
        character(*), intent(in) :: text, further
        character(*), intent(in), optional :: remedy
        character(:), allocatable :: message

        message = ''
        if (allocated(error%message)) message = error%message
        call expect(error%code == code .and. index(message, text) > 0 .and. index(message, further) > 0, &
                    'error '//to_text(error%code)//' without '//text//' '//further//': '//message)
        if (error%failed()) then
            call expect(len(error%remedy) > 0, 'remedy of '//message)
            if (present(remedy)) call expect(index(error%remedy, remedy) > 0, 'remedy without '//remedy//': '//error%remedy)
        end if
        error = error_t()
    end subroutine expect_error

end module ember_test_files
