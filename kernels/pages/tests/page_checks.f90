!> Shared code of the page tests: checks, and arrays with their pages.
!>
!> What smaps shows is compared with PAGEMAP_SCAN, which reads the page tables independently.
module page_checks
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_intptr_t, c_null_char, c_ptr
    use, intrinsic :: iso_fortran_env, only: error_unit, int8
    use evidence, only: huge_bytes_of, number_in
    use pw_error, only: error_t, exit_pages
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_free, pages_observe, pages_policy_from_name, &
        pages_policy_t, pages_verify
    use pw_record, only: pages_record_t
    use pw_text, only: from_c, to_text
    implicit none
    private

    public :: check, check_ok, check_failed, skip, available, policy_argument, same, thp_size, touch, address_at, &
        touched, three_arrays, release, check_verified, check_rejected, check_pages

    character(*), parameter, public :: thp_folder = '/sys/kernel/mm/transparent_hugepage/'
    integer(i8), parameter, public :: mib = 1024_i8**2

    integer, protected, public :: failures = 0
    !> Allocated: the case cannot be tested on this machine.
    character(:), allocatable, protected, public :: skip_reason

contains

    subroutine check(holds, what)
        logical, intent(in) :: holds
        character(*), intent(in) :: what

        if (holds) return
        failures = failures + 1
        write (error_unit, '(a)') 'FAILED: '//what
    end subroutine check

    subroutine check_ok(error)
        type(error_t), intent(in) :: error

        if (error%failed()) call check(.false., error%message//' ['//error%remedy//']')
    end subroutine check_ok

    !> `error` has this code; message and remedy contain these texts, which are names, numbers and paths.
    subroutine check_failed(error, code, message, remedy)
        type(error_t), intent(in) :: error
        integer, intent(in) :: code
        character(*), intent(in) :: message, remedy

        call check(error%code == code, 'exit code '//to_text(error%code)//' instead of '//to_text(code))
        if (.not. error%failed()) return
        write (*, '(a)') error%message, '  remedy: '//error%remedy
        call check(index(error%message, message) > 0, "the message does not contain '"//message//"'")
        call check(index(error%remedy, remedy) > 0, "the remedy does not contain '"//remedy//"'")
        call check(error%place /= '', 'the error has no place')
    end subroutine check_failed

    subroutine skip(reason)
        character(*), intent(in) :: reason

        skip_reason = reason
    end subroutine skip

    !> Begin a policy: whether the machine's settings allow it. If not, its other tests are void.
    logical function available(policy)
        type(pages_policy_t), intent(in) :: policy
        type(error_t) :: error

        call pages_begin(policy, error)
        available = .not. error%failed()
        if (.not. available) call skip(error%message)
    end function available

    !> The policy that argument `number` of the command line names.
    function policy_argument(number, default) result(policy)
        integer, intent(in) :: number
        type(pages_policy_t), intent(in) :: default
        type(pages_policy_t) :: policy
        type(error_t) :: error
        character(32) :: name

        call get_command_argument(number, name)
        policy = default
        if (name == '') return
        call pages_policy_from_name(trim(name), policy, error)
        call check_ok(error)
    end function policy_argument

    elemental logical function same(one, other)
        type(pages_policy_t), intent(in) :: one, other

        same = one%kind == other%kind .and. one%page_size == other%page_size
    end function same

    integer(i8) function thp_size()
        thp_size = number_in(thp_folder//'hpage_pmd_size'//c_null_char)
    end function thp_size

    subroutine touch(array)
        type(paged_array_t), intent(in) :: array
        integer(int8), pointer, contiguous :: bytes(:)

        call c_f_pointer(array%address, bytes, [array%bytes])
        bytes = 1_int8
    end subroutine touch

    !> The address `position` bytes after the array's start.
    type(c_ptr) function address_at(array, position)
        type(paged_array_t), intent(in) :: array
        integer(i8), intent(in) :: position

        address_at = transfer(transfer(array%address, 0_c_intptr_t) + int(position, c_intptr_t), address_at)
    end function address_at

    !> An array that is allocated under a policy and touched.
    function touched(policy, bytes, name, offset, static) result(array)
        type(pages_policy_t), intent(in) :: policy
        integer(i8), intent(in) :: bytes
        character(*), intent(in), optional :: name
        integer(i8), intent(in), optional :: offset
        logical, intent(in), optional :: static
        type(paged_array_t) :: array
        type(error_t) :: error
        character(:), allocatable :: its_name
        integer(i8) :: start

        its_name = 'a'
        if (present(name)) its_name = name
        start = 0
        if (present(offset)) start = offset
        call pages_allocate(array, policy, its_name, bytes, start, error, static)
        call check_ok(error)
        if (.not. error%failed()) call touch(array)
    end function touched

    subroutine release(arrays)
        type(paged_array_t), intent(inout) :: arrays(:)
        type(error_t) :: error
        integer :: i

        do i = 1, size(arrays)
            call pages_free(arrays(i), error)
            call check_ok(error)
        end do
    end subroutine release

    subroutine check_verified(arrays, policy)
        type(paged_array_t), intent(in) :: arrays(:)
        type(pages_policy_t), intent(in) :: policy
        type(error_t) :: error

        call pages_verify(arrays, policy, error)
        call check_ok(error)
    end subroutine check_verified

    !> Page verification fails, and reports this.
    subroutine check_rejected(arrays, policy, message, remedy)
        type(paged_array_t), intent(in) :: arrays(:)
        type(pages_policy_t), intent(in) :: policy
        character(*), intent(in) :: message, remedy
        type(error_t) :: error

        call pages_verify(arrays, policy, error)
        call check_failed(error, exit_pages, message, remedy)
    end subroutine check_rejected

    !> Three arrays as a kernel has them: odd lengths, staggered starts.
    subroutine three_arrays(arrays, policy, huge_size, static)
        type(paged_array_t), intent(out) :: arrays(3)
        type(pages_policy_t), intent(in) :: policy
        integer(i8), intent(in) :: huge_size
        logical, intent(in), optional :: static
        character(1), parameter :: name(3) = ['a', 'b', 'c']
        integer(i8) :: bytes(3), offset
        integer :: i

        bytes = [8*mib, 5*mib + 4321_i8, 1_i8]
        do i = 1, 3
            offset = 4352_i8*(i - 1)
            arrays(i) = touched(policy, bytes(i), name(i), offset, static)
            call check(arrays(i)%bytes == bytes(i) .and. arrays(i)%offset == offset .and. from_c(arrays(i)%name) == name(i) &
                       .and. same(arrays(i)%policy, policy), 'array '//name(i)//' does not describe the request')
            call check(modulo(transfer(arrays(i)%address, 0_c_intptr_t), int(huge_size, c_intptr_t)) == &
                       modulo(offset, huge_size), 'array '//name(i)//' does not start at its offset from a huge page')
        end do
    end subroutine three_arrays

    !> This page size and coverage are observed for each array and for all, and the page tables agree.
    subroutine check_pages(arrays, policy, page_size, coverage, method)
        type(paged_array_t), intent(in) :: arrays(:)
        type(pages_policy_t), intent(in) :: policy
        integer(i8), intent(in) :: page_size
        real(r8), intent(in) :: coverage
        character(*), intent(in), optional :: method
        type(pages_record_t) :: observed
        type(error_t) :: error
        integer(i8) :: evidence
        integer :: i

        call pages_observe(arrays, policy, observed, error)
        call check_ok(error)
        if (present(method)) then
            call check(observed%method == method, 'the method is '//observed%method)
        else
            call check(observed%method == 'smaps', 'the method is '//observed%method)
        end if
        call check(observed%page_size_requested == page_size, &
                   'wrong page size requested: '//to_text(observed%page_size_requested))
        call check(observed%page_size_observed == page_size, 'wrong page size observed: '//to_text(observed%page_size_observed))
        call check(abs(observed%huge_coverage - coverage) < 1.0e-12_r8, 'coverage '//to_text(observed%huge_coverage, 'f0.6'))
        call check(size(observed%arrays) == size(arrays), 'arrays are missing')
        do i = 1, size(arrays)
            associate (array => observed%arrays(i))
                call check(array%name == from_c(arrays(i)%name) .and. array%bytes == arrays(i)%bytes, 'arrays are mixed up')
                call check(array%page_size_observed == page_size, 'wrong page size of '//array%name//': '// &
                           to_text(array%page_size_observed))
                call check(array%huge_bytes == nint(coverage*real(array%bytes, r8), i8), &
                           'wrong huge bytes of '//array%name//': '//to_text(array%huge_bytes))
                evidence = huge_bytes_of(arrays(i)%address, arrays(i)%bytes)
                if (present(method)) then
                    call check(evidence <= 0, 'the page tables of '//array%name//' show '//to_text(evidence)// &
                               ' B on huge pages of PMD size')
                else if (evidence < 0) then
                    call skip('smaps is as expected, but this kernel has no PAGEMAP_SCAN to compare it with (Linux 6.7)')
                else
                    call check(min(evidence, arrays(i)%bytes) == array%huge_bytes, &
                               'the page tables of '//array%name//' show '//to_text(evidence)//' B')
                end if
            end associate
        end do
    end subroutine check_pages

end module page_checks
