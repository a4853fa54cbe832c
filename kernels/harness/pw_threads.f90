!> Threads and their static shares of an array, the same for first touch, initialisation and the timed loop.
module pw_threads
    !$ use omp_lib, only: omp_get_max_threads, omp_get_num_places, omp_get_num_procs, omp_get_num_threads, &
    !$     omp_get_place_num_procs, omp_get_place_proc_ids, omp_get_thread_num, omp_set_dynamic, omp_set_num_threads
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i4, i8
    use pw_record, only: placement_t
    use pw_system, only: cpus_allowed, placement
    use pw_text, only: to_text
    implicit none
    private

    public :: threads_begin, threads_cpus, threads_ladder, thread_number, thread_share, placement_begin, placement_update

contains

    !> Start `threads` threads.
    subroutine threads_begin(threads, error)
        integer(i8), intent(in) :: threads
        type(error_t), intent(inout) :: error
        integer :: team

        if (threads > huge(team)) call error%raise(exit_usage, to_text(threads)//' threads are too many', 'threads_begin', &
            'request at most one thread per CPU')
        if (error%failed()) return
        team = 1
        !$ call omp_set_dynamic(.false.)
        !$ call omp_set_num_threads(int(threads))
        !$omp parallel shared(team)
        !$omp single
        !$ team = omp_get_num_threads()
        !$omp end single
        !$omp end parallel
        if (team < threads) call error%raise(exit_usage, to_text(threads)//' threads requested, '//to_text(team)//' started', &
            'threads_begin', 'request fewer, or use a build with OpenMP (variant +openmp)')
    end subroutine threads_begin

    !> Note where each thread runs as the timed part begins; call it outside of parallel regions.
    subroutine placement_begin(placed)
        type(placement_t), intent(out) :: placed
        integer :: threads

        threads = 1
        !$ threads = omp_get_max_threads()
        allocate (placed%cpus(threads), placed%numa_nodes(threads), source=-1_i4)
        allocate (placed%migrated(threads), source=0_i4)
        call observe(placed%cpus, placed%numa_nodes)
        placed%cpus_at_end = placed%cpus
        placed%numa_nodes_at_end = placed%numa_nodes
    end subroutine placement_begin

    !> Note where each thread runs after a timed repetition. Allocates nothing, because page faults are counted.
    subroutine placement_update(placed)
        type(placement_t), intent(inout) :: placed

        call observe(placed%cpus_at_end, placed%numa_nodes_at_end)
        where (placed%cpus_at_end /= placed%cpus) placed%migrated = 1_i4
    end subroutine placement_update

    !> CPU and NUMA node of each thread of a team now; -1 where unknown.
    subroutine observe(cpus, numa_nodes)
        integer(i4), intent(inout) :: cpus(:), numa_nodes(:)

        !$omp parallel
        call placement(cpus(thread_number() + 1), numa_nodes(thread_number() + 1))
        !$omp end parallel
    end subroutine observe

    !> The CPUs that the threads may run on, as 0,1,8: those of OpenMP's places if there are any, because libgomp has then
    !> bound the calling thread to one of them; else those of the process. Empty if unknown.
    function threads_cpus() result(list)
        character(:), allocatable :: list
        !$ integer, allocatable :: cpus(:)
        !$ integer :: place, i

        list = ''
        !$ do place = 0, omp_get_num_places() - 1
        !$     allocate (cpus(omp_get_place_num_procs(place)))
        !$     call omp_get_place_proc_ids(place, cpus)
        !$     do i = 1, size(cpus)
        !$         list = list//to_text(cpus(i))//','
        !$     end do
        !$     deallocate (cpus)
        !$ end do
        if (len(list) == 0) list = cpus_allowed()
    end function threads_cpus

    !> Numbers of threads for a sweep, separated by ',': powers of two up to the CPUs that the program may run on.
    !> The number comes from OpenMP: if libgomp has bound the calling thread (OMP_PROC_BIND), its CPU set is a single CPU.
    function threads_ladder() result(numbers)
        character(:), allocatable :: numbers
        integer(i8) :: threads, cpus

        cpus = 1
        !$ cpus = omp_get_num_procs()
        numbers = ''
        threads = 1
        do while (threads < cpus)
            numbers = numbers//to_text(threads)//','
            threads = 2*threads
        end do
        numbers = numbers//to_text(cpus)
    end function threads_ladder

    !> The calling thread's number in its team, from 0.
    integer function thread_number()
        thread_number = 0
        !$ thread_number = omp_get_thread_num()
    end function thread_number

    !> The calling thread's share of 1..n as first:last, in whole pieces of `grain` except at the end; empty shares
    !> have last < first. Call it inside a parallel region.
    subroutine thread_share(n, grain, first, last)
        integer(i8), intent(in) :: n, grain
        integer(i8), intent(out) :: first, last
        integer(i8) :: thread, threads, pieces

        thread = 0
        threads = 1
        !$ thread = omp_get_thread_num()
        !$ threads = omp_get_num_threads()
        pieces = (n + grain - 1)/grain
        first = (pieces*thread/threads)*grain + 1
        last = min(n, (pieces*(thread + 1)/threads)*grain)
    end subroutine thread_share

end module pw_threads
