!> Properties of the processor that timed code relies on, checked before it runs.
module pw_processor
    use, intrinsic :: iso_c_binding, only: c_int64_t
    use pw_error, only: error_t, exit_system, exit_usage
    use pw_harness_h, only: pw_sve_bits, pw_sve_bits_built, pw_zero_bytes
    use pw_record, only: configuration_t
    use pw_text, only: to_text
    implicit none
    private

    public :: processor_check

    character(*), parameter :: length_variable = 'PAGEWISE_SVE_BITS'

contains

    !> Exit code 4 if the vector length differs from the build's, which would give wrong results; or if the
    !> processor may not zero lines, so that the stores would not be those of the build's name. Exit code 2 if
    !> PAGEWISE_SVE_BITS is no length, 4 if the vectors do not have it.
    subroutine processor_check(configuration, error)
        type(configuration_t), intent(in) :: configuration
        type(error_t), intent(inout) :: error
        integer(c_int64_t) :: built, given, zeroed

        call check_vector_length(error)
        if (error%failed()) return
        built = pw_sve_bits_built()
        given = pw_sve_bits()
        zeroed = pw_zero_bytes()
        if (built > 0 .and. built /= given) then
            call error%raise(exit_system, 'this build is for SVE vectors of '//to_text(built)// &
                ' bits, but this process has '//to_text(given), 'processor_check', &
                'run it on a processor with that length, or build without -msve-vector-bits')
        else if (configuration%stores == 'zfill' .and. zeroed == 0) then
            call error%raise(exit_system, 'stores=zfill: the system forbids DC ZVA (DCZID_EL0.DZP)', 'processor_check', &
                'use a build with stores=regular or stores=nontemporal')
        end if
    end subroutine processor_check

    subroutine check_vector_length(error)
        type(error_t), intent(inout) :: error
        character(20) :: word
        integer(c_int64_t) :: wanted, given
        integer :: status

        call get_environment_variable(length_variable, word, status=status)
        if (status /= 0) return
        read (word, *, iostat=status) wanted
        if (status /= 0 .or. wanted < 128 .or. wanted > 2048 .or. modulo(wanted, 128_c_int64_t) /= 0) then
            call error%raise(exit_usage, length_variable//"='"//trim(word)//"' is not the length of a vector", 'environment', &
                             'set it to a multiple of 128 up to 2048, or unset it')
            return
        end if
        given = pw_sve_bits()
        if (given == wanted) return
        call error%raise(exit_system, 'SVE vectors of '//to_text(wanted)//' bits are unavailable: this build runs with '// &
                         to_text(given), 'check_vector_length', 'use another length, and a build for SVE')
    end subroutine check_vector_length

end module pw_processor
