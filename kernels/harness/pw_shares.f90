!> Kernels whose threads each process a share of a number of items, the same in first touch, timed work and
!> validation: nothing is shared, so no thread waits.
!>
!> Such a kernel defines what happens to the items first:last of a thread.
module pw_shares
    use pw_kernel, only: kernel_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_record, only: validation_t
    use pw_threads, only: thread_share
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8

    type, extends(kernel_t), abstract, public :: shared_kernel_t
        integer(i8) :: items = 0                 !< set by `connect`; without it, the elements
        integer(i8) :: grain = 1                 !< items; shares start at multiples
        logical :: undoes = .false.              !< every second pass undoes the previous one
        real(r8) :: tolerance = 0.0_r8           !< of a deviation
        real(r8), allocatable :: sums(:, :)      !< (1, thread from 0): for `work` to return to `deviation`; threads share no line
        integer(i8), allocatable :: totals(:, :) !< the same in whole numbers
        character(:), allocatable :: method      !< of validation; set by `connect` if it is not that of `validate`
    contains
        procedure :: initialise, run, validate
        procedure :: connect => nothing_to_connect
        procedure :: deviation => never_checked
        procedure(fill), deferred :: fill
        procedure(work), deferred :: work
    end type shared_kernel_t

    abstract interface
        !> Set the initial values of items first:last.
        subroutine fill(self, first, last)
            import :: i8, shared_kernel_t
            class(shared_kernel_t), intent(in) :: self
            integer(i8), intent(in) :: first, last
        end subroutine fill

        !> The work that is timed: `passes` passes over items first:last, after `self%passes` others.
        subroutine work(self, passes, first, last)
            import :: i8, shared_kernel_t
            class(shared_kernel_t), intent(inout) :: self
            integer(i8), intent(in) :: passes, first, last
        end subroutine work
    end interface

contains

    !> Prepare what the threads need, such as pointers to the arrays and the number of items; called by the first thread.
    subroutine nothing_to_connect(self)
        class(shared_kernel_t), intent(inout) :: self

    end subroutine nothing_to_connect

    !> The largest deviation of items first:last. A kernel that neither overrides this nor `validate` fails.
    real(r8) function never_checked(self, first, last)
        class(shared_kernel_t), intent(in) :: self
        integer(i8), intent(in) :: first, last

        never_checked = huge(1.0_r8)
    end function never_checked

    subroutine initialise(self)
        class(shared_kernel_t), intent(inout) :: self
        integer(i8) :: first, last

        self%items = self%elements
        if (allocated(self%method)) deallocate (self%method)
        if (allocated(self%sums)) deallocate (self%sums, self%totals)
        allocate (self%sums(line_bytes/word_bytes, 0:self%threads - 1), source=0.0_r8)
        allocate (self%totals(line_bytes/word_bytes, 0:self%threads - 1), source=0_i8)
        call self%connect()
        !$omp parallel private(first, last)
        call thread_share(self%items, self%grain, first, last)
        if (last >= first) call self%fill(first, last)
        !$omp end parallel
    end subroutine initialise

    subroutine run(self, passes)
        class(shared_kernel_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: first, last

        !$omp parallel private(first, last)
        call thread_share(self%items, self%grain, first, last)
        if (last >= first) call self%work(passes, first, last)
        !$omp end parallel
    end subroutine run

    !> Every item. Where every second pass undoes the previous one, an even number would look like no work and gets one more.
    subroutine validate(self, outcome)
        class(shared_kernel_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        real(r8) :: error
        integer(i8) :: first, last

        if (self%undoes .and. modulo(self%passes, 2_i8) == 0) call self%make_passes(1_i8)
        error = 0.0_r8
        !$omp parallel private(first, last) reduction(max: error)
        call thread_share(self%items, self%grain, first, last)
        if (last >= first) error = self%deviation(first, last)
        !$omp end parallel
        outcome%method = 'every element against its closed form, largest absolute difference'
        if (allocated(self%method)) outcome%method = self%method
        outcome%error = error
        outcome%tolerance = self%tolerance
    end subroutine validate

end module pw_shares
