!> An object that is a measured region until its block ends:
!>
!>     block
!>         type(region_scope_t) :: hydro
!>         call hydro%begin('hydro')
!>         ...
!>     end block
!>
!> This module is built only if configure verified that the compiler finalises the objects of a block once, at its end and
!> at every early exit. Otherwise programs that use it do not compile; use `region_begin` and `region_end`. There
!> is no constructor: an assignment finalises its left side, and with some compilers its right side too, which would end the
!> region where it begins.
module pw_region_scope
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t
    use pw_error, only: error_t
    use pw_kinds, only: i4
    use pw_region, only: region_fault, region_handle
    implicit none
    private

    type, public :: region_scope_t
        private
        integer(i4) :: handle = -1
        integer(c_int64_t) :: token = 0   ! of the call, 0 when it has ended
    contains
        procedure, private :: begin_by_handle, begin_by_name
        generic :: begin => begin_by_handle, begin_by_name
        procedure :: end => end_passage
        final :: end_of_block
    end type region_scope_t

    interface
        integer(c_int64_t) function c_enter(handle) bind(c, name='pw_region_enter')
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: handle
        end function c_enter

        integer(c_int32_t) function c_leave(handle, token) bind(c, name='pw_region_leave')
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), value :: handle
            integer(c_int64_t), value :: token
        end function c_leave
    end interface

contains

    !> Begin the region; a region that the object has already begun ends first.
    subroutine begin_by_handle(self, handle, error)
        class(region_scope_t), intent(inout) :: self
        integer(i4), intent(in) :: handle
        type(error_t), intent(inout), optional :: error

        call self%end(error)
        self%handle = handle
        self%token = c_enter(handle)
        if (self%token == 0) call region_fault(error)
    end subroutine begin_by_handle

    subroutine begin_by_name(self, name, error)
        class(region_scope_t), intent(inout) :: self
        character(*), intent(in) :: name
        type(error_t), intent(inout), optional :: error

        call self%begin_by_handle(region_handle(name), error)
    end subroutine begin_by_name

    !> End the region before the block does; the end of the block then has no effect.
    subroutine end_passage(self, error)
        class(region_scope_t), intent(inout) :: self
        type(error_t), intent(inout), optional :: error
        integer(c_int64_t) :: token

        if (self%token == 0) return
        token = self%token
        self%token = 0
        if (c_leave(self%handle, token) /= 0) call region_fault(error)
    end subroutine end_passage

    subroutine end_of_block(self)
        type(region_scope_t), intent(inout) :: self

        call end_passage(self)
    end subroutine end_of_block

end module pw_region_scope
