!> Updates of six components: v_j(i) = v_j(i) + s*t_j(i).
module component_updates
    use pw_bundle, only: bundle_t
    use pw_kinds, only: r8
    implicit none
    private

    type, extends(bundle_t), public :: component_updates_t
    contains
        procedure, nopass :: element
    end type component_updates_t

contains

    pure subroutine element(inputs, old, s, new)
        real(r8), intent(in) :: inputs(:), old(:), s
        real(r8), intent(out) :: new(:)

        new = old + s*inputs
    end subroutine element

end module component_updates
