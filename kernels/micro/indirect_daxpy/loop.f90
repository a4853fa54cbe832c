!> a(i) = a(i) + s*b(c(i)); with sectors, ten ways of L2 are for b (A64FX guide, sector cache, case 1).
subroutine pw_loop(n, a, b, c, s) bind(c)
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t
    implicit none
    integer(c_int64_t), intent(in), value :: n
    real(c_double), intent(inout) :: a(n)
    real(c_double), intent(in) :: b(*)
    integer(c_int32_t), intent(in) :: c(n)
    real(c_double), intent(in), value :: s
    integer(c_int64_t) :: i

    !OCL SCACHE_ISOLATE_WAY(L2=10)
    !OCL SCACHE_ISOLATE_ASSIGN(b)
    do i = 1, n
        a(i) = a(i) + s*b(c(i))
    end do
    !OCL END_SCACHE_ISOLATE_ASSIGN
    !OCL END_SCACHE_ISOLATE_WAY
end subroutine pw_loop
