!> The Helmholtz equation of state: a fully ionised plasma of electrons, positrons, ions and radiation, over rows of zones.
!>
!> Timmes & Arnett, ApJS 125, 277 (1999) and Timmes & Swesty, ApJS 126, 501 (2000). Electrons and positrons, of any degeneracy
!> and relativity, come from a table of their Helmholtz free energy in (rho Ye, T) by biquintic Hermite interpolation; ions are
!> an ideal gas with the entropy of Sackur and Tetrode; radiation is that of a black body; Coulomb corrections are those of
!> Yakovlev & Shalybkov (1989). docs/reference/helmholtz.md describes method, accuracy and speed; the timed code is rows.c.
!>
!> Units are cgs and K. Order of calls: `load`, `rows` by any number of threads, `free`.
module helmholtz
    use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
    use, intrinsic :: iso_c_binding, only: c_associated, c_double, c_f_pointer, c_int32_t, c_int64_t, c_loc, c_null_ptr, c_ptr
    use helmholtz_columns, only: c_abar, c_dens, c_eint, c_entr, c_pres, c_temp, c_zbar, given_energy, given_pressure, &
        given_temperature
    use helmholtz_constants, only: avogadro, boltzmann, electron_rest_energy, elementary_charge, gas_constant, pi, planck, &
        radiation_constant, speed_of_light
    use helmholtz_table_file, only: cold_values, further_to_steps, n_further, node_values, positron_values, refuse, stored_t, &
        to_steps
    use pw_error, only: error_t, exit_check
    use pw_evidence, only: first_touch_all, first_touch_t
    use pw_hdf5, only: file_t
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_free, pages_policy_t, pages_verify
    use pw_text, only: to_text
    implicit none
    private

    !> Layouts of the table in memory: packed nodes, or separate arrays as in the public routine.
    integer, parameter, public :: table_nodes = 1, table_arrays = 2
    character(*), parameter, public :: table_layout_names = 'nodes|arrays'

    ! The table as declared in rows.h.
    type, bind(c) :: table_t
        type(c_ptr) :: thermal, cold, positrons
        integer(c_int64_t) :: densities = 0, temperatures = 0
        real(c_double) :: first_u = 0, step_u = 0, first_v = 0, step_v = 0, last_u = 0, last_v = 0
        real(c_double) :: lowest = 0, highest = 0, coldest = 0, hottest = 0
        real(c_double) :: gas_constant = 0, avogadro = 0, radiation = 0, speed_of_light = 0, rest_temperature = 0
        real(c_double) :: ln_sackur_tetrode = 0, ln_coupling = 0
        integer(c_int32_t) :: coulomb = 1, distance = 0
        type(c_ptr) :: arrays = c_null_ptr
    end type table_t

    ! Faults of a zone, as in rows.h.
    integer(c_int32_t), parameter :: bad_composition = 1, bad_density = 2, density_off = 3, temperature_off = 4, too_low = 5, &
        too_high = 6, not_found = 7, bad_given = 8

    !> The equation of state; read-only after `load`.
    type, public :: helmholtz_t
        character(:), allocatable :: path       !< of the table's file
        logical :: coulomb = .true.             !< with Coulomb corrections; may be set before `load`
        integer :: layout = table_nodes         !< of the table in memory; may be set before `load`
        integer :: prefetch_distance = 32       !< builds with prefetch=software: distance in zones, up to 64; may be set before
        type(paged_array_t) :: memory           !< the table
        type(first_touch_t) :: first_touched          !< the cost of its first touch
        real(r8) :: least_density = 0.0_r8, most_density = 0.0_r8           !< of rho*Ye in the table [g/cm^3]
        real(r8) :: least_temperature = 0.0_r8, most_temperature = 0.0_r8   !< [K]
        type(table_t), private :: table
    contains
        procedure :: load
        procedure :: rows
        procedure :: free
    end type helmholtz_t

    interface
        integer(c_int32_t) function c_rows(table, mode, few, n, stride, state, zone) bind(c, name='pw_helmholtz_rows')
            import :: c_double, c_int32_t, c_int64_t, table_t
            type(table_t), intent(in) :: table
            integer(c_int32_t), value :: mode, few
            integer(c_int64_t), value :: n, stride
            real(c_double), intent(inout) :: state(*)
            integer(c_int64_t), intent(out) :: zone
        end function c_rows

        integer(c_int32_t) function c_rows_arrays(table, mode, few, n, stride, state, zone) bind(c, name='pw_helmholtz_rows_arrays')
            import :: c_double, c_int32_t, c_int64_t, table_t
            type(table_t), intent(in) :: table
            integer(c_int32_t), value :: mode, few
            integer(c_int64_t), value :: n, stride
            real(c_double), intent(inout) :: state(*)
            integer(c_int64_t), intent(out) :: zone
        end function c_rows_arrays
    end interface

    public :: table_layout

contains

    !> The layout with one of the names.
    pure integer function table_layout(name)
        character(*), intent(in) :: name

        table_layout = merge(table_arrays, table_nodes, name == 'arrays')
    end function table_layout

    !> Load the table in the file `path` (docs/reference/helmholtz.md) into memory on the pages of `policy`, for which
    !> `pages_begin` was called, first touched by the caller's threads. Exit codes: 2 the file is not a table; 3 the pages are
    !> unavailable; 4 the file is damaged, or the system refuses file or memory.
    subroutine load(self, path, policy, error)
        class(helmholtz_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(pages_policy_t), intent(in) :: policy
        type(error_t), intent(inout) :: error
        type(file_t) :: file
        type(stored_t) :: data
        integer :: bad

        self%path = path
        call self%free(error)
        call file%open(path, error)
        if (error%failed()) return
        call data%read(file, path, self%layout == table_arrays, error)
        call file%close()
        if (error%failed()) return
        call set_grid(self, data%dye, data%temperature, error)
        if (error%failed()) return
        if (self%layout == table_arrays) then
            call fill_arrays(self, data, policy, bad, error)
        else
            call fill_nodes(self, data, policy, bad, error)
        end if
        if (error%failed()) return
        if (bad > 0) call refuse(path, 'a number is not finite, or a thermal part of the free energy '// &
                                   'is not below zero, or a dp/dx not above', error)
    end subroutine load

    !> The table as packed nodes, followed by the cold part and the positrons' nodes; `bad`: as to_steps counts.
    subroutine fill_nodes(self, data, policy, bad, error)
        class(helmholtz_t), intent(inout) :: self
        type(stored_t), intent(in) :: data
        type(pages_policy_t), intent(in) :: policy
        integer, intent(out) :: bad
        type(error_t), intent(inout) :: error
        real(r8), pointer, contiguous :: all(:), to(:, :, :), to_cold(:, :), to_positrons(:, :, :)
        integer(i8) :: thermal_size, cold_size
        integer :: nx, nt, i

        bad = 0
        nx = size(data%dye)
        nt = size(data%temperature)
        thermal_size = int(node_values, i8)*nt*nx
        cold_size = whole_lines(int(cold_values, i8)*nx)
        call provide(self, policy, thermal_size + cold_size + int(positron_values, i8)*nt*nx, all, error)
        if (error%failed()) return
        to(1:node_values, 1:nt, 1:nx) => all(:thermal_size)
        to_cold(1:cold_values, 1:nx) => all(thermal_size + 1:thermal_size + cold_values*nx)
        to_positrons(1:positron_values, 1:nt, 1:nx) => all(thermal_size + cold_size + 1:)
        associate (table => self%table)
            !$omp parallel do schedule(static) reduction(+: bad)
            do i = 1, nx
                call to_steps(data, i, [table%step_u, table%step_v], to_cold(:, i), to(:, :, i), to_positrons(:, :, i), bad)
            end do
            !$omp end parallel do
            table%thermal = c_loc(all(1))
            table%cold = c_loc(all(thermal_size + 1))
            table%positrons = c_loc(all(thermal_size + cold_size + 1))
            table%arrays = c_null_ptr
        end associate
    end subroutine fill_nodes

    !> The table as separate arrays, one after another as in the public routine's common block, and the cold part after them.
    subroutine fill_arrays(self, data, policy, bad, error)
        class(helmholtz_t), intent(inout) :: self
        type(stored_t), intent(in) :: data
        type(pages_policy_t), intent(in) :: policy
        integer, intent(out) :: bad
        type(error_t), intent(inout) :: error
        real(r8), pointer, contiguous :: all(:), to(:, :, :), to_cold(:, :)
        real(r8), allocatable :: values(:, :)
        integer(i8) :: arrays_size
        integer :: nx, nt, i
        integer, parameter :: n_arrays = node_values + n_further + positron_values

        bad = 0
        nx = size(data%dye)
        nt = size(data%temperature)
        arrays_size = whole_lines(int(n_arrays, i8)*nt*nx)
        call provide(self, policy, arrays_size + cold_values*nx, all, error)
        if (error%failed()) return
        to(1:nx, 1:nt, 1:n_arrays) => all(:int(n_arrays, i8)*nt*nx)
        to_cold(1:cold_values, 1:nx) => all(arrays_size + 1:)
        allocate (values(n_arrays, nt))
        associate (table => self%table, positrons => node_values + n_further + 1)
            !$omp parallel do schedule(static) reduction(+: bad) private(values)
            do i = 1, nx
                call to_steps(data, i, [table%step_u, table%step_v], to_cold(:, i), values(:node_values, :), &
                              values(positrons:, :), bad)
                call further_to_steps(data, i, [table%step_u, table%step_v], values(node_values + 1:positrons - 1, :), bad)
                to(i, :, :) = transpose(values)
            end do
            !$omp end parallel do
            table%thermal = c_null_ptr
            table%cold = c_loc(all(arrays_size + 1))
            table%positrons = c_null_ptr
            table%arrays = c_loc(all(1))
        end associate
    end subroutine fill_arrays

    !> Memory for n numbers of the table on the pages of a policy.
    subroutine provide(self, policy, n, all, error)
        class(helmholtz_t), intent(inout) :: self
        type(pages_policy_t), intent(in) :: policy
        integer(i8), intent(in) :: n
        real(r8), pointer, contiguous, intent(out) :: all(:)
        type(error_t), intent(inout) :: error

        call pages_allocate(self%memory, policy, 'eos table', 8*n, 0_i8, error)
        if (error%failed()) return
        call first_touch_all([self%memory], .true., .false., self%first_touched)
        call pages_verify([self%memory], policy, error)
        if (error%failed()) return
        call c_f_pointer(self%memory%address, all, [n])
    end subroutine provide

    !> n numbers, extended to whole cache lines.
    pure integer(i8) function whole_lines(n)
        integer(i8), intent(in) :: n

        whole_lines = (n + 7)/8*8
    end function whole_lines

    !> The grid and the constants for rows.c.
    subroutine set_grid(self, dye, temperature, error)
        class(helmholtz_t), intent(inout) :: self
        real(r8), intent(in) :: dye(:), temperature(:)
        type(error_t), intent(inout) :: error
        real(r8), parameter :: rounding = 1.0e-12_r8

        if (.not. (even(dye) .and. even(temperature))) then
            call refuse(self%path, 'its points are not evenly spaced in the logarithm', error)
            return
        end if
        self%least_density = dye(1)
        self%most_density = dye(size(dye))
        self%least_temperature = temperature(1)
        self%most_temperature = temperature(size(temperature))
        associate (table => self%table)
            table%densities = size(dye)
            table%temperatures = size(temperature)
            table%first_u = log(dye(1))
            table%last_u = log(dye(size(dye)))
            table%step_u = (table%last_u - table%first_u)/(size(dye) - 1)
            table%first_v = log(temperature(1))
            table%last_v = log(temperature(size(temperature)))
            table%step_v = (table%last_v - table%first_v)/(size(temperature) - 1)
            table%lowest = dye(1)*(1.0_r8 - rounding)
            table%highest = dye(size(dye))*(1.0_r8 + rounding)
            table%coldest = temperature(1)*(1.0_r8 - rounding)
            table%hottest = temperature(size(temperature))*(1.0_r8 + rounding)
            table%gas_constant = gas_constant
            table%avogadro = avogadro
            table%radiation = radiation_constant
            table%speed_of_light = speed_of_light
            table%rest_temperature = electron_rest_energy/boltzmann
            ! The ion's mass is abar/N_A.
            table%ln_sackur_tetrode = 1.5_r8*log(2.0_r8*pi*boltzmann/(avogadro*planck*planck)) - log(avogadro)
            table%ln_coupling = log(elementary_charge**2/boltzmann) + log(4.0_r8*pi/3.0_r8*avogadro)/3.0_r8
            table%coulomb = merge(1_c_int32_t, 0_c_int32_t, self%coulomb)
            table%distance = int(self%prefetch_distance, c_int32_t)
        end associate

    contains

        pure logical function even(points)
            real(r8), intent(in) :: points(:)
            real(r8) :: first, step
            integer :: i, n

            n = size(points)
            even = all(points > 0.0_r8) .and. all(ieee_is_finite(points))
            if (.not. even) return
            first = log(points(1))
            step = (log(points(n)) - first)/(n - 1)
            even = step > 0.0_r8 .and. all([(abs(log(points(i)) - first - (i - 1)*step) < 1.0e-9_r8*step, i=1, n)])
        end function even

    end subroutine set_grid

    !> Complete the rows 1..n of `state`(stride, n_columns) from c_dens, c_abar, c_zbar and the quantity given by `mode`;
    !> c_temp is the first guess of all modes except given_temperature (zero or less: none). Given quantities stay
    !> unchanged. With `few`, only c_temp, c_eint, c_pres, c_entr, c_gam1 and c_cs are completed. A row's result does not
    !> depend on the others. exit_check, naming the row and its values, if the state does not exist: the other quantities
    !> are then undefined.
    subroutine rows(self, mode, n, state, error, few)
        class(helmholtz_t), intent(in) :: self
        integer, intent(in) :: mode, n
        real(r8), intent(inout), contiguous :: state(:, :)
        type(error_t), intent(inout) :: error
        logical, intent(in), optional :: few
        integer(c_int32_t) :: only_few, wrong
        integer(c_int64_t) :: zone

        only_few = 0
        if (present(few)) only_few = merge(1_c_int32_t, 0_c_int32_t, few)
        if (c_associated(self%table%arrays)) then
            wrong = c_rows_arrays(self%table, int(mode, c_int32_t), only_few, int(n, c_int64_t), size(state, 1, c_int64_t), state, &
                                  zone)
        else
            wrong = c_rows(self%table, int(mode, c_int32_t), only_few, int(n, c_int64_t), size(state, 1, c_int64_t), state, zone)
        end if
        if (wrong /= 0) call name_zone(self, mode, int(zone) + 1, state(int(zone) + 1, :), wrong, error)
    end subroutine rows

    !> Raise the error for a zone.
    subroutine name_zone(self, mode, zone, values, wrong, error)
        class(helmholtz_t), intent(in) :: self
        integer, intent(in) :: mode, zone
        real(r8), intent(in) :: values(:)
        integer(c_int32_t), intent(in) :: wrong
        type(error_t), intent(inout) :: error
        character(:), allocatable :: why, given

        select case (mode)
        case (given_temperature)
            given = 'temperature '//shown(values(c_temp))//' K'
        case (given_energy)
            given = 'specific internal energy '//shown(values(c_eint))//' erg/g'
        case (given_pressure)
            given = 'pressure '//shown(values(c_pres))//' erg/cm^3'
        case default
            given = 'specific entropy '//shown(values(c_entr))//' erg/(g K)'
        end select
        select case (wrong)
        case (bad_composition)
            why = 'mean mass number and mean charge must be above zero'
        case (bad_density)
            why = 'the density must be above zero'
        case (density_off)
            why = 'rho*Ye is outside of the table: '//shown(self%least_density)//' to '//shown(self%most_density)//' g/cm^3'
        case (temperature_off)
            why = 'the temperature is outside of the table: '//shown(self%least_temperature)//' to '// &
                  shown(self%most_temperature)//' K'
        case (too_low)
            why = 'it is below its value at the lowest temperature of the table, '//shown(self%least_temperature)//' K'
        case (too_high)
            why = 'it is above its value at the highest temperature of the table, '//shown(self%most_temperature)//' K'
        case (bad_given)
            why = 'the given quantity is not finite'
        case default
            why = 'the search for the temperature did not converge'
        end select
        call error%raise(exit_check, 'no state of matter in zone '//to_text(zone)//' of a row: density '//shown(values(c_dens))// &
                         ' g/cm^3, abar '//shown(values(c_abar))//', zbar '//shown(values(c_zbar))//', '//given//': '//why, &
                         'helmholtz', 'check the computation of the zone''s state; pw-eos-table computes tables of other ranges')
    end subroutine name_zone

    pure function shown(value) result(text)
        real(r8), intent(in) :: value
        character(:), allocatable :: text

        text = to_text(value, 'es12.5')
    end function shown

    !> Release the table's memory. Exit code 4 if the system refuses.
    subroutine free(self, error)
        class(helmholtz_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        call pages_free(self%memory, error)
    end subroutine free

end module helmholtz
