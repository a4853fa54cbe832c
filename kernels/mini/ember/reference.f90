!> The committed norms of states (norms.txt), and which of them a run's state must have.
!>
!> A state follows from the parameters that differ from those of the problem, and the number of steps. Its key is their
!> command line, so that the key is also how to repeat the run: --problem sod --dims 2 --steps 5. Where a run places its
!> blocks, which files it writes, and how many ranks and threads it has changes no bit of the state, and is not in the key.
module ember_reference
    use ember_norms, only: n_norms
    use ember_norms_table, only: norms_table
    use ember_parameter_options, only: declare_parameters
    use ember_parameter_values, only: read_parameters
    use ember_parameters, only: parameters_t
    use pw_error, only: error_t
    use pw_kinds, only: r8
    use pw_options, only: options_t
    use pw_text, only: to_text
    implicit none
    private

    !> The options that do not change the state; `uniform` and `fill-memory` do through levels and roots. The number of
    !> steps that were made stands for `steps`.
    character(*), parameter :: neutral(*) = [character(19) :: &
        'record', 'norms', 'threads', 'pages', 'memory', 'max-blocks', 'allocation', 'parents', 'padding-variables', 'layout', &
        'fill-memory', 'uniform', 'errors', 'output', 'plot-interval', 'plot-time', 'plot-precision', 'log', 'log-interval', &
        'steps']
    character(*), parameter :: separator = ' | '

    public :: state_key, find_norms, norms_row

contains

    !> The key of the state after `steps` steps with the parameters `options`. Errors: those of read_parameters.
    subroutine state_key(options, steps, key, error)
        type(options_t), intent(in) :: options
        integer, intent(in) :: steps
        character(:), allocatable, intent(out) :: key
        type(error_t), intent(inout) :: error
        type(options_t) :: plain
        type(parameters_t) :: unused
        character(:), allocatable :: name, value, default
        integer :: i

        call plain%start('pw-ember', '')
        call options%get('pages', value)
        call declare_parameters(plain, value)
        call options%get('problem', value)
        call plain%set_default('problem', value, error)
        if (.not. error%failed()) call read_parameters(plain, unused, error)
        key = '--problem '//value
        i = 0
        do while (.not. error%failed())
            i = i + 1
            name = plain%name_of(i)
            if (len(name) == 0) exit
            if (any(neutral == name)) cycle
            ! Its default follows from another option.
            if (name == 'star-level' .and. .not. options%given(name)) cycle
            call options%get(name, value)
            call plain%get(name, default)
            if (value == default) cycle
            key = key//' --'//name
            if (value /= 'true') key = key//' '//trim(adjustl(value))
        end do
        key = key//' --steps '//to_text(steps)
    end subroutine state_key

    !> A row of norms.txt.
    function norms_row(key, norm) result(row)
        character(*), intent(in) :: key
        real(r8), intent(in) :: norm(:, :)
        character(:), allocatable :: row
        integer :: i, q

        row = key//separator(:2)
        do q = 1, size(norm, 2)
            do i = 1, size(norm, 1)
                row = row//' '//to_text(norm(i, q), 'es23.16e3')
            end do
        end do
    end function norms_row

    !> The committed norms, (norm, quantity), of the state with this key; none, with `n_quantities` quantities, if there are
    !> none.
    subroutine find_norms(key, n_quantities, norm, is_present)
        character(*), intent(in) :: key
        integer, intent(in) :: n_quantities
        real(r8), allocatable, intent(out) :: norm(:, :)
        logical, intent(out) :: is_present
        character(len(norms_table)) :: row
        integer :: i, at, status

        allocate (norm(n_norms, n_quantities), source=0.0_r8)
        is_present = .false.
        do i = 1, size(norms_table)
            row = norms_table(i)
            at = index(row, separator)
            is_present = row(:at - 1) == key
            if (is_present) exit
        end do
        if (.not. is_present) return
        read (row(at + len(separator):), *, iostat=status) norm
        ! A row that cannot be read is one of other quantities: no state has its norms.
        if (status /= 0) norm = huge(1.0_r8)
    end subroutine find_norms

end module ember_reference
