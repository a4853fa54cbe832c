! Prints how many of 2 threads took part, and the sum of the squares of 1..1000 that they wrote to an array.
program proof
    use, intrinsic :: iso_fortran_env, only: real64
    use omp_lib, only: omp_set_dynamic
    implicit none
    real(real64) :: a(1000)
    integer :: i, threads

    call omp_set_dynamic(.false.)
    threads = 0
    !$omp parallel num_threads(2) reduction(+: threads)
    threads = 1
    !$omp do schedule(static)
    do i = 1, size(a)
        a(i) = real(i, real64)**2
    end do
    !$omp end do
    !$omp end parallel
    print '(i0,1x,i0)', threads, nint(sum(a))
end program proof
