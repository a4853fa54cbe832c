!> Vector loads and stores, gathers, scatters and accesses to structures at a chosen offset from a cache line.
!>
!> Source: A64FX micro-architecture guide (Fujitsu, 2021), effect of alignment.
module alignment
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int32_t, c_int8_t, c_loc, c_null_ptr
    use alignment_h, only: alignment_block, copy => alignment_copy, load => alignment_load, pw_alignment, &
        store => alignment_store
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_choice, option_count
    use pw_shares, only: shared_kernel_t
    use pw_simd, only: choice_of, words_available
    use pw_text, only: to_text
    use pw_threads, only: thread_number
    use pw_traffic, only: per_element_t
    use pw_values, only: distinct_word
    use pw_words, only: word_at
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8, line_words = line_bytes/word_bytes
    integer(i8), parameter :: block_words = alignment_block/word_bytes
    integer(i8), parameter :: untouched = -1
    character(18), parameter :: accesses(11) = [character(18) :: &
                                                'copy', 'load', 'store', 'gather-64', 'gather-32', 'scatter-64', 'scatter-32', &
                                                'structure-load-64', 'structure-load-32', 'structure-store-64', &
                                                'structure-store-32']                   ! in the order of alignment.h
    integer(i8), parameter :: kinds(11) = [copy, load, store, load, load, store, store, load, load, store, store]
    character(*), parameter :: offsets = '0,1,2,4,8,12,16,20,24,28,32,36,40,44,48,52,56,60,63'

    type, extends(shared_kernel_t), public :: alignment_t
        private
        integer(i8) :: access = copy, kind = copy, bits = 0, load_offset = 0, store_offset = 0
        integer(i8), pointer, contiguous :: a(:) => null(), b(:) => null()             ! with one extra line
        integer(c_int8_t), pointer, contiguous :: a_bytes(:) => null(), b_bytes(:) => null()
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation
    end type alignment_t

contains

    subroutine declare_options(self)
        class(alignment_t), intent(inout) :: self

        call self%options%add('load-offset', option_count, '0', 'bytes from a cache line to the first load', values=offsets)
        call self%options%add('store-offset', option_count, '0', 'bytes from a cache line to the first store', values=offsets)
        call self%options%add('access', option_choice, 'copy', 'copy; or load, store, gather or scatter of neighbours, or load '// &
                              'or store of pairs (LD2, ST2) alone, of numbers of 64 or 32 bits', &
                              values=words_available(accesses, access_status))
        call self%options%add('vector-bits', option_choice, to_text(widest()), 'width of a load or store', values='128|256|512')
    end subroutine declare_options

    !> The SIMD width of a build: 256 bits if supported.
    integer function widest()
        integer, parameter :: widths(3) = [256, 512, 128]
        integer :: i

        do i = 1, size(widths)
            widest = widths(i)
            if (supported(copy, int(widest, i8))) return
        end do
    end function widest

    !> Whether the build has an access with vectors of so many bits.
    logical function supported(access, bits)
        integer(i8), intent(in) :: access, bits
        integer(i8) :: total

        supported = pw_alignment(access, bits, 0_i8, c_null_ptr, c_null_ptr, 0_i8, total) /= 0
    end function supported

    !> 0 if the build has the access at this place, with vectors of the width that it uses by default.
    integer(c_int32_t) function access_status(place)
        integer(c_int32_t), intent(in) :: place

        access_status = merge(0, 1, supported(int(place, i8), int(widest(), i8)))
    end function access_status

    subroutine read_options(self, error)
        class(alignment_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        call self%options%get('load-offset', self%load_offset)
        call self%options%get('store-offset', self%store_offset)
        self%access = choice_of(self%options, 'access', accesses)
        self%kind = kinds(self%access)
        ! kernel.yaml has the traffic of a copy.
        if (self%kind == load) self%per_element = per_element_t(loads=1.0_r8)
        if (self%kind == store) self%per_element = per_element_t(stores=1.0_r8, write_allocate=1.0_r8)
        call self%options%get('vector-bits', word)
        read (word, *) self%bits
        if (max(self%load_offset, self%store_offset) >= line_bytes) then
            call error%raise(exit_usage, 'an offset must be below a cache line', 'alignment', &
                             'choose one of 0 to '//to_text(line_bytes - 1))
        else if (.not. supported(self%access, self%bits)) then
            call error%raise(exit_usage, 'this build does not support --access '//trim(accesses(self%access))// &
                             ' with vectors of '//word//' bits', 'alignment', &
                             'choose another --vector-bits, or build for a processor that has them')
        end if
    end subroutine read_options

    !> Whole blocks and one extra line, for the arrays of the access.
    subroutine plan(self, bytes, wanted, error)
        class(alignment_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        character(:), allocatable :: names

        names = 'b'
        if (self%kind == copy) names = 'a b'
        associate (words => (bytes/merge(2, 1, self%kind == copy) - line_bytes)/(block_words*word_bytes)*block_words)
            wanted = arrays_of(names, words, word_bytes)
        end associate
        wanted%bytes = wanted%bytes + line_bytes
    end subroutine plan

    !> a and b are the same array if there is only one.
    subroutine connect(self)
        class(alignment_t), intent(inout) :: self
        integer(i8) :: words

        self%grain = block_words
        self%method = 'every word, combined from aligned ones: wrong words of a thread'
        words = self%elements + line_words
        associate (last => self%memory(size(self%memory)))
            call c_f_pointer(self%memory(1)%address, self%a, [words])
            call c_f_pointer(last%address, self%b, [words])
            call c_f_pointer(self%memory(1)%address, self%a_bytes, [words*word_bytes])
            call c_f_pointer(last%address, self%b_bytes, [words*word_bytes])
        end associate
    end subroutine connect

    !> The extra line belongs to the last thread.
    subroutine fill(self, first, last)
        class(alignment_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i

        do i = first, merge(last + line_words, last, last == self%elements)
            self%a(i) = untouched
            self%b(i) = distinct_word(i)
        end do
    end subroutine fill

    !> A pass stores its number, copies, or leaves the exclusive or of its loads in `totals`.
    subroutine work(self, passes, first, last)
        class(alignment_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: byte, pass, partial, done

        partial = 0
        byte = (first - 1)*word_bytes + 1
        associate (a => self%a_bytes, b => self%b_bytes)
            do pass = 1, passes
                done = pw_alignment(self%access, self%bits, (last - first + 1)*word_bytes, c_loc(a(byte + self%store_offset)), &
                                    c_loc(b(byte + self%load_offset)), self%passes + pass, partial)
            end do
        end associate
        self%totals(1, thread_number()) = partial
    end subroutine work

    !> Word by word, each combined from the two aligned words that contain it.
    real(r8) function deviation(self, first, last) result(wrong)
        class(alignment_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: at, total

        total = self%totals(1, thread_number())
        wrong = 0.0_r8
        do at = (first - 1)*word_bytes, (last - 1)*word_bytes, word_bytes
            select case (self%kind)
            case (copy)
                if (word_at(self%a, at + self%store_offset) /= word_at(self%b, at + self%load_offset)) wrong = wrong + 1
            case (load)
                total = ieor(total, word_at(self%b, at + self%load_offset))
            case (store)
                if (word_at(self%a, at + self%store_offset) /= self%passes) wrong = wrong + 1
            end select
        end do
        if (self%kind == load .and. total /= 0) wrong = wrong + 1
    end function deviation

end module alignment
