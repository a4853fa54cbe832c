!> FMA dependency chains: y(i,j) = c0 + x*(c1 + x*(...)), x = y(i,j-m).
!>
!> Source: A64FX microarchitecture guide (Fujitsu, 2021), verification of out-of-order execution.
module fma_chains
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int32_t
    use fma_chains_h, only: chains_interleaved, chains_row, chains_source, longest => chains_longest, pw_chains, pw_chains_most
    use pw_cycles, only: clock_hertz
    use pw_deviation, only: worse
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice, option_count, rules_t
    use pw_peak, only: peak_flop_per_s
    use pw_record, only: metric_t, traffic_t
    use pw_shares, only: shared_kernel_t
    use pw_simd, only: choice_of, simd_names, words_available
    use pw_text, only: to_text
    implicit none
    private

    integer, parameter :: width = int(chains_row)
    integer(i8), parameter :: fewest_rows = 63, page_rows = 64   ! 64 rows are 4 KiB
    !> The first two as in chains.h; `chained` is the order of the source with a distance of one row.
    character(11), parameter :: orders(3) = ['source     ', 'interleaved', 'chained    ']
    integer(c_int32_t), parameter :: chained = 3
    real(r8), parameter :: untouched = -1.0e9_r8
    !> Each row's numbers stay between 0 and 1, and each coefficient matters.
    real(r8), parameter :: c(0:longest) = &
        [0.75_r8, -0.5_r8, 0.25_r8, -0.125_r8, 0.125_r8, -0.0625_r8, 0.0625_r8, -0.0625_r8, 0.0625_r8, -0.0625_r8]

    type, extends(shared_kernel_t), public :: fma_chains_t
        private
        integer(i8) :: fmas = longest, distance = 0, at_once = 0, rows = 0
        integer(c_int32_t) :: simd = 1, order = 1
        real(r8), pointer, contiguous :: y(:, :, :) => null()   ! number, row, thread: first the rows to be read
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, metrics
        procedure, private :: back
    end type fma_chains_t

contains

    subroutine declare_options(self)
        class(fma_chains_t), intent(inout) :: self

        associate (options => self%options)
            call options%add('fmas', option_count, '9', 'multiply-adds of a chain, 1 to 9', rules_t(lowest=1_i8), &
                             '1,2,3,4,5,6,7,8,9')
            call options%add('distance', option_count, '0', 'rows from an input row to its result: 1 makes all rows one chain, '// &
                             '0 makes all independent', values='0,1,2,3,4,6,8,12,16,24,32')
            call options%add('order', option_choice, 'source', 'row after row, as if the compiler does not know the distance; '// &
                             'several rows at once, as if it knows them to be independent; or each row from the one before', &
                             values=words_available(orders))
            call options%add('at-once', option_count, '0', 'vectors whose chains are interleaved, a power of two: fewer are a '// &
                             'looser pipeline; 0: as many as there are registers for', values=ladder())
            call options%add('simd', option_choice, 'compiler', 'SIMD width in bits: the build''s, none, or this width', &
                             values=words_available(simd_names, width_status))
        end associate
    end subroutine declare_options

    !> The powers of two up to the most vectors at once.
    function ladder() result(values)
        character(:), allocatable :: values
        integer(i8) :: number

        values = '1'
        number = 2
        do while (number <= pw_chains_most())
            values = values//','//to_text(number)
            number = 2*number
        end do
    end function ladder

    integer(c_int32_t) function width_status(place)
        integer(c_int32_t), intent(in) :: place
        real(r8) :: y(width)

        width_status = pw_chains(place, 1_c_int32_t, 1_i8, 0_i8, 0_i8, 0_i8, c, y)
    end function width_status

    subroutine read_options(self, error)
        class(fma_chains_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        call self%options%get('fmas', self%fmas)
        self%per_element%flops = real(2*self%fmas, r8)
        call self%options%get('distance', self%distance)
        self%order = choice_of(self%options, 'order', orders)
        self%simd = choice_of(self%options, 'simd', simd_names)
        call self%options%get('at-once', self%at_once)
        if (self%order == chained) then
            self%order = int(chains_source, c_int32_t)
            if (self%distance > 1) call error%raise(exit_usage, '--order chained has a distance of one row', 'fma_chains', &
                                                    'use --order source for other distances')
            self%distance = 1
        end if
        if (self%at_once > 0 .and. (self%order /= chains_interleaved .or. self%simd == 1)) then
            call error%raise(exit_usage, '--at-once needs --order interleaved and a SIMD width', 'fma_chains', &
                             'add --order interleaved --simd 128, or leave it out')
        else if (self%at_once > pw_chains_most() .or. popcnt(self%at_once) > 1) then
            call error%raise(exit_usage, '--at-once '//to_text(self%at_once)//' is not one of '//ladder(), 'fma_chains', &
                             'choose one of them')
        else if (self%fmas > longest) then
            call error%raise(exit_usage, 'a chain has at most '//to_text(longest)//' multiply-adds', 'fma_chains', &
                             'choose a smaller --fmas')
        else if (self%order == chains_interleaved .and. self%distance > 0) then
            call error%raise(exit_usage, 'rows that depend on each other cannot be interleaved', 'fma_chains', &
                             'use --distance 0, or --order source')
        end if
        if (self%at_once == 0) self%at_once = pw_chains_most()
    end subroutine read_options

    !> Each thread has rows to read and the same number to write. Their number is one less than a multiple of the rows in
    !> 4 KiB: the processor compares the low 12 bits of addresses, and no load may match an earlier store.
    subroutine plan(self, bytes, wanted, error)
        class(fma_chains_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        integer(i8) :: row_bytes

        row_bytes = 2*width*8
        self%rows = max(fewest_rows, (bytes/(self%threads*row_bytes) + 1)/page_rows*page_rows - 1)
        if (self%distance > self%rows) call error%raise(exit_usage, 'at most '//to_text(self%rows)//' rows exist', 'fma_chains', &
                                                        'choose a smaller --distance, or a larger --working-set')
        wanted = arrays_of('y', self%rows*width*self%threads, 8_i8, [self%rows*row_bytes*self%threads])
    end subroutine plan

    subroutine connect(self)
        class(fma_chains_t), intent(inout) :: self

        self%items = self%threads
        self%tolerance = 16*epsilon(1.0_r8)
        self%method = 'each number against a sum of powers of its input, largest absolute difference'
        call c_f_pointer(self%memory(1)%address, self%y, [int(width, i8), 2*self%rows, self%threads])
    end subroutine connect

    subroutine fill(self, first, last)
        class(fma_chains_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: j
        integer :: i

        do j = 1, self%rows
            do i = 1, width
                self%y(i, j, first:last) = real(modulo(7*j + 3*int(i, i8), 64_i8), r8)/64.0_r8
            end do
        end do
        self%y(:, self%rows + 1:, first:last) = untouched
    end subroutine fill

    !> Rows from a result to its input.
    pure integer(i8) function back(self)
        class(fma_chains_t), intent(in) :: self

        back = merge(self%distance, self%rows, self%distance > 0)
    end function back

    subroutine work(self, passes, first, last)
        class(fma_chains_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass, thread
        integer(c_int32_t) :: status

        associate (y => self%y)
            do thread = first, last
                do pass = 1, passes
                    status = pw_chains(self%simd, self%order, self%at_once, self%fmas, self%rows, back(self), c, &
                                       y(1, self%rows + 1, thread))
                end do
            end do
        end associate
    end subroutine work

    !> Each number recomputed from its input, as a sum of powers.
    real(r8) function deviation(self, first, last) result(error)
        class(fma_chains_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: j, thread
        integer :: i

        error = 0.0_r8
        do thread = first, last
            do j = self%rows + 1, 2*self%rows
                do i = 1, width
                    error = worse(error, abs(self%y(i, j, thread) - powers(self%y(i, j - back(self), thread))))
                end do
            end do
        end do

    contains

        pure real(r8) function powers(x)
            real(r8), intent(in) :: x
            integer :: k

            powers = 0.0_r8
            do k = 0, int(self%fmas)
                powers = powers + c(k)*x**k
            end do
        end function powers

    end function deviation

    !> Per cycle of a core; the peak is that of the same width, or of the build's if the compiler chose it.
    function metrics(self, passes, seconds) result(figures)
        class(fma_chains_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(traffic_t) :: done
        real(r8) :: hertz, rate

        hertz = clock_hertz()
        done = self%traffic(passes)
        rate = done%flops/seconds
        figures = [metric_t('gflop_per_s', rate*1.0e-9_r8), &
                   metric_t('peak_share', rate/(peak_flop_per_s(self%simd)*real(self%threads, r8)))]
        if (hertz > 0.0_r8) figures = [metric_t('flops_per_cycle', rate/(hertz*real(self%threads, r8))), figures, &
                                       metric_t('clock_ghz', hertz*1.0e-9_r8)]
    end function metrics

end module fma_chains
