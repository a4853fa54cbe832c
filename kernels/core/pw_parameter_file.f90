!> Parameter files: lines `name = value`, where `#` begins a comment. Text may be quoted; it must be if it contains a `#` or
!> begins or ends with blanks.
module pw_parameter_file
    use, intrinsic :: iso_fortran_env, only: iostat_end, iostat_eor
    use pw_text, only: shown, to_text
    implicit none
    private

    integer, parameter :: most_faults = 50   ! reported per file: a file of another kind has a fault in each line

    !> A file that is read line by line, and its faults. `reason`: why it cannot be read; empty if it can.
    type, public :: parameter_file_t
        character(:), allocatable :: path, faults, reason
        integer :: line = 0, fault_count = 0
        integer, private :: unit = 0
        logical, private :: opened = .false.
    contains
        procedure :: open => open_file
        procedure :: next
        procedure :: note
        procedure :: fault_text
        procedure, private :: read_line
    end type parameter_file_t

contains

    subroutine open_file(self, path)
        class(parameter_file_t), intent(inout) :: self
        character(*), intent(in) :: path
        character(256) :: reason
        integer :: status
        logical :: folder

        self%path = path
        self%faults = ''
        self%reason = ''
        reason = ''
        open (newunit=self%unit, file=path, status='old', action='read', iostat=status, iomsg=reason)
        self%opened = status == 0
        if (.not. self%opened) self%reason = trim(reason)
        ! flang-22 reads a folder as an empty file.
        inquire (file=path//'/.', exist=folder)
        if (folder) self%reason = 'it is a folder'
    end subroutine open_file

    !> The name and value on the next line that has them, after noting the faults of lines that are malformed. False, and the
    !> file is closed, at the end or if it cannot be read.
    logical function next(self, name, value)
        class(parameter_file_t), intent(inout) :: self
        character(:), allocatable, intent(out) :: name, value
        character(:), allocatable :: line, fault

        next = .true.
        do while (len(self%reason) == 0)
            if (.not. self%read_line(line)) exit
            call split_line(line, name, value, fault)
            if (len(fault) > 0) then
                call self%note(fault)
            else if (len(name) > 0) then
                return
            end if
        end do
        next = .false.
        if (self%opened) close (self%unit)
        self%opened = .false.
    end function next

    !> Note a fault of the current line.
    subroutine note(self, fault)
        class(parameter_file_t), intent(inout) :: self
        character(*), intent(in) :: fault

        self%fault_count = self%fault_count + 1
        if (self%fault_count > most_faults) return
        self%faults = self%faults//new_line('a')//'  '//self%path//':'//to_text(self%line)//': '//fault
    end subroutine note

    !> All faults, one per line.
    function fault_text(self) result(text)
        class(parameter_file_t), intent(in) :: self
        character(:), allocatable :: text

        text = self%faults
        if (self%fault_count > most_faults) text = text//new_line('a')//'  and '//to_text(self%fault_count - most_faults)//' more'
    end function fault_text

    !> The next line, of any length, with blanks for tabs and carriage returns; false after the last.
    logical function read_line(self, line)
        class(parameter_file_t), intent(inout) :: self
        character(:), allocatable, intent(out) :: line
        character(:), allocatable :: longer
        character(256) :: piece, reason
        integer :: used, length, status, i

        ! Doubled, not concatenated: flang-22 keeps every concatenation in a loop on the stack.
        allocate (character(len(piece)) :: line)
        used = 0
        do
            read (self%unit, '(a)', advance='no', iostat=status, iomsg=reason, size=length) piece
            if (status /= 0 .and. status /= iostat_eor) exit
            if (used + length > len(line)) then
                allocate (character(2*(used + length)) :: longer)
                longer(:used) = line(:used)
                call move_alloc(longer, line)
            end if
            line(used + 1:used + length) = piece(:length)
            used = used + length
            if (status == iostat_eor) exit
        end do
        read_line = status == iostat_eor .or. (status == iostat_end .and. used > 0)
        if (.not. read_line .and. status /= iostat_end) self%reason = trim(reason)
        self%line = self%line + 1
        line = line(:used)
        do i = 1, used
            if (line(i:i) == achar(9) .or. line(i:i) == achar(13)) line(i:i) = ' '
        end do
    end function read_line

    !> Name and value in a line: empty if it holds neither; `fault` describes a malformed line.
    pure subroutine split_line(line, name, value, fault)
        character(*), intent(in) :: line
        character(:), allocatable, intent(out) :: name, value, fault
        character(:), allocatable :: rest
        integer :: equals, last

        name = ''
        value = ''
        fault = ''
        rest = trim(adjustl(line))
        if (scan(rest, '#') == 1 .or. len(rest) == 0) return
        equals = scan(rest, '=#')
        if (equals > 0) then
            if (rest(equals:equals) == '=') name = trim(rest(:equals - 1))
        end if
        if (len(name) == 0) then
            fault = "'"//shown(rest)//"' is not of the form NAME = VALUE"
            return
        end if
        rest = adjustl(rest(equals + 1:))
        if (scan(rest, '"''') == 1) then
            last = index(rest(2:), rest(1:1)) + 1
            if (last == 1) then
                fault = "the value of '"//shown(name)//"' has no closing quotation mark"
                return
            end if
            value = rest(2:last - 1)
            rest = adjustl(rest(last + 1:))
            if (scan(rest, '#') /= 1 .and. len_trim(rest) > 0) &
                fault = "unexpected text after the value of '"//shown(name)//"': '"//shown(trim(rest))//"'"
        else
            value = trim(rest(:index(rest//'#', '#') - 1))
            if (len(value) == 0) fault = "'"//shown(name)//"' has no value"
        end if
    end subroutine split_line

end module pw_parameter_file
