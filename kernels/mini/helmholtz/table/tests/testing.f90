!> Shared by the tests of the table: expectations of numbers.
module eos_table_testing
    use mini_expectations, only: expect, failures
    use pw_kinds, only: r8
    implicit none
    private

    public :: expect, agree, finish

contains

    !> Expect `value` to equal `wanted` to a relative tolerance.
    subroutine agree(label, value, wanted, tolerance)
        character(*), intent(in) :: label
        real(r8), intent(in) :: value, wanted, tolerance
        character(120) :: numbers

        if (abs(value - wanted) <= tolerance*abs(wanted)) return
        write (numbers, '(es24.16,a,es24.16,a,es8.1)') value, ' instead of', wanted, ', relative error', &
            abs(value - wanted)/abs(wanted)
        call expect(.false., label//': '//numbers)
    end subroutine agree

    !> End the test.
    subroutine finish()
        if (failures > 0) error stop 'failures'
    end subroutine finish

end module eos_table_testing
