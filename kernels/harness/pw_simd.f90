!> The words of a list, such as types or SIMD widths: all, or those that a build supports, for options with these choices.
module pw_simd
    use, intrinsic :: iso_c_binding, only: c_int32_t
    use pw_options, only: options_t
    implicit none
    private

    !> Widths in bits, in the order of the numbers in pw_simd.h.
    character(8), parameter, public :: simd_names(6) = ['compiler', 'scalar  ', '128     ', '256     ', '512     ', 'vla     ']

    abstract interface
        !> The result of a call without work for the word at this position: 0 if the build supports it.
        integer(c_int32_t) function status(place)
            import :: c_int32_t
            integer(c_int32_t), intent(in) :: place
        end function status
    end interface

    public :: choice_of, place_of, words_available

contains

    !> Position of a word in a list that contains it. (gfortran 12's findloc does not find a shorter character.)
    pure integer(c_int32_t) function place_of(word, words) result(place)
        character(*), intent(in) :: word, words(:)

        do place = 1, int(size(words), c_int32_t) - 1
            if (words(place) == word) exit
        end do
    end function place_of

    !> The position of the value of an option among its words.
    integer(c_int32_t) function choice_of(options, option, words) result(place)
        type(options_t), intent(in) :: options
        character(*), intent(in) :: option, words(:)
        character(:), allocatable :: word

        call options%get(option, word)
        place = place_of(word, words)
    end function choice_of

    !> The words that this build supports, or without `status_of` all, separated by '|'.
    function words_available(words, status_of) result(list)
        character(*), intent(in) :: words(:)
        procedure(status), optional :: status_of
        character(:), allocatable :: list
        integer(c_int32_t) :: i

        list = ''
        do i = 1, int(size(words), c_int32_t)
            if (present(status_of)) then
                if (status_of(i) /= 0) cycle
            end if
            list = list//'|'//trim(words(i))
        end do
        list = list(2:)
    end function words_available

end module pw_simd
