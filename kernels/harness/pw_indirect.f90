!> Shared code of the kernels with indirect access: arrays a, b of numbers and an index array c, of which the timed code
!> addresses a, b or both through c; or a third one, d, like b. Each kernel selects this with `indirect_t`. Where only b and d
!> are addressed through c, their size can differ from that of a and c (--table-size).
module pw_indirect
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int32_t, c_null_ptr, c_ptr
    use pw_deviation, only: worse
    use pw_elements, only: element_at, element_types, pw_elements_get, pw_elements_put, type_bytes => element_bytes
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, bandwidth_metrics, plan_t
    use pw_harness_h, only: pw_indirect_run, tuning_t => pw_indirect_tuning_t
    use pw_indices, only: indices_t
    use pw_kinds, only: i4, i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_bytes, option_choice, option_count, rules_t
    use pw_prefetching, only: declare_sve, read_sve
    use pw_record, only: metric_t, traffic_t
    use pw_shares, only: shared_kernel_t
    use pw_simd, only: choice_of
    implicit none
    private

    integer(i8), parameter :: index_bytes = 4
    integer(i8), parameter :: line = line_bytes/index_bytes   ! shares start at a cache line of every array
    integer(i8), parameter :: most_tuning = 2_i8**40          ! more indices than any memory has; sums with it do not overflow
    integer(i8), parameter :: chunk = 512
    character(*), parameter :: table_ladder = '256KiB,512KiB,1MiB,2MiB,4MiB,8MiB,16MiB,32MiB'
    real(r8), parameter :: untouched = -1.0_r8
    real(r8), parameter :: scalar = 3.0_r8                    ! s; whole, so that sums are exact

    type, extends(shared_kernel_t), public :: indirect_t
        logical :: gathers = .false.       !< b is read through c
        logical :: scatters = .false.      !< a is written through c
        logical :: updates = .false.       !< a = a + s*b instead of a = b
        logical :: pairs = .false.         !< a = b + s*d, both read alike
        type(indices_t), private :: indices
        type(tuning_t), private :: tuning
        integer(i8), private :: element_bytes = 8
        integer(i8), private :: table = 0  !< bytes of b, and of d; 0: as many elements as a has
        integer(i8), private :: entries = 0    !< elements of b, and of d
        integer(c_int32_t), private :: type = 1
        integer(i4), pointer, contiguous, private :: c(:) => null()
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, traffic, metrics
        procedure, private :: address, has_table, last_entry, put_values
    end type indirect_t

contains

    subroutine declare_options(self)
        class(indirect_t), intent(inout) :: self

        call self%indices%declare(self%options, fixed=.not. self%scatters)
        ! The sums of many updates are exact in fp64 only.
        call self%options%add('type', option_choice, 'fp64', 'type of the numbers', &
                              values=trim(merge('fp64     ', 'fp64|fp32', self%updates)))
        if (self%has_table()) call self%options%add('table-size', option_bytes, '0', 'bytes of each array that is read through '// &
            'the indices, as a part of the working set; 0: as many elements as the others', values=table_ladder)
        call declare_sve(self%options, self%configuration, 'element', 'gather', 'prefetch instruction: of an element (PRFM), '// &
                         'or of an SVE vector of indices (PRFD, PRFW)')
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
        self%type = choice_of(self%options, 'type', element_types)
        self%element_bytes = type_bytes(self%type)
        if (self%has_table()) call self%options%get('table-size', self%table)
        if (self%table > 0 .and. self%table < self%element_bytes) call error%raise(exit_usage, &
            '--table-size is smaller than an element', self%name, 'choose a larger --table-size')
        associate (words => self%per_element%loads - 0.5_r8)    ! kernel.yaml counts an index as half a double
            self%per_element%loads = words + real(index_bytes, r8)/real(self%element_bytes, r8)
        end associate
        self%per_element%element_bytes = real(self%element_bytes, r8)
        self%tuning = tuning_t()
        select case (self%configuration%prefetch)
        case ('software')
            call self%options%get('prefetch-distance', self%tuning%distance)
            self%tuning%gather = read_sve(self%options, self%configuration, 'gather')
        case ('block')
            call self%options%get('block-indices', self%tuning%distance)
        end select
        if (self%tuning%distance > most_tuning) call error%raise(exit_usage, 'the prefetch distance or block is larger than '// &
            'any memory', self%name, 'choose a smaller --prefetch-distance or --block-indices')
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(indirect_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        integer(i8) :: elements

        associate (each => self%element_bytes, read_through => merge(2_i8, 1_i8, self%pairs))
            elements = bytes/((1 + read_through)*each + index_bytes)
            self%entries = elements
            if (self%table > 0) then
                self%entries = min(self%table, bytes)/each
                elements = (bytes - read_through*self%entries*each)/(each + index_bytes)
            end if
            wanted = arrays_of('a b c d'(:merge(7, 5, self%pairs)), elements, each)
            wanted%bytes(2::2) = self%entries*each
            wanted%bytes(3) = wanted%elements*index_bytes
        end associate
        if (wanted%elements < 1) call error%raise(exit_usage, 'the working set has no room for arrays next to --table-size', &
                                                  self%name, 'choose a larger --working-set')
        call self%indices%begin(self%entries, error)
    end subroutine plan

    subroutine connect(self)
        class(indirect_t), intent(inout) :: self

        self%grain = line
        call c_f_pointer(self%memory(3)%address, self%c, [self%elements])
    end subroutine connect

    !> Address of element i of array 1 (a), 2 (b) or 4 (d).
    type(c_ptr) function address(self, array, i)
        class(indirect_t), intent(in) :: self
        integer, intent(in) :: array
        integer(i8), intent(in) :: i

        address = c_null_ptr
        if (array <= size(self%memory)) address = element_at(self%memory(array)%address, self%type, i)
    end function address

    !> Whether b and d can have another number of elements than a. Threads that store through indices need a permutation.
    pure logical function has_table(self)
        class(indirect_t), intent(in) :: self

        has_table = self%gathers .and. .not. self%scatters
    end function has_table

    !> Each thread fills its share of all arrays.
    subroutine fill(self, first, last)
        class(indirect_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i
        integer :: array

        do i = first, last
            self%c(i) = self%indices%at(i)
        end do
        call self%put_values(1, first, last)
        do array = 2, size(self%memory), 2
            call self%put_values(array, self%last_entry(first - 1) + 1, self%last_entry(last))
        end do
    end subroutine fill

    !> The last element of b and d in the shares of a thread and the threads before it, whose last element of a is `last`.
    pure integer(i8) function last_entry(self, last)
        class(indirect_t), intent(in) :: self
        integer(i8), intent(in) :: last

        last_entry = self%entries
        if (last < self%elements) last_entry = int(real(last, r8)*(real(self%entries, r8)/real(self%elements, r8)), i8)
    end function last_entry

    !> Set elements first:last of an array of numbers to their initial values.
    subroutine put_values(self, array, first, last)
        class(indirect_t), intent(in) :: self
        integer, intent(in) :: array
        integer(i8), intent(in) :: first, last
        integer(i8) :: i, k
        integer(c_int32_t) :: status

        do i = first, last, chunk
            associate (n => min(chunk, last - i + 1))
                status = pw_elements_put(self%type, self%memory(array)%address, i - 1, n, [(value_of(array, i + k), k=0, n - 1)])
            end associate
        end do
    end subroutine put_values

    !> Initial value of element i of an array. b and d get small whole numbers, so that sums are exact: of the 1009 or 1013
    !> values (prime numbers), neighbours and elements a power of two apart get different ones. a gets a value that no result
    !> has, so that a missing store is detected.
    pure elemental real(r8) function value_of(array, i)
        integer, intent(in) :: array
        integer(i8), intent(in) :: i

        value_of = untouched
        if (array > 1) value_of = real(1 + modulo(i, merge(1009_i8, 1013_i8, array == 2)), r8)
    end function value_of

    !> Each thread processes its share of the indices, and so of the arrays that are not addressed through them.
    subroutine work(self, passes, first, last)
        class(indirect_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass
        type(c_ptr) :: a, b, d

        a = self%address(1, merge(1_i8, first, self%scatters))
        b = self%address(2, merge(1_i8, first, self%gathers))
        d = self%address(4, merge(1_i8, first, self%gathers))
        do pass = 1, passes
            call pw_indirect_run(self%type, last - first + 1, a, b, d, self%c(first:last), scalar, self%tuning)
        end do
    end subroutine work

    !> Every element of a against the elements of b and d given by the recomputed index.
    real(r8) function deviation(self, first, last) result(error)
        class(indirect_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        real(r8) :: expected, actual(1)
        integer(i8) :: i, place, source
        integer(c_int32_t) :: status

        error = 0.0_r8
        do i = first, last
            place = i
            source = i
            if (self%scatters) place = self%indices%at(i)
            if (self%gathers) source = self%indices%at(i)
            expected = value_of(2, source)
            if (self%updates) expected = untouched + real(self%passes, r8)*scalar*expected
            if (self%pairs) expected = expected + scalar*value_of(4, source)
            status = pw_elements_get(self%type, self%memory(1)%address, place - 1, 1_i8, actual)
            error = worse(error, abs(actual(1) - expected))
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
        through = merge(line_bytes, self%element_bytes, self%indices%lines_apart(line_bytes/self%element_bytes))
        a_bytes = merge(through, self%element_bytes, self%scatters)
        b_bytes = merge(through, self%element_bytes, self%gathers)
        if (self%pairs) b_bytes = 2*b_bytes
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
