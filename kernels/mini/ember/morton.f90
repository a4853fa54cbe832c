!> Bits of Morton order: those of three or two numbers alternate in a key.
module ember_morton
    use pw_kinds, only: i8
    implicit none
    private

    public :: octant, apart_by_1, apart_by_2

contains

    !> The lower (0) or upper (1) half that contains child `c`, by direction.
    pure function octant(c)
        integer, intent(in) :: c
        integer :: octant(3)

        octant = [ibits(c, 0, 1), ibits(c, 1, 1), ibits(c, 2, 1)]
    end function octant

    !> The lower 32 bits of `x`, each separated from the last by one zero: halves, then halves of these, move apart.
    elemental integer(i8) function apart_by_1(x) result(y)
        integer(i8), intent(in) :: x

        y = iand(ior(x, shiftl(x, 16)), int(z'0000ffff0000ffff', i8))
        y = iand(ior(y, shiftl(y, 8)), int(z'00ff00ff00ff00ff', i8))
        y = iand(ior(y, shiftl(y, 4)), int(z'0f0f0f0f0f0f0f0f', i8))
        y = iand(ior(y, shiftl(y, 2)), int(z'3333333333333333', i8))
        y = iand(ior(y, shiftl(y, 1)), int(z'5555555555555555', i8))
    end function apart_by_1

    !> The lower 21 bits of `x`, two zeros between each and the next.
    elemental integer(i8) function apart_by_2(x) result(y)
        integer(i8), intent(in) :: x

        y = iand(ior(x, shiftl(x, 32)), int(z'001f00000000ffff', i8))
        y = iand(ior(y, shiftl(y, 16)), int(z'001f0000ff0000ff', i8))
        y = iand(ior(y, shiftl(y, 8)), int(z'100f00f00f00f00f', i8))
        y = iand(ior(y, shiftl(y, 4)), int(z'10c30c30c30c30c3', i8))
        y = iand(ior(y, shiftl(y, 2)), int(z'1249249249249249', i8))
    end function apart_by_2

end module ember_morton
