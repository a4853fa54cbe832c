!> Memory on pages of a chosen kind and size, and page verification: which pages it really is on.
!>
!> The order of calls: `pages_begin` once, `pages_allocate` for each array, the first touch, `pages_verify`,
!> the measurement, `pages_observe`. Nothing falls back silently: an unavailable policy is an error with exit code 3.
module pw_pages
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_int64_t, c_null_char, c_null_ptr, c_ptr
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_text, only: from_c
    implicit none
    private

    !> A page policy: its kind, and the page size if one was named.
    type, bind(c), public :: pages_policy_t
        integer(c_int32_t) :: kind = 0
        integer(c_int64_t) :: page_size = 0  !< 0: the default of the kind [B]
    end type pages_policy_t

    type(pages_policy_t), parameter, public :: pages_none = pages_policy_t(0)       !< base pages; huge pages are refused
    type(pages_policy_t), parameter, public :: pages_thp = pages_policy_t(1)        !< transparent: aligned and advised
    type(pages_policy_t), parameter, public :: pages_hugetlbfs = pages_policy_t(2)  !< from the hugetlb pool

    integer, parameter :: name_length = 31   ! PW_PAGES_NAME
    integer, parameter :: text_length = 1024 ! PW_PAGES_TEXT

    !> One array's memory.
    type, public :: paged_array_t
        type(c_ptr) :: address = c_null_ptr  !< start of the user's bytes
        integer(i8) :: bytes = 0             !< the user's bytes
        integer(i8) :: offset = 0            !< of the start from the mapping's start [B]
        type(pages_policy_t) :: policy = pages_none
        logical :: static = .false.          !< part of a large array of the program (.bss)
        character(name_length) :: name = ''
        type(c_ptr), private :: mapping = c_null_ptr
        integer(i8), private :: mapping_bytes = 0
        integer(i8), private :: faulted_before = 0, lost_before = 0
    end type paged_array_t

    !> The operating system's accounting of one array.
    type, public :: observed_array_t
        character(name_length) :: name = ''
        integer(i8) :: bytes = 0
        integer(i8) :: huge_bytes = 0          !< of `bytes`, those on huge pages
        integer(i8) :: page_size_observed = 0  !< page size of the larger part; 0 if nothing is resident [B]
    end type observed_array_t

    !> The operating system's accounting of all arrays together.
    type, public :: observed_pages_t
        integer(i8) :: base_page_size = 0       !< [B]
        integer(i8) :: page_size_requested = 0  !< [B]
        integer(i8) :: page_size_observed = 0   !< page size of the larger part; 0 if nothing is resident [B]
        real(r8) :: huge_coverage = 0.0_r8      !< share of the arrays' bytes on huge pages
        character(name_length) :: method = ''   !< source of the numbers: smaps, kpageflags or thp_stats
        type(observed_array_t), allocatable :: arrays(:)
    end type observed_pages_t

    public :: pages_policy_names, pages_policy_from_name, pages_policy_name
    public :: pages_begin, pages_require, pages_allocate, pages_verify, pages_observe, pages_free, &
              pages_static_bytes

    ! The types of pages.h.
    type, bind(c) :: failure_t
        integer(c_int32_t) :: code
        character(kind=c_char) :: message(text_length), remedy(text_length)
    end type failure_t

    type, bind(c) :: array_t
        character(kind=c_char) :: name(name_length + 1)
        type(pages_policy_t) :: policy
        integer(c_int32_t) :: allocation
        type(c_ptr) :: address
        integer(c_int64_t) :: bytes, offset
        type(c_ptr) :: mapping
        integer(c_int64_t) :: mapping_bytes, faulted_before, lost_before
    end type array_t

    type, bind(c) :: account_t
        integer(c_int64_t) :: huge_bytes, huge_page_size, page_size_observed
        integer(c_int32_t) :: thp_eligible
        character(kind=c_char) :: method(name_length + 1)
    end type account_t

    interface
        integer(c_int64_t) function c_base_page_size() bind(c, name='pw_system_base_page_size')
            import :: c_int64_t
        end function c_base_page_size

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
            import :: array_t, c_int32_t, failure_t
            type(array_t), intent(inout) :: array
            type(failure_t), intent(inout) :: failure
        end function c_allocate

        integer(c_int32_t) function c_free(array, failure) bind(c, name='pw_pages_free')
            import :: array_t, c_int32_t, failure_t
            type(array_t), intent(inout) :: array
            type(failure_t), intent(inout) :: failure
        end function c_free

        integer(c_int32_t) function c_account(arrays, count, policy, accounts, failure) bind(c, name='pw_pages_account')
            import :: account_t, array_t, c_int32_t, failure_t, pages_policy_t
            type(array_t), intent(in) :: arrays(*)
            integer(c_int32_t), value :: count
            type(pages_policy_t), intent(in) :: policy
            type(account_t), intent(inout) :: accounts(*)
            type(failure_t), intent(inout) :: failure
        end function c_account

        integer(c_int32_t) function c_verify(arrays, count, policy, failure) bind(c, name='pw_pages_verify')
            import :: array_t, c_int32_t, failure_t, pages_policy_t
            type(array_t), intent(in) :: arrays(*)
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

        if (c_require(policy, allocation(is_static(static)), bytes, int(size(bytes), c_int32_t), failure) /= 0) &
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
        type(array_t) :: mapped
        type(failure_t) :: failure

        array%policy = policy
        array%static = is_static(static)
        array%name = name
        array%bytes = bytes
        array%offset = offset
        mapped = to_c(array)
        if (c_allocate(mapped, failure) /= 0) then
            call raise(error, failure, 'pages_allocate')
            array = paged_array_t()
            return
        end if
        array%address = mapped%address
        array%mapping = mapped%mapping
        array%mapping_bytes = mapped%mapping_bytes
        array%faulted_before = mapped%faulted_before
        array%lost_before = mapped%lost_before
    end subroutine pages_allocate

    !> Page verification, after the first touch: exit code 3 unless the arrays are on the pages of `policy`. Under thp of PMD
    !> size, missing huge pages are collapsed once before the decision.
    subroutine pages_verify(arrays, policy, error)
        type(paged_array_t), intent(in) :: arrays(:)
        type(pages_policy_t), intent(in) :: policy
        type(error_t), intent(inout) :: error
        type(failure_t) :: failure

        if (c_verify(to_c(arrays), int(size(arrays), c_int32_t), policy, failure) /= 0) &
            call raise(error, failure, 'pages_verify')
    end subroutine pages_verify

    !> The observed pages of the arrays, by the operating system's accounting. If it does not report which page of an array
    !> is not huge, the coverage is the lower bound under thp and hugetlbfs, and the upper bound under none.
    subroutine pages_observe(arrays, policy, observed, error)
        type(paged_array_t), intent(in) :: arrays(:)
        type(pages_policy_t), intent(in) :: policy
        type(observed_pages_t), intent(out) :: observed
        type(error_t), intent(inout) :: error
        type(account_t) :: accounts(size(arrays))
        type(failure_t) :: failure
        integer(i8) :: bytes, huge_bytes

        observed%base_page_size = c_base_page_size()
        observed%page_size_requested = c_size(policy)
        allocate (observed%arrays(size(arrays)))
        if (c_account(to_c(arrays), int(size(arrays), c_int32_t), policy, accounts, failure) /= 0) then
            call raise(error, failure, 'pages_observe')
            return
        end if
        if (size(arrays) > 0) observed%method = from_c(accounts(1)%method)
        observed%arrays%name = arrays%name
        observed%arrays%bytes = arrays%bytes
        observed%arrays%huge_bytes = accounts%huge_bytes
        observed%arrays%page_size_observed = accounts%page_size_observed

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
        type(array_t) :: mapped
        type(failure_t) :: failure

        mapped = to_c(array)
        if (c_free(mapped, failure) /= 0) then
            call raise(error, failure, 'pages_free')
            return
        end if
        array = paged_array_t()
    end subroutine pages_free

    elemental function to_c(array) result(mapped)
        type(paged_array_t), intent(in) :: array
        type(array_t) :: mapped
        integer :: i

        mapped%name = c_null_char
        do i = 1, len_trim(array%name)
            mapped%name(i) = array%name(i:i)
        end do
        mapped%policy = array%policy
        mapped%allocation = allocation(array%static)
        mapped%address = array%address
        mapped%bytes = array%bytes
        mapped%offset = array%offset
        mapped%mapping = array%mapping
        mapped%mapping_bytes = array%mapping_bytes
        mapped%faulted_before = array%faulted_before
        mapped%lost_before = array%lost_before
    end function to_c

    !> PW_PAGES_DYNAMIC or PW_PAGES_STATIC.
    pure integer(c_int32_t) function allocation(static)
        logical, intent(in) :: static

        allocation = merge(1_c_int32_t, 0_c_int32_t, static)
    end function allocation

    pure logical function is_static(static)
        logical, intent(in), optional :: static

        is_static = .false.
        if (present(static)) is_static = static
    end function is_static

    subroutine raise(error, failure, place)
        type(error_t), intent(inout) :: error
        type(failure_t), intent(in) :: failure
        character(*), intent(in) :: place

        call error%raise(int(failure%code), from_c(failure%message), place, from_c(failure%remedy))
    end subroutine raise

end module pw_pages
