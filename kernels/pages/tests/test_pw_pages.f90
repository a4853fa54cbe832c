!> Tests of pw_pages, one per call: `test_pw_pages <name>`. Exit 0: passed, 1: failed, 77: cannot be tested here.
program test_pw_pages
    use, intrinsic :: iso_fortran_env, only: error_unit
    use array_cases, only: test_free, test_policy_names, test_senseless_sizes, test_static, test_static_pool, &
        test_static_too_large, test_untouched
    use page_checks, only: check, failures, skip_reason
    use policy_cases, only: test_none, test_none_rejected, test_none_without_mthp, test_pool, test_pool_1g, test_pool_limited, &
        test_pool_short, test_pool_unsupported, test_thp, test_thp_64k, test_thp_64k_dropped, test_thp_64k_refused, &
        test_thp_64k_rejected, test_thp_available, test_thp_collapsed, test_thp_refused_by_parent, test_thp_short, &
        test_thp_split, test_thp_unavailable, test_thp_unless_advised
    use pw_error, only: end_program
    use pw_system, only: base_page_size
    use pw_text, only: to_text
    implicit none
    character(32) :: name

    call get_command_argument(1, name)
    select case (name)
    case ('policy_names'); call test_policy_names()
    case ('senseless_sizes'); call test_senseless_sizes()
    case ('static'); call test_static()
    case ('static_too_large'); call test_static_too_large()
    case ('static_pool'); call test_static_pool()
    case ('untouched'); call test_untouched()
    case ('free'); call test_free()
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
    case ('thp_dropped', 'thp_unmapped', 'thp_protected'); call test_thp_split(trim(name))
    case ('thp_64k'); call test_thp_64k('kpageflags', .false.)
    case ('thp_64k_static'); call test_thp_64k('kpageflags', .true.)
    case ('thp_64k_by_statistics'); call test_thp_64k('thp_stats', .false.)
    case ('thp_64k_dropped'); call test_thp_64k_dropped()
    case ('thp_64k_rejected'); call test_thp_64k_rejected()
    case ('thp_64k_not_served')
        call test_thp_64k_refused('policy thp:64k: 4096 of 4096 KiB are not on huge pages of 64 KiB (array a: 4096 of 4096 '// &
                                  'KiB), most of it on pages of '//to_text(base_page_size()/1024)//' KiB', 'fragmented')
    case ('thp_64k_unverified'); call test_thp_64k_refused('64 KiB', 'root')
    case ('pool'); call test_pool()
    case ('pool_1g'); call test_pool_1g()
    case ('pool_short'); call test_pool_short()
    case ('pool_unsupported'); call test_pool_unsupported()
    case ('pool_limited'); call test_pool_limited()
    case default; call check(.false., "no such test: '"//trim(name)//"'")
    end select
    if (failures > 0) call end_program(1)
    if (allocated(skip_reason)) then
        write (error_unit, '(a)') 'skipped: '//skip_reason
        call end_program(77)
    end if
end program test_pw_pages
