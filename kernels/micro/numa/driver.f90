!> Latency and bandwidth between NUMA nodes: CPUs of one, memory of another.
!>
!> Source: A64FX micro-architecture guide, ccNUMA connection; Hager et al., Optimizing performance on modern HPC systems
!> (2005), section 4, for the cost of a page on the wrong node.
module numa
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_loc, c_ptr
    use numa_h, only: pw_node_begin, pw_node_bind, pw_node_chase, pw_node_deviation, pw_node_expected, pw_node_join, &
        pw_node_list, pw_node_misplaced, pw_node_sum
    use pw_error, only: error_t, exit_system, exit_usage
    use pw_harness, only: arrays_of, bandwidth_metrics, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_choice, option_count, rules_t
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_text, only: from_c, to_text
    use pw_threads, only: thread_share
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8, low_bits = 2_i8**62 - 1

    type, extends(kernel_t), public :: numa_t
        private
        integer(i8) :: hops = 0, cpu_node = 0, memory_node = 0, total = 0
        logical :: chase = .true.
        type(c_ptr) :: at
    contains
        procedure :: declare_options, read_options, plan, initialise, run, validate, traffic, metrics
    end type numa_t

contains

    !> Nodes with memory, or with CPUs, separated by ','.
    function nodes(with_memory) result(list)
        integer(c_int32_t), intent(in) :: with_memory
        character(:), allocatable :: list
        character(kind=c_char) :: text(1024)

        call pw_node_list(with_memory, text, size(text, kind=c_int32_t))
        list = from_c(text)
    end function nodes

    subroutine declare_options(self)
        class(numa_t), intent(inout) :: self

        call pw_node_begin()
        call self%options%add('access', option_choice, 'latency', 'dependent loads, or the sum of all words', &
                              values='latency|bandwidth')
        call self%options%add('memory-node', option_count, first_of(nodes(1)), 'NUMA node of the memory', values=nodes(1))
        call self%options%add('cpu-node', option_count, first_of(nodes(0)), 'NUMA node of the threads', values=nodes(0))
        call self%options%add('hops', option_count, '131072', 'latency: loads per pass', rules_t(lowest=1_i8))
    end subroutine declare_options

    function first_of(list) result(node)
        character(*), intent(in) :: list
        character(:), allocatable :: node

        node = list(:index(list//',', ',') - 1)
    end function first_of

    !> The threads are bound to their node here, before the harness maps and touches the memory.
    subroutine read_options(self, error)
        class(numa_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer(c_int32_t) :: status
        integer, target :: probe

        call self%options%get('access', word)
        self%chase = word == 'latency'
        call self%options%get('hops', self%hops)
        if (self%chase .and. self%threads > 1) call error%raise(exit_usage, 'latency is measured with one thread', 'numa', &
            'use --threads 1, or --access bandwidth')
        call self%options%get('memory-node', self%memory_node)
        call demand(self%memory_node, 'memory', nodes(1), error)
        call self%options%get('cpu-node', self%cpu_node)
        call demand(self%cpu_node, 'CPUs', nodes(0), error)
        if (error%failed()) return
        status = 0
        !$omp parallel num_threads(int(self%threads)) reduction(max: status)
        status = abs(pw_node_bind(self%cpu_node, self%memory_node))
        !$omp end parallel
        if (status /= 0) call error%raise(exit_system, 'cannot bind the threads to CPUs of node '//to_text(self%cpu_node)// &
            ' and memory to node '//to_text(self%memory_node)//' (errno '//to_text(status)//')', 'numa', &
            'allow the CPUs of that node (taskset, cpuset) and set_mempolicy (in a container: --cap-add SYS_NICE)')
        probe = 0
        if (pw_node_misplaced(c_loc(probe), 1_i8, self%memory_node) < 0) call error%raise(exit_system, &
            'the system does not report the nodes of pages', 'numa', 'allow move_pages (in a container: --cap-add SYS_NICE)')
    end subroutine read_options

    subroutine demand(node, label, list, error)
        integer(i8), intent(in) :: node
        character(*), intent(in) :: label, list
        type(error_t), intent(inout) :: error

        if (index(','//list//',', ','//to_text(node)//',') == 0) call error%raise(exit_usage, 'no NUMA node '// &
            to_text(node)//' with '//label, 'numa', 'choose one of '//list)
    end subroutine demand

    !> A power of two of lines, as the cycle requires.
    subroutine plan(self, bytes, wanted, error)
        class(numa_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        wanted = arrays_of('lines', shiftl(1_i8, bit_size(bytes) - 1 - leadz(bytes/line_bytes)), line_bytes)
    end subroutine plan

    subroutine initialise(self)
        class(numa_t), intent(inout) :: self

        self%total = 0
        self%at = self%memory(1)%address
        call pw_node_join(self%elements, self%at)
    end subroutine initialise

    subroutine run(self, passes)
        class(numa_t), intent(inout) :: self
        integer(i8), intent(in) :: passes

        if (self%chase) then
            self%at = pw_node_chase(self%hops*passes, self%at)
        else
            call add_up(self, passes)
        end if
    end subroutine run

    !> Each thread its share.
    subroutine add_up(self, passes)
        class(numa_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: first, last, pass, total

        !$omp parallel private(first, last, pass, total)
        call thread_share(self%elements, 1_i8, first, last)
        total = 0
        do pass = 1, passes
            if (last >= first) total = iand(total + iand(pw_node_sum(self%memory(1)%address, first, last), low_bits), low_bits)
        end do
        !$omp critical
        self%total = iand(self%total + total, low_bits)
        !$omp end critical
        !$omp end parallel
    end subroutine add_up

    !> The end of the chase against the computed end of its hops; the low bits of all sums against those of the values
    !> that the words got. Then the node of the memory, as the operating system reports it.
    subroutine validate(self, outcome)
        class(numa_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        integer(i8) :: deviation, misplaced

        associate (line => self%memory(1)%address)
            if (self%chase) then
                outcome%method = 'the last line of the chase against the number of hops'
                deviation = pw_node_deviation(self%elements, line, self%hops*self%passes, self%at)
            else
                outcome%method = 'the low 62 bits of all sums against those of the values of all words'
                deviation = abs(self%total - iand(pw_node_expected(self%elements, line, self%passes), low_bits))
            end if
            misplaced = pw_node_misplaced(line, self%memory(1)%bytes, self%memory_node)
        end associate
        outcome%method = outcome%method//', and base pages that are not on node '//to_text(self%memory_node)//' (move_pages)'
        outcome%error = real(deviation, r8) + real(abs(misplaced), r8)
    end subroutine validate

    !> One word per hop, or all words; the hardware moves lines.
    function traffic(self, passes) result(moved)
        class(numa_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved

        moved%bytes_stream = real(line_bytes*self%elements*passes, r8)
        if (self%chase) moved%bytes_stream = real(word_bytes*self%hops*passes, r8)
        moved%bytes_hardware = moved%bytes_stream
        if (self%chase) moved%bytes_hardware = real(line_bytes*self%hops*passes, r8)
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(numa_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        if (self%chase) then
            figures = [metric_t('latency_ns', 1.0e9_r8*seconds/real(self%hops*passes, r8))]
        else
            figures = bandwidth_metrics(self%traffic(passes), seconds)
        end if
    end function metrics

end module numa
