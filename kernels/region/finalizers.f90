!> Whether the compiler finalises the objects of a block once each, at its end and at every early exit; run by configure.
!> Exit code 0: yes; 1: some too early; 2: some too late or never; 3: some more than once; 4: some of these.
module scopes
    implicit none
    private

    integer, public :: begun = 0, ended = 0
    logical, public :: early = .false., late = .false., twice = .false.

    type, public :: scope_t
        logical :: open = .false.
    contains
        procedure :: begin
        final :: finish
    end type scope_t

    public :: expect, leave_by_return, local_of_procedure

contains

    subroutine begin(self)
        class(scope_t), intent(inout) :: self

        self%open = .true.
        begun = begun + 1
    end subroutine begin

    subroutine finish(self)
        type(scope_t), intent(inout) :: self

        if (.not. self%open) twice = .true.
        self%open = .false.
        ended = ended + 1
    end subroutine finish

    !> The number of objects now open.
    subroutine expect(open_now)
        integer, intent(in) :: open_now

        if (begun - ended < open_now) early = .true.
        if (begun - ended > open_now) late = .true.
        begun = open_now
        ended = 0
    end subroutine expect

    subroutine leave_by_return(now)
        logical, intent(in) :: now

        block
            type(scope_t) :: scope
            call scope%begin()
            call expect(1)
            if (now) return
            call expect(1)
        end block
        call expect(0)
    end subroutine leave_by_return

    subroutine local_of_procedure()
        type(scope_t) :: scope

        call scope%begin()
        call expect(1)
    end subroutine local_of_procedure

end module scopes

program finalizers
    use scopes, only: early, expect, late, leave_by_return, local_of_procedure, scope_t, twice
    implicit none
    integer :: i

    block
        type(scope_t) :: scope
        call scope%begin()
        call expect(1)
    end block
    call expect(0)

    do i = 1, 4
        block
            type(scope_t) :: scope
            call scope%begin()
            call expect(1)
            if (i == 2) cycle
            if (i == 4) exit
            call expect(1)
        end block
        call expect(0)
    end do
    call expect(0)

    named: block
        type(scope_t) :: scope
        call scope%begin()
        if (i > 0) exit named
        call expect(1)
    end block named
    call expect(0)

    block
        type(scope_t) :: outer
        call outer%begin()
        block
            type(scope_t) :: inner
            call inner%begin()
            call expect(2)
        end block
        call expect(1)
    end block
    call expect(0)

    call leave_by_return(.true.)
    call expect(0)
    call leave_by_return(.false.)
    call expect(0)
    call local_of_procedure()
    call expect(0)

    if (count([early, late, twice]) > 1) stop 4
    if (early) stop 1
    if (late) stop 2
    if (twice) stop 3
end program finalizers
