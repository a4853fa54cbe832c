!> Proof of which library serves a program's threads.
module pw_openmp_runtime
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t
    use pw_error, only: error_t, exit_system
    use pw_record, only: configuration_t
    use pw_text, only: from_c
    implicit none
    private

    integer(c_int32_t), parameter :: text_length = 4096

    interface
        !> See openmp_runtime.h.
        subroutine c_openmp_runtime(file, name, interfaces, build, length) bind(c, name='pw_threads_runtime')
            import :: c_char, c_int32_t
            character(kind=c_char), intent(out) :: file(*), name(*), interfaces(*), build(*)
            integer(c_int32_t), intent(in), value :: length
        end subroutine c_openmp_runtime
    end interface

    public :: prove_runtime

contains

    !> Note in `configuration` which library serves the threads. Another one than the build's would be measured by a wrong
    !> name: exit_system. Linked statically, it is the build's.
    subroutine prove_runtime(configuration, error)
        type(configuration_t), intent(inout) :: configuration
        type(error_t), intent(inout) :: error
        character(kind=c_char), dimension(text_length) :: file, name, interfaces, build

        if (error%failed() .or. .not. configuration%openmp) return
        call c_openmp_runtime(file, name, interfaces, build, text_length)
        if (len(from_c(name)) == 0) return
        if (len(configuration%runtime) > 0 .and. configuration%runtime /= from_c(name)) then
            call error%raise(exit_system, 'this was built with '//configuration%runtime//' for OpenMP, but its threads are '// &
                             'those of '//from_c(name)//' ('//from_c(file)//')', 'prove_runtime', &
                             'unset LD_PRELOAD and LD_LIBRARY_PATH, or build it with the other one (PAGEWISE_RUNTIME)')
            return
        end if
        configuration%runtime = from_c(name)
        configuration%runtime_file = from_c(file)
        configuration%runtime_version = from_c(interfaces)
        configuration%runtime_build = from_c(build)
    end subroutine prove_runtime

end module pw_openmp_runtime
