!> Facts of this process and host from the C library, for Fortran.
module pw_system
    use, intrinsic :: iso_c_binding, only: c_char, c_null_char
    use pw_error, only: error_t, exit_system
    use pw_kinds, only: i4, i8
    use pw_system_h, only: base_page_size => pw_system_base_page_size, begin_turns => pw_system_begin_turns, &
        page_faults => pw_system_page_faults, placement => pw_system_placement, pw_bound_cpus, pw_bound_memory, &
        pw_caches_free_memory, pw_caches_last_level, pw_host_cpu, pw_host_kernel, pw_host_name, pw_system_append, &
        pw_system_fact, pw_system_wait_for_turn, pw_utc_now
    use pw_text, only: from_c
    implicit none
    private

    public :: base_page_size, begin_turns, page_faults, placement, turn_comes
    public :: cpus_allowed, last_level_cache, free_memory, memory_bound
    public :: host_name, host_kernel, host_cpu, utc_now, append_line

    integer(i4), parameter :: text_length = 256

contains

    !> Stop all threads of this process until another process continues it (SIGCONT). False if that also sent SIGUSR1: there is
    !> no further turn.
    logical function turn_comes()
        turn_comes = pw_system_wait_for_turn() == 0
    end function turn_comes

    !> The CPUs on which threads of this process may run, all together, as 0-3,8; empty if unknown.
    function cpus_allowed() result(list)
        character(:), allocatable :: list
        integer(i4), parameter :: longest = 32768
        character(kind=c_char), allocatable :: buffer(:)

        allocate (buffer(longest))
        call pw_bound_cpus(buffer, longest)
        list = from_c(buffer)
    end function cpus_allowed

    !> Bytes of the last-level caches next to the CPUs of a list such as 0-3,8, each cache once; 0 if unknown. `root`: '/';
    !> tests pass another.
    integer(i8) function last_level_cache(root, cpus)
        character(*), intent(in) :: root, cpus

        last_level_cache = pw_caches_last_level(root//c_null_char, cpus//c_null_char)
    end function last_level_cache

    !> Bytes that new programs can use, at most the limits of this process's control groups; 0 if unknown.
    integer(i8) function free_memory(root)
        character(*), intent(in) :: root

        free_memory = pw_caches_free_memory(root//c_null_char)
    end function free_memory

    !> The memory policy of this process, as bind:0, and the bytes of its memory on each NUMA node, from node 0; both
    !> empty if unknown. Walks every page of the process: do not call it in timed code.
    subroutine memory_bound(policy, node_bytes)
        character(:), allocatable, intent(out) :: policy
        integer(i8), allocatable, intent(out) :: node_bytes(:)
        integer(i4), parameter :: most_nodes = 1024
        character(kind=c_char) :: buffer(text_length)
        integer(i8) :: bytes(most_nodes)
        integer(i4) :: nodes

        nodes = pw_bound_memory(buffer, text_length, most_nodes, bytes)
        policy = from_c(buffer)
        node_bytes = bytes(:nodes)
    end subroutine memory_bound

    !> The node's name.
    function host_name() result(text)
        character(:), allocatable :: text

        text = fact(pw_host_name)
    end function host_name

    !> The operating system kernel's release.
    function host_kernel() result(text)
        character(:), allocatable :: text

        text = fact(pw_host_kernel)
    end function host_kernel

    !> The processor's model.
    function host_cpu() result(text)
        character(:), allocatable :: text

        text = fact(pw_host_cpu)
    end function host_cpu

    !> Date and time now, coordinated universal time, ISO 8601.
    function utc_now() result(text)
        character(:), allocatable :: text

        text = fact(pw_utc_now)
    end function utc_now

    !> The fact of this number in system.h.
    function fact(number) result(text)
        integer(i8), intent(in) :: number
        character(:), allocatable :: text
        character(kind=c_char) :: buffer(text_length)

        call pw_system_fact(int(number, i4), buffer, text_length)
        text = from_c(buffer)
    end function fact

    !> Append `line` and a line end to the file `path`, completely or not at all.
    subroutine append_line(path, line, error)
        character(*), intent(in) :: path, line
        type(error_t), intent(inout) :: error
        character(kind=c_char) :: reason(text_length)

        if (pw_system_append(path//c_null_char, line//new_line('a'), len(line, i8) + 1_i8, reason, text_length) == 0) return
        call error%raise(exit_system, "cannot write the record to '"//path//"': "//from_c(reason), 'append_line', &
                         'name a file in an existing, writable folder with free space')
    end subroutine append_line

end module pw_system
