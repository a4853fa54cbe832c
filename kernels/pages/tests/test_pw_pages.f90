!> Tests of pw_pages, one per call: `test_pw_pages <name>`. Exit 0: passed, 1: failed, 77: cannot be tested here.
!>
!> What smaps shows is compared with PAGEMAP_SCAN, which reads the page tables independently.
program test_pw_pages
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_pointer, c_int32_t, c_int64_t, c_intptr_t, &
        c_null_char, c_ptr
    use, intrinsic :: iso_fortran_env, only: error_unit, int8
    use pw_error, only: end_program, error_t, exit_ok, exit_pages, exit_usage
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_verify, pages_free, pages_hugetlbfs, &
        pages_none, pages_policy_from_name, pages_policy_name, pages_policy_names, pages_policy_t, &
        pages_observe, pages_require, pages_thp
    use pw_record, only: pages_record_t
    use pw_system, only: base_page_size
    use pw_text, only: from_c, to_text
    implicit none

    interface
        integer(c_int64_t) function huge_bytes_of(address, bytes) bind(c, name='evidence_huge_bytes')
            import :: c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes
        end function huge_bytes_of

        integer(c_int64_t) function compound_bytes_of(address, bytes) bind(c, name='evidence_compound_bytes')
            import :: c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes
        end function compound_bytes_of

        type(c_ptr) function plain_memory(bytes) bind(c, name='evidence_plain_memory')
            import :: c_int64_t, c_ptr
            integer(c_int64_t), value :: bytes
        end function plain_memory

        integer(c_int32_t) function is_accessible(address, bytes) bind(c, name='evidence_is_accessible')
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes
        end function is_accessible

        integer(c_int32_t) function drop_page(address) bind(c, name='evidence_drop_page')
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: address
        end function drop_page

        integer(c_int32_t) function unmap_page(address) bind(c, name='evidence_unmap_page')
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: address
        end function unmap_page

        integer(c_int32_t) function protect_page(address) bind(c, name='evidence_protect_page')
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: address
        end function protect_page

        integer(c_int32_t) function advise(address, bytes, huge_size, huge) bind(c, name='evidence_advise')
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes, huge_size
            integer(c_int32_t), value :: huge
        end function advise

        integer(c_int32_t) function can_collapse() bind(c, name='evidence_can_collapse')
            import :: c_int32_t
        end function can_collapse

        integer(c_int32_t) function thp_disabled() bind(c, name='evidence_thp_disabled')
            import :: c_int32_t
        end function thp_disabled

        integer(c_int64_t) function number_in(path) bind(c, name='evidence_number')
            import :: c_char, c_int64_t
            character(kind=c_char), intent(in) :: path(*)
        end function number_in
    end interface

    character(*), parameter :: thp_folder = '/sys/kernel/mm/transparent_hugepage/'
    integer(i8), parameter :: mib = 1024_i8**2
    integer(i8), parameter :: size_64k = 65536_i8
    type(pages_policy_t), parameter :: thp_64k = pages_policy_t(pages_thp%kind, size_64k)

    character(:), allocatable :: skip_reason
    character(32) :: test
    integer :: failures

    failures = 0
    skip_reason = ''
    call get_command_argument(1, test)
    select case (test)
    case ('policy_names'); call test_policy_names()
    case ('senseless_sizes'); call test_senseless_sizes()
    case ('none'); call test_none()
    case ('none_without_mthp'); call test_none_without_mthp()
    case ('none_rejected'); call test_none_rejected()
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
    case ('thp_64k'); call test_thp_64k('kpageflags', .false.)
    case ('thp_64k_static'); call test_thp_64k('kpageflags', .true.)
    case ('thp_64k_by_statistics'); call test_thp_64k('thp_stats', .false.)
    case ('thp_64k_dropped'); call test_thp_64k_dropped()
    case ('thp_64k_not_served'); call test_thp_64k_not_served()
    case ('thp_64k_rejected'); call test_thp_64k_rejected()
    case ('thp_64k_unverified'); call test_thp_64k_unverified()
    case ('static'); call test_static()
    case ('static_too_large'); call test_static_too_large()
    case ('static_pool'); call test_static_pool()
    case ('pool'); call test_pool()
    case ('pool_1g'); call test_pool_1g()
    case ('pool_short'); call test_pool_short()
    case ('pool_unsupported'); call test_pool_unsupported()
    case ('untouched'); call test_untouched()
    case ('free'); call test_free()
    case default
        write (error_unit, '(a)') "no such test: '"//trim(test)//"'"
        failures = 1
    end select
    if (failures > 0) call end_program(1)
    if (skip_reason /= '') then
        write (error_unit, '(a)') 'skipped: '//skip_reason
        call end_program(77)
    end if

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

    integer(i8) function thp_size()
        thp_size = number_in(thp_folder//'hpage_pmd_size'//c_null_char)
    end function thp_size

    integer(i8) function pool_number(page_size, name)
        integer(i8), intent(in) :: page_size
        character(*), intent(in) :: name

        pool_number = number_in('/sys/kernel/mm/hugepages/hugepages-'//to_text(page_size/1024_i8)//'kB/'//name//c_null_char)
    end function pool_number

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

    !> Three arrays as a kernel has them: odd lengths, staggered starts.
    subroutine three_arrays(arrays, policy, huge_size, error, static)
        type(paged_array_t), intent(out) :: arrays(3)
        type(pages_policy_t), intent(in) :: policy
        integer(i8), intent(in) :: huge_size
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: static
        character(1), parameter :: name(3) = ['a', 'b', 'c']
        integer(i8) :: bytes(3), offset
        integer :: i

        bytes = [8*mib, 5*mib + 4321_i8, 1_i8]
        do i = 1, 3
            offset = 4352_i8*(i - 1)
            call pages_allocate(arrays(i), policy, name(i), bytes(i), offset, error, static)
            if (error%failed()) return
            call check(arrays(i)%bytes == bytes(i) .and. arrays(i)%offset == offset .and. from_c(arrays(i)%name) == name(i) &
                       .and. same(arrays(i)%policy, policy), 'array '//name(i)//' does not describe the request')
            call check(modulo(transfer(arrays(i)%address, 0_c_intptr_t), int(huge_size, c_intptr_t)) == &
                       modulo(offset, huge_size), 'array '//name(i)//' does not start at its offset from a huge page')
            call touch(arrays(i))
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
                    skip_reason = 'smaps is as expected, but this kernel has no PAGEMAP_SCAN to compare it with (Linux 6.7)'
                else
                    call check(min(evidence, arrays(i)%bytes) == array%huge_bytes, &
                               'the page tables of '//array%name//' show '//to_text(evidence)//' B')
                end if
            end associate
        end do
    end subroutine check_pages

    subroutine test_policy_names()
        type(error_t) :: error
        type(pages_policy_t) :: policy
        type(pages_policy_t), parameter :: policies(3) = [pages_none, pages_thp, pages_hugetlbfs]
        character(16), parameter :: wrong(6) = [character(16) :: 'huge', '', 'thp:', 'thp:3k', 'none:4k', 'hugetlbfs:64']
        character(:), allocatable :: names, name
        integer :: i, bar

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
        call check(index(names, 'none|thp|') == 1 .and. index(names, '|hugetlbfs|') > 0, 'a policy is missing')
        do while (len(names) > 0)
            bar = index(names, '|')
            name = names(:bar - 1)
            names = names(bar + 1:)
            call pages_policy_from_name(name, policy, error)
            call check_ok(error)
            call check(pages_policy_name(policy) == name, name//' is called '//pages_policy_name(policy))
        end do
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

    subroutine refuse(policy, bytes, offset)
        type(pages_policy_t), intent(in) :: policy
        integer(i8), intent(in) :: bytes, offset
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_allocate(array, policy, 'a', bytes, offset, error)
        call check_failed(error, exit_usage, to_text(bytes), 'at least one byte')
        call check(.not. c_associated(array%address), 'an address despite an error')
    end subroutine refuse

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
            skip_reason = 'the flags of pages cannot be read (/proc/kpageflags, root)'
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

    elemental logical function same(one, other)
        type(pages_policy_t), intent(in) :: one, other

        same = one%kind == other%kind .and. one%page_size == other%page_size
    end function same

    !> Whether the machine's settings do not allow the policy, so that its other tests are void.
    logical function unavailable(error)
        type(error_t), intent(in) :: error

        unavailable = error%failed()
        if (unavailable) skip_reason = error%message
    end function unavailable

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
            skip_reason = error%message
            return
        end if
        call check_failed(error, exit_pages, 'PR_SET_THP_DISABLE', 'shell or batch job')
    end subroutine test_thp_refused_by_parent

    !> The parent disabled only memory without advice: the arrays have it.
    subroutine test_thp_unless_advised()
        call check(thp_disabled() == 3, 'the refusal did not survive exec')
        call test_thp()
        if (index(skip_reason, 'PR_SET_THP_DISABLE') > 0) call check(.false., skip_reason)
    end subroutine test_thp_unless_advised

    !> The machine supports them (with_files).
    subroutine test_thp_available()
        type(error_t) :: error

        call pages_begin(pages_thp, error)
        if (thp_disabled() == 1) then
            skip_reason = error%message
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
            skip_reason = 'this kernel cannot collapse memory (needs Linux 6.1)'
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
                          '4096 of 4096 KiB), most of it on pages of 4 KiB', 'fragmented')
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
            skip_reason = 'the flags of pages cannot be read (/proc/kpageflags, root)'
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

    !> Under with_settings, which reserves a page of 1 GiB if the machine has the memory.
    subroutine test_pool_1g()
        type(pages_policy_t), parameter :: pool_1g = pages_policy_t(pages_hugetlbfs%kind, 1024*mib)
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_begin(pool_1g, error)
        call check_ok(error)
        call pages_require(pool_1g, [5*mib], error)
        call check_ok(error)
        call pages_allocate(array, pool_1g, 'a', 5*mib, 4352_i8, error)
        call check_ok(error)
        if (error%failed()) return
        call touch(array)
        call pages_verify([array], pool_1g, error)
        call check_ok(error)
        call check_pages([array], pool_1g, 1024*mib, 1.0_r8)
        call check(pool_number(1024*mib, 'free_hugepages') == 0, 'the page does not come from the pool')
        call pages_free(array, error)
        call check_ok(error)
    end subroutine test_pool_1g

    !> Under with_settings, which fills the hugetlb pool.
    subroutine test_pool()
        type(paged_array_t) :: arrays(3)
        type(error_t) :: error
        type(pages_record_t) :: observed
        integer(i8) :: size, free_before
        integer :: i

        call pages_begin(pages_hugetlbfs, error)
        call check_ok(error)
        call pages_observe(arrays(:0), pages_hugetlbfs, observed, error)
        call check_ok(error)
        size = observed%page_size_requested
        free_before = pool_number(size, 'free_hugepages')
        call pages_require(pages_hugetlbfs, [8*mib, 6*mib, mib], error)
        call check_ok(error)
        call three_arrays(arrays, pages_hugetlbfs, size, error)
        call check_ok(error)
        if (error%failed()) return
        call pages_verify(arrays, pages_hugetlbfs, error)
        call check_ok(error)
        call check_pages(arrays, pages_hugetlbfs, size, 1.0_r8)
        call check(pool_number(size, 'free_hugepages') < free_before, 'the pages do not come from the pool')
        do i = 1, 3
            call pages_free(arrays(i), error)
            call check_ok(error)
        end do
        call check(pool_number(size, 'free_hugepages') == free_before, 'the pages were not returned to the pool')
    end subroutine test_pool

    !> Whatever the pool holds: request three pages more, at once or with a second array. The command line names the policy
    !> if it is not that of the default pool.
    subroutine test_pool_short()
        integer(i8), parameter :: more = 3
        type(pages_policy_t) :: policy
        type(paged_array_t) :: held, array
        type(error_t) :: error
        type(pages_record_t) :: observed
        character(:), allocatable :: remedy
        integer(i8) :: size, available, total

        policy = policy_argument(2, pages_hugetlbfs)
        call pages_begin(policy, error)
        if (unavailable(error)) return
        call pages_observe([paged_array_t ::], policy, observed, error)
        call check_ok(error)
        size = observed%page_size_requested
        if (pool_number(size, 'nr_overcommit_hugepages') > 0) then
            skip_reason = 'the hugetlb pool can grow by itself (nr_overcommit_hugepages)'
            return
        end if
        total = pool_number(size, 'nr_hugepages')
        available = pool_number(size, 'free_hugepages') - pool_number(size, 'resv_hugepages')
        remedy = 'sysctl -w vm.nr_hugepages='//to_text(total + more)//';'
        if (policy%page_size > 0) &
            remedy = 'echo '//to_text(total + more)//' > /sys/kernel/mm/hugepages/hugepages-'//to_text(size/1024_i8)//'kB/'

        call pages_require(policy, [size*available, size*more - 1_i8], error)
        call check_failed(error, exit_pages, to_text(more)//' of them are missing', remedy)
        error = error_t()
        call pages_allocate(array, policy, 'a', size*(available + more), 0_i8, error)
        call check_failed(error, exit_pages, 'array a needs '//to_text(available + more)//' huge pages of '// &
                          to_text(size/1024_i8)//' KiB, and '//to_text(more)//' of them are missing', remedy)
        error = error_t()
        call pages_allocate(array, policy, 'a', 1_i8, size*(available + more - 1_i8), error)
        call check_failed(error, exit_pages, to_text(more)//' of them are missing', remedy)
        if (available == 0) return
        error = error_t()
        call pages_allocate(held, policy, 'held', size*available, 0_i8, error)
        call check_ok(error)
        call pages_allocate(array, policy, 'b', size*more, 0_i8, error)
        call check_failed(error, exit_pages, 'array b needs '//to_text(more)//' huge', remedy)
        call touch(held)
    end subroutine test_pool_short

    !> The machine does not support hugetlbfs (with_files).
    subroutine test_pool_unsupported()
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_begin(pages_hugetlbfs, error)
        call check_failed(error, exit_pages, 'policy hugetlbfs', 'CONFIG_HUGETLBFS')
        error = error_t()
        call pages_require(pages_hugetlbfs, [1_i8], error)
        call check_failed(error, exit_pages, 'policy hugetlbfs', 'CONFIG_HUGETLBFS')
        error = error_t()
        call pages_allocate(array, pages_hugetlbfs, 'a', 1_i8, 0_i8, error)
        call check_failed(error, exit_pages, 'policy hugetlbfs', 'CONFIG_HUGETLBFS')
    end subroutine test_pool_unsupported

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

end program test_pw_pages
