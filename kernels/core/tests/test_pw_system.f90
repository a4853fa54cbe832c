!> Records are appended completely, and a file that cannot take them is an error that names it.
program test_pw_system
    use pw_error, only: error_t, exit_system
    use pw_kinds, only: i4, i8
    use pw_system, only: append_line, base_page_size, cpus_allowed, host_cpu, host_kernel, host_name, memory_bound, &
        page_faults, placement, utc_now
    implicit none
    character(*), parameter :: path = 'test_pw_system.jsonl'
    type(error_t) :: error
    character(80) :: line
    integer(i8) :: minor, major, more
    integer, allocatable :: memory(:)
    integer(i8), allocatable :: node_bytes(:), node_bytes_before(:)
    character(:), allocatable :: policy
    integer(i4) :: cpu, node
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
    if (error%code /= exit_system .or. index(error%message, '/dev/full') == 0) error stop 'a full disk was missed'
    error = error_t()
    call append_line('no/such/folder/file', 'no folder', error)
    if (error%code /= exit_system .or. len(error%remedy) == 0) error stop 'a missing folder was missed'

    if (base_page_size() < 4096) error stop 'base page'
    if (len(host_name()) == 0) error stop 'host name'
    if (len(host_kernel()) == 0) error stop 'kernel'
    if (len(host_cpu()) == 0) error stop 'processor'
    if (len(utc_now()) /= 20) error stop 'date'
    call memory_bound(policy, node_bytes_before)
    call page_faults(minor, major)
    allocate (memory(4000000), source=1)
    call page_faults(more, major)
    if (more <= minor .or. sum(memory) /= 4000000) error stop 'faults were not counted'

    ! On a kernel without NUMA there is neither a policy nor a node.
    call memory_bound(policy, node_bytes)
    if (len(policy) > 0) then
        if (sum(node_bytes) - sum(node_bytes_before) < 16000000 .or. sum(node_bytes) > 1000000000) error stop 'memory by node'
    end if
    call placement(cpu, node)
    if (.not. holds(cpus_allowed(), int(cpu))) error stop 'runs on a CPU that it may not use'
    if (holds(cpus_allowed(), 99999)) error stop 'a CPU that does not exist'

contains

    !> Whether a list such as 0-3,8 contains a number.
    logical function holds(list, number)
        character(*), intent(in) :: list
        integer, intent(in) :: number
        integer :: start, comma, dash, first, last

        holds = .false.
        start = 1
        do while (start <= len(list))
            comma = index(list(start:)//',', ',') + start - 1
            dash = index(list(start:comma - 1), '-')
            if (dash > 0) then
                read (list(start:start + dash - 2), *) first
                read (list(start + dash:comma - 1), *) last
            else
                read (list(start:comma - 1), *) first
                last = first
            end if
            holds = holds .or. (first <= number .and. number <= last)
            start = comma + 1
        end do
    end function holds
end program test_pw_system
