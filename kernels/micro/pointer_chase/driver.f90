!> Latency of dependent loads: a cycle through all cache lines of the working set.
!>
!> Source: McVoy and Staelin, lmbench: portable tools for performance analysis (1996).
module pointer_chase
    use, intrinsic :: iso_c_binding, only: c_ptr
    use pointer_chase_h, only: most_chains => pw_most_chains, pw_chase
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_links, only: join_cycle, place_on_cycle
    use pw_options, only: option_bytes, option_choice, option_count, rules_t
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_text, only: to_text
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8

    type, extends(kernel_t), public :: pointer_chase_t
        private
        integer(i8) :: chains = 1, hops = 0, step = 0, local = 0, seed = 0
        type(c_ptr) :: at(most_chains)
    contains
        procedure :: declare_options, read_options, plan, initialise, run, validate, traffic, metrics
    end type pointer_chase_t

contains

    subroutine declare_options(self)
        class(pointer_chase_t), intent(inout) :: self

        call self%options%add('order', option_choice, 'random', 'order of the lines along the cycle', &
                              values='random|page-local|sequential|strided')
        call self%options%add('locality', option_bytes, '4KiB', 'page-local: block whose lines all precede the next block', &
                              rules_t(lowest=line_bytes), '4KiB,16KiB,64KiB,256KiB,1MiB,2MiB')
        call self%options%add('stride', option_bytes, '256', 'strided: distance of the lines', rules_t(lowest=line_bytes), &
                              '64,128,256,512,1KiB,2KiB,4KiB,8KiB,16KiB')
        call self%options%add('chains', option_count, '1', 'loads in flight: concurrent chains, at most '//to_text(most_chains), &
                              rules_t(lowest=1_i8), '1,2,3,4,6,8,10,12,14,16')
        call self%options%add('hops', option_count, '262144', 'loads per pass, over all chains', rules_t(lowest=16_i8))
        call self%options%add('seed', option_count, '1', 'seed of the random order of the lines')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(pointer_chase_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: order
        integer(i8) :: bytes

        call self%options%get('chains', self%chains)
        call self%options%get('hops', self%hops)
        call self%options%get('seed', self%seed)
        call self%options%get('order', order)
        call self%options%get('locality', bytes)
        self%local = bytes/line_bytes
        if (order == 'random') self%local = huge(self%local)
        call self%options%get('stride', bytes)
        self%step = bytes/line_bytes
        if (order == 'sequential') self%step = 1
        if (order == 'random' .or. order == 'page-local') self%step = 0
        self%hops = self%hops/self%chains
        if (self%threads > 1) then
            call error%raise(exit_usage, 'pointer_chase follows its chains with one thread', 'pointer_chase', &
                             'use --threads 1 and --chains')
        else if (self%chains > most_chains) then
            call error%raise(exit_usage, 'at most '//to_text(most_chains)//' chains are supported', 'pointer_chase', &
                             'choose fewer --chains')
        end if
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(pointer_chase_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        wanted = arrays_of('lines', bytes/line_bytes, line_bytes)
    end subroutine plan

    subroutine initialise(self)
        class(pointer_chase_t), intent(inout) :: self

        call join_cycle(self%elements, self%memory(1)%address, self%step, self%local, self%seed, self%at(:self%chains))
    end subroutine initialise

    subroutine run(self, passes)
        class(pointer_chase_t), intent(inout) :: self
        integer(i8), intent(in) :: passes

        call pw_chase(self%hops*passes, self%chains, self%at)
    end subroutine run

    !> The end of each chain against the computed end of its steps along one cycle of all lines.
    subroutine validate(self, outcome)
        class(pointer_chase_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        integer(i8) :: chain, start, missed

        missed = 0
        do chain = 1, self%chains
            start = self%elements*(chain - 1)/self%chains
            missed = max(missed, abs(place_on_cycle(self%at(chain)) - modulo(start + self%hops*self%passes, self%elements)))
        end do
        outcome%method = 'the position of each chain along the cycle against the number of hops, difference in lines'
        outcome%error = real(missed, r8)
    end subroutine validate

    !> One word per hop, as the source names it; the hardware moves its line.
    function traffic(self, passes) result(moved)
        class(pointer_chase_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: loads

        loads = real(self%hops*self%chains*passes, r8)
        moved%bytes_stream = word_bytes*loads
        moved%bytes_hardware = line_bytes*loads
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(pointer_chase_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: latency

        latency = 1.0e9_r8*seconds/real(self%hops*passes, r8)
        figures = [metric_t('latency_ns', latency), metric_t('nanoseconds_per_load', latency/real(self%chains, r8))]
    end function metrics

end module pointer_chase
