!> The default path of the table of the equation of state.
module helmholtz_table_path
    use, intrinsic :: iso_c_binding, only: c_char, c_f_pointer, c_ptr, c_size_t
    implicit none
    private

    interface
        type(c_ptr) function c_path() bind(c, name='pw_helmholtz_table_path')
            import :: c_ptr
        end function c_path

        integer(c_size_t) function c_length(text) bind(c, name='strlen')
            import :: c_ptr, c_size_t
            type(c_ptr), value :: text
        end function c_length
    end interface

    public :: default_table

contains

    !> The installed table or, before it is installed, the one in the build folder.
    function default_table() result(path)
        character(:), allocatable :: path
        character(kind=c_char), pointer :: letters(:)
        type(c_ptr) :: text
        integer :: i

        text = c_path()
        call c_f_pointer(text, letters, [c_length(text)])
        allocate (character(size(letters)) :: path)
        do i = 1, size(letters)
            path(i:i) = letters(i)
        end do
    end function default_table

end module helmholtz_table_path
