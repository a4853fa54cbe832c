!> Complex Fourier transforms in one dimension through FFTW's interface, in double or single precision.
module fft
    use, intrinsic :: iso_c_binding, only: c_associated, c_f_pointer, c_int32_t, c_null_ptr, c_ptr
    use fft_h, only: pw_fft_forget, pw_fft_has, pw_fft_plan, pw_fft_run
    use pw_computed_by, only: verify_library
    use pw_deviation, only: worse, worst_of
    use pw_elements, only: element_at, element_bytes, element_types
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, plan_t
    use pw_kinds, only: i8, r4, r8
    use pw_options, only: option_choice, option_count, rules_t
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_shares, only: shared_kernel_t
    use pw_simd, only: choice_of, words_available
    implicit none
    private

    integer(i8), parameter :: longest = 2_i8**30
    integer(c_int32_t), parameter :: fp32 = 2         ! as in fftw_interface.h and element_types
    character(8), parameter :: efforts(3) = [character(8) :: 'estimate', 'measure', 'patient']     ! as in plan.c

    type, extends(shared_kernel_t), public :: fft_t
        private
        integer(i8) :: n = 0, count = 0, effort = 0
        integer(c_int32_t) :: type = 1, made_type = 1
        type(c_ptr) :: made = c_null_ptr
        character(:), allocatable :: linked      ! the library's file
        complex(r8), pointer, contiguous :: x(:, :) => null(), y(:, :) => null()
        complex(r4), pointer, contiguous :: narrow_x(:, :) => null(), narrow_y(:, :) => null()    ! instead, in fp32
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, validate, traffic, metrics
        procedure, private :: output, at
    end type fft_t

contains

    subroutine declare_options(self)
        class(fft_t), intent(inout) :: self

        call self%options%add('length', option_count, '1048576', 'length of a transform', rules_t(lowest=2_i8), &
                              '1024,2048,4096,8192,16384,32768,65536,131072,262144,524288,1048576')
        call self%options%add('planning', option_choice, 'measure', 'how the library plans: by rules, by measuring, or by '// &
                              'measuring many', values=words_available(efforts))
        call self%options%add('type', option_choice, 'fp64', 'precision, of those that the library has', &
                              values=words_available(element_types(:2), type_status))
    end subroutine declare_options

    !> 0 if the library has transforms of type number `place`.
    integer(c_int32_t) function type_status(place)
        integer(c_int32_t), intent(in) :: place

        type_status = merge(0_c_int32_t, 1_c_int32_t, pw_fft_has(place) /= 0)
    end function type_status

    subroutine read_options(self, error)
        class(fft_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        call self%options%get('length', self%n)
        self%effort = choice_of(self%options, 'planning', efforts)
        if (self%n > longest) then
            call error%raise(exit_usage, 'a transform is longer than 2**30 numbers', 'fft', 'choose a smaller --length')
            return
        end if
        self%type = choice_of(self%options, 'type', element_types)
        if (.not. allocated(self%linked)) self%linked = self%configuration%library_file
        self%configuration%library_file = self%linked
        call verify_library(self%configuration, 'fftw_execute_dft', error)
        if (self%type == fp32) call verify_library(self%configuration, 'fftwf_execute_dft', error, other_part=.true.)
    end subroutine read_options

    !> As many transforms as fit into the working set, from one array into the other.
    subroutine plan(self, bytes, wanted, error)
        class(fft_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        self%count = bytes/(4*element_bytes(self%type)*self%n)
        if (self%count < 1) then
            call error%raise(exit_usage, 'the working set is too small for a transform', 'fft', &
                             'choose a --working-set of 32 bytes for each number of --length (fp32: 16), or a smaller --length')
            return
        end if
        wanted = arrays_of('x y', self%n*self%count, 2*element_bytes(self%type))
    end subroutine plan

    !> Planning overwrites both arrays; then the values are set.
    subroutine connect(self)
        class(fft_t), intent(inout) :: self

        self%items = self%count
        call c_f_pointer(self%memory(1)%address, self%x, [self%n, self%count])
        call c_f_pointer(self%memory(2)%address, self%y, [self%n, self%count])
        call c_f_pointer(self%memory(1)%address, self%narrow_x, [self%n, self%count])
        call c_f_pointer(self%memory(2)%address, self%narrow_y, [self%n, self%count])
        call pw_fft_forget(self%made_type, self%made)
        self%made_type = self%type
        self%made = pw_fft_plan(self%type, self%n, self%effort, self%at(1, 1_i8), self%at(2, 1_i8))
    end subroutine connect

    !> Address of transform i of array 1 (x) or 2 (y).
    type(c_ptr) function at(self, array, i)
        class(fft_t), intent(in) :: self
        integer, intent(in) :: array
        integer(i8), intent(in) :: i

        at = element_at(self%memory(array)%address, self%type, 2*self%n*(i - 1) + 1)
    end function at

    !> Transform i as computed.
    function output(self, i) result(y)
        class(fft_t), intent(in) :: self
        integer(i8), intent(in) :: i
        complex(r8), allocatable :: y(:)

        if (self%type == fp32) then
            y = cmplx(self%narrow_y(:, i), kind=r8)
        else
            y = self%y(:, i)
        end if
    end function output

    subroutine fill(self, first, last)
        class(fft_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i, j

        do i = first, last
            do j = 1, self%n
                if (self%type == fp32) then
                    self%narrow_x(j, i) = cmplx(input(j, i), kind=r4)
                    self%narrow_y(j, i) = (-7.0_r4, 7.0_r4)
                else
                    self%x(j, i) = input(j, i)
                    self%y(j, i) = (-7.0_r8, 7.0_r8)
                end if
            end do
        end do
    end subroutine fill

    !> Number j of transform i: real and imaginary part between -1 and 1, without a pattern.
    pure complex(r8) function input(j, i)
        integer(i8), intent(in) :: j, i
        ! Multipliers of xxHash32, and 2**16 times the golden section.
        integer(i8), parameter :: factor(2) = [2654435761_i8, 668265263_i8], golden = 40503_i8
        integer(i8) :: mix

        mix = ibits(j*factor(1) + i*golden, 0, 32)
        mix = ieor(mix, shiftr(mix, 15))*factor(2)
        input = cmplx(ibits(mix, 8, 16), ibits(mix, 24, 16), r8)/2.0_r8**15 - (1.0_r8, 1.0_r8)
    end function input

    subroutine work(self, passes, first, last)
        class(fft_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last

        if (.not. c_associated(self%made)) return      ! validation reports this
        call pw_fft_run(self%type, self%made, passes, last - first + 1, self%n, self%at(1, first), self%at(2, first))
    end subroutine work

    !> Some numbers of the first, the middle and the last transform, by the defining sum; some of the input from all of the
    !> output by the inverse sum; and the sum of squares of every transform (Parseval). The error of a transform grows with the
    !> logarithm of its length.
    subroutine validate(self, outcome)
        class(fft_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        real(r8), parameter :: two_pi = 6.283185307179586476925286766559_r8
        integer(i8), parameter :: samples = 4
        complex(r8), allocatable :: root(:), y(:)
        complex(r8) :: forward, back
        real(r8) :: scale
        integer(i8) :: j, k, sample, which, transform, turn

        allocate (root(0:self%n - 1))
        do j = 0, self%n - 1
            root(j) = cmplx(cos(two_pi*real(j, r8)/real(self%n, r8)), -sin(two_pi*real(j, r8)/real(self%n, r8)), r8)
        end do
        scale = sqrt(2.0_r8*real(self%n, r8)/3.0_r8)     ! the usual size of an output
        outcome%error = 0.0_r8
        do which = 0, 2
            transform = 1 + (self%count - 1)*which/2
            y = self%output(transform)
            do sample = 1, samples
                k = modulo(sample*sample*self%n/samples + 5*sample, self%n)
                forward = 0.0_r8
                back = 0.0_r8
                turn = 0
                do j = 0, self%n - 1
                    forward = forward + input(j + 1, transform)*root(turn)
                    back = back + y(j + 1)*conjg(root(turn))
                    turn = turn + k
                    if (turn >= self%n) turn = turn - self%n
                end do
                outcome%error = worse(outcome%error, worst_of([abs(y(k + 1) - forward)/scale, &
                                                               abs(back/real(self%n, r8) - input(k + 1, transform))]))
            end do
        end do
        do transform = 1, self%count
            outcome%error = worse(outcome%error, abs(squares_ratio(self%output(transform), transform) - 1.0_r8))
        end do
        if (.not. c_associated(self%made)) outcome%error = huge(1.0_r8)
        outcome%method = 'some numbers of three transforms and of their input by the defining sums, and the sum of squares of '// &
                         'every transform, largest relative difference'
        outcome%tolerance = 1.0e-13_r8*real(self%n, r8)**0.25_r8*log(real(self%n, r8))
        if (self%type == fp32) outcome%tolerance = 1.0e-6_r8*log(real(self%n, r8))      ! the sums are in fp64
    end subroutine validate

    !> The sum of squares of a transform, divided by that of its input times its length.
    pure real(r8) function squares_ratio(y, transform) result(ratio)
        complex(r8), intent(in) :: y(:)
        integer(i8), intent(in) :: transform
        complex(r8) :: x
        real(r8) :: squares
        integer(i8) :: j

        squares = 0.0_r8
        do j = 1, size(y, kind=i8)
            x = input(j, transform)
            squares = squares + (real(x)**2 + aimag(x)**2)
        end do
        ratio = sum(real(y)**2 + aimag(y)**2)/(squares*real(size(y, kind=i8), r8))
    end function squares_ratio

    !> The source names input and output once per transform; the output's lines are read before they are written.
    function traffic(self, passes) result(moved)
        class(fft_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: numbers

        numbers = real(self%n*self%count*passes, r8)
        moved%bytes_stream = 4.0_r8*real(element_bytes(self%type), r8)*numbers
        moved%bytes_hardware = 1.5_r8*moved%bytes_stream
        moved%flops = 5.0_r8*numbers*log(real(self%n, r8))/log(2.0_r8)
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(fft_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(traffic_t) :: done

        done = self%traffic(passes)
        figures = [metric_t('gflop_per_s', done%flops/seconds*1.0e-9_r8), &
                   metric_t('microseconds_per_transform', seconds/real(passes*self%count, r8)*1.0e6_r8)]
    end function metrics

end module fft
