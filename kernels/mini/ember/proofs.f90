!> What all ranks observed: pages of the blocks and of the equation of state's table, first touch, page faults, placement.
module ember_proofs
    use ember_helmholtz_eos, only: helmholtz_eos_t
    use ember_parallel, only: comm_t
    use ember_simulation, only: simulation_t
    use pw_error, only: error_t
    use pw_evidence, only: first_touch_t
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_observe
    use pw_record, only: array_record_t, pages_record_t, placement_t, record_t
    use pw_text, only: to_text
    implicit none
    private

    public :: join_costs, prove_memory

contains

    !> Record the pages of the blocks and, if used, of the equation of state's table.
    subroutine prove_memory(simulation, pages, error)
        type(simulation_t), intent(in) :: simulation
        type(pages_record_t), intent(inout) :: pages
        type(error_t), intent(inout) :: error

        associate (blocks => simulation%mesh%memory)
            select type (eos => simulation%eos)
            type is (helmholtz_eos_t)
                call pages_observe([blocks, eos%table%memory], blocks%policy, pages, error)
            class default
                call pages_observe([blocks], blocks%policy, pages, error)
            end select
        end associate
        if (.not. error%failed()) call join_proofs(simulation%comm, pages)
    end subroutine prove_memory

    !> Record the memory of all ranks, the cost of its first touch, the page faults of the time loop (`faults`: minor, major),
    !> and the ranks' placement.
    subroutine join_costs(simulation, first_touched, faults, placement, record)
        type(simulation_t), intent(in) :: simulation
        type(first_touch_t), intent(in) :: first_touched
        integer(i8), intent(in) :: faults(2)
        type(placement_t), intent(in) :: placement
        type(record_t), intent(inout) :: record
        integer(i8), allocatable :: all(:)

        associate (comm => simulation%comm, joined => record%placement)
            call comm%all_gather([simulation%mesh%memory%bytes, first_touched%minor, first_touched%major, faults], all)
            record%working_set = sum(all(1::5))
            record%first_touch_minor = sum(all(2::5))
            record%first_touch_major = sum(all(3::5))
            record%compute_minor = sum(all(4::5))
            record%compute_major = sum(all(5::5))
            record%first_touch_seconds = first_touched%seconds
            call comm%all_max(record%first_touch_seconds)
            call comm%all_gather(placement%cpus, joined%cpus)
            call comm%all_gather(placement%numa_nodes, joined%numa_nodes)
            call comm%all_gather(placement%cpus_at_end, joined%cpus_at_end)
            call comm%all_gather(placement%numa_nodes_at_end, joined%numa_nodes_at_end)
            call comm%all_gather(placement%migrated, joined%migrated)
        end associate
    end subroutine join_costs

    !> Combine the observed pages of all ranks: the arrays of each rank.
    subroutine join_proofs(comm, pages)
        type(comm_t), intent(in) :: comm
        type(pages_record_t), intent(inout) :: pages
        integer(i8), allocatable :: bytes(:), huge_bytes(:), page_size(:)
        type(array_record_t), allocatable :: mine(:)
        integer :: i, n

        n = size(pages%arrays)
        call comm%all_gather(pages%arrays%bytes, bytes)
        call comm%all_gather(pages%arrays%huge_bytes, huge_bytes)
        call comm%all_gather(pages%arrays%page_size_observed, page_size)
        pages%page_size_observed = minval(page_size)
        pages%huge_coverage = real(sum(huge_bytes), r8)/real(sum(bytes), r8)
        if (size(bytes) == n) return
        call move_alloc(pages%arrays, mine)
        allocate (pages%arrays(size(bytes)))
        do i = 1, size(bytes)
            pages%arrays(i) = array_record_t(mine(1 + modulo(i - 1, n))%name//'.'//to_text((i - 1)/n), bytes(i), &
                                             huge_bytes(i), page_size(i))
        end do
    end subroutine join_proofs

end module ember_proofs
