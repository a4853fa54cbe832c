! Prints the sum of the squares of 1..1000, written to an array and read back.
program proof
    use, intrinsic :: iso_fortran_env, only: real64
    implicit none
    real(real64), allocatable :: a(:)
    integer :: i

    a = [(real(i, real64)**2, i=1, 1000)]
    print '(i0)', nint(sum(a))
end program proof
