!> For the page tests: readings of the kernel's page tables independent of smaps, and ways to disturb a mapping without the
!> allocator's knowledge (evidence.c). Sizes in bytes; start addresses of pages are rounded down, ends up.
module evidence
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_int64_t, c_ptr
    implicit none
    public

    interface
        !> Of the bytes from this address on: those mapped by an entry of huge size (PAGEMAP_SCAN, Linux 6.7); -1: the kernel
        !> does not report it.
        integer(c_int64_t) function huge_bytes_of(address, bytes) bind(c, name='evidence_huge_bytes')
            import :: c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes
        end function huge_bytes_of

        !> Of these: those present in base pages and in compound pages of any size, mTHP included (pagemap and
        !> kpageflags, root); -1: not permitted.
        integer(c_int64_t) function compound_bytes_of(address, bytes) bind(c, name='evidence_compound_bytes')
            import :: c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes
        end function compound_bytes_of

        !> Map memory without a policy, touch it, return its address; NULL if refused.
        type(c_ptr) function plain_memory(bytes) bind(c, name='evidence_plain_memory')
            import :: c_int64_t, c_ptr
            integer(c_int64_t), value :: bytes
        end function plain_memory

        !> 1 if any page of the range belongs to a mapping that can be read.
        integer(c_int32_t) function is_accessible(address, bytes) bind(c, name='evidence_is_accessible')
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes
        end function is_accessible

        !> For the page that holds the address: release its memory; unmap it; make it read-only. 0: done.
        integer(c_int32_t) function drop_page(address) bind(c, name='evidence_drop_page')
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: address
        end function drop_page

        integer(c_int32_t) function unmap_page(address) bind(c, name='evidence_unmap_page')
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: address
        end function unmap_page

        integer(c_int32_t) function protect_page(address) bind(c, name='evidence_protect_page')
            import :: c_int32_t, c_ptr
            type(c_ptr), value :: address
        end function protect_page

        !> Advise for or against transparent huge pages on the whole pages of huge size that hold the range. 0: done.
        integer(c_int32_t) function advise(address, bytes, huge_size, huge) bind(c, name='evidence_advise')
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes, huge_size
            integer(c_int32_t), value :: huge
        end function advise

        !> 1 if this kernel supports MADV_COLLAPSE.
        integer(c_int32_t) function can_collapse() bind(c, name='evidence_can_collapse')
            import :: c_int32_t
        end function can_collapse

        !> Whether prctl disables transparent huge pages for the process.
        integer(c_int32_t) function thp_disabled() bind(c, name='evidence_thp_disabled')
            import :: c_int32_t
        end function thp_disabled

        !> The number in a file; -1: it cannot be read.
        integer(c_int64_t) function number_in(path) bind(c, name='evidence_number')
            import :: c_char, c_int64_t
            character(kind=c_char), intent(in) :: path(*)
        end function number_in
    end interface

end module evidence
