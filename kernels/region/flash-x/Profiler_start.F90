!> Begin the region `name`, if PAGEWISE_REGIONS selects it.
subroutine Profiler_startName(name)
    use, intrinsic :: iso_c_binding, only: c_char, c_size_t
    implicit none
    character(len=*), intent(in) :: name
    interface
        subroutine pr_region_begin(name, length) bind(c)
            import :: c_char, c_size_t
            implicit none
            character(kind=c_char), intent(in) :: name(*)
            integer(c_size_t), value :: length
        end subroutine pr_region_begin
    end interface

    call pr_region_begin(name, len_trim(name, kind=c_size_t))
end subroutine Profiler_startName

!> Regions have names. No unit of Flash-X calls this.
subroutine Profiler_startId(id)
    use Driver_interface, only: Driver_abort
    implicit none
    integer, intent(in) :: id
    character(len=80) :: message

    write (message, '(a, i0)') '[Profiler_start] the pagewise profiler needs a name, not the number ', id
    call Driver_abort(message)
end subroutine Profiler_startId
