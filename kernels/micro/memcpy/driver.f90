!> Copying blocks of memory: memcpy of the C library against loops.
!>
!> Source: A64FX micro-architecture guide, memory copy: memcpy and Fortran loops over size, with and without
!> cleaning the caches between copies.
module memcpy
    use, intrinsic :: iso_c_binding, only: c_f_pointer
    use memcpy_h, only: pw_copy, pw_copy_has_string_move
    use pw_deviation, only: worse
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, bandwidth_metrics, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_bytes, option_choice, rules_t
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_simd, only: choice_of, words_available
    use pw_text, only: to_text
    implicit none
    private

    integer(i8), parameter :: element_bytes = 8
    real(r8), parameter :: untouched = -1.0_r8      ! no element of the source
    real(r8), parameter :: golden_section = 0.6180339887498949_r8
    character(9), parameter :: ways(4) = [character(9) :: 'libc', 'loop', 'vector', 'rep-movsb']   ! as in copy.h

    type, extends(kernel_t), public :: memcpy_t
        private
        integer(i8) :: way = 0, n = 0, places = 1, stride = 1, place = 0
        logical :: cold = .false.
        real(r8), pointer, contiguous :: source(:) => null(), target(:) => null()
    contains
        procedure :: declare_options, read_options, plan, initialise, run, validate, traffic, metrics
    end type memcpy_t

contains

    subroutine declare_options(self)
        class(memcpy_t), intent(inout) :: self

        call self%options%add('copy', option_choice, 'libc', 'memcpy, the plain loop, vectors, or the string instruction', &
                              values=words_available(ways(:size(ways) - merge(0, 1, pw_copy_has_string_move() /= 0))))
        call self%options%add('block', option_bytes, '1MiB', 'bytes of a copy, whole cache lines', rules_t(lowest=line_bytes), &
                              '64,128,256,512,1KiB,2KiB,4KiB,8KiB,16KiB,32KiB,64KiB,128KiB,256KiB,512KiB,1MiB,'// &
                              '2MiB,4MiB,8MiB,16MiB,32MiB,64MiB')
        call self%options%add('cache', option_choice, 'warm', 'the same block repeatedly, or blocks across the working set, '// &
                              'each reused after all others', values='warm|cold')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(memcpy_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer(i8) :: block

        self%way = choice_of(self%options, 'copy', ways)
        call self%options%get('cache', word)
        self%cold = word == 'cold'
        call self%options%get('block', block)
        self%n = block/element_bytes
        if (modulo(block, line_bytes) /= 0) call error%raise(exit_usage, '--block must be whole cache lines', 'memcpy', &
            'choose a multiple of '//to_text(line_bytes)//' bytes')
    end subroutine read_options

    !> One block per side, or the largest power of two that fits into the working set.
    subroutine plan(self, bytes, wanted, error)
        class(memcpy_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        self%places = 1
        if (2*self%n > bytes/element_bytes) then
            call error%raise(exit_usage, 'the working set is too small for a block and its copy', 'memcpy', &
                             'choose a --working-set of at least twice the --block')
            return
        end if
        do while (self%cold .and. 4*self%places*self%n <= bytes/element_bytes)
            self%places = 2*self%places
        end do
        wanted = arrays_of('target source', self%n*self%places, element_bytes)
    end subroutine plan

    !> The copy gets a value that the source does not have. Successive blocks are a golden section of the ring apart,
    !> an odd number of places: far apart, so that no prefetcher detects a stream, and all are used before one is reused.
    subroutine initialise(self)
        class(memcpy_t), intent(inout) :: self
        integer(i8) :: i

        self%stride = ior(int(golden_section*real(self%places, r8), i8), 1_i8)
        self%place = 0
        call c_f_pointer(self%memory(1)%address, self%target, [self%elements])
        call c_f_pointer(self%memory(2)%address, self%source, [self%elements])
        do i = 1, self%elements
            self%source(i) = value_of(i)
            self%target(i) = untouched
        end do
    end subroutine initialise

    pure elemental real(r8) function value_of(i)
        integer(i8), intent(in) :: i

        value_of = real(i, r8)
    end function value_of

    subroutine run(self, passes)
        class(memcpy_t), intent(inout) :: self
        integer(i8), intent(in) :: passes

        self%place = pw_copy(self%way, passes, self%n, self%place, self%stride, self%places, self%target, self%source)
    end subroutine run

    !> Every element of the blocks that were copied against its closed form; those of the others must be unchanged.
    subroutine validate(self, outcome)
        class(memcpy_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        logical, allocatable :: copied(:)
        integer(i8) :: copy, i

        allocate (copied(0:self%places - 1), source=.false.)
        do copy = 0, min(self%passes, self%places) - 1
            copied(modulo(copy*self%stride, self%places)) = .true.
        end do
        outcome%error = 0.0_r8
        do i = 1, size(self%target, kind=i8)
            outcome%error = worse(outcome%error, abs(self%target(i) - merge(value_of(i), untouched, copied((i - 1)/self%n))))
        end do
        outcome%method = 'every element of the copied blocks and of the others, which must be unchanged, largest difference'
    end subroutine validate

    !> One load and one store per element; a regular store first reads its line (write-allocate).
    function traffic(self, passes) result(moved)
        class(memcpy_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved

        moved%bytes_stream = 2*element_bytes*real(self%n*passes, r8)
        moved%bytes_hardware = 1.5_r8*moved%bytes_stream
        if (self%configuration%stores /= 'regular' .and. ways(self%way) == 'vector') moved%bytes_hardware = moved%bytes_stream
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(memcpy_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = [bandwidth_metrics(self%traffic(passes), seconds), &
                   metric_t('nanoseconds_per_copy', 1.0e9_r8*seconds/real(passes, r8))]
    end function metrics

end module memcpy
