!> Tests of policy thp:64k.
module mthp_cases
    use evidence, only: compound_bytes_of, drop_page
    use page_checks, only: address_at, check, check_failed, check_ok, check_pages, mib, skip, three_arrays, thp_folder, &
        thp_size, touch, unavailable
    use pw_error, only: error_t, exit_pages
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_observe, pages_policy_t, pages_thp, pages_verify
    use pw_record, only: pages_record_t
    use pw_system, only: base_page_size
    use pw_text, only: to_text
    implicit none
    private

    public :: run_mthp_case

    integer(i8), parameter :: size_64k = 65536_i8
    type(pages_policy_t), parameter :: thp_64k = pages_policy_t(pages_thp%kind, size_64k)

contains

    !> Run the case of this name; `known`: whether it is one of these.
    subroutine run_mthp_case(name, known)
        character(*), intent(in) :: name
        logical, intent(out) :: known

        known = .true.
        select case (name)
        case ('thp_64k'); call test_thp_64k('kpageflags', .false.)
        case ('thp_64k_static'); call test_thp_64k('kpageflags', .true.)
        case ('thp_64k_by_statistics'); call test_thp_64k('thp_stats', .false.)
        case ('thp_64k_dropped'); call test_thp_64k_dropped()
        case ('thp_64k_not_served'); call test_thp_64k_not_served()
        case ('thp_64k_rejected'); call test_thp_64k_rejected()
        case ('thp_64k_unverified'); call test_thp_64k_unverified()
        case default; known = .false.
        end select
    end subroutine run_mthp_case

    !> Pages of 64 KiB, whatever larger ones the machine would give (with_settings), verified by `method`.
    subroutine test_thp_64k(method, static)
        character(*), intent(in) :: method
        logical, intent(in) :: static
        type(paged_array_t) :: arrays(3)
        type(error_t) :: error
        integer :: i
        integer(i8) :: compound

        call pages_begin(thp_64k, error)
        if (unavailable(error)) return
        call three_arrays(arrays, thp_64k, thp_size(), error, static)
        call check_ok(error)
        call pages_verify(arrays, thp_64k, error)
        call check_ok(error)
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

        call pages_begin(thp_64k, error)
        if (unavailable(error)) return
        call pages_allocate(array, thp_64k, 'a', 8*size_64k, 0_i8, error)
        call check_ok(error)
        call touch(array)
        call pages_verify([array], thp_64k, error)
        call check_ok(error)
        call check(drop_page(address_at(array, 3*size_64k + 2*base_page_size())) == 0, 'the page cannot be dropped')
        call pages_observe([array], thp_64k, observed, error)
        call check_ok(error)
        associate (least => merge(7*size_64k, 7*size_64k - base_page_size(), observed%method == 'kpageflags'))
            call check(observed%arrays(1)%huge_bytes == least, to_text(observed%arrays(1)%huge_bytes)//' B by '//observed%method)
        end associate
        error = error_t()
        call pages_verify([array], thp_64k, error)
        call check_failed(error, exit_pages, ' of 512 KiB are not on huge pages of 64 KiB', 'compact_memory')
    end subroutine test_thp_64k_dropped

    !> The switch shows that they are enabled (with_files), but they are not.
    subroutine test_thp_64k_not_served()
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_begin(thp_64k, error)
        if (unavailable(error)) return
        call pages_allocate(array, thp_64k, 'a', 4*mib, 0_i8, error)
        call check_ok(error)
        call touch(array)
        call pages_verify([array], thp_64k, error)
        call check_failed(error, exit_pages, 'policy thp:64k: 4096 of 4096 KiB are not on huge pages of 64 KiB (array a: '// &
                          '4096 of 4096 KiB), most of it on pages of '//to_text(base_page_size()/1024_i8)//' KiB', 'fragmented')
    end subroutine test_thp_64k_not_served

    !> Pages of PMD size are not pages of 64 KiB.
    subroutine test_thp_64k_rejected()
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_begin(pages_thp, error)
        if (unavailable(error)) return
        call pages_allocate(array, pages_thp, 'a', 2*thp_size(), 0_i8, error)
        call check_ok(error)
        call touch(array)
        if (compound_bytes_of(array%address, array%bytes) < 0) then
            call skip('the flags of pages cannot be read (/proc/kpageflags, root)')
            return
        end if
        call pages_verify([array], thp_64k, error)
        call check_failed(error, exit_pages, 'most of it on pages of '//to_text(thp_size()/1024_i8)//' KiB', &
                          'echo never > '//thp_folder//'hugepages-'//to_text(thp_size()/1024_i8)//'kB/enabled')
    end subroutine test_thp_64k_rejected

    !> The flags of page frames are unreadable, and the kernel does not count (with_files).
    subroutine test_thp_64k_unverified()
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_begin(thp_64k, error)
        if (unavailable(error)) return
        call pages_allocate(array, thp_64k, 'a', mib, 0_i8, error)
        call check_ok(error)
        call touch(array)
        call pages_verify([array], thp_64k, error)
        call check_failed(error, exit_pages, '64 KiB', 'root')
    end subroutine test_thp_64k_unverified

end module mthp_cases
