!> Sparse matrix-vector product, y = A*x, in the formats CRS and SELL-C-sigma.
!>
!> Source: Kreutzer, Hager, Wellein, Fehske and Bishop, SIAM J. Sci. Comput. 36 (2014), C401: the format SELL-C-sigma,
!> of which CRS is the case of chunks of one row.
module spmv
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int32_t, c_int64_t
    use pw_deviation, only: worse
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: bandwidth_metrics, plan_t
    use pw_kinds, only: i4, i8, r8
    use pw_options, only: option_choice, option_count, rules_t
    use pw_record, only: metric_t, traffic_t
    use pw_shares, only: shared_kernel_t
    use spmv_matrix, only: longest_row, matrix_band, matrix_laplace, matrix_random, matrix_t, matrix_value
    implicit none
    private

    integer(i8), parameter :: max_distance = 1024     ! entries after the last, so that prefetches read valid columns
    integer(i8), parameter :: number_bytes = 8, column_bytes = 4, start_bytes = 8, order_bytes = 4
    integer(i8), parameter :: entry_bytes = number_bytes + column_bytes
    integer(i8), parameter :: laplace_entries = 7     ! of an inner row
    integer(i8), parameter :: most_rows = int(huge(1_i4), i8) - 128   ! columns have 4 bytes; padded to chunks of at most 128

    type, extends(shared_kernel_t), public :: spmv_t
        private
        type(matrix_t) :: matrix
        logical :: sell = .false.
        integer(i8) :: chunk = 1, sigma = 1, tuning = 0
        integer(i8) :: entries = 0, stored = 0      !< of the matrix, and including the padding of chunks
        integer(i8), allocatable :: length(:)       !< entries of each row, padded to whole chunks by empty rows
        integer(i4), allocatable :: sorted(:)       !< the rows (from 0) in the order in which they are stored
        integer(i8), allocatable :: offset(:)       !< first entry of each chunk, from 0, and the end of the last
        integer(i8), pointer, contiguous :: start(:) => null()
        integer(i4), pointer, contiguous :: order(:) => null(), column(:) => null()
        real(r8), pointer, contiguous :: value(:) => null(), x(:) => null(), y(:) => null()
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, traffic, metrics
    end type spmv_t

    interface
        !> The timed kernels of this build; see spmv.h.
        subroutine pw_spmv_crs(extent, start, column, value, x, y) bind(c)
            import :: c_double, c_int32_t, c_int64_t
            integer(c_int64_t), intent(in) :: extent(3), start(*)
            integer(c_int32_t), intent(in) :: column(*)
            real(c_double), intent(in) :: value(*), x(*)
            real(c_double), intent(inout) :: y(*)
        end subroutine pw_spmv_crs

        subroutine pw_spmv_sell(extent, start, order, column, value, x, y) bind(c)
            import :: c_double, c_int32_t, c_int64_t
            integer(c_int64_t), intent(in) :: extent(3), start(*)
            integer(c_int32_t), intent(in) :: order(*), column(*)
            real(c_double), intent(in) :: value(*), x(*)
            real(c_double), intent(inout) :: y(*)
        end subroutine pw_spmv_sell
    end interface

contains

    subroutine declare_options(self)
        class(spmv_t), intent(inout) :: self

        associate (options => self%options)
            call options%add('matrix', option_choice, 'laplace', '7-point Laplacian of a cube; random columns near the '// &
                             'diagonal; random columns', values='laplace|band|random')
            call options%add('format', option_choice, 'crs', 'storage: by rows, or by chunks of rows', values='crs|sell')
            call options%add('chunk', option_choice, '8', 'rows per chunk of sell', values='8|16|32|64|128')
            call options%add('sigma', option_count, '256', 'rows among which sell sorts by length; 1 does not sort', &
                             rules_t(lowest=1_i8), '1,8,32,64,128,256,512,1024,4096')
            call options%add('row-entries', option_count, '16', 'mean entries per row of band and random, at most 512', &
                             rules_t(lowest=1_i8), '2,4,8,16,32,64,128,256')
            call options%add('reach', option_count, '1024', 'farthest column from the diagonal of band', rules_t(lowest=1_i8), &
                             '16,64,256,1024,4096,16384,65536,262144')
            select case (self%configuration%prefetch)
            case ('software')
                call options%add('prefetch-distance', option_count, '64', 'prefetch distance in entries, at most 1024', &
                                 rules_t(lowest=1_i8), '8,16,32,64,128,256,512,1024')
            case ('block')
                call options%add('block-entries', option_count, '64', 'entries per block whose x is preloaded', &
                                 rules_t(lowest=1_i8), '16,32,64,128,256,512,1024')
            end select
        end associate
    end subroutine declare_options

    subroutine read_options(self, error)
        class(spmv_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word

        associate (options => self%options, matrix => self%matrix)
            call options%get('matrix', word)
            select case (word)
            case ('laplace')
                matrix%kind = matrix_laplace
            case ('band')
                matrix%kind = matrix_band
            case default
                matrix%kind = matrix_random
            end select
            call options%get('row-entries', matrix%entries)
            call options%get('reach', matrix%reach)
            call options%get('format', word)
            self%sell = word == 'sell'
            self%chunk = 1
            self%sigma = 1
            if (self%sell) then
                call options%get('chunk', self%chunk)
                call options%get('sigma', self%sigma)
            end if
            select case (self%configuration%prefetch)
            case ('software')
                call options%get('prefetch-distance', self%tuning)
            case ('block')
                call options%get('block-entries', self%tuning)
            end select
            if (self%tuning > max_distance .or. matrix%entries > longest_row/2) call error%raise(exit_usage, &
                'the distance is at most 1024 entries, and a row has at most 512', 'spmv', &
                'choose a smaller --prefetch-distance, --block-entries or --row-entries')
        end associate
    end subroutine read_options

    !> The largest matrix that fits together with both vectors.
    subroutine plan(self, bytes, wanted, error)
        class(spmv_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        integer(i8) :: rows, taken

        rows = min(most_rows, 1 + bytes/(start_bytes + 2*number_bytes + entry_bytes* &
                                         merge(laplace_entries, self%matrix%entries, self%matrix%kind == matrix_laplace)))
        taken = huge(taken)
        do while (taken > bytes .and. rows > 0)
            call self%matrix%resize(rows)
            call lay_out(self)
            wanted%bytes = [start_bytes*size(self%offset), order_bytes*size(self%sorted), &
                            column_bytes*(self%stored + max_distance), number_bytes*self%stored, &
                            number_bytes*self%matrix%rows, number_bytes*size(self%sorted)]
            taken = sum(wanted%bytes)
            rows = min(self%matrix%rows - 1, int(real(self%matrix%rows, r8)*real(bytes, r8)/real(taken, r8), i8))
        end do
        if (taken > bytes) call error%raise(exit_usage, 'no matrix fits into the working set', 'spmv', 'choose a larger one')
        wanted%elements = self%entries
        wanted%element_bytes = entry_bytes
        wanted%name = [character(16) :: 'start', 'order', 'column', 'value', 'x', 'y']
    end subroutine plan

    !> Sort the rows of each window of sigma rows by decreasing length, and compute the start of each chunk.
    subroutine lay_out(self)
        class(spmv_t), intent(inout) :: self
        integer(i8) :: i, c, chunks, places(0:longest_row), first, last, at

        chunks = (self%matrix%rows + self%chunk - 1)/self%chunk
        if (allocated(self%length)) deallocate (self%length, self%sorted, self%offset)
        allocate (self%length(0:chunks*self%chunk - 1), self%sorted(0:chunks*self%chunk - 1), self%offset(0:chunks))
        do i = 0, size(self%length) - 1
            self%length(i) = 0
            if (i < self%matrix%rows) self%length(i) = self%matrix%row_length(i)
        end do
        self%entries = sum(self%length)
        do first = 0, size(self%length) - 1, self%sigma
            last = min(first + self%sigma, size(self%length, kind=i8)) - 1
            places = 0
            do i = first, last
                if (self%length(i) > 0) places(:self%length(i) - 1) = places(:self%length(i) - 1) + 1
            end do
            do i = first, last      ! places(l): rows longer than l, including those already placed
                at = places(self%length(i))
                places(self%length(i)) = at + 1
                self%sorted(first + at) = int(i, i4)
            end do
        end do
        self%offset(0) = 0
        do c = 0, chunks - 1
            self%offset(c + 1) = self%offset(c) + self%chunk*maxval(self%length(self%sorted(c*self%chunk:(c + 1)*self%chunk - 1)))
        end do
        self%stored = self%offset(chunks)
    end subroutine lay_out

    !> The threads share the chunks.
    subroutine connect(self)
        class(spmv_t), intent(inout) :: self

        self%items = size(self%offset) - 1_i8
        self%method = 'every row against its sum in whole numbers by the formulas of the matrix, largest difference'
        associate (stored => self%stored, padded => size(self%sorted, kind=i8))
            call c_f_pointer(self%memory(1)%address, self%start, [size(self%offset)])
            call c_f_pointer(self%memory(2)%address, self%order, [padded])
            call c_f_pointer(self%memory(3)%address, self%column, [stored + max_distance])
            call c_f_pointer(self%memory(4)%address, self%value, [stored])
            call c_f_pointer(self%memory(5)%address, self%x, [self%matrix%rows])
            call c_f_pointer(self%memory(6)%address, self%y, [padded])
            self%column(stored + 1:) = 0
        end associate
        self%start(:) = self%offset
    end subroutine connect

    !> All values are whole numbers, so that sums are exact in any order. The padding of a chunk is 0. y gets a value
    !> that no result has.
    subroutine fill(self, first, last)
        class(spmv_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: c, r, k, at, row, length, columns(longest_row)

        do c = first - 1, last - 1
            do r = 0, self%chunk - 1
                row = self%sorted(c*self%chunk + r)
                self%order(c*self%chunk + r + 1) = int(row, i4)
                self%y(row + 1) = -1.0_r8
                length = 0
                if (row < self%matrix%rows) then
                    self%x(row + 1) = real(x_value(row), r8)
                    call self%matrix%row_columns(row, length, columns)
                end if
                do k = 1, (self%offset(c + 1) - self%offset(c))/self%chunk
                    at = self%offset(c) + (k - 1)*self%chunk + r + 1
                    if (k <= length) then
                        self%column(at) = int(columns(k), i4)
                        self%value(at) = real(matrix_value(row, columns(k)), r8)
                    else
                        self%column(at) = 0
                        self%value(at) = 0.0_r8
                    end if
                end do
            end do
        end do
    end subroutine fill

    pure elemental integer(i8) function x_value(j)
        integer(i8), intent(in) :: j

        x_value = 1 + modulo(j, 13_i8)
    end function x_value

    !> Each thread passes over its own rows; A and x are only read.
    subroutine work(self, passes, first, last)
        class(spmv_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass, extent(3)

        extent = [last - first + 1, self%chunk, self%tuning]
        associate (start => self%start, order => self%order, column => self%column, value => self%value, x => self%x, &
                   y => self%y)
            do pass = 1, passes
                if (self%sell) then
                    call pw_spmv_sell(extent, start(first), order((first - 1)*self%chunk + 1), column, value, x, y)
                else
                    call pw_spmv_crs(extent, start(first), column, value, x, y(first))
                end if
            end do
        end associate
    end subroutine work

    !> Every row recomputed from the formulas of the matrix in whole numbers, without the stored entries.
    real(r8) function deviation(self, first, last) result(error)
        class(spmv_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i, length, columns(longest_row)

        error = 0.0_r8
        do i = (first - 1)*self%chunk, min(last*self%chunk, self%matrix%rows) - 1
            call self%matrix%row_columns(i, length, columns)
            error = worse(error, abs(self%y(i + 1) - real(sum(matrix_value(i, columns(:length))*x_value(columns(:length))), r8)))
        end do
    end function deviation

    !> Each stored entry, start, order (sell) and x is loaded once, and y is stored; the line of y is read before that
    !> (write-allocate). Padding entries are moved but do no work.
    function traffic(self, passes) result(moved)
        class(spmv_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        integer(i8) :: bytes

        bytes = entry_bytes*self%stored + start_bytes*size(self%offset) + 2*number_bytes*self%matrix%rows
        if (self%sell) bytes = bytes + order_bytes*size(self%sorted)
        moved%bytes_stream = real(bytes, r8)*real(passes, r8)
        moved%bytes_hardware = real(bytes + number_bytes*self%matrix%rows, r8)*real(passes, r8)
        moved%flops = 2*real(self%entries, r8)*real(passes, r8)
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(spmv_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(traffic_t) :: moved

        moved = self%traffic(passes)
        figures = [metric_t('gflop_per_s', moved%flops/seconds*1.0e-9_r8), bandwidth_metrics(moved, seconds)]
    end function metrics

end module spmv
