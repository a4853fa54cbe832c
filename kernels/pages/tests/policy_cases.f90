!> Tests of the policies none, thp, thp:64k and hugetlbfs.
module policy_cases
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_null_char, c_ptr
    use evidence, only: advise, can_collapse, compound_bytes_of, drop_page, number_in, plain_memory, protect_page, &
        thp_disabled, unmap_page
    use page_checks, only: address_at, available, check, check_failed, check_ok, check_pages, check_rejected, check_verified, &
        mib, policy_argument, release, skip, skip_reason, thp_folder, thp_size, three_arrays, touch, touched
    use pw_error, only: error_t, exit_pages
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_hugetlbfs, pages_none, pages_observe, &
        pages_policy_t, pages_require, pages_thp
    use pw_record, only: pages_record_t
    use pw_system, only: base_page_size
    use pw_text, only: to_text
    implicit none
    private

    public :: test_none, test_none_without_mthp, test_none_rejected
    public :: test_thp, test_thp_unavailable, test_thp_refused_by_parent, test_thp_unless_advised, test_thp_available, &
        test_thp_collapsed, test_thp_short, test_thp_split
    public :: test_thp_64k, test_thp_64k_dropped, test_thp_64k_rejected, test_thp_64k_refused
    public :: test_pool, test_pool_1g, test_pool_short, test_pool_unsupported, test_pool_limited

    integer(i8), parameter :: size_64k = 65536_i8
    type(pages_policy_t), parameter :: thp_64k = pages_policy_t(pages_thp%kind, size_64k)
    character(*), parameter :: no_flags = 'the flags of pages cannot be read (/proc/kpageflags, root)'

contains

    subroutine test_none()
        type(paged_array_t) :: arrays(3)

        if (.not. available(pages_none)) call check(.false., 'none is refused')
        call check(thp_disabled() == 1, 'transparent huge pages are not refused to the process')
        call three_arrays(arrays, pages_none, max(thp_size(), base_page_size()))
        call check_verified(arrays, pages_none)
        call check_pages(arrays, pages_none, base_page_size(), 0.0_r8)
    end subroutine test_none

    !> On a machine that gives huge pages of several sizes without advice, policy none gets none of them.
    subroutine test_none_without_mthp()
        type(paged_array_t) :: array
        type(error_t) :: error
        integer(i8) :: compound
        integer :: i

        compound = compound_bytes_of(plain_memory(8*mib), 8*mib)
        if (compound < 0) then
            call skip(no_flags)
            return
        end if
        call check(compound > 0, 'without a policy this machine gives base pages: the test would be void')
        call pages_begin(pages_none, error)
        call check_ok(error)
        do i = 1, 2
            array = touched(pages_none, 8*mib, static=i == 2)
            call check_verified([array], pages_none)
            compound = compound_bytes_of(array%address, array%bytes)
            call check(compound == 0, to_text(compound)//' B lie on huge pages')
        end do
        compound = compound_bytes_of(plain_memory(8*mib), 8*mib)
        call check(compound == 0, to_text(compound)//' B of other memory lie on huge pages')
    end subroutine test_none_without_mthp

    !> Huge pages, or only eligibility for them, fail policy none.
    subroutine test_none_rejected()
        type(paged_array_t) :: array

        if (.not. available(pages_thp)) return
        call check_rejected([touched(pages_thp, 3*mib)], pages_none, 'array a has 3072 KiB', 'never')
        array = touched(pages_none, 3*mib, 'b')
        call check_verified([array], pages_none)
        call check(advise(array%address, array%bytes, thp_size(), 1_c_int32_t) == 0, 'cannot advise')
        call check_rejected([array], pages_none, 'array b', 'madvise')
    end subroutine test_none_rejected

    subroutine test_thp()
        type(paged_array_t) :: arrays(3)

        if (.not. available(pages_thp)) return
        call three_arrays(arrays, pages_thp, thp_size())
        call check_verified(arrays, pages_thp)
        call check_pages(arrays, pages_thp, thp_size(), 1.0_r8)
    end subroutine test_thp

    !> The machine is one without transparent huge pages of this size (with_files); the command line gives what
    !> message and remedy must contain, and the size if it is not the PMD size.
    subroutine test_thp_unavailable()
        type(error_t) :: error
        character(128) :: message, remedy

        call get_command_argument(2, message)
        call get_command_argument(3, remedy)
        call pages_begin(policy_argument(4, pages_thp), error)
        call check_failed(error, exit_pages, trim(message), trim(remedy))
    end subroutine test_thp_unavailable

    subroutine test_thp_refused_by_parent()
        type(error_t) :: error

        call check(thp_disabled() == 1, 'the refusal did not survive exec')
        call pages_begin(pages_thp, error)
        if (error%code == exit_pages .and. index(error%message, 'never') > 0) then
            call skip(error%message)
            return
        end if
        call check_failed(error, exit_pages, 'PR_SET_THP_DISABLE', 'shell or batch job')
    end subroutine test_thp_refused_by_parent

    !> The parent disabled only memory without advice: the arrays have it.
    subroutine test_thp_unless_advised()
        call check(thp_disabled() == 3, 'the refusal did not survive exec')
        call test_thp()
        if (allocated(skip_reason)) call check(index(skip_reason, 'PR_SET_THP_DISABLE') == 0, skip_reason)
    end subroutine test_thp_unless_advised

    !> The machine supports them (with_files).
    subroutine test_thp_available()
        if (.not. available(pages_thp)) call check(thp_disabled() == 1, 'thp is refused')
    end subroutine test_thp_available

    !> Touched as base pages, then collapsed by the page verification.
    subroutine test_thp_collapsed()
        type(paged_array_t) :: array
        type(error_t) :: error
        type(pages_record_t) :: observed

        if (can_collapse() == 0) then
            call skip('this kernel cannot collapse memory (needs Linux 6.1)')
            return
        end if
        if (.not. available(pages_thp)) return
        call pages_allocate(array, pages_thp, 'a', 8*mib, 4352_i8, error)
        call check_ok(error)
        call check(advise(array%address, array%bytes, thp_size(), 0_c_int32_t) == 0, 'cannot advise')
        call touch(array)
        call pages_observe([array], pages_thp, observed, error)
        call check_ok(error)
        call check(observed%page_size_observed == base_page_size(), 'base pages were not observed')
        ! Only now: khugepaged collapses advised memory at any time.
        call check(advise(array%address, array%bytes, thp_size(), 1_c_int32_t) == 0, 'cannot advise')
        call check_verified([array], pages_thp)
        call check_pages([array], pages_thp, thp_size(), 1.0_r8)
    end subroutine test_thp_collapsed

    !> The error reports how much of which array cannot be collapsed.
    subroutine test_thp_short()
        type(paged_array_t) :: arrays(2)
        type(error_t) :: error
        integer(i8) :: size

        if (.not. available(pages_thp)) return
        size = thp_size()
        arrays(1) = touched(pages_thp, 2*size)
        call pages_allocate(arrays(2), pages_thp, 'b', 4*size, 0_i8, error)
        call check_ok(error)
        call check(advise(arrays(2)%address, size, size, 0_c_int32_t) == 0, 'cannot advise')
        call touch(arrays(2))
        call check_rejected(arrays, pages_thp, to_text(size/1024_i8)//' of '//to_text(6*size/1024_i8)// &
                            ' KiB are not on huge pages of '//to_text(size/1024_i8)//' KiB (array b: ', 'compact_memory')
    end subroutine test_thp_short

    !> After page verification one base page is dropped, unmapped or protected: the huge page around it is split, and the
    !> observed pages lose exactly that huge page.
    subroutine test_thp_split(how)
        character(*), intent(in) :: how
        type(paged_array_t) :: array
        type(c_ptr) :: middle
        integer(c_int32_t) :: refused
        integer(i8) :: size

        if (.not. available(pages_thp)) return
        size = thp_size()
        array = touched(pages_thp, 8*size)
        call check_verified([array], pages_thp)
        call check_pages([array], pages_thp, size, 1.0_r8)
        middle = address_at(array, 3*size + size/2)
        refused = 1
        select case (how)
        case ('thp_dropped'); refused = drop_page(middle)
        case ('thp_unmapped'); refused = unmap_page(middle)
        case ('thp_protected'); refused = protect_page(middle)
        end select
        call check(refused == 0, how//': refused')
        call check_pages([array], pages_thp, size, 7.0_r8/8.0_r8)
    end subroutine test_thp_split

    !> Pages of 64 KiB, whatever larger ones the machine would give (with_settings), verified by `method`.
    subroutine test_thp_64k(method, static)
        character(*), intent(in) :: method
        logical, intent(in) :: static
        type(paged_array_t) :: arrays(3)
        integer :: i
        integer(i8) :: compound

        if (.not. available(thp_64k)) return
        call three_arrays(arrays, thp_64k, thp_size(), static)
        call check_verified(arrays, thp_64k)
        call check_pages(arrays, thp_64k, size_64k, 1.0_r8, method)
        do i = 1, size(arrays)
            compound = compound_bytes_of(arrays(i)%address, arrays(i)%bytes)
            call check(compound < 0 .or. compound >= arrays(i)%bytes, to_text(compound)//' B are on large pages')
        end do
    end subroutine test_thp_64k

    !> A base page is released: its large page no longer counts. The statistics do not show that the two losses are the same
    !> page.
    subroutine test_thp_64k_dropped()
        type(paged_array_t) :: array
        type(error_t) :: error
        type(pages_record_t) :: observed

        if (.not. available(thp_64k)) return
        array = touched(thp_64k, 8*size_64k)
        call check_verified([array], thp_64k)
        call check(drop_page(address_at(array, 3*size_64k + 2*base_page_size())) == 0, 'the page cannot be dropped')
        call pages_observe([array], thp_64k, observed, error)
        call check_ok(error)
        associate (least => merge(7*size_64k, 7*size_64k - base_page_size(), observed%method == 'kpageflags'))
            call check(observed%arrays(1)%huge_bytes == least, to_text(observed%arrays(1)%huge_bytes)//' B by '//observed%method)
        end associate
        call check_rejected([array], thp_64k, ' of 512 KiB are not on huge pages of 64 KiB', 'compact_memory')
    end subroutine test_thp_64k_dropped

    !> Another machine (with_files): its switch shows that they are enabled, but they are not; or the flags of page frames
    !> are unreadable, and the kernel does not count.
    subroutine test_thp_64k_refused(message, remedy)
        character(*), intent(in) :: message, remedy

        if (available(thp_64k)) call check_rejected([touched(thp_64k, 4*mib)], thp_64k, message, remedy)
    end subroutine test_thp_64k_refused

    !> Pages of PMD size are not pages of 64 KiB.
    subroutine test_thp_64k_rejected()
        type(paged_array_t) :: array

        if (.not. available(pages_thp)) return
        array = touched(pages_thp, 2*thp_size())
        if (compound_bytes_of(array%address, array%bytes) < 0) then
            call skip(no_flags)
            return
        end if
        call check_rejected([array], thp_64k, 'most of it on pages of '//to_text(thp_size()/1024_i8)//' KiB', &
                            'echo never > '//thp_folder//'hugepages-'//to_text(thp_size()/1024_i8)//'kB/enabled')
    end subroutine test_thp_64k_rejected

    !> Under with_settings, which fills the hugetlb pool.
    subroutine test_pool()
        type(paged_array_t) :: arrays(3)
        type(error_t) :: error
        integer(i8) :: size, free_before

        if (.not. available(pages_hugetlbfs)) call check(.false., 'hugetlbfs is refused')
        size = pool_page(pages_hugetlbfs)
        free_before = pool_number(size, 'free_hugepages')
        call pages_require(pages_hugetlbfs, [8*mib, 6*mib, mib], error)
        call check_ok(error)
        call three_arrays(arrays, pages_hugetlbfs, size)
        call check_verified(arrays, pages_hugetlbfs)
        call check_pages(arrays, pages_hugetlbfs, size, 1.0_r8)
        call check(pool_number(size, 'free_hugepages') < free_before, 'the pages do not come from the pool')
        call release(arrays)
        call check(pool_number(size, 'free_hugepages') == free_before, 'the pages were not returned to the pool')
    end subroutine test_pool

    !> Under with_settings, which reserves a page of 1 GiB if the machine has the memory.
    subroutine test_pool_1g()
        type(pages_policy_t), parameter :: pool_1g = pages_policy_t(pages_hugetlbfs%kind, 1024*mib)
        type(paged_array_t) :: arrays(1)
        type(error_t) :: error

        if (.not. available(pool_1g)) call check(.false., 'hugetlbfs:1g is refused')
        call pages_require(pool_1g, [5*mib], error)
        call check_ok(error)
        arrays(1) = touched(pool_1g, 5*mib, offset=4352_i8)
        call check_verified(arrays, pool_1g)
        call check_pages(arrays, pool_1g, 1024*mib, 1.0_r8)
        call check(pool_number(1024*mib, 'free_hugepages') == 0, 'the page does not come from the pool')
        call release(arrays)
    end subroutine test_pool_1g

    !> Whatever the pool holds: request three pages more, at once or with a second array. The command line names the policy
    !> if it is not that of the default pool.
    subroutine test_pool_short()
        integer(i8), parameter :: more = 3
        character(*), parameter :: missing = '3 of them are missing'
        type(pages_policy_t) :: policy
        type(paged_array_t) :: held
        type(error_t) :: error
        character(:), allocatable :: remedy, pages
        integer(i8) :: size, left, total

        policy = policy_argument(2, pages_hugetlbfs)
        if (.not. available(policy)) return
        size = pool_page(policy)
        if (pool_number(size, 'nr_overcommit_hugepages') > 0) then
            call skip('the hugetlb pool can grow by itself (nr_overcommit_hugepages)')
            return
        end if
        total = pool_number(size, 'nr_hugepages')
        left = pool_number(size, 'free_hugepages') - pool_number(size, 'resv_hugepages')
        pages = ' huge pages of '//to_text(size/1024_i8)//' KiB, and '
        remedy = 'sysctl -w vm.nr_hugepages='//to_text(total + more)//';'
        if (policy%page_size > 0) &
            remedy = 'echo '//to_text(total + more)//' > /sys/kernel/mm/hugepages/hugepages-'//to_text(size/1024_i8)//'kB/'

        call pages_require(policy, [size*left, size*more - 1_i8], error)
        call check_failed(error, exit_pages, missing, remedy)
        call check_short(policy, size*(left + more), 0_i8, 'array a needs '//to_text(left + more)//pages//missing, remedy)
        call check_short(policy, 1_i8, size*(left + more - 1_i8), missing, remedy)
        if (left == 0) return
        held = touched(policy, size*left, 'held')
        call check_short(policy, size*more, 0_i8, 'array a needs '//to_text(more)//pages, remedy)
    end subroutine test_pool_short

    !> The machine does not support hugetlbfs (with_files).
    subroutine test_pool_unsupported()
        character(*), parameter :: message = 'policy hugetlbfs', remedy = 'CONFIG_HUGETLBFS'
        type(error_t) :: begun, required

        call pages_begin(pages_hugetlbfs, begun)
        call check_failed(begun, exit_pages, message, remedy)
        call pages_require(pages_hugetlbfs, [1_i8], required)
        call check_failed(required, exit_pages, message, remedy)
        call check_short(pages_hugetlbfs, 1_i8, 0_i8, message, remedy)
    end subroutine test_pool_unsupported

    !> Control groups leave two pages of 2 MiB (with_files), and the pool is empty: the limit is the first cause.
    subroutine test_pool_limited()
        type(pages_policy_t), parameter :: small = pages_policy_t(pages_hugetlbfs%kind, 2*mib)
        type(error_t) :: three, two

        call pages_require(small, [5*mib], three)
        call check_failed(three, exit_pages, 'allow 2 more', 'hugetlb.*.max')
        call check_short(small, 5*mib, 0_i8, 'allow 2 more', 'hugetlb.*.max')
        call pages_require(small, [4*mib], two)
        call check_failed(two, exit_pages, '2 of them are missing', 'nr_hugepages')
    end subroutine test_pool_limited

    !> Allocating array a fails, and reports this.
    subroutine check_short(policy, bytes, offset, message, remedy)
        type(pages_policy_t), intent(in) :: policy
        integer(i8), intent(in) :: bytes, offset
        character(*), intent(in) :: message, remedy
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_allocate(array, policy, 'a', bytes, offset, error)
        call check_failed(error, exit_pages, message, remedy)
    end subroutine check_short

    !> Bytes of a page of the policy's pool.
    integer(i8) function pool_page(policy)
        type(pages_policy_t), intent(in) :: policy
        type(pages_record_t) :: observed
        type(error_t) :: error

        call pages_observe([paged_array_t ::], policy, observed, error)
        call check_ok(error)
        pool_page = observed%page_size_requested
    end function pool_page

    integer(i8) function pool_number(page_size, name)
        integer(i8), intent(in) :: page_size
        character(*), intent(in) :: name

        pool_number = number_in('/sys/kernel/mm/hugepages/hugepages-'//to_text(page_size/1024_i8)//'kB/'//name//c_null_char)
    end function pool_number

end module policy_cases
