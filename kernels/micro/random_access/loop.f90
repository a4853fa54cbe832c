!> The updates in their original order; see random_access.h.
subroutine pw_random_access(steps, state, table, mask, tuning) bind(c)
    use, intrinsic :: iso_c_binding, only: c_int64_t
    implicit none
    integer, parameter :: lanes = 128                ! as in random_access.h
    integer(c_int64_t), parameter :: polynomial = 7
    integer(c_int64_t), intent(in), value :: steps, mask, tuning
    integer(c_int64_t), intent(inout) :: state(lanes), table(0:mask)
    integer(c_int64_t) :: step, at
    integer :: k

    do step = 1, steps
        do k = 1, lanes
            state(k) = ieor(shiftl(state(k), 1), iand(shifta(state(k), 63), polynomial))
        end do
        do k = 1, lanes
            at = iand(state(k), mask)
            table(at) = ieor(table(at), state(k))
        end do
    end do
end subroutine pw_random_access
