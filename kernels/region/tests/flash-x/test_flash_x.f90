!> A run of Flash-X as its Profiler unit sees it: arguments are the rank (master, other) and the paths of the
!> regions that must have been measured, in order.
program test_flash_x
    use, intrinsic :: iso_fortran_env, only: error_unit
    use Driver_interface, only: rank
    use pw_error, only: error_t
    use pw_kinds, only: i4, i8, r8
    use pw_record, only: region_record_t
    use pw_region, only: regions_collect
    use timer_calls, only: starts, stops
    implicit none
    interface
        subroutine Profiler_init()
        end subroutine Profiler_init
        subroutine Profiler_startName(name)
            character(len=*), intent(in) :: name
        end subroutine Profiler_startName
        subroutine Profiler_stopName(name)
            character(len=*), intent(in) :: name
        end subroutine Profiler_stopName
        subroutine Timers_startString(name)
            character(len=*), intent(in) :: name
        end subroutine Timers_startString
        subroutine Timers_stopString(name)
            character(len=*), intent(in) :: name
        end subroutine Timers_stopString
        subroutine Eos_multiDim(mode, range, cells)
            import :: i4, r8
            integer(i4), intent(in) :: mode, range(2, 3)
            real(r8), pointer, intent(in) :: cells(:, :, :, :)
        end subroutine Eos_multiDim
    end interface
    integer(i4), parameter :: n_steps = 3
    integer(i4), parameter :: block(2, 3) = reshape([1, 2, 2, 3, 1, 1], [2, 3])
    real(r8), pointer :: cells(:, :, :, :)
    type(region_record_t), allocatable :: regions(:)
    type(error_t) :: error
    integer(i4) :: step, i

    if (argument(1) == 'other') rank = 1
    ! Timers of the initialization come before Profiler_init.
    call Timers_startString('initialization')
    call Profiler_init()
    call Timers_stopString('initialization')
    allocate (cells(3, 2, 3, 1))
    cells = 1.0_r8
    call Profiler_startName('FLASHX_EVOLUTION')
    call Timers_startString('evolution')
    do step = 1, n_steps
        call Timers_startString('Hydro')
        call Timers_startString('RiemannState')
        call Timers_stopString('RiemannState')
        call Timers_startString('eos  ')
        call Timers_stopString('eos  ')
        call Eos_multiDim(2_i4, block, cells)
        call Timers_stopString('Hydro')
        call Timers_startString('Hydro tail')
        call Timers_stopString('Hydro tail')
    end do
    call Timers_stopString('evolution')
    call Profiler_stopName('FLASHX_EVOLUTION')

    call regions_collect(regions, error)
    call check(.not. error%failed(), 'the regions nest')
    call check(starts == 2 + 4*n_steps .and. stops == starts, 'each timer of Flash-X is called')
    call check(all(abs(cells(2, :, 2:, :) - 8.0_r8) <= 0.0_r8) .and. abs(sum(cells) - 46.0_r8) <= 0.0_r8, &
               'the equation of state is called with its arguments')
    call check(size(regions) == command_argument_count() - 1, 'the number of regions')
    do i = 1, size(regions)
        call check(regions(i)%path == argument(i + 1), "the path '"//regions(i)%path//"'")
        call check(regions(i)%calls == merge(1_i8, int(n_steps, i8), regions(i)%name == 'FLASHX_EVOLUTION'), 'its calls')
    end do
    deallocate (cells, regions)

contains

    function argument(i) result(text)
        integer(i4), intent(in) :: i
        character(:), allocatable :: text
        integer(i4) :: length

        call get_command_argument(i, length=length)
        allocate (character(length) :: text)
        call get_command_argument(i, text)
    end function argument

    subroutine check(holds, label)
        logical, intent(in) :: holds
        character(*), intent(in) :: label

        if (holds) return
        write (error_unit, '(a)') 'wrong: '//label
        error stop 1
    end subroutine check

end program test_flash_x
