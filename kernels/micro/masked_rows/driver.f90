!> Sums over short rows: y(i,j) = y(i,j) + x(i,j), one masked vector per row.
!>
!> Source: A64FX microarchitecture guide (Fujitsu, 2021), store fetch interlock of stores whose mask is 0.
module masked_rows
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_null_ptr, c_ptr
    use masked_rows_h, only: pw_masked_rows
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, plan_t
    use pw_in_place, only: in_place_t
    use pw_kinds, only: i8
    use pw_line, only: line_bytes
    use pw_options, only: option_choice, option_count, rules_t
    use pw_simd, only: choice_of, simd_names, words_available
    implicit none
    private

    integer(i8), parameter :: longest = 8, number_bytes = 8
    integer(i8), parameter :: grain = line_bytes/number_bytes    ! rows: whole lines for every length

    type, extends(in_place_t), public :: masked_rows_t
        private
        integer(c_int32_t) :: simd = 1
    contains
        procedure :: declare_options, read_options, plan, connect, work
    end type masked_rows_t

contains

    subroutine declare_options(self)
        class(masked_rows_t), intent(inout) :: self

        associate (options => self%options)
            call options%add('row-length', option_count, '6', 'numbers per row, 1 to 8', rules_t(lowest=1_i8), '1,2,3,4,5,6,7,8')
            call options%add('rows', option_choice, 'dense', 'rows contiguous, or padded to start at every eighth number', &
                             values='dense|padded')
            call options%add('simd', option_choice, 'compiler', 'as compiled, number by number, or masked vectors of this '// &
                             'number of bits', values=words_available(simd_names, width_status))
        end associate
    end subroutine declare_options

    integer(c_int32_t) function width_status(place)
        integer(c_int32_t), intent(in) :: place

        width_status = pw_masked_rows(place, 1_i8, 0_i8, longest, c_null_ptr, c_null_ptr)
    end function width_status

    subroutine read_options(self, error)
        class(masked_rows_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        call self%options%get('row-length', self%length)
        call self%options%get('rows', word)
        self%leading = merge(longest, self%length, word == 'padded')
        self%simd = choice_of(self%options, 'simd', simd_names)
        if (self%length > longest) &
            call error%raise(exit_usage, 'a row has at most 8 numbers', 'masked_rows', 'choose a --row-length of 1 to 8')
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(masked_rows_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        self%rows = max(bytes/(2*number_bytes*self%leading)/grain, 1_i8)*grain
        wanted = arrays_of('y x', self%rows*self%length, number_bytes, spread(self%rows*self%leading*number_bytes, 1, 2))
    end subroutine plan

    subroutine connect(self)
        class(masked_rows_t), intent(inout) :: self

        self%items = self%rows
        self%grain = grain
        self%row = 'row'
        self%method = 'every number, with the padding, against its closed form, largest absolute difference'
        self%y = self%memory(1)%address
        self%x = self%memory(2)%address
    end subroutine connect

    subroutine work(self, passes, first, last)
        class(masked_rows_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass
        integer(c_int32_t) :: status
        type(c_ptr) :: y, x

        y = self%at(self%y, first)
        x = self%at(self%x, first)
        do pass = 1, passes
            status = pw_masked_rows(self%simd, self%length, last - first + 1, self%leading, y, x)
        end do
    end subroutine work

end module masked_rows
