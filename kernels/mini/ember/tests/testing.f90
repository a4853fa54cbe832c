!> Shared by the tests of ember: expectations, the end of a test on ranks, reproducible random numbers and trees.
module ember_testing
    use, intrinsic :: iso_fortran_env, only: output_unit
    use ember_parallel, only: comm_t
    use ember_tree, only: tree_t
    use ember_tree_adapt, only: adapt_tree
    use mini_expectations, only: expect, failures
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_begin, pages_none
    use pw_text, only: to_text
    implicit none
    private

    integer(i8) :: state = 20260731

    public :: expect, expect_success, failures, finish, near, next_random, random_below, random_tree, same_bits, start_pages

contains

    !> Expect no error; `error` can be reused.
    subroutine expect_success(error, label)
        type(error_t), intent(inout) :: error
        character(*), intent(in) :: label

        if (error%failed()) then
            call expect(.false., label//': '//error%message)
        else
            call expect(.true., label)
        end if
        error = error_t()
    end subroutine expect_success

    !> Containers on base pages.
    subroutine start_pages()
        type(error_t) :: error

        call pages_begin(pages_none, error)
        call expect_success(error, 'pages_begin')
    end subroutine start_pages

    !> The end of a test on ranks: a failure of any of them fails it.
    subroutine finish(comm)
        type(comm_t), intent(inout) :: comm

        call comm%barrier()
        if (failures > 0) then
            print '(a)', 'rank '//to_text(comm%rank)//': '//to_text(failures)//' failures'
            flush (output_unit)
            call comm%abort(1)
        end if
        call comm%end()
    end subroutine finish

    !> Whether two numbers are equal to round-off.
    elemental logical function near(a, b)
        real(r8), intent(in) :: a, b

        near = abs(a - b) <= 1.0e-13_r8*max(abs(a), abs(b), 1.0_r8)
    end function near

    !> Whether two numbers are equal to the last bit.
    elemental logical function same_bits(a, b)
        real(r8), intent(in) :: a, b

        same_bits = transfer(a, 0_i8) == transfer(b, 0_i8)
    end function same_bits

    !> A number between 0 and 1: a linear congruence, its upper bits.
    real(r8) function next_random()
        state = iand(1103515245_i8*state + 12345_i8, int(z'7fffffff', i8))
        next_random = real(state, r8)/2.0_r8**31
    end function next_random

    !> From 0 to n - 1.
    integer function random_below(n)
        integer, intent(in) :: n

        random_below = int(n*next_random())
    end function random_below

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
        call expect_success(error, 'tree')
        do level = start, highest - 1
            allocate (mark(tree%n_leaves))
            do leaf = 1, tree%n_leaves
                mark(leaf) = merge(1, 0, next_random() < p .and. tree%level(leaf) == level)
            end do
            mark(1 + random_below(tree%n_leaves)) = 1
            call adapt_tree(tree, mark, 0, highest, new, origin_kind, origin)
            tree = new
            deallocate (mark)
        end do
    end subroutine random_tree

end module ember_testing
