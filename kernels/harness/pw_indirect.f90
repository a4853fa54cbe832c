!> Shared code of the kernels with indirect access: arrays a, b of doubles and an index array c, of which the timed code
!> addresses a, b or both through c. Each kernel selects this with `indirect_t`.
module pw_indirect
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int32_t, c_int64_t
    use pw_deviation, only: worse
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, bandwidth_metrics, plan_t
    use pw_indices, only: indices_t
    use pw_kinds, only: i4, i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_choice, option_count, rules_t
    use pw_prefetching, only: declare_sve, read_sve
    use pw_record, only: metric_t, traffic_t
    use pw_shares, only: shared_kernel_t
    implicit none
    private

    integer(i8), parameter :: element_bytes = 8, index_bytes = 4
    integer(i8), parameter :: line = line_bytes/index_bytes   ! shares start at a cache line of every array
    integer(i8), parameter :: most_tuning = 2_i8**40          ! more indices than any memory has; sums with it do not overflow
    real(r8), parameter :: untouched = -1.0_r8
    real(r8), parameter :: scalar = 3.0_r8                    ! s; whole, so that sums are exact

    !> struct pw_indirect_tuning.
    type, bind(c) :: tuning_t
        integer(c_int64_t) :: ahead = 0    !< prefetch distance, or the indices in a block
        integer(c_int64_t) :: gather = 0   !< by SVE's gather prefetches
    end type tuning_t

    type, extends(shared_kernel_t), public :: indirect_t
        logical :: gathers = .false.       !< b is read through c
        logical :: scatters = .false.      !< a is written through c
        logical :: updates = .false.       !< a = a + s*b instead of a = b
        type(indices_t), private :: indices
        type(tuning_t), private :: tuning
        real(r8), pointer, contiguous, private :: a(:) => null(), b(:) => null()
        integer(i4), pointer, contiguous, private :: c(:) => null()
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, traffic, metrics
    end type indirect_t

    interface
        !> The timed kernel of this build; see pw_indirect.h.
        subroutine pw_indirect_run(n, a, b, c, s, tuning) bind(c)
            import :: c_double, c_int32_t, c_int64_t, tuning_t
            integer(c_int64_t), intent(in), value :: n
            type(tuning_t), intent(in) :: tuning
            real(c_double), intent(inout) :: a(*)
            real(c_double), intent(in) :: b(*)
            integer(c_int32_t), intent(in) :: c(n)
            real(c_double), intent(in), value :: s
        end subroutine pw_indirect_run
    end interface

contains

    subroutine declare_options(self)
        class(indirect_t), intent(inout) :: self

        call self%indices%declare(self%options)
        call declare_sve(self%options, self%configuration, 'element', 'gather', 'prefetch instruction: of an element (PRFM), '// &
                         'or of an SVE vector of indices (PRFD)')
        select case (self%configuration%prefetch)
        case ('software')
            call self%options%add('prefetch-distance', option_count, '32', 'prefetch distance in indices', rules_t(lowest=1_i8), &
                                  '1,2,4,8,16,32,64,128,256,512')
        case ('block')
            call self%options%add('block-indices', option_count, '64', 'indices per block whose elements are loaded before use', &
                                  rules_t(lowest=1_i8), '8,16,32,64,128,256,512,1024')
        end select
    end subroutine declare_options

    subroutine read_options(self, error)
        class(indirect_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        call self%indices%read(self%options)
        self%tuning = tuning_t()
        select case (self%configuration%prefetch)
        case ('software')
            call self%options%get('prefetch-distance', self%tuning%ahead)
            self%tuning%gather = read_sve(self%options, self%configuration, 'gather')
        case ('block')
            call self%options%get('block-indices', self%tuning%ahead)
        end select
        if (self%tuning%ahead > most_tuning) call error%raise(exit_usage, 'the prefetch distance or block is larger than '// &
            'any memory', self%name, 'choose a smaller --prefetch-distance or --block-indices')
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(indirect_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        associate (elements => bytes/(2*element_bytes + index_bytes))
            wanted = arrays_of('a b c', elements, element_bytes, elements*[element_bytes, element_bytes, index_bytes])
        end associate
        call self%indices%begin(wanted%elements, error)
    end subroutine plan

    subroutine connect(self)
        class(indirect_t), intent(inout) :: self

        self%grain = line
        call c_f_pointer(self%memory(1)%address, self%a, [self%elements])
        call c_f_pointer(self%memory(2)%address, self%b, [self%elements])
        call c_f_pointer(self%memory(3)%address, self%c, [self%elements])
    end subroutine connect

    !> b gets small whole numbers, so that sums are exact; a gets a value that no result has, so that a missing store is
    !> detected.
    subroutine fill(self, first, last)
        class(indirect_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i

        do i = first, last
            self%a(i) = untouched
            self%b(i) = b_value(i)
            self%c(i) = self%indices%at(i)
        end do
    end subroutine fill

    !> Of the 1009 values (a prime number), neighbours and elements a power of two apart get different ones.
    pure elemental real(r8) function b_value(i)
        integer(i8), intent(in) :: i

        b_value = real(1 + modulo(i, 1009_i8), r8)
    end function b_value

    !> Each thread processes its share of the indices, and thus of the arrays that are not addressed through them.
    subroutine work(self, passes, first, last)
        class(indirect_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass, a_first, b_first

        a_first = merge(1_i8, first, self%scatters)
        b_first = merge(1_i8, first, self%gathers)
        associate (a => self%a, b => self%b, c => self%c)
            do pass = 1, passes
                call pw_indirect_run(last - first + 1, a(a_first), b(b_first), c(first), scalar, self%tuning)
            end do
        end associate
    end subroutine work

    !> Every element of a against the element of b given by the recomputed index.
    real(r8) function deviation(self, first, last) result(error)
        class(indirect_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        real(r8) :: expected
        integer(i8) :: i, place, source

        error = 0.0_r8
        do i = first, last
            place = i
            source = i
            if (self%scatters) place = self%indices%at(i)
            if (self%gathers) source = self%indices%at(i)
            expected = b_value(source)
            if (self%updates) expected = untouched + real(self%passes, r8)*scalar*expected
            error = worse(error, abs(self%a(place) - expected))
        end do
    end function deviation

    !> An element's words and its index. The hardware reads the line of an element before it is written (write-allocate),
    !> and moves a whole line for a word whose neighbours are not used before it leaves the caches.
    function traffic(self, passes) result(moved)
        class(indirect_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: words
        integer(i8) :: through, a_bytes, b_bytes

        words = real(self%elements*passes, r8)
        through = merge(line_bytes, element_bytes, self%indices%lines_apart(line_bytes/element_bytes))
        a_bytes = merge(through, element_bytes, self%scatters)
        b_bytes = merge(through, element_bytes, self%gathers)
        moved = self%per_element%times(words)
        moved%bytes_hardware = (index_bytes + b_bytes + 2*a_bytes)*words
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(indirect_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = [metric_t('nanoseconds_per_element', 1.0e9_r8*seconds/real(self%elements*passes, r8)), &
                   bandwidth_metrics(self%traffic(passes), seconds)]
    end function metrics

end module pw_indirect
