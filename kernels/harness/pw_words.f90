!> Words of 8 bytes at any address, for checks of accesses that are not aligned.
module pw_words
    use pw_kinds, only: i8
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8
    integer, parameter :: word_bits = 64

    public :: word_at, put_word

contains

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
