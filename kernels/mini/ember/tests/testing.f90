!> Shared by the tests of ember: expectations, reproducible random numbers and trees.
module ember_testing
    use ember_tree, only: tree_t
    use ember_tree_adapt, only: adapt_tree
    use mini_expectations, only: expect, failures
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    implicit none
    private

    integer(i8) :: state = 20260731

    public :: expect, failures, next_random, random_tree

contains

    !> A number between 0 and 1: a linear congruence, its upper bits.
    real(r8) function next_random()
        state = iand(1103515245_i8*state + 12345_i8, int(z'7fffffff', i8))
        next_random = real(state, r8)/2.0_r8**31
    end function next_random

    !> A random tree: leaves of level `start`, refined in rounds with probability `p` up to level `highest`.
    subroutine random_tree(tree, dims, roots, is_periodic, start, highest, p)
        type(tree_t), intent(inout) :: tree
        integer, intent(in) :: dims, roots(3), start, highest
        logical, intent(in) :: is_periodic(3)
        real(r8), intent(in) :: p
        ! On the stack, gfortran 14 reports the bounds of its unallocated components as used uninitialised.
        type(tree_t), allocatable :: new
        type(error_t) :: error
        integer, allocatable :: mark(:), origin_kind(:), origin(:)
        integer :: level, leaf

        allocate (new)
        call tree%start(dims, roots, is_periodic, start, error)
        call expect(.not. error%failed(), 'tree')
        do level = start, highest - 1
            allocate (mark(tree%n_leaves))
            do leaf = 1, tree%n_leaves
                mark(leaf) = merge(1, 0, next_random() < p .and. tree%level(leaf) == level)
            end do
            mark(1 + int(next_random()*tree%n_leaves)) = 1
            call adapt_tree(tree, mark, 0, highest, new, origin_kind, origin)
            tree = new
            deallocate (mark)
        end do
    end subroutine random_tree

end module ember_testing
