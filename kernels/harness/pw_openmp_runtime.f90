!> Verifies which library serves a program's threads.
module pw_openmp_runtime
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t
    use pw_error, only: error_t, exit_system
    use pw_harness_h, only: pw_threads_runtime
    use pw_record, only: configuration_t
    use pw_text, only: from_c
    implicit none
    private

    integer(c_int32_t), parameter :: text_length = 4096

    public :: verify_runtime

contains

    !> Record in `configuration` which library serves the threads. Another one than the build's would be measured under a
    !> wrong name: exit_system. Linked statically, it is the build's.
    subroutine verify_runtime(configuration, error)
        type(configuration_t), intent(inout) :: configuration
        type(error_t), intent(inout) :: error
        character(kind=c_char), dimension(text_length) :: file, name, interfaces, build

        if (error%failed() .or. .not. configuration%openmp) return
        call pw_threads_runtime(file, name, interfaces, build, text_length)
        if (len(from_c(name)) == 0) return
        if (len(configuration%runtime) > 0 .and. configuration%runtime /= from_c(name)) then
            call error%raise(exit_system, 'the program was built with '//configuration%runtime//' for OpenMP, but uses '// &
                             from_c(name)//' ('//from_c(file)//')', 'verify_runtime', &
                             'unset LD_PRELOAD and LD_LIBRARY_PATH, or rebuild it with that library (PAGEWISE_RUNTIME)')
            return
        end if
        configuration%runtime = from_c(name)
        configuration%runtime_file = from_c(file)
        configuration%runtime_version = from_c(interfaces)
        configuration%runtime_build = from_c(build)
    end subroutine verify_runtime

end module pw_openmp_runtime
