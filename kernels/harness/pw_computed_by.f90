!> Verifies which library computes: the dynamic linker may load another one than the build was linked with.
module pw_computed_by
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_null_char
    use pw_error, only: error_t, exit_system
    use pw_harness_h, only: pw_library_of, pw_one_thread_a_call
    use pw_record, only: configuration_t
    use pw_text, only: from_c
    implicit none
    private

    integer(c_int32_t), parameter :: path_length = 4096

    public :: verify_library

contains

    !> Record in `configuration` the file of the library with `symbol`, and limit it to one thread per call. Another file
    !> than the one linked is an error: it would be measured under a wrong name. `other_part`: of that library, which may be
    !> another file in its folder: libfftw3f of libfftw3.
    subroutine verify_library(configuration, symbol, error, other_part)
        type(configuration_t), intent(inout) :: configuration
        character(*), intent(in) :: symbol
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: other_part
        character(kind=c_char) :: buffer(path_length)
        character(:), allocatable :: loaded, linked

        if (error%failed()) return
        call pw_library_of(symbol//c_null_char, buffer, path_length)
        loaded = from_c(buffer)
        linked = configuration%library_file
        if (len(linked) == 0) linked = loaded    ! statically
        if (present(other_part)) linked = linked(:index(linked, '/', back=.true.))//loaded(index(loaded, '/', back=.true.) + 1:)
        if (loaded /= linked) then
            call error%raise(exit_system, 'the program was built with '//linked//', but '//symbol//' comes from '//loaded, &
                             'verify_library', 'unset LD_PRELOAD and LD_LIBRARY_PATH, or rebuild it if the library was replaced')
            return
        end if
        configuration%library_file = loaded
        call pw_one_thread_a_call()
    end subroutine verify_library

end module pw_computed_by
