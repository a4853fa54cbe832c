!> The functions of evidence.c, which its header describes.
module evidence
    use, intrinsic :: iso_c_binding, only: c_char, c_int32_t, c_int64_t, c_ptr
    implicit none
    public

    interface
        integer(c_int64_t) function huge_bytes_of(address, bytes) bind(c, name='evidence_huge_bytes')
            import :: c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes
        end function huge_bytes_of

        integer(c_int64_t) function compound_bytes_of(address, bytes) bind(c, name='evidence_compound_bytes')
            import :: c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes
        end function compound_bytes_of

        type(c_ptr) function plain_memory(bytes) bind(c, name='evidence_plain_memory')
            import :: c_int64_t, c_ptr
            integer(c_int64_t), value :: bytes
        end function plain_memory

        integer(c_int32_t) function is_accessible(address, bytes) bind(c, name='evidence_is_accessible')
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes
        end function is_accessible

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

        integer(c_int32_t) function advise(address, bytes, huge_size, huge) bind(c, name='evidence_advise')
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: address
            integer(c_int64_t), value :: bytes, huge_size
            integer(c_int32_t), value :: huge
        end function advise

        integer(c_int32_t) function can_collapse() bind(c, name='evidence_can_collapse')
            import :: c_int32_t
        end function can_collapse

        integer(c_int32_t) function thp_disabled() bind(c, name='evidence_thp_disabled')
            import :: c_int32_t
        end function thp_disabled

        integer(c_int64_t) function number_in(path) bind(c, name='evidence_number')
            import :: c_char, c_int64_t
            character(kind=c_char), intent(in) :: path(*)
        end function number_in
    end interface

end module evidence
