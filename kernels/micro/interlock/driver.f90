!> Sums in place by accesses that processors may hold back: y(i) = y(i) + s*x(i), with s = 1 and -1 in turn.
!>
!> Source: A64FX microarchitecture guide (Fujitsu, 2021), store fetch interlock.
module interlock
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int32_t, c_int64_t, c_intptr_t
    use pw_cycles, only: clock_hertz
    use pw_deviation, only: worse
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, bandwidth_metrics, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice, option_count, rules_t
    use pw_record, only: metric_t
    use pw_shares, only: shared_kernel_t
    use pw_simd, only: chosen, words_available
    use pw_values, only: mixed
    implicit none
    private

    integer(i8), parameter :: number_bytes = 4, block = 64, compared = 4096   ! block: interlock_block of interlock.h
    character(12), parameter :: ways(5) = [character(12) :: 'contiguous', 'gather', 'gather-apart', 'structure', &
                                           'structure-16']                     ! in the order of interlock.h

    type, extends(shared_kernel_t), public :: interlock_t
        private
        integer(c_int32_t) :: way = 1
        integer(i8) :: offset = 0, apart = 0, blocks = 0
        integer(c_int32_t), pointer, contiguous :: y(:, :) => null(), x(:, :) => null()
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, metrics
    end type interlock_t

    interface
        !> The timed kernel; see interlock.h.
        integer(c_int32_t) function pw_interlock(way, n, offset, sign, y, x) bind(c)
            import :: c_int32_t, c_int64_t
            integer(c_int32_t), intent(in), value :: way, sign
            integer(c_int64_t), intent(in), value :: n, offset
            integer(c_int32_t), intent(inout) :: y(*)
            integer(c_int32_t), intent(in) :: x(*)
        end function pw_interlock
    end interface

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
        integer(c_int32_t) :: none(block)

        none = 0
        way_status = pw_interlock(place, 0_i8, 0_i8, 1_c_int32_t, none, none)
    end function way_status

    subroutine read_options(self, error)
        class(interlock_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        self%way = chosen(self%options, 'access', ways)
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

        self%blocks = max(bytes/(2*number_bytes*block), 1_i8)
        array = (self%blocks + 1)*block*number_bytes
        wanted = arrays_of('y x', self%blocks*block, number_bytes, [array, array + compared])
    end subroutine plan

    !> Both have an extra block, for accesses that begin at an offset. x starts `apart` bytes after y, as far as the low 12 bits of
    !> their addresses show it.
    subroutine connect(self)
        class(interlock_t), intent(inout) :: self
        integer(c_int32_t), pointer, contiguous :: all(:)
        integer(i8) :: between, first

        self%items = self%blocks
        self%undoes = .true.
        self%method = 'every number against its closed form, largest absolute difference'
        between = int(transfer(self%memory(2)%address, 0_c_intptr_t) - transfer(self%memory(1)%address, 0_c_intptr_t), i8)
        first = modulo(self%apart - between, compared)/number_bytes
        call c_f_pointer(self%memory(1)%address, self%y, [block, self%blocks + 1])
        call c_f_pointer(self%memory(2)%address, all, [(self%blocks + 1)*block + compared/number_bytes])
        self%x(1:block, 1:self%blocks + 1) => all(first + 1:first + (self%blocks + 1)*block)
    end subroutine connect

    subroutine fill(self, first, last)
        class(interlock_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i, j

        do j = first, last
            do i = 1, block
                self%y(i, j) = initial(i, j)
                self%x(i, j) = increment(i, j)
            end do
        end do
        if (last < self%blocks) return
        self%y(:, last + 1) = 0
        self%x(:, last + 1) = 0
    end subroutine fill

    pure integer(c_int32_t) function initial(i, j)
        integer(i8), intent(in) :: i, j

        initial = int(iand(mixed(i, int(j)), 1023_i8), c_int32_t)
    end function initial

    pure integer(c_int32_t) function increment(i, j)
        integer(i8), intent(in) :: i, j

        increment = int(1_i8 + iand(mixed(-i, int(j)), 255_i8), c_int32_t)
    end function increment

    !> What precedes the first access is added here; accesses of one thread end where those of the next begin.
    subroutine work(self, passes, first, last)
        class(interlock_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass
        integer(c_int32_t) :: status, sign
        integer :: before

        before = 0
        if (self%way /= 1 .and. first == 1) before = int((self%offset + 2)/number_bytes)
        associate (y => self%y, x => self%x)
            do pass = self%passes + 1, self%passes + passes
                sign = merge(1_c_int32_t, -1_c_int32_t, modulo(pass, 2_i8) == 1)
                y(:before, first) = y(:before, first) + sign*x(:before, first)
                status = pw_interlock(self%way, block*(last - first + 1), self%offset, sign, y(1, first), x(1, first))
            end do
        end associate
    end subroutine work

    real(r8) function deviation(self, first, last) result(error)
        class(interlock_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(c_int32_t) :: expected
        integer(i8) :: i, j

        error = 0.0_r8
        do j = first, last
            do i = 1, block
                expected = initial(i, j)
                if (modulo(self%passes, 2_i8) == 1) expected = expected + increment(i, j)
                error = worse(error, abs(real(self%y(i, j), r8) - real(expected, r8)))
            end do
        end do
    end function deviation

    function metrics(self, passes, seconds) result(figures)
        class(interlock_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: hertz, a_block

        hertz = clock_hertz()
        a_block = seconds*real(min(self%threads, self%blocks), r8)/real(self%blocks*passes, r8)
        figures = [metric_t('nanoseconds_per_block', 1.0e9_r8*a_block)]
        if (hertz > 0.0_r8) figures = [figures, metric_t('cycles_per_block', a_block*hertz), metric_t('clock_ghz', hertz*1.0e-9_r8)]
        figures = [figures, bandwidth_metrics(self%traffic(passes), seconds)]
    end function metrics

end module interlock
