!> The kinds of every number in pagewise.
module pw_kinds
    use, intrinsic :: iso_fortran_env, only: int32, int64, real32, real64
    implicit none
    private

    integer, parameter, public :: i4 = int32
    integer, parameter, public :: i8 = int64
    integer, parameter, public :: r4 = real32
    integer, parameter, public :: r8 = real64

end module pw_kinds
