!> Tests of pw_pages, one per call: `test_pw_pages <name>`. Exit 0: passed, 1: failed, 77: cannot be tested here.
program test_pw_pages
    use, intrinsic :: iso_fortran_env, only: error_unit
    use array_cases, only: run_array_case
    use base_page_cases, only: run_base_page_case
    use mthp_cases, only: run_mthp_case
    use page_checks, only: check, failures, skip_reason
    use pool_cases, only: run_pool_case
    use pw_error, only: end_program
    use thp_cases, only: run_thp_case
    implicit none
    character(32) :: name
    logical :: known

    call get_command_argument(1, name)
    call run_array_case(name, known)
    if (.not. known) call run_base_page_case(name, known)
    if (.not. known) call run_thp_case(name, known)
    if (.not. known) call run_mthp_case(name, known)
    if (.not. known) call run_pool_case(name, known)
    call check(known, "no such test: '"//trim(name)//"'")
    if (failures > 0) call end_program(1)
    if (allocated(skip_reason)) then
        write (error_unit, '(a)') 'skipped: '//skip_reason
        call end_program(77)
    end if
end program test_pw_pages
