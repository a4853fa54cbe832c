!> Tests of policy thp.
module thp_cases
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_ptr
    use evidence, only: advise, can_collapse, drop_page, protect_page, thp_disabled, unmap_page
    use page_checks, only: address_at, check, check_failed, check_ok, check_pages, mib, policy_argument, skip, skip_reason, &
        three_arrays, thp_size, touch, unavailable
    use pw_error, only: error_t, exit_pages
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_observe, pages_policy_t, pages_thp, pages_verify
    use pw_record, only: pages_record_t
    use pw_system, only: base_page_size
    use pw_text, only: to_text
    implicit none
    private

    public :: run_thp_case

contains

    !> Run the case of this name; `known`: whether it is one of these.
    subroutine run_thp_case(name, known)
        character(*), intent(in) :: name
        logical, intent(out) :: known

        known = .true.
        select case (name)
        case ('thp'); call test_thp()
        case ('thp_unavailable'); call test_thp_unavailable()
        case ('thp_refused_by_parent'); call test_thp_refused_by_parent()
        case ('thp_unless_advised'); call test_thp_unless_advised()
        case ('thp_available'); call test_thp_available()
        case ('thp_collapsed'); call test_thp_collapsed()
        case ('thp_short'); call test_thp_short()
        case ('thp_dropped'); call test_thp_split('dropped')
        case ('thp_unmapped'); call test_thp_split('unmapped')
        case ('thp_protected'); call test_thp_split('protected')
        case default; known = .false.
        end select
    end subroutine run_thp_case

    subroutine test_thp()
        type(paged_array_t) :: arrays(3)
        type(error_t) :: error

        call pages_begin(pages_thp, error)
        if (unavailable(error)) return
        call three_arrays(arrays, pages_thp, thp_size(), error)
        call check_ok(error)
        call pages_verify(arrays, pages_thp, error)
        call check_ok(error)
        call check_pages(arrays, pages_thp, thp_size(), 1.0_r8)
    end subroutine test_thp

    !> The machine is one without transparent huge pages of this size (with_files); the command line gives what
    !> message and remedy must contain, and the size if it is not the PMD size.
    subroutine test_thp_unavailable()
        type(error_t) :: error
        type(pages_policy_t) :: policy
        character(128) :: message, remedy

        call get_command_argument(2, message)
        call get_command_argument(3, remedy)
        policy = policy_argument(4, pages_thp)
        call pages_begin(policy, error)
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
        type(error_t) :: error

        call pages_begin(pages_thp, error)
        if (thp_disabled() == 1) then
            call skip(error%message)
            return
        end if
        call check_ok(error)
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
        call pages_begin(pages_thp, error)
        if (unavailable(error)) return
        call pages_allocate(array, pages_thp, 'a', 8*mib, 4352_i8, error)
        call check_ok(error)
        call check(advise(array%address, array%bytes, thp_size(), 0_c_int32_t) == 0, 'cannot advise')
        call touch(array)
        call check(advise(array%address, array%bytes, thp_size(), 1_c_int32_t) == 0, 'cannot advise')
        call pages_observe([array], pages_thp, observed, error)
        call check_ok(error)
        call check(observed%page_size_observed == base_page_size(), 'base pages were not observed')
        call pages_verify([array], pages_thp, error)
        call check_ok(error)
        call check_pages([array], pages_thp, thp_size(), 1.0_r8)
    end subroutine test_thp_collapsed

    !> The error reports how much of which array cannot be collapsed.
    subroutine test_thp_short()
        type(paged_array_t) :: arrays(2)
        type(error_t) :: error
        integer(i8) :: size

        call pages_begin(pages_thp, error)
        if (unavailable(error)) return
        size = thp_size()
        call pages_allocate(arrays(1), pages_thp, 'a', 2*size, 0_i8, error)
        call check_ok(error)
        call pages_allocate(arrays(2), pages_thp, 'b', 4*size, 0_i8, error)
        call check_ok(error)
        call touch(arrays(1))
        call check(advise(arrays(2)%address, size, size, 0_c_int32_t) == 0, 'cannot advise')
        call touch(arrays(2))
        call pages_verify(arrays, pages_thp, error)
        call check_failed(error, exit_pages, to_text(size/1024_i8)//' of '//to_text(6*size/1024_i8)// &
                          ' KiB are not on huge pages of '//to_text(size/1024_i8)//' KiB (array b: ', 'compact_memory')
    end subroutine test_thp_short

    !> After page verification one base page is dropped, unmapped or protected: the huge page around it is split, and the
    !> observed pages lose exactly that huge page.
    subroutine test_thp_split(how)
        character(*), intent(in) :: how
        type(paged_array_t) :: array
        type(error_t) :: error
        type(c_ptr) :: middle
        integer(c_int32_t) :: refused
        integer(i8) :: size

        call pages_begin(pages_thp, error)
        if (unavailable(error)) return
        size = thp_size()
        call pages_allocate(array, pages_thp, 'a', 8*size, 0_i8, error)
        call check_ok(error)
        call touch(array)
        call pages_verify([array], pages_thp, error)
        call check_ok(error)
        call check_pages([array], pages_thp, size, 1.0_r8)
        middle = address_at(array, 3*size + size/2)
        refused = 1
        select case (how)
        case ('dropped'); refused = drop_page(middle)
        case ('unmapped'); refused = unmap_page(middle)
        case ('protected'); refused = protect_page(middle)
        end select
        call check(refused == 0, 'the page cannot be '//how)
        call check_pages([array], pages_thp, size, 7.0_r8/8.0_r8)
    end subroutine test_thp_split

end module thp_cases
