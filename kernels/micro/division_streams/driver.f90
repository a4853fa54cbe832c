!> Divisions by one array: q_j(i) = p_j(i) / p_1(i).
module division_streams
    use pw_streams, only: streams_t
    use pw_error, only: error_t
    use pw_kinds, only: r8
    implicit none
    private

    type, extends(streams_t), public :: division_streams_t
    contains
        procedure :: read_options
        procedure, nopass :: element
    end type division_streams_t

contains

    !> The divisor is loaded again by each of the last six loops.
    subroutine read_options(self, error)
        class(division_streams_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        self%inputs = 12
        self%rounded_up_to = 8.0_r8
        call self%read_stream_options(error)
    end subroutine read_options

    !> x: the metric, p_1 to p_5, six tracers.
    pure subroutine element(old, x, s, new)
        real(r8), intent(in) :: old(:), x(:), s
        real(r8), intent(out) :: new(:)

        new(1) = x(2)/x(1)
        new(2:) = x(3:)/x(2)
    end subroutine element

end module division_streams
