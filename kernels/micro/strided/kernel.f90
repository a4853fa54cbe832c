!> Accesses to the words of a that are `stride` apart, round by round, each one cache line later, until every line
!> (of `line` words) was accessed: their exclusive or.
subroutine pw_strided_load(n, stride, line, a, total) bind(c)
    use, intrinsic :: iso_c_binding, only: c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n, stride, line
    integer(c_int64_t), intent(in) :: a(n)
    integer(c_int64_t), intent(out) :: total
    integer(c_int64_t) :: round, i, pairs, second

    total = 0
    if (stride == 1) then
        do i = 1, n
            total = ieor(total, a(i))
        end do
        return
    end if
    second = 0
    do round = 1, min(max(stride - line, 0_c_int64_t) + 1, n), line
        pairs = (n - round)/stride + 1
        ! Two at a time, because one chain of operations would take as long as two loads.
        !dir$ novector
        !gcc$ novector
        !ocl nosimd
        do i = round, round + (pairs/2*2 - 1)*stride, 2*stride
            total = ieor(total, a(i))
            second = ieor(second, a(i + stride))
        end do
        if (modulo(pairs, 2_c_int64_t) == 1) total = ieor(total, a(round + (pairs - 1)*stride))
    end do
    total = ieor(total, second)
end subroutine pw_strided_load

!> The same words set to `value`.
subroutine pw_strided_store(n, stride, line, a, value) bind(c)
    use, intrinsic :: iso_c_binding, only: c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n, stride, line, value
    integer(c_int64_t), intent(inout) :: a(n)
    integer(c_int64_t) :: round, i

    if (stride == 1) then
        do i = 1, n
            a(i) = value
        end do
        return
    end if
    do round = 1, min(max(stride - line, 0_c_int64_t) + 1, n), line
        !dir$ novector
        !gcc$ novector
        !ocl nosimd
        do i = round, n, stride
            a(i) = value
        end do
    end do
end subroutine pw_strided_store
