!> Tests of policy none.
module base_page_cases
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_ptr
    use evidence, only: advise, compound_bytes_of, plain_memory, thp_disabled
    use page_checks, only: check, check_failed, check_ok, check_pages, mib, skip, three_arrays, thp_size, touch, unavailable
    use pw_error, only: error_t, exit_pages
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_none, pages_thp, pages_verify
    use pw_system, only: base_page_size
    use pw_text, only: to_text
    implicit none
    private

    public :: run_base_page_case

contains

    !> Run the case of this name; `known`: whether it is one of these.
    subroutine run_base_page_case(name, known)
        character(*), intent(in) :: name
        logical, intent(out) :: known

        known = .true.
        select case (name)
        case ('none'); call test_none()
        case ('none_without_mthp'); call test_none_without_mthp()
        case ('none_rejected'); call test_none_rejected()
        case default; known = .false.
        end select
    end subroutine run_base_page_case

    subroutine test_none()
        type(paged_array_t) :: arrays(3)
        type(error_t) :: error

        call pages_begin(pages_none, error)
        call check_ok(error)
        call check(thp_disabled() == 1, 'transparent huge pages are not refused to the process')
        call three_arrays(arrays, pages_none, max(thp_size(), base_page_size()), error)
        call check_ok(error)
        call pages_verify(arrays, pages_none, error)
        call check_ok(error)
        call check_pages(arrays, pages_none, base_page_size(), 0.0_r8)
    end subroutine test_none

    !> On a machine that gives huge pages of several sizes without advice, policy none gets none of them.
    subroutine test_none_without_mthp()
        type(paged_array_t) :: array
        type(c_ptr) :: plain
        type(error_t) :: error
        integer(i8) :: compound

        plain = plain_memory(8*mib)
        compound = compound_bytes_of(plain, 8*mib)
        if (compound < 0) then
            call skip('the flags of pages cannot be read (/proc/kpageflags, root)')
            return
        end if
        call check(compound > 0, 'without a policy this machine gives base pages: the test would be void')
        call pages_begin(pages_none, error)
        call check_ok(error)
        call pages_allocate(array, pages_none, 'a', 8*mib, 0_i8, error)
        call check_ok(error)
        call touch(array)
        call pages_verify([array], pages_none, error)
        call check_ok(error)
        compound = compound_bytes_of(array%address, array%bytes)
        call check(compound == 0, to_text(compound)//' B lie on huge pages')
        call pages_allocate(array, pages_none, 'b', 8*mib, 0_i8, error, static=.true.)
        call check_ok(error)
        call touch(array)
        call pages_verify([array], pages_none, error)
        call check_ok(error)
        compound = compound_bytes_of(array%address, array%bytes)
        call check(compound == 0, to_text(compound)//' B of the static array lie on huge pages')
        plain = plain_memory(8*mib)
        compound = compound_bytes_of(plain, 8*mib)
        call check(compound == 0, to_text(compound)//' B of other memory lie on huge pages')
    end subroutine test_none_without_mthp

    !> Huge pages, or only eligibility for them, fail policy none.
    subroutine test_none_rejected()
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_begin(pages_thp, error)
        if (unavailable(error)) return
        call pages_allocate(array, pages_thp, 'a', 3*mib, 0_i8, error)
        call check_ok(error)
        call touch(array)
        call pages_verify([array], pages_none, error)
        call check_failed(error, exit_pages, 'array a has 3072 KiB', 'never')

        error = error_t()
        call pages_allocate(array, pages_none, 'b', 3*mib, 0_i8, error)
        call check_ok(error)
        call touch(array)
        call pages_verify([array], pages_none, error)
        call check_ok(error)
        call check(advise(array%address, array%bytes, thp_size(), 1_c_int32_t) == 0, 'cannot advise')
        call pages_verify([array], pages_none, error)
        call check_failed(error, exit_pages, 'array b', 'madvise')
    end subroutine test_none_rejected

end module base_page_cases
