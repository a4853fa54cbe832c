!> The default working set of kernels that measure memory: it comes from the machine.
module pw_working_set
    use, intrinsic :: iso_fortran_env, only: error_unit
    use pw_error, only: error_t
    use pw_kinds, only: i8
    use pw_options, only: options_t
    use pw_system, only: last_level_cache
    use pw_text, only: bytes_to_text, to_text
    use pw_threads, only: threads_cpus
    implicit none
    private

    public :: machine_caches, memory_working_set, fit_working_set

    !> With fewer caches' worth, a share of the data stays in the cache from pass to pass (run rules of STREAM, McCalpin 1995).
    integer(i8), parameter :: caches = 4_i8
    !> Of machines with small caches, so that base pages exceed the second-level TLB; and of those that report none.
    integer(i8), parameter :: least = shiftl(64_i8, 20), of_unknown_caches = shiftl(256_i8, 20)
    !> The share of the free memory that a default working set may have: copies and other processes need some as well.
    integer(i8), parameter :: memory_share = 2_i8
    integer(i8), parameter :: mebibyte = shiftl(1_i8, 20)

contains

    !> Bytes of the last-level caches of all CPUs that this run may use; 0 if the machine reports none.
    integer(i8) function machine_caches()
        machine_caches = last_level_cache('/', threads_cpus())
    end function machine_caches

    !> The default working set for these last-level caches, as in 136MiB. Kernels round it down, to a number of words that is a
    !> power of two or to whole grids, and then have to be large enough, too: the next power of two, and a sixteenth more.
    function memory_working_set(last_level) result(text)
        integer(i8), intent(in) :: last_level
        character(:), allocatable :: text
        integer(i8) :: enough, bytes

        enough = caches*last_level
        if (last_level == 0) enough = of_unknown_caches
        bytes = least
        do while (bytes < enough)
            bytes = 2*bytes
        end do
        text = to_text(bytes/16*17/mebibyte)//'MiB'
    end function memory_working_set

    !> Reduce the default of --working-set to a share of the free memory, with a warning, if it is larger. An explicit size
    !> remains. `program`: its name; `free`: bytes, 0 if unknown.
    subroutine fit_working_set(options, program, free, warning, error)
        type(options_t), intent(inout) :: options
        character(*), intent(in) :: program
        integer(i8), intent(in) :: free
        character(:), allocatable, intent(out) :: warning
        type(error_t), intent(inout) :: error
        integer(i8) :: wanted, fitting

        warning = ''
        if (options%given('working-set') .or. free == 0) return
        call options%get('working-set', wanted)
        if (wanted <= free/memory_share) return
        fitting = max(mebibyte, free/memory_share/mebibyte*mebibyte)
        warning = 'the default working set is '//bytes_to_text(fitting)//' instead of '//bytes_to_text(wanted)//', which is '// &
                  to_text(caches)//' times the last-level cache: '//bytes_to_text(free)//' of memory are free'
        write (error_unit, '(a)') program//': warning: '//warning
        call options%set_default('working-set', to_text(fitting/mebibyte)//'MiB', error)
    end subroutine fit_working_set

end module pw_working_set
