!> What tests of mini-apps share: expectations, counted and printed.
module mini_expectations
    implicit none
    private

    integer, parameter :: most_printed = 20
    integer, public, protected :: failures = 0

    public :: expect

contains

    !> Count and print what does not hold.
    subroutine expect(ok, what)
        logical, intent(in) :: ok
        character(*), intent(in) :: what

        if (ok) return
        failures = failures + 1
        if (failures <= most_printed) print '(a)', what
    end subroutine expect

end module mini_expectations
