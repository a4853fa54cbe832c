!> Verifies which library computes: the dynamic linker may load another one than the build was linked with.
module pw_computed_by
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_null_char
    use pw_error, only: error_t, exit_system
    use pw_record, only: configuration_t
    use pw_text, only: from_c
    implicit none
    private

    integer(c_int32_t), parameter :: path_length = 4096

    interface
        !> See computed_by.h.
        subroutine c_computed_by(symbol, file, length) bind(c, name='pw_library_of')
            import :: c_char, c_int32_t
            character(kind=c_char), intent(in) :: symbol(*)
            character(kind=c_char), intent(out) :: file(*)
            integer(c_int32_t), intent(in), value :: length
        end subroutine c_computed_by

        subroutine pw_one_thread_a_call() bind(c)
        end subroutine pw_one_thread_a_call
    end interface

    public :: verify_beside, verify_library

contains

    !> Record in `configuration` the file of the library with `symbol`, and limit it to one thread per call. Another file
    !> than the one linked is an error: it would be measured under a wrong name.
    subroutine verify_library(configuration, symbol, error)
        type(configuration_t), intent(inout) :: configuration
        character(*), intent(in) :: symbol
        type(error_t), intent(inout) :: error
        character(kind=c_char) :: buffer(path_length)
        character(:), allocatable :: loaded

        call c_computed_by(symbol//c_null_char, buffer, path_length)
        loaded = from_c(buffer)
        if (len(configuration%library_file) == 0) configuration%library_file = loaded    ! linked statically
        if (loaded /= configuration%library_file) then
            call error%raise(exit_system, 'the program was built with '//configuration%library_file//', but '//symbol// &
                             ' comes from '//loaded, 'verify_library', &
                             'unset LD_PRELOAD and LD_LIBRARY_PATH, or rebuild it if the library was replaced')
            return
        end if
        call pw_one_thread_a_call()
    end subroutine verify_library

    !> The same for another part of that library, which may be a file beside it: libfftw3f beside libfftw3.
    subroutine verify_beside(configuration, symbol, error)
        type(configuration_t), intent(inout) :: configuration
        character(*), intent(in) :: symbol
        type(error_t), intent(inout) :: error
        character(kind=c_char) :: buffer(path_length)
        character(:), allocatable :: loaded

        if (error%failed()) return
        call c_computed_by(symbol//c_null_char, buffer, path_length)
        loaded = from_c(buffer)
        associate (linked => configuration%library_file)
            if (loaded(:index(loaded, '/', back=.true.)) /= linked(:index(linked, '/', back=.true.))) then
                call error%raise(exit_system, 'the program was built with '//linked//', but '//symbol//' comes from '//loaded, &
                                 'verify_beside', 'unset LD_PRELOAD and LD_LIBRARY_PATH, or rebuild it')
                return
            end if
        end associate
        configuration%library_file = loaded
    end subroutine verify_beside

end module pw_computed_by
