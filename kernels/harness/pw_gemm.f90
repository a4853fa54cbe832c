!> The driver of kernels that multiply square matrices, c = c + alpha a b, of any of BLAS' four types.
!>
!> alpha is alternately 1 and -1: every second pass undoes the previous one. All elements are small whole numbers, so
!> that results are exact whatever the order in which the products are added.
module pw_gemm
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_ptr
    use pw_deviation, only: worse, worst_of
    use pw_elements, only: element_at, element_bytes, pw_elements_get, pw_elements_put
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_count
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_shares, only: shared_kernel_t
    use pw_text, only: to_text
    implicit none
    private

    public :: declare_gemm_options, read_gemm_options

    integer(i8), parameter :: matrix_alignment = 64, grain = 8      ! bytes; columns of c
    integer(i8), parameter :: most_rows = 2_i8**24

    !> A kernel of this kind: its type, and how a thread multiplies.
    type, extends(shared_kernel_t), abstract, public :: gemm_t
        integer(c_int32_t) :: type = 1          !< an index into element_types
        integer :: parts = 1                    !< numbers of that type per element: 2 if it is complex
        integer(i8) :: n = 0, stride = 0        !< rows and columns; elements from column to column
        integer(i8), private :: rows_requested = 0
    contains
        procedure :: declare_options => declare_gemm_options
        procedure :: read_options => read_gemm_options
        procedure :: plan, connect, fill, work, validate, traffic, metrics
        procedure :: buffers => no_buffers
        procedure(multiply), deferred :: multiply
        procedure :: column_at
        procedure, private :: element_size, put_column, get_column
    end type gemm_t

    abstract interface
        !> `passes` passes over columns first:last of b and c, starting with `alpha`, which changes its sign after each.
        subroutine multiply(self, passes, alpha, first, last)
            import :: gemm_t, i8, r8
            class(gemm_t), intent(in) :: self
            integer(i8), intent(in) :: passes, first, last
            real(r8), intent(in) :: alpha
        end subroutine multiply
    end interface

contains

    !> The options of all such kernels; a kernel with additional options calls this and the next procedure too.
    subroutine declare_gemm_options(self)
        class(gemm_t), intent(inout) :: self

        call self%options%add('rows', option_count, '0', 'rows and columns of the matrices, instead of --working-set; 0: '// &
                              'as many as fit into it')
    end subroutine declare_gemm_options

    subroutine read_gemm_options(self, error)
        class(gemm_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        call self%options%get('rows', self%rows_requested)
        if (self%rows_requested > most_rows) call error%raise(exit_usage, '--rows is above '//to_text(most_rows), &
                                                          self%name, 'choose fewer --rows')
    end subroutine read_gemm_options

    !> Bytes of further arrays for matrices of n rows, and their names; none by default.
    subroutine no_buffers(self, n, name, bytes)
        class(gemm_t), intent(in) :: self
        integer(i8), intent(in) :: n
        character(16), allocatable, intent(out) :: name(:)
        integer(i8), allocatable, intent(out) :: bytes(:)

        allocate (name(0), bytes(0))
    end subroutine no_buffers

    !> Matrices with the requested rows, or the largest that fit into the working set. Columns start at cache lines, an odd
    !> number of lines apart, so that they do not compete for the same sets of the caches.
    subroutine plan(self, bytes, wanted, error)
        class(gemm_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        character(16), allocatable :: name(:)
        integer(i8), allocatable :: more(:)
        integer(i8) :: of_line, bytes_each

        bytes_each = self%element_size()
        of_line = matrix_alignment/bytes_each
        self%n = self%rows_requested
        if (self%n == 0) self%n = int(sqrt(real(bytes/(3*bytes_each), r8)), i8)
        do
            if (self%n < 1) then
                call error%raise(exit_usage, 'the working set is too small for three matrices and their buffers', self%name, &
                                 'choose a larger --working-set')
                return
            end if
            self%stride = ((self%n + of_line - 1)/of_line)
            if (modulo(self%stride, 2_i8) == 0) self%stride = self%stride + 1
            self%stride = self%stride*of_line
            call self%buffers(self%n, name, more)
            if (self%rows_requested > 0 .or. 3*self%stride*self%n*bytes_each + sum(more) <= bytes) exit
            self%n = self%n - 1
        end do
        wanted = arrays_of('a b c', 3*self%n**2, bytes_each, spread(self%stride*self%n*bytes_each, 1, 3))
        wanted%name = [wanted%name, name]
        wanted%bytes = [wanted%bytes, more]
    end subroutine plan

    subroutine connect(self)
        class(gemm_t), intent(inout) :: self

        self%items = self%n
        self%grain = grain
    end subroutine connect

    subroutine fill(self, first, last)
        class(gemm_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: j
        integer :: matrix

        do matrix = 1, 3
            do j = first, last
                call self%put_column(matrix, j)
            end do
        end do
    end subroutine fill

    !> First value of element (i,j) of a matrix: whole numbers from -4 to 4, the imaginary part too. They are mixed so that
    !> no two rows or columns are equal.
    pure elemental complex(r8) function initial(matrix, i, j, of_complex) result(value)
        integer, intent(in) :: matrix
        integer(i8), intent(in) :: i, j
        logical, intent(in) :: of_complex
        ! Multipliers of xxHash32, and a prime number of columns between the matrices.
        integer(i8), parameter :: factor(3) = [2654435761_i8, 2246822519_i8, 668265263_i8], columns = 1000003_i8
        integer(i8) :: mix

        mix = ieor(i*factor(1), (j + columns*matrix)*factor(2))
        mix = ibits(ieor(mix, shiftr(mix, 15)), 0, 32)*factor(3)
        mix = ibits(ieor(mix, shiftr(mix, 17)), 0, 20)
        value = cmplx(modulo(mix, 9_i8) - 4_i8, 0_i8, r8)
        if (of_complex) value = cmplx(real(value, r8), modulo(mix/9_i8, 9_i8) - 4_i8, r8)
    end function initial

    !> Bytes of an element.
    pure integer(i8) function element_size(self)
        class(gemm_t), intent(in) :: self

        element_size = self%parts*element_bytes(self%type)
    end function element_size

    !> Address of column j of a matrix: 1 is a, 2 is b, 3 is c.
    type(c_ptr) function column_at(self, matrix, j) result(address)
        class(gemm_t), intent(in) :: self
        integer, intent(in) :: matrix
        integer(i8), intent(in) :: j

        address = element_at(self%memory(matrix)%address, self%type, (j - 1)*self%stride*self%parts + 1)
    end function column_at

    subroutine put_column(self, matrix, j)
        class(gemm_t), intent(in) :: self
        integer, intent(in) :: matrix
        integer(i8), intent(in) :: j
        real(r8), allocatable :: numbers(:, :)
        complex(r8) :: value
        integer(i8) :: i
        integer(c_int32_t) :: status

        allocate (numbers(self%parts, self%n))
        do i = 1, self%n
            value = initial(matrix, i, j, self%parts == 2)
            numbers(1, i) = value%re
            if (self%parts == 2) numbers(2, i) = value%im
        end do
        status = pw_elements_put(self%type, self%column_at(matrix, j), 0_i8, size(numbers, kind=i8), numbers)
    end subroutine put_column

    !> Column j of c after the passes so far.
    subroutine get_column(self, j, values)
        class(gemm_t), intent(in) :: self
        integer(i8), intent(in) :: j
        complex(r8), intent(out) :: values(:)
        real(r8), allocatable :: numbers(:, :)
        integer(c_int32_t) :: status

        allocate (numbers(self%parts, self%n))
        status = pw_elements_get(self%type, self%column_at(3, j), 0_i8, size(numbers, kind=i8), numbers)
        values = cmplx(numbers(1, :), kind=r8)
        if (self%parts == 2) values%im = numbers(2, :)
    end subroutine get_column

    !> Each thread passes over its own columns of c: only a is shared, which is only read.
    subroutine work(self, passes, first, last)
        class(gemm_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last

        call self%multiply(passes, merge(-1.0_r8, 1.0_r8, modulo(self%passes, 2_i8) == 1), first, last)
    end subroutine work

    !> The whole of c by Freivalds' check, c x = c0 x + a (b x) for a vector x of whole numbers, and three columns of it by
    !> plain loops. An even number of passes would look like no work, and gets one more.
    !>
    !> Source: R. Freivalds, Probabilistic machines can use less running time, IFIP Congress 1977.
    subroutine validate(self, outcome)
        class(gemm_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        complex(r8), allocatable :: x(:), b_x(:), expected(:), computed(:), column(:)
        logical :: of_complex
        integer(i8) :: i, j, p, place, sample(3)

        if (modulo(self%passes, 2_i8) == 0) call self%make_passes(1_i8)
        of_complex = self%parts == 2
        allocate (x(self%n), b_x(self%n), expected(self%n), computed(self%n), column(self%n))
        do j = 1, self%n
            x(j) = initial(4, j, 1_i8, .false.) + 5.0_r8
        end do
        b_x = 0.0_r8
        expected = 0.0_r8
        computed = 0.0_r8
        do j = 1, self%n
            do i = 1, self%n
                b_x(i) = b_x(i) + initial(2, i, j, of_complex)*x(j)
                expected(i) = expected(i) + initial(3, i, j, of_complex)*x(j)
            end do
            call self%get_column(j, column)
            computed = computed + column*x(j)
        end do
        do p = 1, self%n
            do i = 1, self%n
                expected(i) = expected(i) + initial(1, i, p, of_complex)*b_x(p)
            end do
        end do
        outcome%error = worst_of(abs(computed - expected))

        sample = [1_i8, (self%n + 1)/2, self%n]
        do place = 1, size(sample)
            j = sample(place)
            do i = 1, self%n
                expected(i) = initial(3, i, j, of_complex)
            end do
            do p = 1, self%n
                do i = 1, self%n
                    expected(i) = expected(i) + initial(1, i, p, of_complex)*initial(2, p, j, of_complex)
                end do
            end do
            call self%get_column(j, column)
            outcome%error = worse(outcome%error, worst_of(abs(column - expected)))
        end do
        outcome%method = 'c x against c0 x + a (b x), and three columns against plain loops, largest absolute difference'
    end subroutine validate

    !> The source names each matrix once per pass, c twice; a complex multiply-add is eight operations.
    function traffic(self, passes) result(moved)
        class(gemm_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: order

        order = real(self%n, r8)
        moved%bytes_stream = 4.0_r8*order**2*real(self%element_size()*passes, r8)
        moved%bytes_hardware = moved%bytes_stream
        moved%flops = 2.0_r8*order**3*real(passes, r8)
        if (self%parts == 2) moved%flops = 4.0_r8*moved%flops
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(gemm_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(traffic_t) :: done

        done = self%traffic(passes)
        figures = [metric_t('gflop_per_s', done%flops/seconds*1.0e-9_r8), metric_t('rows', real(self%n, r8))]
    end function metrics

end module pw_gemm
