!> Tests of pw_pages: names of policies, and arrays, dynamic and static, whatever their pages.
module array_cases
    use, intrinsic :: iso_c_binding, only: c_associated, c_intptr_t, c_ptr
    use evidence, only: is_accessible
    use page_checks, only: address_at, check, check_failed, check_ok, check_pages, mib, same, three_arrays, thp_size, touch, &
        unavailable
    use pw_error, only: error_t, exit_ok, exit_pages, exit_usage
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_free, pages_hugetlbfs, pages_none, pages_observe, &
        pages_policy_from_name, pages_policy_name, pages_policy_names, pages_policy_t, pages_require, pages_thp, pages_verify
    use pw_record, only: pages_record_t
    use pw_system, only: base_page_size
    use pw_text, only: to_text
    implicit none
    private

    public :: run_array_case

contains

    !> Run the case of this name; `known`: whether it is one of these.
    subroutine run_array_case(name, known)
        character(*), intent(in) :: name
        logical, intent(out) :: known

        known = .true.
        select case (name)
        case ('policy_names'); call test_policy_names()
        case ('senseless_sizes'); call test_senseless_sizes()
        case ('static'); call test_static()
        case ('static_too_large'); call test_static_too_large()
        case ('static_pool'); call test_static_pool()
        case ('untouched'); call test_untouched()
        case ('free'); call test_free()
        case default; known = .false.
        end select
    end subroutine run_array_case

    subroutine test_policy_names()
        type(error_t) :: error
        type(pages_policy_t) :: policy
        type(pages_policy_t), parameter :: policies(3) = [pages_none, pages_thp, pages_hugetlbfs]
        character(22), parameter :: same_size(4) = [character(22) :: 'hugetlbfs:1G', 'hugetlbfs:1024m', 'hugetlbfs:1048576K', &
                                                    'hugetlbfs:1g']
        character(22), parameter :: wrong(13) = [character(22) :: 'huge', '', 'thp:', 'thp:3k', 'none:4k', 'hugetlbfs:64', &
                                                 'hugetlbfs:2', 'hugetlbfs:2M2', 'hugetlbfs:2MB', 'hugetlbfs:-1g', 'hugetlbfs:0g', &
                                                 'hugetlbfs:99999999999g', 'thp:9999999t']
        character(:), allocatable :: names, name
        character(128) :: expected   ! all policies of the machine, if the test knows it
        integer :: i, bar
        logical :: has_1g

        do i = 1, size(policies)
            call pages_policy_from_name(pages_policy_name(policies(i)), policy, error)
            call check_ok(error)
            call check(same(policy, policies(i)), 'the name of policy '//to_text(policies(i)%kind)//' is another''s')
        end do
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
            call pages_policy_from_name(name, policy, error)
            call check_ok(error)
            call check(pages_policy_name(policy) == name, name//' is called '//pages_policy_name(policy))
        end do
        if (has_1g) then
            do i = 1, size(same_size)
                call pages_policy_from_name(trim(same_size(i)), policy, error)
                call check_ok(error)
                call check(pages_policy_name(policy) == 'hugetlbfs:1g', trim(same_size(i))//' is '//pages_policy_name(policy))
            end do
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

    subroutine test_senseless_sizes()
        type(paged_array_t) :: array
        type(error_t) :: error
        integer :: kind

        do kind = pages_none%kind, pages_hugetlbfs%kind
            call refuse(pages_policy_t(kind), 0_i8, 0_i8)
            call refuse(pages_policy_t(kind), -8_i8, 0_i8)
            call refuse(pages_policy_t(kind), 8_i8, -8_i8)
            call refuse(pages_policy_t(kind), huge(0_i8), 0_i8)
            call refuse(pages_policy_t(kind), 8_i8, huge(0_i8))
        end do
        call pages_free(array, error)
        call check_ok(error)
    end subroutine test_senseless_sizes

    !> No page size is observed for untouched memory, and mapping more than 4 GiB of it costs nothing.
    subroutine test_untouched()
        type(paged_array_t) :: array
        type(error_t) :: error
        ! On the stack, gfortran 14 reports the bounds of its unallocated components as used uninitialised.
        type(pages_record_t), allocatable :: observed
        integer(i8), parameter :: bytes = 4096*mib + 1_i8
        type(pages_policy_t) :: policy
        integer :: kind

        allocate (observed)
        do kind = pages_none%kind, pages_thp%kind
            policy = pages_policy_t(kind)
            call pages_allocate(array, policy, 'a', bytes, 8*mib, error)
            call check_ok(error)
            if (error%failed()) return
            call pages_observe([array], policy, observed, error)
            call check_ok(error)
            call check(observed%page_size_observed == 0, 'a page size of untouched memory')
            call check(observed%arrays(1)%huge_bytes == 0 .and. observed%arrays(1)%bytes == bytes, 'wrong bytes')
            call pages_free(array, error)
            call check_ok(error)
        end do
        call pages_allocate(array, pages_thp, 'a', bytes, 0_i8, error)
        call check_ok(error)
        call pages_verify([array], pages_thp, error)
        call check_failed(error, exit_pages, '4194305 of 4194305 KiB', 'fragmented')
    end subroutine test_untouched

    subroutine test_free()
        type(paged_array_t) :: array
        type(c_ptr) :: address
        type(error_t) :: error
        type(pages_policy_t) :: policy
        integer :: kind

        do kind = pages_none%kind, pages_thp%kind
            policy = pages_policy_t(kind)
            call pages_allocate(array, policy, 'a', mib, 0_i8, error)
            call check_ok(error)
            call touch(array)
            address = array%address
            call check(is_accessible(address, mib) == 1, 'the array cannot be read')
            call check(is_accessible(address_at(array, -1_i8), 1_i8) == 0, 'no guard before the array')
            call pages_free(array, error)
            call check_ok(error)
            call check(is_accessible(address, mib) == 0, 'the memory is still mapped')
            call check(.not. c_associated(array%address) .and. array%bytes == 0, 'the array is not reset')
            call pages_free(array, error)
            call check_ok(error)
            call check(error%code == exit_ok, 'freeing twice is an error')
        end do
    end subroutine test_free

    !> Static arrays get the pages of a policy as dynamic ones do, repeatedly.
    subroutine test_static()
        type(paged_array_t) :: arrays(3)
        type(error_t) :: error
        type(pages_policy_t) :: policy
        integer(i8) :: page_size
        integer(c_intptr_t) :: first
        integer :: i, kind

        first = 0
        do kind = pages_thp%kind, pages_none%kind, -1    ! none disables huge pages for the process permanently
            policy = pages_policy_t(kind)
            call pages_begin(policy, error)
            if (unavailable(error)) then
                error = error_t()
                cycle
            end if
            page_size = merge(thp_size(), base_page_size(), kind == pages_thp%kind)
            call three_arrays(arrays, policy, min(thp_size(), 2*mib), error, static=.true.)
            call check_ok(error)
            if (error%failed()) return
            if (first == 0) first = transfer(arrays(1)%address, first)
            call check(transfer(arrays(1)%address, first) == first, 'freed static memory is not used again')
            call check(abs(transfer(arrays(3)%address, first) - first) < 1024*mib, 'the arrays are in different memories')
            call pages_verify(arrays, policy, error)
            call check_ok(error)
            call check_pages(arrays, policy, page_size, merge(1.0_r8, 0.0_r8, kind == pages_thp%kind))
            do i = 1, 3
                call check(is_accessible(address_at(arrays(i), -1_i8 - arrays(i)%offset), 1_i8) == 0, 'no guard')
                call pages_free(arrays(i), error)
                call check_ok(error)
            end do
        end do
    end subroutine test_static

    subroutine test_static_too_large()
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_require(pages_none, [600*mib, 600*mib], error, static=.true.)
        call check_failed(error, exit_usage, '1024', '--allocation dynamic')
        error = error_t()
        call pages_require(pages_none, [300*mib, 300*mib], error, static=.true.)
        call check_ok(error)
        call pages_allocate(array, pages_none, 'a', 1024*mib, 0_i8, error, static=.true.)
        call check_failed(error, exit_usage, '1024', '--allocation dynamic')
        call check(.not. c_associated(array%address), 'an address despite an error')
    end subroutine test_static_too_large

    subroutine test_static_pool()
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_require(pages_hugetlbfs, [mib], error, static=.true.)
        call check_failed(error, exit_pages, 'libhugetlbfs', '--allocation dynamic')
        error = error_t()
        call pages_allocate(array, pages_hugetlbfs, 'a', mib, 0_i8, error, static=.true.)
        call check_failed(error, exit_pages, 'libhugetlbfs', '--allocation dynamic')
    end subroutine test_static_pool

    subroutine refuse(policy, bytes, offset)
        type(pages_policy_t), intent(in) :: policy
        integer(i8), intent(in) :: bytes, offset
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_allocate(array, policy, 'a', bytes, offset, error)
        call check_failed(error, exit_usage, to_text(bytes), 'at least one byte')
        call check(.not. c_associated(array%address), 'an address despite an error')
    end subroutine refuse

end module array_cases
