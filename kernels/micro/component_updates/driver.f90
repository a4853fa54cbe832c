!> Updates of six components: v_j(i) = v_j(i) + s*t_j(i).
module component_updates
    use pw_streams, only: streams_t
    use pw_kinds, only: r8
    implicit none
    private

    type, extends(streams_t), public :: component_updates_t
    contains
        procedure, nopass :: element
    end type component_updates_t

contains

    pure subroutine element(old, x, s, new)
        real(r8), intent(in) :: old(:), x(:), s
        real(r8), intent(out) :: new(:)

        new = old + s*x
    end subroutine element

end module component_updates
