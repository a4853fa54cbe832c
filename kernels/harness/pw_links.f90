!> The cycle of cache lines that chases follow; see pw_chase.h.
module pw_links
    use, intrinsic :: iso_c_binding, only: c_ptr
    use pw_harness_h, only: place_on_cycle => pw_chase_place, pw_chase_join, pw_chase_start
    use pw_kinds, only: i8
    implicit none
    private

    public :: join_cycle, place_on_cycle

contains

    !> Link the first n lines at `line` to one cycle: every `step`-th, or with 0 in random order, all of `local` adjacent lines
    !> before the next such group; spread the starts of chains, `at`, evenly along it.
    subroutine join_cycle(n, line, step, local, seed, at)
        integer(i8), intent(in) :: n, step, local, seed
        type(c_ptr), intent(in) :: line
        type(c_ptr), intent(out) :: at(:)
        integer(i8), allocatable :: order(:)
        integer(i8) :: group

        group = min(local, n)
        allocate (order(n + n/group + 1))
        call pw_chase_join(n, line, step, group, seed, order)
        call pw_chase_start(n, line, order, size(at, kind=i8), at)
    end subroutine join_cycle

end module pw_links
