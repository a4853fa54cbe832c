!> Tests of policy hugetlbfs.
module pool_cases
    use, intrinsic :: iso_c_binding, only: c_null_char
    use evidence, only: number_in
    use page_checks, only: check, check_failed, check_ok, check_pages, mib, policy_argument, skip, three_arrays, touch, &
        unavailable
    use pw_error, only: error_t, exit_pages
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_free, pages_hugetlbfs, pages_observe, &
        pages_policy_t, pages_require, pages_verify
    use pw_record, only: pages_record_t
    use pw_text, only: to_text
    implicit none
    private

    public :: run_pool_case

contains

    !> Run the case of this name; `known`: whether it is one of these.
    subroutine run_pool_case(name, known)
        character(*), intent(in) :: name
        logical, intent(out) :: known

        known = .true.
        select case (name)
        case ('pool'); call test_pool()
        case ('pool_1g'); call test_pool_1g()
        case ('pool_short'); call test_pool_short()
        case ('pool_unsupported'); call test_pool_unsupported()
        case ('pool_limited'); call test_pool_limited()
        case default; known = .false.
        end select
    end subroutine run_pool_case

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
            call skip('the hugetlb pool can grow by itself (nr_overcommit_hugepages)')
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

    !> Control groups leave two pages of 2 MiB (with_files), and the pool is empty: the limit is the first cause.
    subroutine test_pool_limited()
        type(pages_policy_t), parameter :: small = pages_policy_t(pages_hugetlbfs%kind, 2*mib)
        type(paged_array_t) :: array
        type(error_t) :: error

        call pages_require(small, [5*mib], error)
        call check_failed(error, exit_pages, 'allow 2 more', 'hugetlb.*.max')
        error = error_t()
        call pages_allocate(array, small, 'a', 5*mib, 0_i8, error)
        call check_failed(error, exit_pages, 'allow 2 more', 'hugetlb.*.max')
        error = error_t()
        call pages_require(small, [4*mib], error)
        call check_failed(error, exit_pages, '2 of them are missing', 'nr_hugepages')
    end subroutine test_pool_limited

    integer(i8) function pool_number(page_size, name)
        integer(i8), intent(in) :: page_size
        character(*), intent(in) :: name

        pool_number = number_in('/sys/kernel/mm/hugepages/hugepages-'//to_text(page_size/1024_i8)//'kB/'//name//c_null_char)
    end function pool_number

end module pool_cases
