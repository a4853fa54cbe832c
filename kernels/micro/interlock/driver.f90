!> Sums in place by accesses that processors may hold back: y(i) = y(i) + s*x(i), with s = 1 and -1 in turn.
!>
!> Source: A64FX microarchitecture guide (Fujitsu, 2021), store fetch interlock.
module interlock
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int32_t, c_intptr_t, c_null_ptr, c_ptr
    use interlock_h, only: block => interlock_block, pw_interlock
    use pw_elements, only: element_at, element_types
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, plan_t
    use pw_in_place, only: in_place_t
    use pw_kinds, only: i8
    use pw_options, only: option_choice, option_count, rules_t
    use pw_simd, only: choice_of, place_of, words_available
    implicit none
    private

    integer(i8), parameter :: number_bytes = 4, compared = 4096
    character(12), parameter :: ways(5) = [character(12) :: 'contiguous', 'gather', 'gather-apart', 'structure', &
                                           'structure-16']                     ! in the order of interlock.h

    type, extends(in_place_t), public :: interlock_t
        private
        integer(c_int32_t) :: way = 1
        integer(i8) :: offset = 0, apart = 0
    contains
        procedure :: declare_options, read_options, plan, connect, work
    end type interlock_t

contains

    subroutine declare_options(self)
        class(interlock_t), intent(inout) :: self

        associate (options => self%options)
            call options%add('access', option_choice, 'contiguous', 'vectors of 16-bit numbers; gathers and scatters that '// &
                             'finish each 256 bytes, or visit others in between; pairs by LD2 and ST2, of 32 or 16 bits', &
                             values=words_available(ways, way_status))
            call options%add('offset', option_count, '0', 'bytes from a line to the first access, even, at most 62', &
                             rules_t(lowest=0_i8), '0,2,4,6,8,16,32,34,62')
            call options%add('apart', option_count, '2112', 'bytes of x after y in the low 12 bits of addresses, a multiple of '// &
                             '16 below 4096', rules_t(lowest=0_i8), '0,64,256,1024,2048,3840,3968,4032,4064,4080')
        end associate
    end subroutine declare_options

    integer(c_int32_t) function way_status(place)
        integer(c_int32_t), intent(in) :: place

        way_status = pw_interlock(place, 0_i8, 0_i8, 1_c_int32_t, c_null_ptr, c_null_ptr)
    end function way_status

    subroutine read_options(self, error)
        class(interlock_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        self%way = choice_of(self%options, 'access', ways)
        call self%options%get('offset', self%offset)
        call self%options%get('apart', self%apart)
        if (modulo(self%offset, 2_i8) /= 0 .or. self%offset > 62) &
            call error%raise(exit_usage, '--offset is not an even number up to 62', 'interlock', 'choose one, as 2')
        if (modulo(self%apart, 16_i8) /= 0 .or. self%apart >= compared) &
            call error%raise(exit_usage, '--apart is not a multiple of 16 below 4096', 'interlock', 'choose one, as 4032')
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(interlock_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        integer(i8) :: array

        self%rows = max(bytes/(2*number_bytes*block), 1_i8)
        array = (self%rows + 1)*block*number_bytes
        wanted = arrays_of('y x', self%rows*block, number_bytes, [array, array + compared])
    end subroutine plan

    !> Both have an extra block, for accesses that begin at an offset. x starts `apart` bytes after y, as far as the low 12 bits of
    !> their addresses show it.
    subroutine connect(self)
        class(interlock_t), intent(inout) :: self
        integer(i8) :: between
        integer(c_int32_t), pointer, contiguous :: beyond(:)
        integer :: array

        self%type = place_of('int32', element_types)
        self%length = block
        self%leading = block
        self%items = self%rows
        self%undoes = .true.
        self%row = 'block'
        self%method = 'every number against its closed form, largest absolute difference'
        between = int(transfer(self%memory(2)%address, 0_c_intptr_t) - transfer(self%memory(1)%address, 0_c_intptr_t), i8)
        self%y = self%memory(1)%address
        self%x = element_at(self%memory(2)%address, self%type, modulo(self%apart - between, compared)/number_bytes + 1)
        do array = 1, 2
            call c_f_pointer(self%at(merge(self%y, self%x, array == 1), self%rows + 1), beyond, [block])
            beyond = 0
        end do
    end subroutine connect

    !> What precedes the first access is added here; accesses of one thread end where those of the next begin.
    subroutine work(self, passes, first, last)
        class(interlock_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(c_int32_t), pointer, contiguous :: y(:), x(:)
        type(c_ptr) :: y_at, x_at
        integer(i8) :: pass
        integer(c_int32_t) :: status, sign
        integer :: before, i

        before = 0
        if (self%way /= 1 .and. first == 1) before = int((self%offset + 2)/number_bytes)
        y_at = self%at(self%y, first)
        x_at = self%at(self%x, first)
        call c_f_pointer(y_at, y, [before])
        call c_f_pointer(x_at, x, [before])
        do pass = self%passes + 1, self%passes + passes
            sign = merge(1_c_int32_t, -1_c_int32_t, modulo(pass, 2_i8) == 1)
            do i = 1, before
                y(i) = y(i) + sign*x(i)
            end do
            status = pw_interlock(self%way, block*(last - first + 1), self%offset, sign, y_at, x_at)
        end do
    end subroutine work

end module interlock
