!> Loads and stores across cache lines and across 4 KiB.
!>
!> Source: A64FX microarchitecture guide (Fujitsu, 2021), store fetch interlock, loads across 4 KiB.
module crossing
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int32_t, c_int8_t, c_loc, c_null_ptr
    use crossing_h, only: apart, forward => crossing_forward, load => crossing_load, pw_crossing, store => crossing_store, &
        together
    use pw_cycles, only: cycle_metrics
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice
    use pw_record, only: metric_t
    use pw_shares, only: shared_kernel_t
    use pw_simd, only: choice_of, place_of, simd_names, words_available
    use pw_text, only: bytes_to_text
    use pw_traffic, only: per_element_t
    use pw_values, only: distinct_word
    use pw_words, only: put_word, word_at
    implicit none
    private

    integer(i8), parameter :: rounds = 64
    integer(i8), parameter :: word_bytes = 8, low_bits = 2_i8**31 - 1
    character(7), parameter :: accesses(3) = ['load   ', 'store  ', 'forward']   ! in their order

    type, extends(shared_kernel_t), public :: crossing_t
        private
        integer(i8) :: start = 0, words = 0, places = 0
        integer(c_int32_t) :: access = 1, simd = 1
        integer(i8), pointer, contiguous :: a(:, :) => null()                     ! word, thread
        integer(c_int8_t), pointer, contiguous :: bytes(:, :) => null()           ! the same memory
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, metrics
    end type crossing_t

contains

    subroutine declare_options(self)
        class(crossing_t), intent(inout) :: self
        character(:), allocatable :: widths

        widths = words_available(simd_names, width_status)
        associate (options => self%options)
            call options%add('across', option_choice, 'page', 'boundary in the middle of each access: nothing, a boundary of '// &
                             'cache lines, or one of 4 KiB', values='nothing|line|page')
            call options%add('access', option_choice, 'load', 'kind of access: loads, stores, or successive loads of the value '// &
                             'just stored', values=words_available(accesses))
            call options%add('simd', option_choice, widths(index(widths, '|', back=.true.) + 1:), 'width of an access: 8 '// &
                             'bytes, or this number of bits', values=widths)
        end associate
    end subroutine declare_options

    integer(c_int32_t) function width_status(place)
        integer(c_int32_t), intent(in) :: place
        integer(i8) :: total

        total = 0
        width_status = pw_crossing(1_c_int32_t, place, 0_i8, 0_i8, c_null_ptr, 0_i8, total)
    end function width_status

    subroutine read_options(self, error)
        class(crossing_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer(i8) :: bits

        self%access = choice_of(self%options, 'access', accesses)
        call self%options%get('simd', word)
        self%simd = place_of(word, simd_names)
        bits = 8*word_bytes
        if (word /= 'scalar') read (word, *) bits
        self%words = bits/(8*word_bytes)
        self%per_element = per_element_t(loads=merge(0.0_r8, 1.0_r8, self%access == store), &
            stores=merge(0.0_r8, 1.0_r8, self%access == load), element_bytes=real(word_bytes*self%words, r8))
        call self%options%get('across', word)
        self%start = apart/2
        if (word == 'line') self%start = apart/2 - bits/16
        if (word == 'page') self%start = apart - bits/16
    end subroutine read_options

    !> The places, and the 4 KiB after the last boundary, for each thread.
    subroutine plan(self, bytes, wanted, error)
        class(crossing_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        self%places = (bytes/(apart*self%threads) - 1)/together*together
        if (self%places < together) call error%raise(exit_usage, 'a thread needs four boundaries and 20 KiB', 'crossing', &
            'choose a --working-set of '//bytes_to_text((together + 1)*apart*self%threads)//' or more')
        wanted = arrays_of('a', (self%places + 1)*apart/word_bytes*self%threads, word_bytes)
        wanted%units = rounds*self%places*self%threads      ! accesses
    end subroutine plan

    subroutine connect(self)
        class(crossing_t), intent(inout) :: self
        integer(i8) :: words

        words = self%elements/self%threads
        self%items = self%threads
        self%method = 'low bits of sums and every word, combined from aligned ones: wrong words of a thread'
        call c_f_pointer(self%memory(1)%address, self%a, [words, self%threads])
        call c_f_pointer(self%memory(1)%address, self%bytes, [words*word_bytes, self%threads])
    end subroutine connect

    subroutine fill(self, first, last)
        class(crossing_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i

        do i = 1, size(self%a, 1)
            self%a(i, first:last) = distinct_word(i)
        end do
    end subroutine fill

    !> A pass stores its number.
    subroutine work(self, passes, first, last)
        class(crossing_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass, thread, total
        integer(c_int32_t) :: status

        associate (bytes => self%bytes)
            do thread = first, last
                total = self%totals(1, thread - 1)
                do pass = 1, passes
                    status = pw_crossing(self%access, self%simd, rounds, self%places, c_loc(bytes(self%start + 1, thread)), &
                                         self%passes + pass, total)
                end do
                self%totals(1, thread - 1) = total
            end do
        end associate
    end subroutine work

    !> The words at each place, combined from the aligned words that contain them; and all others, which must be unchanged.
    real(r8) function deviation(self, first, last) result(wrong)
        class(crossing_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8), allocatable :: expected(:)
        integer(i8) :: i, k, place, thread, sum

        wrong = 0.0_r8
        sum = 0
        allocate (expected(size(self%a, 1)))
        do i = 1, size(expected, kind=i8)
            expected(i) = distinct_word(i)
        end do
        do place = 0, self%places - 1
            do k = 0, self%words - 1
                i = self%start + place*apart + k*word_bytes
                sum = iand(sum + iand(word_at(expected, i), low_bits), low_bits)
                if (self%access == store) call put_word(expected, i, self%passes)
                if (self%access == forward .and. place == 0) &
                    call put_word(expected, i, word_at(expected, i) + self%passes*rounds*self%places)
            end do
        end do
        sum = merge(iand(sum*iand(self%passes*rounds, low_bits), low_bits), 0_i8, self%access == load)
        do thread = first, last
            if (iand(self%totals(1, thread - 1), low_bits) /= sum) wrong = wrong + 1
            wrong = wrong + count(self%a(:, thread) /= expected)
        end do
    end function deviation

    function metrics(self, passes, seconds) result(figures)
        class(crossing_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = cycle_metrics('access', seconds*real(self%threads, r8)/real(self%units*passes, r8))
    end function metrics

end module crossing
