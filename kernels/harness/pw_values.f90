!> Values of elements for checks: no part of an array looks like another part, nor has another part the same sum. A fault that
!> reads, skips or repeats a part changes the result.
module pw_values
    use pw_kinds, only: i8
    implicit none
    private

    integer(i8), parameter :: low = 2_i8**31 - 1
    ! Multipliers of xxHash32 by half, odd and below 2^31, so that no product overflows.
    integer(i8), parameter :: factor(2) = [1327217881_i8, 1123411259_i8]

    public :: mixed, mix, distinct_word

contains

    !> A value from 0 to 2^31 - 1 for element i of an array: every bit depends on all bits of both.
    pure elemental integer(i8) function mixed(i, array)
        integer(i8), intent(in) :: i
        integer, intent(in) :: array

        mixed = mixed_here(i, array)
    end function mixed

    !> The same of consecutive elements, the first of which is i.
    pure subroutine mix(i, array, values)
        integer(i8), intent(in) :: i
        integer, intent(in) :: array
        integer(i8), contiguous, intent(out) :: values(:)
        integer(i8) :: k

        do k = 1, size(values, kind=i8)
            values(k) = mixed_here(i + k - 1, array)
        end do
    end subroutine mix

    !> `mixed`: private, because compilers do not inline what a shared library exports.
    pure elemental integer(i8) function mixed_here(i, array) result(mixed)
        integer(i8), intent(in) :: i
        integer, intent(in) :: array

        mixed = iand(ieor(i, shiftr(i, 31)) + shiftl(int(array, i8), 24), low)*factor(1)
        mixed = iand(ieor(mixed, shiftr(mixed, 31)), low)*factor(2)
        mixed = iand(ieor(mixed, shiftr(mixed, 31)), low)*factor(1)
        mixed = iand(ieor(mixed, shiftr(mixed, 31)), low)
    end function mixed_here

    !> A word for element i, all eight bytes of which are mixed.
    pure integer(i8) function distinct_word(i)
        integer(i8), intent(in) :: i

        distinct_word = ieor(shiftl(mixed(i, 1), 33), ieor(mixed(i, 2), shiftl(mixed(i, 3), 16)))
    end function distinct_word

end module pw_values
