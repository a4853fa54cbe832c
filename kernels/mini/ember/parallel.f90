!> Ranks and their communication. By MPI, or for one rank without it; only the thread that called `begin` may call these
!> procedures, and those without a rank argument are called by all ranks.
!>
!> Uses MPI's C interface, because its Fortran modules belong to one compiler.
module ember_parallel
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_double, c_int32_t, c_int64_t, c_null_ptr, c_ptr
    use pw_error, only: error_t, exit_system
    use pw_kinds, only: i8, r8
    use pw_text, only: from_c
    implicit none
    private

    !> The ranks of this run.
    type, public :: comm_t
        integer :: rank = 0, n_ranks = 1
        integer :: local_rank = 0    !< among those of this node
        logical :: mpi = .false.     !< whether this program was built with MPI
        type(c_ptr), private :: pending = c_null_ptr
    contains
        procedure :: begin
        procedure, nopass :: end => end_parallel
        procedure :: exchange_begin
        procedure :: exchange_finish
        procedure, nopass :: all_max
        procedure, private :: gather_real, gather_integer, gather_long
        !> All ranks' values, in the order of ranks: `all_gather(mine, all)`; ranks may have differing numbers of them.
        generic :: all_gather => gather_real, gather_integer, gather_long
        procedure, nopass :: send
        procedure, nopass :: receive
        procedure :: agree
        procedure, nopass :: barrier
        procedure, nopass :: abort => abort_all
    end type comm_t

    interface
        integer(c_int32_t) function c_is_mpi() bind(c, name='ember_parallel_is_mpi')
            import :: c_int32_t
        end function c_is_mpi

        integer(c_int32_t) function c_begin(rank, n_ranks, local_rank, reason, length) bind(c, name='ember_parallel_begin')
            import :: c_char, c_int32_t
            integer(c_int32_t), intent(out) :: rank, n_ranks, local_rank
            character(kind=c_char), intent(inout) :: reason(*)
            integer(c_int32_t), value :: length
        end function c_begin

        subroutine c_end() bind(c, name='ember_parallel_end')
        end subroutine c_end

        type(c_ptr) function c_exchange_begin(send, send_count, receive, receive_count) &
            bind(c, name='ember_parallel_exchange_begin')
            import :: c_double, c_int64_t, c_ptr
            real(c_double), intent(in) :: send(*)
            integer(c_int64_t), intent(in) :: send_count(*), receive_count(*)
            real(c_double), intent(inout) :: receive(*)
        end function c_exchange_begin

        subroutine c_exchange_finish(exchange) bind(c, name='ember_parallel_exchange_finish')
            import :: c_ptr
            type(c_ptr), value :: exchange
        end subroutine c_exchange_finish

        subroutine c_all_max(x) bind(c, name='ember_parallel_all_max')
            import :: c_double
            real(c_double), intent(inout) :: x
        end subroutine c_all_max

        subroutine c_all_min(x) bind(c, name='ember_parallel_all_min')
            import :: c_double
            real(c_double), intent(inout) :: x
        end subroutine c_all_min

        subroutine c_gather_counts(mine, counts) bind(c, name='ember_parallel_gather_counts')
            import :: c_int64_t
            integer(c_int64_t), value :: mine
            integer(c_int64_t), intent(inout) :: counts(*)
        end subroutine c_gather_counts

        subroutine c_gather(mine, all, counts, element_bytes) bind(c, name='ember_parallel_gather')
            import :: c_int32_t, c_int64_t
            type(*), intent(in) :: mine(*)
            type(*), intent(inout) :: all(*)
            integer(c_int64_t), intent(in) :: counts(*)
            integer(c_int32_t), value :: element_bytes
        end subroutine c_gather

        subroutine c_broadcast(x, bytes, from) bind(c, name='ember_parallel_broadcast')
            import :: c_int32_t, c_int64_t
            type(*), intent(inout) :: x(*)
            integer(c_int64_t), value :: bytes
            integer(c_int32_t), value :: from
        end subroutine c_broadcast

        subroutine c_send(to, x, count) bind(c, name='ember_parallel_send')
            import :: c_double, c_int32_t, c_int64_t
            integer(c_int32_t), value :: to
            real(c_double), intent(in) :: x(*)
            integer(c_int64_t), value :: count
        end subroutine c_send

        subroutine c_receive(from, x, count) bind(c, name='ember_parallel_receive')
            import :: c_double, c_int32_t, c_int64_t
            integer(c_int32_t), value :: from
            real(c_double), intent(inout) :: x(*)
            integer(c_int64_t), value :: count
        end subroutine c_receive

        subroutine c_barrier() bind(c, name='ember_parallel_barrier')
        end subroutine c_barrier

        subroutine c_abort(code) bind(c, name='ember_parallel_abort')
            import :: c_int32_t
            integer(c_int32_t), value :: code
        end subroutine c_abort
    end interface

    integer(c_int32_t), parameter :: text_length = 256

contains

    !> Start parallel execution, once per run, before anything else here. Fails if MPI does not support threads.
    subroutine begin(self, error)
        class(comm_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        integer(c_int32_t) :: rank, n_ranks, local_rank
        character(kind=c_char) :: reason(text_length)

        self%mpi = c_is_mpi() /= 0
        if (c_begin(rank, n_ranks, local_rank, reason, text_length) /= 0) then
            call error%raise(exit_system, from_c(reason), 'comm_t%begin', 'use an MPI library that supports MPI_THREAD_FUNNELED')
            return
        end if
        self%rank = rank
        self%n_ranks = n_ranks
        self%local_rank = local_rank
    end subroutine begin

    !> End parallel execution, if it was started; call nothing here afterwards.
    subroutine end_parallel()
        call c_end()
    end subroutine end_parallel

    !> Begin to send `send_count(r)` numbers to each rank r and to receive `receive_count(r)` from it, counted from rank 0;
    !> in both buffers the parts are consecutive in the order of ranks, without the own rank. Until
    !> `exchange_finish`, nothing may write to `send` or read `receive`. Only one exchange at a time.
    subroutine exchange_begin(self, send, send_count, receive, receive_count)
        class(comm_t), intent(inout) :: self
        real(r8), contiguous, target, intent(in) :: send(:)
        real(r8), contiguous, target, intent(inout) :: receive(:)
        integer(i8), contiguous, intent(in) :: send_count(0:), receive_count(0:)

        if (c_associated(self%pending)) call self%exchange_finish()
        self%pending = c_exchange_begin(send, send_count, receive, receive_count)
    end subroutine exchange_begin

    !> Wait until all that `exchange_begin` began has been sent and received.
    subroutine exchange_finish(self)
        class(comm_t), intent(inout) :: self

        call c_exchange_finish(self%pending)
        self%pending = c_null_ptr
    end subroutine exchange_finish

    !> `x` becomes the greatest that any rank has.
    subroutine all_max(x)
        real(r8), intent(inout) :: x

        call c_all_max(x)
    end subroutine all_max

    subroutine gather_real(self, mine, all)
        class(comm_t), intent(in) :: self
        real(r8), intent(in) :: mine(:)
        real(r8), allocatable, intent(out) :: all(:)
        integer(i8) :: counts(self%n_ranks)

        call c_gather_counts(size(mine, kind=i8), counts)
        allocate (all(sum(counts)))
        call c_gather(mine, all, counts, 8)
    end subroutine gather_real

    subroutine gather_integer(self, mine, all)
        class(comm_t), intent(in) :: self
        integer, intent(in) :: mine(:)
        integer, allocatable, intent(out) :: all(:)
        integer(i8) :: counts(self%n_ranks)

        call c_gather_counts(size(mine, kind=i8), counts)
        allocate (all(sum(counts)))
        call c_gather(mine, all, counts, 4)
    end subroutine gather_integer

    subroutine gather_long(self, mine, all)
        class(comm_t), intent(in) :: self
        integer(i8), intent(in) :: mine(:)
        integer(i8), allocatable, intent(out) :: all(:)
        integer(i8) :: counts(self%n_ranks)

        call c_gather_counts(size(mine, kind=i8), counts)
        allocate (all(sum(counts)))
        call c_gather(mine, all, counts, 8)
    end subroutine gather_long

    !> Send the text of rank `from`, the only rank that needs one, to all.
    subroutine text_from(x, from)
        character(:), allocatable, intent(inout) :: x
        integer, intent(in) :: from
        character(1), allocatable :: letters(:)
        integer(i8) :: length(1)
        integer :: i

        length = 0
        if (allocated(x)) length = len(x, i8)
        call c_broadcast(length, 8_i8, from)
        allocate (letters(length(1)))
        if (allocated(x)) then
            do i = 1, min(len(x), size(letters))
                letters(i) = x(i:i)
            end do
            deallocate (x)
        end if
        call c_broadcast(letters, length(1), from)
        allocate (character(length(1)) :: x)
        do i = 1, size(letters)
            x(i:i) = letters(i)
        end do
    end subroutine text_from

    !> Send `x` to another rank, which receives as many numbers.
    subroutine send(to, x)
        integer, intent(in) :: to
        real(r8), contiguous, intent(in) :: x(:)

        call c_send(to, x, size(x, kind=i8))
    end subroutine send

    !> Receive `x` from another rank, which sends as many numbers.
    subroutine receive(from, x)
        integer, intent(in) :: from
        real(r8), contiguous, intent(inout) :: x(:)

        call c_receive(from, x, size(x, kind=i8))
    end subroutine receive

    !> Make a failure of any rank a failure of all: that of the first rank with one.
    subroutine agree(self, error)
        class(comm_t), intent(in) :: self
        type(error_t), intent(inout) :: error
        real(r8) :: first
        integer :: code(1)

        first = real(self%n_ranks, r8)
        if (error%failed()) first = real(self%rank, r8)
        call c_all_min(first)
        if (nint(first) == self%n_ranks) return
        code = error%code
        call c_broadcast(code, 4_i8, nint(first))
        error%code = code(1)
        call text_from(error%message, nint(first))
        call text_from(error%place, nint(first))
        call text_from(error%remedy, nint(first))
    end subroutine agree

    !> Wait for all ranks.
    subroutine barrier()
        call c_barrier()
    end subroutine barrier

    !> For main programs only: end all ranks at once, with the exit status `code`.
    subroutine abort_all(code)
        use, intrinsic :: iso_fortran_env, only: error_unit, output_unit
        integer, intent(in) :: code

        flush (output_unit)
        flush (error_unit)
        call c_abort(code)
    end subroutine abort_all

end module ember_parallel
