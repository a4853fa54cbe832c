!> Records are appended whole, and a file that cannot take them is an error that names it.
program test_pw_system
    use pw_error, only: error_t, exit_system
    use pw_kinds, only: i8
    use pw_system, only: append_line, base_page_size, host_cpu, host_kernel, host_name, page_faults, utc_now
    implicit none
    character(*), parameter :: path = 'test_pw_system.jsonl'
    type(error_t) :: error
    character(80) :: line
    integer(i8) :: minor, major, more
    integer, allocatable :: memory(:)
    integer :: unit, i

    open (newunit=unit, file=path)
    close (unit, status='delete')
    call append_line(path, 'first', error)
    call append_line(path, 'second', error)
    if (error%failed()) error stop 'appending failed'
    open (newunit=unit, file=path, action='read')
    do i = 1, 2
        read (unit, '(a)') line
        if (trim(line) /= merge('first ', 'second', i == 1)) error stop 'a line is wrong'
    end do
    close (unit, status='delete')

    call append_line('/dev/full', 'no room', error)
    if (error%code /= exit_system .or. index(error%message, '/dev/full') == 0) error stop 'a full disk went unseen'
    error = error_t()
    call append_line('no/such/folder/file', 'no folder', error)
    if (error%code /= exit_system .or. len(error%remedy) == 0) error stop 'a missing folder went unseen'

    if (base_page_size() < 4096) error stop 'base page'
    if (len(host_name()) == 0) error stop 'host name'
    if (len(host_kernel()) == 0) error stop 'kernel'
    if (len(host_cpu()) == 0) error stop 'processor'
    if (len(utc_now()) /= 20) error stop 'date'
    call page_faults(minor, major)
    allocate (memory(4000000), source=1)
    call page_faults(more, major)
    if (more <= minor .or. sum(memory) /= 4000000) error stop 'faults were not counted'
end program test_pw_system
