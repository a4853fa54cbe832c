!> A sweep: one measurement per value of an option.
module pw_sweep
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i8
    use pw_options, only: options_t
    use pw_text, only: to_text
    implicit none
    private

    type, public :: sweep_t
        character(:), allocatable :: option            !< its name; empty without a sweep
        character(:), allocatable, private :: values   ! that remain, separated by ','
    contains
        procedure :: begin
        procedure :: next
        procedure :: of_working_set
    end type sweep_t

    integer(i8), parameter :: smallest_size = 8192_i8

contains

    !> The swept option and its values by --sweep; those of the working set go up to `working_set`. Error: exit_usage.
    subroutine begin(self, options, working_set, error)
        class(sweep_t), intent(inout) :: self
        type(options_t), intent(in) :: options
        integer(i8), intent(in) :: working_set
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer :: equals, step

        call options%get('sweep', word)
        equals = index(word//'=', '=')
        self%option = word(:equals - 1)
        if (equals < len(word)) then
            self%values = word(equals + 1:)
        else if (self%of_working_set()) then
            self%values = ''
            step = 0
            do while (size_of(step) < working_set)
                self%values = self%values//to_text(size_of(step))//','
                step = step + 1
            end do
            self%values = self%values//to_text(working_set)
        else
            self%values = options%ladder(self%option)
        end if
        if (len(self%option) > 0 .and. (len(self%values) == 0 .or. self%option == 'pages')) &
            call error%raise(exit_usage, "'"//word//"' is not a sweep", 'pw_sweep', &
                             'use --sweep OPTION=VALUE,VALUE,... with an option other than --pages; '// &
                             'options with a ladder in --list-options need no values')
    end subroutine begin

    !> Set the option to its next value, which may be malformed (exit_usage); false after the last, or on an earlier error.
    logical function next(self, options, error)
        class(sweep_t), intent(inout) :: self
        type(options_t), intent(inout) :: options
        type(error_t), intent(inout) :: error
        integer :: comma

        next = len(self%values) > 0 .and. .not. error%failed()
        if (.not. next) return
        comma = index(self%values//',', ',')
        call options%replace(self%option, self%values(:comma - 1), error)
        self%values = self%values(min(comma, len(self%values)) + 1:)
        next = .not. error%failed()
    end function next

    pure logical function of_working_set(self)
        class(sweep_t), intent(in) :: self

        of_working_set = self%option == 'working-set'
    end function of_working_set

    !> Working sets: two per octave.
    pure integer(i8) function size_of(step)
        integer, intent(in) :: step

        size_of = smallest_size*2_i8**(step/2)
        if (modulo(step, 2) == 1) size_of = (size_of*181_i8/128_i8)/512_i8*512_i8
    end function size_of

end module pw_sweep
