!> The largest of many deviations. NaN and Inf count as the largest, so that none is overlooked.
module pw_deviation
    use pw_kinds, only: i8, r8
    implicit none
    private

    integer(i8), parameter :: exponent = shiftl(2047_i8, 52)    ! that of NaN and Inf

    public :: worse, worst_of

contains

    !> The larger of an error so far and a deviation; NaN and Inf count as the largest. `max` would return the other value
    !> where one is NaN. Tested by its bits, because compilers may assume that such values do not occur.
    elemental real(r8) function worse(error, deviation)
        real(r8), intent(in) :: error, deviation

        worse = max(error, deviation)
        if (iand(transfer(deviation, 0_i8), exponent) == exponent) worse = huge(1.0_r8)
    end function worse

    !> The largest of several deviations, and of 0.
    pure real(r8) function worst_of(deviations)
        real(r8), intent(in) :: deviations(:)

        worst_of = max(0.0_r8, maxval(deviations))
        if (any(iand(transfer(deviations, [0_i8]), exponent) == exponent)) worst_of = huge(1.0_r8)
    end function worst_of

end module pw_deviation
