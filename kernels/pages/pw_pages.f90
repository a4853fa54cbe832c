!> Memory on pages of a chosen kind and size, and page verification: which pages it really is on.
!>
!> The order of calls: `pages_begin` once, `pages_allocate` for each array, the first touch, `pages_verify`,
!> the measurement, `pages_observe`. Nothing falls back silently: an unavailable policy is an error with exit code 3.
module pw_pages
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_int64_t, c_null_char, c_null_ptr, c_ptr
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_record, only: array_record_t, pages_record_t
    use pw_text, only: from_c
    implicit none
    private

    !> struct pw_pages_policy: a kind, and the page size if one was named.
    type, bind(c), public :: pages_policy_t
        integer(c_int32_t) :: kind = 0
        integer(c_int64_t) :: page_size = 0  !< 0: the default of the kind [B]
    end type pages_policy_t

    type(pages_policy_t), parameter, public :: pages_none = pages_policy_t(0)       !< base pages; huge pages are refused
    type(pages_policy_t), parameter, public :: pages_thp = pages_policy_t(1)        !< transparent: aligned and advised
    type(pages_policy_t), parameter, public :: pages_hugetlbfs = pages_policy_t(2)  !< from the hugetlb pool

    integer, parameter :: name_length = 31   ! PW_PAGES_NAME
    integer, parameter :: text_length = 1024 ! PW_PAGES_TEXT

    !> struct pw_pages_counts.
    type, bind(c) :: counts_t
        integer(c_int64_t) :: faulted = 0, lost = 0
    end type counts_t

    !> struct pw_pages_array: the memory of one array.
    type, bind(c), public :: paged_array_t
        character(kind=c_char) :: name(name_length + 1) = c_null_char
        type(pages_policy_t) :: policy = pages_none
        integer(c_int32_t) :: allocation = 0       !< 1: part of a large array of the program (.bss)
        type(c_ptr) :: address = c_null_ptr        !< start of the user's bytes
        integer(c_int64_t) :: bytes = 0            !< the user's bytes
        integer(c_int64_t) :: offset = 0           !< of the start from the mapping's start [B]
        type(c_ptr), private :: mapping = c_null_ptr
        integer(c_int64_t), private :: mapping_bytes = 0
        type(counts_t), private :: before = counts_t()
    end type paged_array_t

    public :: pages_policy_names, pages_policy_from_name, pages_policy_name
    public :: pages_begin, pages_require, pages_allocate, pages_verify, pages_observe, pages_free, &
              pages_static_bytes

    !> struct pw_pages_failure.
    type, bind(c) :: failure_t
        integer(c_int32_t) :: code
        character(kind=c_char) :: message(text_length), remedy(text_length)
    end type failure_t

    !> struct pw_pages_account.
    type, bind(c) :: account_t
        integer(c_int64_t) :: huge_bytes, huge_page_size, page_size_observed
        integer(c_int32_t) :: thp_eligible
        character(kind=c_char) :: method(name_length + 1)
    end type account_t

    interface
        subroutine c_names(text, length) bind(c, name='pw_pages_names')
            import :: c_char, c_int32_t
            character(kind=c_char), intent(out) :: text(*)
            integer(c_int32_t), value :: length
        end subroutine c_names

        integer(c_int32_t) function c_policy_from_name(name, policy, failure) bind(c, name='pw_pages_policy_from_name')
            import :: c_char, c_int32_t, failure_t, pages_policy_t
            character(kind=c_char), intent(in) :: name(*)
            type(pages_policy_t), intent(out) :: policy
            type(failure_t), intent(inout) :: failure
        end function c_policy_from_name

        subroutine c_policy_name(policy, name) bind(c, name='pw_pages_policy_name')
            import :: c_char, pages_policy_t
            type(pages_policy_t), intent(in) :: policy
            character(kind=c_char), intent(out) :: name(*)
        end subroutine c_policy_name

        integer(c_int64_t) function c_size(policy) bind(c, name='pw_pages_size')
            import :: c_int64_t, pages_policy_t
            type(pages_policy_t), intent(in) :: policy
        end function c_size

        integer(c_int32_t) function c_begin(policy, failure) bind(c, name='pw_pages_begin')
            import :: c_int32_t, failure_t, pages_policy_t
            type(pages_policy_t), intent(in) :: policy
            type(failure_t), intent(inout) :: failure
        end function c_begin

        !> Bytes of the program's static memory; 0: it is linked without any, as most programs.
        integer(c_int64_t) function pages_static_bytes() bind(c, name='pw_pages_static_bytes')
            import :: c_int64_t
        end function pages_static_bytes

        integer(c_int32_t) function c_require(policy, allocation, bytes, count, failure) bind(c, name='pw_pages_require')
            import :: c_int32_t, c_int64_t, failure_t, pages_policy_t
            type(pages_policy_t), intent(in) :: policy
            integer(c_int32_t), value :: allocation, count
            integer(c_int64_t), intent(in) :: bytes(*)
            type(failure_t), intent(inout) :: failure
        end function c_require

        integer(c_int32_t) function c_allocate(array, failure) bind(c, name='pw_pages_allocate')
            import :: c_int32_t, failure_t, paged_array_t
            type(paged_array_t), intent(inout) :: array
            type(failure_t), intent(inout) :: failure
        end function c_allocate

        integer(c_int32_t) function c_free(array, failure) bind(c, name='pw_pages_free')
            import :: c_int32_t, failure_t, paged_array_t
            type(paged_array_t), intent(inout) :: array
            type(failure_t), intent(inout) :: failure
        end function c_free

        integer(c_int32_t) function c_account(arrays, count, policy, accounts, failure) bind(c, name='pw_pages_account')
            import :: account_t, c_int32_t, failure_t, paged_array_t, pages_policy_t
            type(paged_array_t), intent(in) :: arrays(*)
            integer(c_int32_t), value :: count
            type(pages_policy_t), intent(in) :: policy
            type(account_t), intent(inout) :: accounts(*)
            type(failure_t), intent(inout) :: failure
        end function c_account

        integer(c_int32_t) function c_verify(arrays, count, policy, failure) bind(c, name='pw_pages_verify')
            import :: c_int32_t, failure_t, paged_array_t, pages_policy_t
            type(paged_array_t), intent(in) :: arrays(*)
            integer(c_int32_t), value :: count
            type(pages_policy_t), intent(in) :: policy
            type(failure_t), intent(inout) :: failure
        end function c_verify
    end interface

contains

    !> The names of the policies that can be requested on this machine, separated by '|'.
    function pages_policy_names() result(names)
        character(:), allocatable :: names
        character(kind=c_char) :: text(text_length)

        call c_names(text, int(text_length, c_int32_t))
        names = from_c(text)
    end function pages_policy_names

    !> The policy called `name`, such as none, thp:64k or hugetlbfs; exit code 2 if this machine has no such policy.
    subroutine pages_policy_from_name(name, policy, error)
        character(*), intent(in) :: name
        type(pages_policy_t), intent(out) :: policy
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (c_policy_from_name(trim(name)//c_null_char, policy, failure) /= 0) &
            call raise(error, failure, 'pages_policy_from_name')
    end subroutine pages_policy_from_name

    !> The name of `policy`; empty if there is no such policy.
    function pages_policy_name(policy) result(name)
        type(pages_policy_t), intent(in) :: policy
        character(:), allocatable :: name
        character(kind=c_char) :: text(name_length + 1)

        call c_policy_name(policy, text)
        name = from_c(text)
    end function pages_policy_name

    !> Once per process, before the first allocation: make the settings of `policy` for the whole process, and check that
    !> machine and process support it. Exit code 3 if not, 2 if there is no such policy.
    subroutine pages_begin(policy, error)
        type(pages_policy_t), intent(in) :: policy
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (c_begin(policy, failure) /= 0) call raise(error, failure, 'pages_begin')
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

        if (c_require(policy, allocation(static), bytes, int(size(bytes), c_int32_t), failure) /= 0) &
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

        do i = 1, min(len_trim(name), name_length)
            array%name(i) = name(i:i)
        end do
        array%policy = policy
        array%allocation = allocation(static)
        array%bytes = bytes
        array%offset = offset
        if (c_allocate(array, failure) == 0) return
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

        if (c_verify(arrays, int(size(arrays), c_int32_t), policy, failure) /= 0) &
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
        observed%page_size_requested = c_size(policy)
        allocate (observed%arrays(size(arrays)))
        if (c_account(arrays, int(size(arrays), c_int32_t), policy, accounts, failure) /= 0) then
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

        if (c_free(array, failure) /= 0) then
            call raise(error, failure, 'pages_free')
        else
            array = paged_array_t()
        end if
    end subroutine pages_free

    !> PW_PAGES_DYNAMIC or PW_PAGES_STATIC.
    pure integer(c_int32_t) function allocation(static)
        logical, intent(in), optional :: static

        allocation = 0
        if (present(static)) allocation = merge(1_c_int32_t, 0_c_int32_t, static)
    end function allocation

    subroutine raise(error, failure, place)
        type(error_t), intent(inout) :: error
        type(failure_t), intent(in) :: failure
        character(*), intent(in) :: place

        call error%raise(int(failure%code), from_c(failure%message), place, from_c(failure%remedy))
    end subroutine raise

end module pw_pages
