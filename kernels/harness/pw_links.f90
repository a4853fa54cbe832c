!> The cycle of cache lines that chases follow; see pw_chase.h.
module pw_links
    use, intrinsic :: iso_c_binding, only: c_int64_t, c_ptr
    use pw_kinds, only: i8
    implicit none
    private

    public :: join_cycle, place_on_cycle

    interface
        subroutine pw_chase_join(n, line, step, local, seed, order) bind(c)
            import :: c_int64_t, c_ptr
            integer(c_int64_t), intent(in), value :: n, step, local, seed
            type(c_ptr), intent(in), value :: line
            integer(c_int64_t), intent(out) :: order(*)
        end subroutine pw_chase_join

        subroutine pw_chase_start(n, line, order, chains, at) bind(c)
            import :: c_int64_t, c_ptr
            integer(c_int64_t), intent(in), value :: n, chains
            type(c_ptr), intent(in), value :: line
            integer(c_int64_t), intent(in) :: order(n)
            type(c_ptr), intent(out) :: at(chains)
        end subroutine pw_chase_start

        !> The position of a line along the cycle, from 0.
        integer(c_int64_t) function place_on_cycle(link) bind(c, name='pw_chase_place')
            import :: c_int64_t, c_ptr
            type(c_ptr), intent(in), value :: link
        end function place_on_cycle
    end interface

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
