!> Elements of the kernels' types: names, sizes, addresses, and values as doubles.
module pw_elements
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_intptr_t, c_null_ptr, c_ptr
    use pw_harness_h, only: pw_elements_get, pw_elements_put
    use pw_kinds, only: i8
    implicit none
    private

    ! In the order of the numbers in pw_stream_call.h.
    character(5), parameter, public :: element_types(8) = ['fp64 ', 'fp32 ', 'fp16 ', 'bf16 ', 'int64', 'int32', 'int16', 'int8 ']
    integer(i8), parameter, public :: element_bytes(8) = [8, 4, 2, 2, 8, 4, 2, 1]
    integer, parameter, public :: first_integer_type = 5

    public :: element_at, pw_elements_get, pw_elements_put

contains

    !> Address of element i (from 1) of an array of the type with this number.
    pure type(c_ptr) function element_at(array, type, i)
        type(c_ptr), intent(in) :: array
        integer(c_int32_t), intent(in) :: type
        integer(i8), intent(in) :: i

        element_at = transfer(transfer(array, 0_c_intptr_t) + (i - 1)*element_bytes(type), c_null_ptr)
    end function element_at

end module pw_elements
