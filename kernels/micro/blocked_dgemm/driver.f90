!> Matrix multiplication without a library: the effect of blocking, packing and pages.
module blocked_dgemm
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_loc
    use blocked_dgemm_h, only: call_t => pw_gemm_call_t, pw_blocked_dgemm, pw_gemm_tile
    use pw_error, only: error_t, exit_usage
    use pw_gemm, only: declare_gemm_options, gemm_t, read_gemm_options
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice, option_count, rules_t
    use pw_simd, only: choice_of, words_available
    use pw_threads, only: thread_number
    implicit none
    private

    character(7), parameter :: ways(5) = [character(7) :: 'dot', 'axpy', 'blocked', 'packed', 'fortran']   ! as in blocked_dgemm.h
    integer(i8), parameter :: line = 8      ! doubles

    type, extends(gemm_t), public :: blocked_dgemm_t
        private
        integer(i8) :: way = 0, rows = 0, depth = 0, width = 0      ! of blocks, as requested
        integer(i8) :: tile_rows = 0, tile_columns = 0
    contains
        procedure :: declare_options, read_options, buffers, multiply
        procedure, private :: block_words, panel_words
    end type blocked_dgemm_t

contains

    !> Blocks that fit caches of 32 KiB, 512 KiB or more, and a share of the last.
    subroutine declare_options(self)
        class(blocked_dgemm_t), intent(inout) :: self

        call declare_gemm_options(self)
        call self%options%add('blocking', option_choice, 'packed', 'loops over dot products or over columns (axpy), or blocks, '// &
                              'in place or packed; fortran: packed, tiles by Fortran loops', values=words_available(ways))
        call self%options%add('block-rows', option_count, '192', 'rows of a block of a, for the second-level cache', &
                              rules_t(lowest=1_i8), '24,48,96,192,384,768')
        call self%options%add('block-depth', option_count, '256', 'columns of that block, rows of the panel of b', &
                              rules_t(lowest=1_i8), '32,64,128,256,512,1024')
        call self%options%add('block-width', option_count, '2048', 'columns of a panel of b', rules_t(lowest=1_i8), &
                              '64,256,1024,2048,4096')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(blocked_dgemm_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        call read_gemm_options(self, error)
        if (error%failed()) return
        self%way = choice_of(self%options, 'blocking', ways)
        call self%options%get('block-rows', self%rows)
        call self%options%get('block-depth', self%depth)
        call self%options%get('block-width', self%width)
        if (max(self%rows, self%depth, self%width) > 2_i8**24) call error%raise(exit_usage, &
            'the block is larger than any cache', 'blocked_dgemm', 'choose smaller --block-rows, --block-depth and --block-width')
        call pw_gemm_tile(self%tile_rows, self%tile_columns)
        self%rows = rounded(self%rows, self%tile_rows)
        self%width = rounded(self%width, self%tile_columns)
    end subroutine read_options

    !> i, rounded up to a multiple.
    pure integer(i8) function rounded(i, multiple)
        integer(i8), intent(in) :: i, multiple

        rounded = (i + multiple - 1)/multiple*multiple
    end function rounded

    !> Doubles of a thread's packed block and panel, whole lines.
    pure integer(i8) function block_words(self, n)
        class(blocked_dgemm_t), intent(in) :: self
        integer(i8), intent(in) :: n

        block_words = rounded(min(self%rows, rounded(n, self%tile_rows))*min(self%depth, n), line)
    end function block_words

    pure integer(i8) function panel_words(self, n)
        class(blocked_dgemm_t), intent(in) :: self
        integer(i8), intent(in) :: n

        panel_words = rounded(min(self%width, rounded(n, self%tile_columns))*min(self%depth, n), line)
    end function panel_words

    !> The packed blocks are on pages of the same policy as the matrices.
    subroutine buffers(self, n, name, bytes)
        class(blocked_dgemm_t), intent(in) :: self
        integer(i8), intent(in) :: n
        character(16), allocatable, intent(out) :: name(:)
        integer(i8), allocatable, intent(out) :: bytes(:)

        if (any(ways(self%way) == ['packed ', 'fortran'])) then
            name = [character(16) :: 'block', 'panel']
            bytes = 8*self%threads*[self%block_words(n), self%panel_words(n)]
        else
            allocate (name(0), bytes(0))
        end if
    end subroutine buffers

    subroutine multiply(self, passes, alpha, first, last)
        class(blocked_dgemm_t), intent(in) :: self
        integer(i8), intent(in) :: passes, first, last
        real(r8), intent(in) :: alpha
        type(call_t) :: request
        real(r8), pointer, contiguous :: block(:, :), panel(:, :)

        request%passes = passes
        request%way = self%way
        request%n = self%n
        request%columns = last - first + 1
        request%stride = self%stride
        request%rows = self%rows
        request%depth = self%depth
        request%width = self%width
        request%alpha = alpha
        request%a = self%column_at(1, 1_i8)
        request%b = self%column_at(2, first)
        request%c = self%column_at(3, first)
        if (size(self%memory) > 3) then
            call c_f_pointer(self%memory(4)%address, block, [self%block_words(self%n), self%threads])
            call c_f_pointer(self%memory(5)%address, panel, [self%panel_words(self%n), self%threads])
            request%block = c_loc(block(1, thread_number() + 1))
            request%panel = c_loc(panel(1, thread_number() + 1))
        end if
        call pw_blocked_dgemm(request)
    end subroutine multiply

end module blocked_dgemm
