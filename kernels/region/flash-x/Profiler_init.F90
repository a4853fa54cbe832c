!> Start the counters, so that their start does not count in the first region.
subroutine Profiler_init()
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_null_ptr, c_ptr
    implicit none
    interface
        integer(c_int32_t) function pw_regions_open(events) bind(c)
            import :: c_int32_t, c_ptr
            implicit none
            type(c_ptr), value :: events
        end function pw_regions_open
    end interface
    integer(c_int32_t) :: n_events

    n_events = pw_regions_open(c_null_ptr)
end subroutine Profiler_init
