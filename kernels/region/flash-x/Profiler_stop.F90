#include "constants.h"

!> End the region `name`, if PAGEWISE_REGIONS selects it. At the end of the evolution, the master prints its regions.
subroutine Profiler_stopName(name)
    use, intrinsic :: iso_c_binding, only: c_char, c_size_t
    use, intrinsic :: iso_fortran_env, only: output_unit
    use Driver_interface, only: Driver_getMype
    implicit none
    character(len=*), intent(in) :: name
    interface
        subroutine pr_region_end(name, length) bind(c)
            import :: c_char, c_size_t
            implicit none
            character(kind=c_char), intent(in) :: name(*)
            integer(c_size_t), value :: length
        end subroutine pr_region_end

        subroutine pw_regions_print() bind(c)
        end subroutine pw_regions_print
    end interface
    integer :: me

    call pr_region_end(name, len_trim(name, kind=c_size_t))
    if (name /= 'FLASHX_EVOLUTION') return
    call Driver_getMype(GLOBAL_COMM, me)
    if (me /= MASTER_PE) return
    flush (output_unit)
    call pw_regions_print()
end subroutine Profiler_stopName

!> Regions have names. No unit of Flash-X calls this.
subroutine Profiler_stopId(id)
    use Driver_interface, only: Driver_abort
    implicit none
    integer, intent(in) :: id
    character(len=80) :: message

    write (message, '(a, i0)') '[Profiler_stop] the pagewise profiler needs a name, not the number ', id
    call Driver_abort(message)
end subroutine Profiler_stopId
