!> Shared by the tests of mini-apps: expectations, counted and printed.
module mini_expectations
    implicit none
    private

    integer, parameter :: most_printed = 20
    integer, public, protected :: failures = 0

    public :: expect

contains

    !> Count and print failed expectations.
    subroutine expect(ok, what)
        logical, intent(in) :: ok
        character(*), intent(in) :: what

        if (ok) return
        failures = failures + 1
        if (failures <= most_printed) print '(a)', what
    end subroutine expect

end module mini_expectations
