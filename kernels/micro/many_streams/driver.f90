!> Many streams: a(i) = b_1(i) + ... + b_n(i), or only the sum of all elements.
module many_streams
    use pw_streams, only: streams_t
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice, option_count, rules_t
    use pw_text, only: to_text
    use pw_traffic, only: per_element_t
    implicit none
    private

    integer(i8), parameter :: most_streams = 32

    type, extends(streams_t), public :: many_streams_t
    contains
        procedure :: declare_options, read_options
        procedure, nopass :: element
    end type many_streams_t

contains

    subroutine declare_options(self)
        class(many_streams_t), intent(inout) :: self
        character(:), allocatable :: ladder
        integer :: i

        ladder = '1'
        do i = 2, int(most_streams)
            ladder = ladder//','//to_text(i)
        end do
        call self%options%add('streams', option_count, '16', 'input streams, up to '//to_text(most_streams), rules_t(lowest=1_i8), &
                              ladder)
        call self%options%add('result', option_choice, 'array', 'store a(i), or sum up all and store nothing', values='array|sum')
        call self%declare_stream_options()
    end subroutine declare_options

    subroutine read_options(self, error)
        class(many_streams_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer(i8) :: streams
        real(r8) :: stores

        call self%options%get('streams', streams)
        if (streams > most_streams) then
            call error%raise(exit_usage, to_text(streams)//' streams', 'many_streams', &
                             'choose --streams of at most '//to_text(most_streams))
            return
        end if
        call self%options%get('result', word)
        self%inputs = int(streams)
        stores = merge(1.0_r8, 0.0_r8, word == 'array')
        self%per_element = per_element_t(loads=real(streams, r8), stores=stores, write_allocate=stores, &
                                         flops=real(streams, r8) - stores)
        call self%read_stream_options(error)
    end subroutine read_options

    pure subroutine element(old, x, s, new)
        real(r8), intent(in) :: old(:), x(:), s
        real(r8), intent(out) :: new(:)

        new(1) = sum(x)
    end subroutine element

end module many_streams
