!> Words of 8 bytes at any address, for checks of accesses that are not aligned.
module pw_words
    use pw_kinds, only: i8
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8
    integer, parameter :: word_bits = 64
    integer(i8), parameter :: factor = 2654435761_i8   ! 2**32 divided by the golden ratio (Knuth, TAOCP 3, section 6.4)

    public :: distinct_word, word_at, put_word

contains

    !> A value for word i that differs from those of its neighbours in every byte.
    pure integer(i8) function distinct_word(i)
        integer(i8), intent(in) :: i

        distinct_word = ieor(factor*modulo(i, 2_i8**30), shiftl(i, 41))
    end function distinct_word

    !> The word that starts `offset` bytes after the first of `words`, on a little-endian machine.
    pure integer(i8) function word_at(words, offset)
        integer(i8), intent(in) :: words(:), offset
        integer(i8) :: k
        integer :: shift

        k = offset/word_bytes + 1
        shift = 8*int(modulo(offset, word_bytes))
        word_at = words(k)
        if (shift > 0) word_at = ior(shiftr(words(k), shift), shiftl(words(k + 1), word_bits - shift))
    end function word_at

    !> Set it to `value`.
    pure subroutine put_word(words, offset, value)
        integer(i8), intent(inout) :: words(:)
        integer(i8), intent(in) :: offset, value
        integer(i8) :: k
        integer :: shift

        k = offset/word_bytes + 1
        shift = 8*int(modulo(offset, word_bytes))
        if (shift == 0) then
            words(k) = value
        else
            words(k) = ior(iand(words(k), maskr(shift, i8)), shiftl(value, shift))
            words(k + 1) = ior(iand(words(k + 1), not(maskr(shift, i8))), shiftr(value, word_bits - shift))
        end if
    end subroutine put_word

end module pw_words
