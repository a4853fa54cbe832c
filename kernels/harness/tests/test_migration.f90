!> A kernel whose thread moves to another CPU in its second repetition (`--path move`), or returns in the third. Run it with
!> PAGEWISE_PASSES=1, so that the first call is the only one before the timed part. Exit code 77 if there is only one CPU.
module migrating_kernel
    use, intrinsic :: iso_c_binding, only: c_f_pointer, c_int, c_long, c_size_t
    use pw_error, only: end_program, error_t
    use pw_harness, only: arrays_of, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice
    use pw_record, only: validation_t
    implicit none
    private

    integer, parameter :: words = 128, word_bits = storage_size(0_c_long), skipped = 77
    integer(c_size_t), parameter :: mask_bytes = words*word_bits/8

    type, extends(kernel_t), public :: migrating_t
        integer(c_long) :: mask(words, 2) = 0      ! of two CPUs
        integer :: calls = 0
        character(:), allocatable :: path
        real(r8), pointer, contiguous :: a(:) => null()
    contains
        procedure :: declare_options, read_options, plan, initialise, run, validate
    end type migrating_t

    interface
        integer(c_int) function sched_getaffinity(process, bytes, mask) bind(c)
            import :: c_int, c_long, c_size_t
            integer(c_int), value :: process
            integer(c_size_t), value :: bytes
            integer(c_long), intent(out) :: mask(*)
        end function sched_getaffinity

        integer(c_int) function sched_setaffinity(process, bytes, mask) bind(c)
            import :: c_int, c_long, c_size_t
            integer(c_int), value :: process
            integer(c_size_t), value :: bytes
            integer(c_long), intent(in) :: mask(*)
        end function sched_setaffinity
    end interface

contains

    subroutine declare_options(self)
        class(migrating_t), intent(inout) :: self

        call self%options%add('path', option_choice, 'stay', 'CPUs of the repetitions', values='stay|move|return')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(migrating_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        integer(c_long) :: allowed(words)
        integer :: word, bit, n

        call self%options%get('path', self%path)
        allowed = 0
        n = 0
        if (sched_getaffinity(0, mask_bytes, allowed) < 0) call end_program(1)
        do word = 1, words
            do bit = 0, word_bits - 1
                if (n == 2 .or. .not. btest(allowed(word), bit)) cycle
                n = n + 1
                self%mask(word, n) = ibset(0_c_long, bit)
            end do
        end do
        if (n < 2 .and. .not. error%failed()) call end_program(skipped)
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(migrating_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        wanted = arrays_of('a', bytes/8, 8_i8)
    end subroutine plan

    subroutine initialise(self)
        class(migrating_t), intent(inout) :: self

        call c_f_pointer(self%memory(1)%address, self%a, [self%elements])
        self%a = 0.0_r8
        self%calls = 0
    end subroutine initialise

    subroutine run(self, passes)
        class(migrating_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        logical :: is_moved

        self%calls = self%calls + 1
        is_moved = (self%calls == 3 .and. self%path /= 'stay') .or. (self%calls > 3 .and. self%path == 'move')
        if (sched_setaffinity(0, mask_bytes, self%mask(:, merge(2, 1, is_moved))) /= 0) call end_program(1)
        self%a = self%a + real(passes, r8)
    end subroutine run

    subroutine validate(self, outcome)
        class(migrating_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome

        outcome%method = 'each pass adds 1'
        outcome%error = maxval(abs(self%a - self%calls))
    end subroutine validate

end module migrating_kernel

program test_migration
    use migrating_kernel, only: migrating_t
    use pw_harness, only: run_kernel
    implicit none
    type(migrating_t) :: kernel

    kernel%name = 'migration'
    kernel%summary = 'changes its CPU'
    kernel%default_working_set = '64KiB'
    call run_kernel(kernel)
end program test_migration
