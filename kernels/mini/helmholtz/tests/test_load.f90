!> Unusable tables are refused by name: missing, of another kind, truncated, damaged, of other shapes or points.
program test_load
    use helmholtz, only: helmholtz_t, table_arrays
    use helmholtz_columns, only: c_abar, c_dens, c_eint, c_pres, c_temp, c_zbar, given_temperature, n_columns
    use helmholtz_constants, only: r => gas_constant, radiation_constant
    use helmholtz_testing, only: expect, expect_near, failures
    use pw_error, only: error_t, exit_system, exit_usage
    use pw_hdf5, only: file_t, kind_double, whole_file
    use pw_kinds, only: r8
    use pw_pages, only: pages_begin, pages_none
    implicit none
    integer, parameter :: nx = 7, nt = 5
    character(*), parameter :: path = 'made.h5', schema = 'pagewise.eos-table/1'
    integer, parameter :: fine = 0, other_schema = 1, no_schema = 2, other_shape = 3, uneven = 4, above_zero = 5, &
        not_finite = 6, without = 7, without_slope = 8, unstable = 9
    type(helmholtz_t) :: eos
    type(error_t) :: error
    integer :: unit

    call pages_begin(pages_none, error)
    call make(fine)
    call eos%load(path, pages_none, error)
    call expect(.not. error%failed(), 'a good table is refused')
    if (error%failed()) print *, error%message
    if (.not. error%failed()) call check_values()
    call eos%free(error)

    call refused('nowhere/table.h5', exit_system, 'nowhere/table.h5')
    open (newunit=unit, file='text.h5', action='write', status='replace')
    write (unit, '(a)') 'this is not an HDF5 file'
    close (unit)
    call refused('text.h5', exit_system, 'text.h5')
    call cut_short()
    call refused('short.h5', exit_system, 'short.h5')
    call make(other_schema)
    call refused(path, exit_usage, schema)
    call make(no_schema)
    call refused(path, exit_usage, schema)
    call damage()
    call refused('damaged.h5', exit_system, 'thermal')
    call make(other_shape)
    call refused(path, exit_usage, 'positrons')
    call make(uneven)
    call refused(path, exit_usage, 'not evenly spaced')
    call make(above_zero)
    call refused(path, exit_usage, 'not below zero')
    call make(not_finite)
    call refused(path, exit_usage, 'not finite')
    call make(without)
    call refused(path, exit_system, 'cold')

    ! Separate arrays need dp/dx and eta.
    eos%layout = table_arrays
    call make(without_slope)
    call refused(path, exit_system, 'dpdx')
    call make(unstable)
    call refused(path, exit_usage, 'dp/dx')
    if (failures > 0) error stop 'tables are not distinguished'

contains

    !> A table of f = -R T (x/T)^(-1/2) instead of the thermal part, and of 10 + ln(x) instead of the cold one; with a fault.
    subroutine make(fault)
        integer, intent(in) :: fault
        type(file_t) :: file
        real(r8) :: dye(nx), temperature(nt), cold(nx, 3), thermal(9, nt, nx), positrons(4, nt, nx), slope(4, nt, nx)
        integer :: i, j

        dye = [(10.0_r8**(-3 + i), i=1, nx)]
        temperature = [(10.0_r8**(3 + 0.5_r8*j), j=1, nt)]
        if (fault == uneven) dye(3) = 1.01_r8*dye(3)
        cold(:, 1) = 10.0_r8 + log(dye)
        cold(:, 2) = 1.0_r8/dye
        cold(:, 3) = -1.0_r8/dye**2
        positrons = 0.0_r8
        slope = 0.0_r8
        slope(1, :, :) = 1.0_r8
        if (fault == unstable) slope(1, 2, 3) = 0.0_r8
        do i = 1, nx
            do j = 1, nt
                associate (x => dye(i), t => temperature(j))
                    thermal(:, j, i) = -r*t**1.5_r8/sqrt(x)*[1.0_r8, -0.5_r8/x, 1.5_r8/t, 0.75_r8/x**2, 0.75_r8/t**2, &
                        -0.75_r8/(x*t), 1.125_r8/(x**2*t), -0.375_r8/(x*t**2), 0.5625_r8/(x*t)**2]
                end associate
            end do
        end do
        if (fault == above_zero) thermal(1, 2, 3) = -thermal(1, 2, 3)
        if (fault == not_finite) thermal(9, 4, 5) = huge(1.0_r8)*10.0_r8**fault
        call file%create(path, error)
        call dataset(file, 'dye', [nx], nx, 1, dye)
        call dataset(file, 'temperature', [nt], nt, 1, temperature)
        if (fault /= without) call dataset(file, 'cold', [nx, 3], 3, nx, cold)
        call dataset(file, 'thermal', [9, nt, nx], nx, 9*nt, thermal)
        if (fault == other_shape) then
            call dataset(file, 'positrons', [2, 2*nt, nx], nx, 4*nt, positrons)
        else
            call dataset(file, 'positrons', [4, nt, nx], nx, 4*nt, positrons)
        end if
        if (fault /= without_slope) call dataset(file, 'dpdx', [4, nt, nx], nx, 4*nt, slope)
        call dataset(file, 'eta', [4, nt, nx], nx, 4*nt, positrons)
        if (fault == other_schema) then
            call file%put(whole_file, 'schema', 'pagewise.checkpoint/1', error)
        else if (fault /= no_schema) then
            call file%put(whole_file, 'schema', schema, error)
        end if
        call file%commit(error)
        if (error%failed()) print *, error%message
        if (error%failed()) error stop 'no table was made'
    end subroutine make

    !> Define and write a dataset.
    subroutine dataset(file, name, shape, n, row_values, values)
        type(file_t), intent(inout) :: file
        character(*), intent(in) :: name
        integer, intent(in) :: shape(:), n, row_values
        real(r8), intent(in) :: values(*)

        call file%define(name, kind_double, shape, error)
        call file%write_reals(name, 1, n, row_values, values, error)
    end subroutine dataset

    !> ln(-f) is linear in the logarithms, and comes back exactly: p = x^2 f_x, e = Ye (f - T f_T).
    subroutine check_values()
        real(r8) :: row(1, n_columns), f, x, t, ions, light

        x = 0.7_r8
        t = 2.0e4_r8
        row = 0.0_r8
        row(1, [c_dens, c_temp, c_abar, c_zbar]) = [2.0_r8*x, t, 4.0_r8, 2.0_r8]
        eos%coulomb = .false.
        call eos%load(path, pages_none, error)   ! instead of the previous one
        call eos%rows(given_temperature, 1, row, error)
        call expect(.not. error%failed(), 'a good zone fails')
        f = -r*t**1.5_r8/sqrt(x)
        ions = r*t/4.0_r8
        light = radiation_constant*t**4
        call expect_near(row(1, c_pres), x*(1.0_r8 - 0.5_r8*f) + 2.0_r8*x*ions + light/3.0_r8, 1.0e-12_r8, 'pressure')
        call expect_near(row(1, c_eint), 0.5_r8*(10.0_r8 + log(x) - 0.5_r8*f) + 1.5_r8*ions + light/(2.0_r8*x), 1.0e-12_r8, &
                         'energy')
    end subroutine check_values

    !> The first half of a good file.
    subroutine cut_short()
        character(:), allocatable :: bytes

        call get_bytes(bytes)
        call put_bytes('short.h5', bytes(:len(bytes)/2))
    end subroutine cut_short

    !> A good file in which one bit of one number changed.
    subroutine damage()
        character(:), allocatable :: bytes, number
        integer :: at

        call get_bytes(bytes)
        ! The first number of the thermal part occurs once.
        allocate (character(8) :: number)
        number = transfer(-r*1.0e3_r8**1.5_r8*10.0_r8**0.75_r8/sqrt(1.0e-2_r8), number)
        at = index(bytes, number)
        call expect(at > 0, 'the number to damage is missing')
        bytes(at:at) = achar(ieor(iachar(bytes(at:at)), 1))
        call put_bytes('damaged.h5', bytes)
    end subroutine damage

    !> A good file.
    subroutine get_bytes(bytes)
        character(:), allocatable, intent(out) :: bytes
        integer :: from, length

        call make(fine)
        open (newunit=from, file=path, access='stream', form='unformatted', action='read', status='old')
        inquire (unit=from, size=length)
        allocate (character(length) :: bytes)
        read (from) bytes
        close (from)
    end subroutine get_bytes

    subroutine put_bytes(path, bytes)
        character(*), intent(in) :: path, bytes
        integer :: to

        open (newunit=to, file=path, access='stream', form='unformatted', action='write', status='replace')
        write (to) bytes
        close (to)
    end subroutine put_bytes

    subroutine refused(path, code, why)
        character(*), intent(in) :: path, why
        integer, intent(in) :: code

        call eos%load(path, pages_none, error)
        call expect(error%failed(), 'accepted: '//path//', '//why)
        if (.not. error%failed()) return
        call expect(error%code == code, 'another exit code: '//error%message)
        call expect(index(error%message, why) > 0 .and. index(error%message, path) > 0, 'another reason: '//error%message)
        call expect(len(error%remedy) > 0, 'no remedy: '//error%message)
        error = error_t()
    end subroutine refused

end program test_load
