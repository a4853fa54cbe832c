!> malloc and free of large blocks, in loops and inside parallel regions.
!>
!> Source: A64FX micro-architecture guide, large pages: ARENA_FREE (1024 blocks of 8 MiB allocated, then freed, with the memory
!> returned and kept) and ARENA_LOCK_TYPE (malloc inside a parallel region).
module allocate_kernel
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_ptr
    use allocate_h, only: pw_heap_cycle, pw_heap_reuse
    use pw_error, only: error_t, exit_system, exit_usage
    use pw_harness, only: arrays_of, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_bytes, option_choice, option_count, rules_t
    use pw_record, only: metric_t, validation_t
    use pw_simd, only: place_of, words_available
    use pw_system, only: base_page_size
    use pw_text, only: to_text
    implicit none
    private

    integer(i8), parameter :: address_bytes = 8
    character(6), parameter :: ways(3) = [character(6) :: 'glibc', 'return', 'keep']   ! as in heap.h

    type, extends(kernel_t), public :: allocate_t
        private
        integer(i8) :: block = 0, live = 0, touched_page = 0, total = 0
        integer :: way = 1
        logical :: out_of_memory = .false.
    contains
        procedure :: declare_options, read_options, plan, initialise, run, validate, metrics
    end type allocate_t

contains

    subroutine declare_options(self)
        class(allocate_t), intent(inout) :: self

        call self%options%add('block', option_bytes, '1MiB', 'size of a block in bytes', rules_t(lowest=8_i8), &
                              '4KiB,16KiB,64KiB,128KiB,256KiB,512KiB,1MiB,2MiB,4MiB,8MiB,16MiB,32MiB,64MiB')
        call self%options%add('live', option_count, '4', 'blocks that each thread allocates before it frees them', &
                              rules_t(lowest=1_i8), '1,2,4,8,16,32,64')
        call self%options%add('touch', option_choice, 'pages', 'write to every page of a block, or to its first word', &
                              values='pages|word')
        call self%options%add('reuse', option_choice, 'glibc', 'treatment of freed blocks: default of the C library, returned '// &
                              'to the system at once, or kept', values=words_available(ways))
    end subroutine declare_options

    !> The reuse of freed blocks cannot be reset to the default of the C library, whose threshold is dynamic.
    subroutine read_options(self, error)
        class(allocate_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer :: way

        call self%options%get('block', self%block)
        call self%options%get('live', self%live)
        call self%options%get('touch', word)
        self%touched_page = merge(base_page_size(), 0_i8, word == 'pages')
        call self%options%get('reuse', word)
        way = place_of(word, ways)
        if (way == 1 .and. self%way /= 1) call error%raise(exit_usage, "--reuse glibc cannot follow '"// &
            trim(ways(self%way))//"' in one process", 'allocate', 'sweep glibc first')
        self%way = way
        if (pw_heap_reuse(int(way, i8)) /= 0) call error%raise(exit_system, 'this C library has no setting to '//word// &
            ' freed blocks', 'allocate', 'use --reuse glibc')
    end subroutine read_options

    !> The working set is the table of the blocks' addresses: the blocks are on the heap.
    subroutine plan(self, bytes, wanted, error)
        class(allocate_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        wanted = arrays_of('addresses', self%live*self%threads, address_bytes)
        if (wanted%bytes(1) > bytes) call error%raise(exit_usage, 'the working set is too small for the addresses of '// &
            to_text(wanted%elements)//' blocks', 'allocate', 'choose a larger --working-set, or fewer blocks')
    end subroutine plan

    subroutine initialise(self)
        class(allocate_t), intent(inout) :: self

        self%total = 0
        self%out_of_memory = .false.
    end subroutine initialise

    subroutine run(self, passes)
        class(allocate_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        type(c_ptr), pointer, contiguous :: address(:, :)
        integer(i8) :: thread, read, total
        logical :: out_of_memory

        call c_f_pointer(self%memory(1)%address, address, [self%live, self%threads])
        total = 0
        out_of_memory = .false.
        !$omp parallel do schedule(static, 1) private(thread, read) reduction(+: total) reduction(.or.: out_of_memory)
        do thread = 1, self%threads
            read = pw_heap_cycle(passes, self%live, self%block, self%touched_page, address(:, thread))
            out_of_memory = out_of_memory .or. read < 0
            total = total + read
        end do
        !$omp end parallel do
        self%total = self%total + total
        self%out_of_memory = self%out_of_memory .or. out_of_memory
    end subroutine run

    !> The numbers read back from the blocks: two blocks at the same address would hold the same number.
    subroutine validate(self, outcome)
        class(allocate_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome

        outcome%method = 'the sum of the numbers read back from the blocks'
        if (self%out_of_memory) outcome%method = 'malloc ran out of memory'
        outcome%error = abs(real(self%total - self%passes*self%threads*(self%live*(self%live + 1)/2), r8))
    end subroutine validate

    function metrics(self, passes, seconds) result(figures)
        class(allocate_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        real(r8) :: pairs

        pairs = real(self%live*passes, r8)
        figures = [metric_t('nanoseconds_per_pair', 1.0e9_r8*seconds/pairs), &
                   metric_t('pairs_per_s', pairs*real(self%threads, r8)/seconds)]
    end function metrics

end module allocate_kernel
