! Two allocatable arrays of 16 MB, and two static ones; prints a sum.
module states
    use, intrinsic :: iso_fortran_env, only: real64
    implicit none(type, external)
    private
    public :: allocate_first, allocate_second, table, other_table
    real(real64), save :: table(2000000), other_table(2000000)
contains
    subroutine allocate_first(x)
        real(real64), allocatable, intent(out) :: x(:)
        allocate (x(2000000))
        x = 1.0_real64
    end subroutine allocate_first

    subroutine allocate_second(x)
        real(real64), allocatable, intent(out) :: x(:)
        allocate (x(2000000))
        x = 2.0_real64
    end subroutine allocate_second
end module states

program main
    use, intrinsic :: iso_fortran_env, only: real64
    use states, only: allocate_first, allocate_second, table, other_table
    implicit none(type, external)
    real(real64), allocatable :: first(:), second(:)
    call allocate_first(first)
    call allocate_second(second)
    table = first
    other_table = second
    print '(f0.1)', sum(table) + sum(other_table) + sum(first) + sum(second)
end program main
