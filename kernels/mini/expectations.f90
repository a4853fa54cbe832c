!> Shared by the tests of mini-apps: expectations, counted and printed.
module mini_expectations
    use pw_kinds, only: r8
    implicit none
    private

    integer, parameter :: most_printed = 20
    integer, public, protected :: failures = 0

    !> Count and print failed expectations: `expect(ok, what)` or, with the numbers that explain a failure,
    !> `expect(ok, what, values)`.
    interface expect
        module procedure expect_plain, expect_integers, expect_reals
    end interface expect

    public :: expect

contains

    subroutine expect_plain(ok, label)
        logical, intent(in) :: ok
        character(*), intent(in) :: label

        if (ok) return
        failures = failures + 1
        if (failures <= most_printed) print '(a)', label
    end subroutine expect_plain

    subroutine expect_integers(ok, label, values)
        logical, intent(in) :: ok
        character(*), intent(in) :: label
        integer, intent(in) :: values(:)

        if (ok) return
        failures = failures + 1
        if (failures <= most_printed) print '(a,*(1x,i0))', label//':', values
    end subroutine expect_integers

    subroutine expect_reals(ok, label, values)
        logical, intent(in) :: ok
        character(*), intent(in) :: label
        real(r8), intent(in) :: values(:)

        if (ok) return
        failures = failures + 1
        if (failures <= most_printed) print '(a,*(1x,g0))', label//':', values
    end subroutine expect_reals

end module mini_expectations
