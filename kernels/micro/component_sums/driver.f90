!> Sums of six components: t_j(i) = t0_j(i) + t1_j(i) + t2_j(i).
module component_sums
    use pw_streams, only: streams_t
    use pw_kinds, only: r8
    implicit none
    private

    type, extends(streams_t), public :: component_sums_t
    contains
        procedure, nopass :: element
    end type component_sums_t

contains

    !> x: t0, t1, t2, six components each.
    pure subroutine element(old, x, s, new)
        real(r8), intent(in) :: old(:), x(:), s
        real(r8), intent(out) :: new(:)

        new = x(1:6) + x(7:12) + x(13:18)
    end subroutine element

end module component_sums
