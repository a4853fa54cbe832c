!> Memory on pages of a chosen kind and size, and page verification: which pages it really is on.
!>
!> The order of calls: `pages_begin` once, `pages_allocate` for each array, the first touch, `pages_verify`,
!> the measurement, `pages_observe`. Nothing falls back silently: an unavailable policy is an error with exit code 3.
module pw_pages
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_null_char
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_pages_h, only: account_t => pw_pages_account_t, failure_t => pw_pages_failure_t, name_length => pw_pages_name, &
        paged_array_t => pw_pages_array_t, pages_policy_t => pw_pages_policy_t, pages_static_bytes => pw_pages_static_bytes, &
        pw_pages_account, pw_pages_allocate, pw_pages_begin, pw_pages_dynamic, pw_pages_free, pw_pages_hugetlbfs, &
        pw_pages_names, pw_pages_none, pw_pages_policy_from_name, pw_pages_policy_name, pw_pages_require, pw_pages_size, &
        pw_pages_static, pw_pages_thp, pw_pages_verify, text_length => pw_pages_text
    use pw_record, only: array_record_t, pages_record_t
    use pw_text, only: from_c
    implicit none
    private

    public :: paged_array_t, pages_policy_t

    type(pages_policy_t), parameter, public :: pages_none = pages_policy_t(pw_pages_none)  !< base pages; huge pages are refused
    type(pages_policy_t), parameter, public :: pages_thp = pages_policy_t(pw_pages_thp)  !< transparent: aligned and advised
    type(pages_policy_t), parameter, public :: pages_hugetlbfs = pages_policy_t(pw_pages_hugetlbfs)  !< from the hugetlb pool

    public :: pages_policy_names, pages_policy_from_name, pages_policy_name
    public :: pages_begin, pages_require, pages_allocate, pages_verify, pages_observe, pages_free, &
              pages_static_bytes

contains

    !> The names of the policies that can be requested on this machine, separated by '|'.
    function pages_policy_names() result(names)
        character(:), allocatable :: names
        character(kind=c_char) :: text(text_length)

        call pw_pages_names(text, int(text_length, c_int32_t))
        names = from_c(text)
    end function pages_policy_names

    !> The policy called `name`, such as none, thp:64k or hugetlbfs; exit code 2 if this machine has no such policy.
    subroutine pages_policy_from_name(name, policy, error)
        character(*), intent(in) :: name
        type(pages_policy_t), intent(out) :: policy
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (pw_pages_policy_from_name(trim(name)//c_null_char, policy, failure) /= 0) &
            call raise(error, failure, 'pages_policy_from_name')
    end subroutine pages_policy_from_name

    !> The name of `policy`; empty if there is no such policy.
    function pages_policy_name(policy) result(name)
        type(pages_policy_t), intent(in) :: policy
        character(:), allocatable :: name
        character(kind=c_char) :: text(name_length + 1)

        call pw_pages_policy_name(policy, text)
        name = from_c(text)
    end function pages_policy_name

    !> Once per process, before the first allocation: make the settings of `policy` for the whole process, and check that
    !> machine and process support it. Exit code 3 if not, 2 if there is no such policy.
    subroutine pages_begin(policy, error)
        type(pages_policy_t), intent(in) :: policy
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (pw_pages_begin(policy, failure) /= 0) call raise(error, failure, 'pages_begin')
    end subroutine pages_begin

    !> Check that the hugetlb pool has the pages for arrays of `bytes` [B], offsets included, together, so that the remedy
    !> covers them all; otherwise `pages_allocate` names only the first array with too few pages. Exit code 3.
    !> Policies without a pool always pass. With `static`, checks that static memory has room for them: exit code 2, or 3 if
    !> static arrays do not support the policy.
    subroutine pages_require(policy, bytes, error, static)
        type(pages_policy_t), intent(in) :: policy
        integer(i8), intent(in) :: bytes(:)
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: static
        type(failure_t) :: failure

        if (pw_pages_require(policy, allocation(static), bytes, int(size(bytes), c_int32_t), failure) /= 0) &
            call raise(error, failure, 'pages_require')
    end subroutine pages_require

    !> Map `bytes` [B] for an array called `name`, untouched. Its start is `offset` [B] after an address that is
    !> aligned to a huge page, under every policy. With `static` it is part of a large array of the program (.bss)
    !> instead of a separate mapping. Exit codes: 2 invalid size or offset, or too large for static memory; 3 the hugetlb
    !> pool has too few pages, or static arrays do not support the policy; 4 the system refused the memory.
    subroutine pages_allocate(array, policy, name, bytes, offset, error, static)
        type(paged_array_t), intent(out) :: array
        type(pages_policy_t), intent(in) :: policy
        character(*), intent(in) :: name
        integer(i8), intent(in) :: bytes, offset
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: static
        type(failure_t) :: failure
        integer :: i

        do i = 1, min(len_trim(name), int(name_length))
            array%name(i) = name(i:i)
        end do
        array%policy = policy
        array%allocation = allocation(static)
        array%bytes = bytes
        array%offset = offset
        if (pw_pages_allocate(array, failure) == 0) return
        call raise(error, failure, 'pages_allocate')
        array = paged_array_t()
    end subroutine pages_allocate

    !> Page verification, after the first touch: exit code 3 unless the arrays are on the pages of `policy`. Under thp of PMD
    !> size, missing huge pages are collapsed once before the decision.
    subroutine pages_verify(arrays, policy, error)
        type(paged_array_t), intent(in) :: arrays(:)
        type(pages_policy_t), intent(in) :: policy
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (pw_pages_verify(arrays, int(size(arrays), c_int32_t), policy, failure) /= 0) &
            call raise(error, failure, 'pages_verify')
    end subroutine pages_verify

    !> The observed pages of the arrays, by the operating system's accounting. If it does not report which page of an array
    !> is not huge, the coverage is the lower bound under thp and hugetlbfs, and the upper bound under none.
    subroutine pages_observe(arrays, policy, observed, error)
        type(paged_array_t), intent(in) :: arrays(:)
        type(pages_policy_t), intent(in) :: policy
        type(pages_record_t), intent(out) :: observed
        type(error_t), intent(inout) :: error
        type(account_t) :: accounts(size(arrays))
        type(failure_t) :: failure
        integer(i8) :: bytes, huge_bytes
        integer :: i

        observed%policy = pages_policy_name(policy)
        observed%method = ''
        observed%page_size_requested = pw_pages_size(policy)
        allocate (observed%arrays(size(arrays)))
        if (pw_pages_account(arrays, int(size(arrays), c_int32_t), policy, accounts, failure) /= 0) then
            call raise(error, failure, 'pages_observe')
            return
        end if
        if (size(arrays) > 0) observed%method = from_c(accounts(1)%method)
        do i = 1, size(arrays)
            observed%arrays(i) = array_record_t(from_c(arrays(i)%name), arrays(i)%bytes, accounts(i)%huge_bytes, &
                                                accounts(i)%page_size_observed)
        end do

        bytes = sum(arrays%bytes)
        huge_bytes = sum(accounts%huge_bytes)
        if (bytes > 0) observed%huge_coverage = real(huge_bytes, r8)/real(bytes, r8)
        if (huge_bytes > bytes - huge_bytes) then
            observed%page_size_observed = maxval(accounts%huge_page_size)
        else if (any(accounts%page_size_observed > 0)) then
            observed%page_size_observed = minval(accounts%page_size_observed, mask=accounts%page_size_observed > 0)
        end if
    end subroutine pages_observe

    !> Unmap the array and reset it; an array that is not allocated is left unchanged. Exit code 4 if the system refuses.
    subroutine pages_free(array, error)
        type(paged_array_t), intent(inout) :: array
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (pw_pages_free(array, failure) /= 0) then
            call raise(error, failure, 'pages_free')
        else
            array = paged_array_t()
        end if
    end subroutine pages_free

    pure integer(c_int32_t) function allocation(static)
        logical, intent(in), optional :: static

        allocation = int(pw_pages_dynamic, c_int32_t)
        if (present(static)) allocation = int(merge(pw_pages_static, pw_pages_dynamic, static), c_int32_t)
    end function allocation

    subroutine raise(error, failure, place)
        type(error_t), intent(inout) :: error
        type(failure_t), intent(in) :: failure
        character(*), intent(in) :: place

        call error%raise(int(failure%code), from_c(failure%message), place, from_c(failure%remedy))
    end subroutine raise

end module pw_pages
