!> The Schoenauer vector triad, a(i) = b(i) + c(i)*d(i).
!>
!> Source: W. Schoenauer, Scientific Supercomputing (2000); Hager et al., Optimizing performance on modern HPC
!> systems (2005), section 3.
module schoenauer_triad
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int64_t
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: bandwidth_metrics, kernel_t, plan_t
    use pw_kinds, only: i4, i8, r8
    use pw_options, only: option_bytes, option_count
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_threads, only: thread_share
    implicit none
    private

    integer(i8), parameter :: element_bytes = 8, line = 8    ! doubles in 64 bytes: shares start at a cache line

    type, extends(kernel_t), public :: triad_t
        private
        integer(i8) :: elements = 0, tuning = 0
        real(r8), pointer, contiguous :: a(:) => null(), b(:) => null(), c(:) => null(), d(:) => null()
    contains
        procedure :: declare_options
        procedure :: read_options
        procedure :: plan
        procedure :: initialise
        procedure :: run
        procedure :: validate
        procedure :: traffic
        procedure :: metrics
    end type triad_t

    public :: new_triad

    interface
        !> The timed kernel of this build; see triad.h.
        subroutine pw_triad(n, a, b, c, d, tuning) bind(c)
            import :: c_double, c_int64_t
            integer(c_int64_t), intent(in), value :: n, tuning
            real(c_double), intent(inout) :: a(n)
            real(c_double), intent(in) :: b(n), c(n), d(n)
        end subroutine pw_triad
    end interface

contains

    function new_triad() result(kernel)
        type(triad_t) :: kernel

        kernel%name = 'schoenauer_triad'
        kernel%summary = 'bandwidth of a(i) = b(i) + c(i)*d(i)'
        kernel%default_working_set = '256MiB'
    end function new_triad

    subroutine declare_options(self)
        class(triad_t), intent(inout) :: self

        select case (self%configuration%prefetch)
        case ('software')
            call self%options%add('prefetch-distance', option_count, '32', 'cache lines that are prefetched ahead', &
                                  lowest=1_i8)
        case ('block')
            call self%options%add('block-size', option_bytes, '24KiB', 'bytes of the three inputs loaded ahead', lowest=1536_i8)
        end select
    end subroutine declare_options

    subroutine read_options(self, error)
        class(triad_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        integer(i8) :: value

        select case (self%configuration%prefetch)
        case ('software')
            call self%options%get('prefetch-distance', value)
            self%tuning = value*line
        case ('block')
            call self%options%get('block-size', value)
            self%tuning = value/(3*element_bytes)/line*line
        end select
        if (self%tuning > 2_i8**40) call error%raise(exit_usage, 'the prefetch distance or block is larger than any memory', &
            'schoenauer_triad', 'give a smaller --prefetch-distance or --block-size')
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(triad_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        associate (unused_self => self, unused_error => error)
        end associate
        wanted%elements = bytes/(4*element_bytes)
        wanted%element_bytes = element_bytes
        allocate (wanted%name(4), source=[character(16) :: 'a', 'b', 'c', 'd'])
        allocate (wanted%bytes(4), source=wanted%elements*element_bytes)
    end subroutine plan

    !> b, c and d get small whole numbers, so that the result is exact with and without fused multiply-add; a gets a
    !> value that no result has, so that a store left out is seen.
    subroutine initialise(self, elements)
        class(triad_t), intent(inout) :: self
        integer(i8), intent(in) :: elements
        integer(i8) :: first, last, i

        self%elements = elements
        call c_f_pointer(self%memory(1)%address, self%a, [elements])
        call c_f_pointer(self%memory(2)%address, self%b, [elements])
        call c_f_pointer(self%memory(3)%address, self%c, [elements])
        call c_f_pointer(self%memory(4)%address, self%d, [elements])
        associate (a => self%a, b => self%b, c => self%c, d => self%d)
            !$omp parallel private(first, last, i)
            call thread_share(elements, line, first, last)
            do i = first, last
                a(i) = -1.0_r8
                b(i) = b_value(i)
                c(i) = c_value(i)
                d(i) = d_value(i)
            end do
            !$omp end parallel
        end associate
    end subroutine initialise

    pure elemental real(r8) function b_value(i)
        integer(i8), intent(in) :: i

        b_value = real(iand(int(iand(i, 2147483647_i8), i4), 1023_i4), r8)
    end function b_value

    pure elemental real(r8) function c_value(i)
        integer(i8), intent(in) :: i

        c_value = real(1_i4 + iand(int(iand(i, 2147483647_i8), i4), 15_i4), r8)
    end function c_value

    pure elemental real(r8) function d_value(i)
        integer(i8), intent(in) :: i

        d_value = real(2_i4 + iand(int(shiftr(i, 4), i4), 31_i4), r8)
    end function d_value

    !> Each thread makes its passes over its own share: nothing is shared, so nothing waits.
    subroutine run(self, passes)
        class(triad_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: first, last, pass

        associate (a => self%a, b => self%b, c => self%c, d => self%d)
            !$omp parallel private(first, last, pass)
            call thread_share(self%elements, line, first, last)
            if (last >= first) then
                do pass = 1, passes
                    call pw_triad(last - first + 1, a(first), b(first), c(first), d(first), self%tuning)
                end do
            end if
            !$omp end parallel
        end associate
    end subroutine run

    !> Every element against b + c*d formed anew from the element's number.
    subroutine validate(self, outcome)
        class(triad_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        real(r8) :: error
        integer(i8) :: first, last, i

        error = 0.0_r8
        associate (a => self%a)
            !$omp parallel private(first, last, i) reduction(max: error)
            call thread_share(self%elements, line, first, last)
            do i = first, last
                error = max(error, abs(a(i) - (b_value(i) + c_value(i)*d_value(i))))
            end do
            !$omp end parallel
        end associate
        outcome%method = 'every element against its closed form, largest absolute difference'
        outcome%error = error
        outcome%tolerance = 0.0_r8
        outcome%passed = error <= outcome%tolerance
    end subroutine validate

    !> Three loads and a store an element; a store through the caches first reads its line (write-allocate).
    function traffic(self, passes) result(moved)
        class(triad_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: words

        words = real(self%elements*passes, r8)
        moved%bytes_stream = 4*element_bytes*words
        moved%bytes_hardware = moved%bytes_stream
        if (self%configuration%stores == 'regular') moved%bytes_hardware = 5*element_bytes*words
        moved%flops = 2*words
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(triad_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(traffic_t) :: moved

        moved = self%traffic(passes)
        figures = [bandwidth_metrics(moved, seconds), metric_t('gflop_per_s', moved%flops/seconds*1.0e-9_r8)]
    end function metrics

end module schoenauer_triad

program main
    use pw_harness, only: run_kernel
    use schoenauer_triad, only: new_triad, triad_t
    implicit none
    type(triad_t) :: kernel

    kernel = new_triad()
    call run_kernel(kernel)
end program main
