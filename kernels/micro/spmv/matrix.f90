!> Sparse matrices by formula: the number of entries of each row, their columns, and their values, which are whole numbers.
module spmv_matrix
    use pw_kinds, only: i8
    implicit none
    private

    integer(i8), parameter, public :: matrix_laplace = 1, matrix_band = 2, matrix_random = 3

    type, public :: matrix_t
        integer(i8) :: kind = matrix_laplace
        integer(i8) :: rows = 0
        integer(i8) :: edge = 0         !< laplace: points along an edge of the grid
        integer(i8) :: entries = 0      !< band, random: mean entries of a row
        integer(i8) :: reach = 0        !< band: farthest column from the diagonal
    contains
        procedure :: resize
        procedure :: row_length
        procedure :: row_columns
    end type matrix_t

    integer(i8), parameter, public :: longest_row = 1024
    integer(i8), parameter :: seed = 88172645463325252_i8     ! the paper's

    public :: matrix_value

contains

    !> Use the largest number of rows, at most `rows`, that the kind of matrix allows.
    pure subroutine resize(self, rows)
        class(matrix_t), intent(inout) :: self
        integer(i8), intent(in) :: rows

        self%rows = rows
        if (self%kind /= matrix_laplace) return
        self%edge = int((real(rows) + 0.5)**(1.0/3.0), i8) + 1
        do while (self%edge**3 > rows)
            self%edge = self%edge - 1
        end do
        self%rows = self%edge**3
    end subroutine resize

    !> Entries of row i (from 0).
    pure integer(i8) function row_length(self, i) result(length)
        class(matrix_t), intent(in) :: self
        integer(i8), intent(in) :: i
        integer(i8) :: low, width

        if (self%kind == matrix_laplace) then
            associate (m => self%edge)
                length = 1 + count([modulo(i, m) > 0, modulo(i, m) < m - 1, modulo(i/m, m) > 0, modulo(i/m, m) < m - 1, &
                                    i/m**2 > 0, i/m**2 < m - 1])
            end associate
        else
            call window(self, i, low, width)
            length = min(width, max(1_i8, self%entries/2 + modulo(mixed(i), self%entries + 1)))
        end if
    end function row_length

    !> The columns (from 0) of row i, ascending.
    pure subroutine row_columns(self, i, length, columns)
        class(matrix_t), intent(in) :: self
        integer(i8), intent(in) :: i
        integer(i8), intent(out) :: length, columns(longest_row)
        integer(i8) :: low, width, k

        length = self%row_length(i)
        if (self%kind == matrix_laplace) then
            associate (m => self%edge)
                columns(:length) = pack([i - m**2, i - m, i - 1, i, i + 1, i + m, i + m**2], &
                                        [i/m**2 > 0, modulo(i/m, m) > 0, modulo(i, m) > 0, .true., modulo(i, m) < m - 1, &
                                         modulo(i/m, m) < m - 1, i/m**2 < m - 1])
            end associate
        else
            ! One in each of equal parts of the window, one part per entry.
            call window(self, i, low, width)
            do k = 0, length - 1
                columns(k + 1) = low + k*(width/length) + modulo(mixed(i*longest_row + k), width/length)
            end do
        end if
    end subroutine row_columns

    !> Value at row i and column j.
    pure elemental integer(i8) function matrix_value(i, j) result(value)
        integer(i8), intent(in) :: i, j

        value = 1 + modulo(i + 3*j, 7_i8)
    end function matrix_value

    !> The columns in which row i may have entries: `width` from `low` on.
    pure subroutine window(self, i, low, width)
        class(matrix_t), intent(in) :: self
        integer(i8), intent(in) :: i
        integer(i8), intent(out) :: low, width

        low = 0
        width = self%rows
        if (self%kind == matrix_random) return
        low = max(0_i8, i - self%reach)
        width = min(self%rows, i + self%reach + 1) - low
    end subroutine window

    !> A pseudo-random number, not negative, for a number: xorshift (Marsaglia, 2003).
    pure integer(i8) function mixed(number) result(bits)
        integer(i8), intent(in) :: number
        integer :: round

        bits = number + seed
        do round = 1, 3
            bits = ieor(bits, shiftl(bits, 13))
            bits = ieor(bits, shiftr(bits, 7))
            bits = ieor(bits, shiftl(bits, 17))
        end do
        bits = shiftr(bits, 1)
    end function mixed

end module spmv_matrix
