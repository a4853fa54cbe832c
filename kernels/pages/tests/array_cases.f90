!> Tests of pw_pages: names of policies, and arrays, dynamic and static, whatever their pages.
module array_cases
    use, intrinsic :: iso_c_binding, only: c_associated, c_intptr_t, c_ptr
    use evidence, only: is_accessible
    use page_checks, only: address_at, available, check, check_failed, check_ok, check_pages, check_rejected, check_verified, &
        mib, release, same, three_arrays, thp_size, touched
    use pw_error, only: error_t, exit_pages, exit_usage
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_free, pages_hugetlbfs, pages_none, pages_observe, &
        pages_policy_from_name, pages_policy_name, pages_policy_names, pages_policy_t, pages_require, pages_thp
    use pw_record, only: pages_record_t
    use pw_system, only: base_page_size
    use pw_text, only: to_text
    implicit none
    private

    public :: test_policy_names, test_senseless_sizes, test_untouched, test_free, test_static, test_static_too_large, &
        test_static_pool

contains

    subroutine test_policy_names()
        character(14), parameter :: wrong(12) = [character(14) :: 'huge', '', 'thp:', 'thp:3k', 'none:4k', 'hugetlbfs:64', &
                                                 'hugetlbfs:2M2', 'hugetlbfs:2MB', 'hugetlbfs:-1g', 'hugetlbfs:0g', &
                                                 'hugetlbfs:2', 'thp:9999999t']
        character(:), allocatable :: names, name
        character(128) :: expected   ! all policies of the machine, if the test knows it
        type(pages_policy_t) :: policy
        type(error_t) :: error
        integer :: i, bar
        logical :: has_1g

        call check(pages_policy_name(pages_policy_t(1, 64*1024_i8)) == 'thp:64k', 'a name of 64 KiB')
        call check(pages_policy_name(pages_policy_t(1, 1536*1024_i8)) == 'thp:1536k', 'a name of 1.5 MiB')
        call check(pages_policy_name(pages_policy_t(2, 1024_i8**3)) == 'hugetlbfs:1g', 'a name of 1 GiB')
        call check(pages_policy_name(pages_policy_t(7)) == '', 'policy 7 has a name')
        names = pages_policy_names()//'|'
        write (*, '(a)') names
        call get_command_argument(2, expected)
        call check(expected == '' .or. names == trim(expected)//'|', 'the policies are '//names)
        has_1g = index(names, '|hugetlbfs:1g|') > 0
        call check(index(names, 'none|thp|') == 1 .and. index(names, '|hugetlbfs|') > 0, 'a policy is missing')
        do while (len(names) > 0)
            bar = index(names, '|')
            name = names(:bar - 1)
            names = names(bar + 1:)
            call check_name(name, name)
        end do
        if (has_1g) then
            call check_name('hugetlbfs:1G', 'hugetlbfs:1g')
            call check_name('hugetlbfs:1024m', 'hugetlbfs:1g')
            call check_name('hugetlbfs:1048576K', 'hugetlbfs:1g')
        end if
        do i = 1, size(wrong)
            error = error_t()
            call pages_policy_from_name(trim(wrong(i)), policy, error)
            call check_failed(error, exit_usage, "'"//trim(wrong(i))//"'", 'none, thp or hugetlbfs')
        end do
        error = error_t()
        call pages_begin(pages_policy_t(7), error)
        call check_failed(error, exit_usage, '7', 'none, thp or hugetlbfs')
    end subroutine test_policy_names

    !> The policy of one name has another.
    subroutine check_name(name, other)
        character(*), intent(in) :: name, other
        type(pages_policy_t) :: policy, again
        type(error_t) :: error

        call pages_policy_from_name(name, policy, error)
        call pages_policy_from_name(other, again, error)
        call check_ok(error)
        call check(pages_policy_name(policy) == other, name//' is called '//pages_policy_name(policy))
        call check(same(policy, again), name//' is not '//other)
    end subroutine check_name

    subroutine test_senseless_sizes()
        integer(i8), parameter :: bytes(5) = [0_i8, -8_i8, 8_i8, huge(0_i8), 8_i8]
        integer(i8), parameter :: offset(5) = [0_i8, 0_i8, -8_i8, 0_i8, huge(0_i8)]
        type(paged_array_t) :: none(1)
        integer :: kind, i

        do kind = pages_none%kind, pages_hugetlbfs%kind
            do i = 1, size(bytes)
                call refuse(pages_policy_t(kind), bytes(i), offset(i), exit_usage, to_text(bytes(i)), 'at least one byte')
            end do
        end do
        call release(none)
    end subroutine test_senseless_sizes

    !> No page size is observed for untouched memory, and mapping more than 4 GiB of it costs nothing.
    subroutine test_untouched()
        type(paged_array_t) :: arrays(1)
        type(error_t) :: error
        ! On the stack, gfortran 14 reports the bounds of its unallocated components as used uninitialised.
        type(pages_record_t), allocatable :: observed
        integer(i8), parameter :: bytes = 4096*mib + 1_i8
        type(pages_policy_t) :: policy
        integer :: kind

        allocate (observed)
        do kind = pages_none%kind, pages_thp%kind
            policy = pages_policy_t(kind)
            call pages_allocate(arrays(1), policy, 'a', bytes, 8*mib, error)
            call check_ok(error)
            if (error%failed()) return
            call pages_observe(arrays, policy, observed, error)
            call check_ok(error)
            call check(observed%page_size_observed == 0, 'a page size of untouched memory')
            call check(observed%arrays(1)%huge_bytes == 0 .and. observed%arrays(1)%bytes == bytes, 'wrong bytes')
            call release(arrays)
        end do
        call pages_allocate(arrays(1), pages_thp, 'a', bytes, 0_i8, error)
        call check_ok(error)
        call check_rejected(arrays, pages_thp, '4194305 of 4194305 KiB', 'fragmented')
    end subroutine test_untouched

    subroutine test_free()
        type(paged_array_t) :: array
        type(c_ptr) :: address
        type(error_t) :: error
        integer :: kind, i

        do kind = pages_none%kind, pages_thp%kind
            array = touched(pages_policy_t(kind), mib)
            address = array%address
            call check(is_accessible(address, mib) == 1, 'the array cannot be read')
            call check(is_accessible(address_at(array, -1_i8), 1_i8) == 0, 'no guard before the array')
            do i = 1, 2     ! freeing twice is no error
                call pages_free(array, error)
                call check_ok(error)
                call check(is_accessible(address, mib) == 0, 'the memory is still mapped')
                call check(.not. c_associated(array%address) .and. array%bytes == 0, 'the array is not reset')
            end do
        end do
    end subroutine test_free

    !> Static arrays get the pages of a policy as dynamic ones do, repeatedly.
    subroutine test_static()
        type(paged_array_t) :: arrays(3)
        type(pages_policy_t) :: policy
        integer(i8) :: page_size
        integer(c_intptr_t) :: first
        integer :: i, kind

        first = 0
        do kind = pages_thp%kind, pages_none%kind, -1    ! none disables huge pages for the process permanently
            policy = pages_policy_t(kind)
            if (.not. available(policy)) cycle
            page_size = merge(thp_size(), base_page_size(), kind == pages_thp%kind)
            call three_arrays(arrays, policy, min(thp_size(), 2*mib), static=.true.)
            if (first == 0) first = transfer(arrays(1)%address, first)
            call check(transfer(arrays(1)%address, first) == first, 'freed static memory is not used again')
            call check(abs(transfer(arrays(3)%address, first) - first) < 1024*mib, 'the arrays are in different memories')
            call check_verified(arrays, policy)
            call check_pages(arrays, policy, page_size, merge(1.0_r8, 0.0_r8, kind == pages_thp%kind))
            do i = 1, 3
                call check(is_accessible(address_at(arrays(i), -1_i8 - arrays(i)%offset), 1_i8) == 0, 'no guard')
            end do
            call release(arrays)
        end do
    end subroutine test_static

    subroutine test_static_too_large()
        type(error_t) :: short, enough

        call pages_require(pages_none, [600*mib, 600*mib], short, static=.true.)
        call check_failed(short, exit_usage, '1024', '--allocation dynamic')
        call pages_require(pages_none, [300*mib, 300*mib], enough, static=.true.)
        call check_ok(enough)
        call refuse(pages_none, 1024*mib, 0_i8, exit_usage, '1024', '--allocation dynamic', static=.true.)
    end subroutine test_static_too_large

    subroutine test_static_pool()
        type(error_t) :: error

        call pages_require(pages_hugetlbfs, [mib], error, static=.true.)
        call check_failed(error, exit_pages, 'libhugetlbfs', '--allocation dynamic')
        call refuse(pages_hugetlbfs, mib, 0_i8, exit_pages, 'libhugetlbfs', '--allocation dynamic', static=.true.)
    end subroutine test_static_pool

    !> Allocating fails with this code and these texts.
    subroutine refuse(policy, bytes, offset, code, message, remedy, static)
        type(pages_policy_t), intent(in) :: policy
        integer(i8), intent(in) :: bytes, offset
        integer, intent(in) :: code
        character(*), intent(in) :: message, remedy
        logical, intent(in), optional :: static
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_allocate(array, policy, 'a', bytes, offset, error, static)
        call check_failed(error, code, message, remedy)
        call check(.not. c_associated(array%address), 'an address despite an error')
    end subroutine refuse

end module array_cases
