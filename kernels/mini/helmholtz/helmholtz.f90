!> The Helmholtz equation of state: a fully ionised plasma of electrons, positrons, ions and radiation, over rows of zones.
!>
!> Timmes & Arnett, ApJS 125, 277 (1999) and Timmes & Swesty, ApJS 126, 501 (2000). Electrons and positrons, of any degeneracy
!> and relativity, come from a table of their Helmholtz free energy in (rho Ye, T) by biquintic Hermite interpolation; ions are
!> an ideal gas with the entropy of Sackur and Tetrode; radiation is that of a black body; Coulomb corrections are those of
!> Yakovlev & Shalybkov (1989). docs/helmholtz.md describes method, accuracy and speed; the timed code is rows.c.
!>
!> Units are cgs and K. Order of calls: `load`, `rows` by any number of threads, `free`.
module helmholtz
    use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
    use, intrinsic :: iso_c_binding, only: c_double, c_f_pointer, c_int32_t, c_int64_t, c_loc, c_ptr
    use helmholtz_columns, only: c_abar, c_dens, c_eint, c_entr, c_pres, c_temp, c_zbar, given_energy, given_pressure, &
        given_temperature
    use helmholtz_constants, only: avogadro, boltzmann, electron_rest_energy, elementary_charge, gas_constant, pi, planck, &
        radiation_constant, speed_of_light
    use pw_error, only: error_t, exit_check, exit_usage
    use pw_evidence, only: populate, populated_t
    use pw_hdf5, only: file_t, whole_file
    use pw_kinds, only: i8, r8
    use pw_pages, only: paged_array_t, pages_allocate, pages_free, pages_policy_t, pages_verify
    use pw_text, only: to_text
    implicit none
    private

    character(*), parameter :: schema = 'pagewise.eos-table/1'
    integer, parameter :: node_values = 9, cold_values = 3, positron_values = 4

    ! The table as declared in rows.h.
    type, bind(c) :: table_t
        type(c_ptr) :: thermal, cold, positrons
        integer(c_int64_t) :: densities = 0, temperatures = 0
        real(c_double) :: first_u = 0, step_u = 0, first_v = 0, step_v = 0, last_u = 0, last_v = 0
        real(c_double) :: lowest = 0, highest = 0, coldest = 0, hottest = 0
        real(c_double) :: gas_constant = 0, avogadro = 0, radiation = 0, speed_of_light = 0, rest_temperature = 0
        real(c_double) :: ln_sackur_tetrode = 0, ln_coupling = 0
        integer(c_int32_t) :: coulomb = 1, distance = 0
    end type table_t

    ! A table as its file has it, docs/helmholtz-table.md.
    type :: stored_t
        real(r8), allocatable :: dye(:), temperature(:), cold(:, :), thermal(:, :, :), positrons(:, :, :)
    end type stored_t

    ! Faults of a zone, as in rows.h.
    integer(c_int32_t), parameter :: bad_composition = 1, bad_density = 2, density_off = 3, temperature_off = 4, too_low = 5, &
        too_high = 6, not_found = 7, bad_given = 8

    !> The equation of state; read-only after `load`.
    type, public :: helmholtz_t
        character(:), allocatable :: path       !< of the table's file
        logical :: coulomb = .true.             !< with Coulomb corrections; may be set before `load`
        integer :: prefetch_distance = 32       !< builds with prefetch=software: distance in zones, up to 64; may be set before
        type(paged_array_t) :: memory           !< the table
        type(populated_t) :: populated          !< the cost of its first touch
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
    end interface

contains

    !> Load the table in the file `path` (docs/helmholtz-table.md) into memory on the pages of `policy`, for which `pages_begin`
    !> was called, first touched by the caller's threads. Exit codes: 2 the file is not a table; 3 the pages are
    !> unavailable; 4 the file is damaged, or the system refuses file or memory.
    subroutine load(self, path, policy, error)
        class(helmholtz_t), intent(inout) :: self
        character(*), intent(in) :: path
        type(pages_policy_t), intent(in) :: policy
        type(error_t), intent(inout) :: error
        type(file_t) :: file
        type(stored_t) :: data
        real(r8), pointer, contiguous :: all(:), to(:, :, :), to_cold(:, :), to_positrons(:, :, :)
        integer :: nx, nt, i, bad
        integer(i8) :: thermal_size, cold_size

        self%path = path
        call self%free(error)
        call file%open(path, error)
        if (error%failed()) return
        call read_table(file, path, data, error)
        call file%close()
        if (error%failed()) return
        nx = size(data%dye)
        nt = size(data%temperature)
        call set_grid(self, data%dye, data%temperature, error)
        if (error%failed()) return

        thermal_size = int(node_values, i8)*nt*nx
        cold_size = (cold_values*nx + 7)/8*8      ! whole cache lines
        call pages_allocate(self%memory, policy, 'eos table', 8*(thermal_size + cold_size + int(positron_values, i8)*nt*nx), &
                            0_i8, error)
        if (error%failed()) return
        call populate([self%memory], .true., self%populated)
        call pages_verify([self%memory], policy, error)
        if (error%failed()) return
        call c_f_pointer(self%memory%address, all, [self%memory%bytes/8])
        to(1:node_values, 1:nt, 1:nx) => all(:thermal_size)
        to_cold(1:cold_values, 1:nx) => all(thermal_size + 1:thermal_size + cold_values*nx)
        to_positrons(1:positron_values, 1:nt, 1:nx) => all(thermal_size + cold_size + 1:)
        bad = 0
        associate (table => self%table)
            !$omp parallel do schedule(static) reduction(+: bad)
            do i = 1, nx
                call to_steps(data, i, [table%step_u, table%step_v], to_cold(:, i), to(:, :, i), to_positrons(:, :, i), bad)
            end do
            !$omp end parallel do
            table%thermal = c_loc(all(1))
            table%cold = c_loc(all(thermal_size + 1))
            table%positrons = c_loc(all(thermal_size + cold_size + 1))
        end associate
        if (bad > 0) call refuse(path, 'a free energy is not finite, or its thermal part is not below zero', error)
    end subroutine load

    !> The arrays of the file.
    subroutine read_table(file, path, data, error)
        type(file_t), intent(inout) :: file
        character(*), intent(in) :: path
        type(stored_t), intent(out) :: data
        type(error_t), intent(inout) :: error
        character(:), allocatable :: found
        integer(i8), allocatable :: shape(:)
        integer :: nx, nt

        found = ''
        if (file%has_attribute(whole_file, 'schema')) call file%get(whole_file, 'schema', found, error)
        if (error%failed()) return
        if (found /= schema) then
            call refuse(path, 'it is not '//schema, error)
            return
        end if
        call file%shape('thermal', shape, error)
        if (error%failed()) return
        if (size(shape) /= 3) then
            call refuse(path, 'its dataset thermal must have three dimensions', error)
            return
        end if
        nt = int(shape(2))
        nx = int(shape(3))
        call expect('dye', [nx])
        call expect('temperature', [nt])
        call expect('cold', [nx, cold_values])
        call expect('thermal', [node_values, nt, nx])
        call expect('positrons', [positron_values, nt, nx])
        if (error%failed()) return
        if (nx < 2 .or. nt < 2) then
            call refuse(path, 'it has no cells', error)
            return
        end if
        allocate (data%dye(nx), data%temperature(nt), data%cold(nx, cold_values), data%thermal(node_values, nt, nx), &
                  data%positrons(positron_values, nt, nx))
        call file%read_reals('dye', 1, nx, 1, data%dye, error)
        call file%read_reals('temperature', 1, nt, 1, data%temperature, error)
        call file%read_reals('cold', 1, cold_values, nx, data%cold, error)
        call file%read_reals('thermal', 1, nx, node_values*nt, data%thermal, error)
        call file%read_reals('positrons', 1, nx, positron_values*nt, data%positrons, error)

    contains

        subroutine expect(name, wanted)
            character(*), intent(in) :: name
            integer, intent(in) :: wanted(:)

            if (error%failed()) return
            call file%shape(name, shape, error)
            if (error%failed()) return
            if (size(shape) == size(wanted)) then
                if (all(shape == wanted)) return
            end if
            call refuse(path, 'its dataset '//name//' has a wrong shape', error)
        end subroutine expect

    end subroutine read_table

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

    !> Convert column i of the file, of one density x [g/cm^3] and all temperatures, to what rows.c interpolates: G =
    !> ln(-f/(R T)) of the thermal part, f of the cold part and ln(n_pos), with their derivatives with respect to u = ln(x)
    !> and v = ln(T) times the steps. `bad` counts values that are not finite, and thermal parts that are not below zero.
    pure subroutine to_steps(data, i, step, to_cold, to, to_positrons, bad)
        type(stored_t), intent(in) :: data
        integer, intent(in) :: i
        real(r8), intent(in) :: step(2)
        real(r8), intent(out) :: to_cold(:), to(:, :), to_positrons(:, :)
        integer, intent(inout) :: bad
        real(r8) :: x, step_u, step_v, t, f, u, v, uu, vv, uv, uuv, uvv, uuvv
        integer :: j

        x = data%dye(i)
        step_u = step(1)
        step_v = step(2)
        to_cold = [data%cold(i, 1), step_u*x*data%cold(i, 2), step_u**2*x*(x*data%cold(i, 3) + data%cold(i, 2))]
        if (.not. all(ieee_is_finite(to_cold))) bad = bad + 1
        do j = 1, size(data%temperature)
            t = data%temperature(j)
            ! f and its derivatives with respect to u and v, divided by f.
            f = data%thermal(1, j, i)
            u = x*data%thermal(2, j, i)/f
            v = t*data%thermal(3, j, i)/f
            uv = x*t*data%thermal(6, j, i)/f
            uu = x*x*data%thermal(4, j, i)/f + u
            vv = t*t*data%thermal(5, j, i)/f + v
            uuv = x*x*t*data%thermal(7, j, i)/f + uv
            uvv = x*t*t*data%thermal(8, j, i)/f + uv
            uuvv = x*x*t*t*data%thermal(9, j, i)/f + (uuv - uv) + uvv
            if (.not. (f < 0.0_r8 .and. ieee_is_finite(f))) then
                bad = bad + 1
                cycle
            end if
            to(1, j) = log(-f/(gas_constant*t))
            to(2, j) = step_u*u
            to(3, j) = step_u**2*(uu - u*u)
            to(4, j) = step_v*(v - 1.0_r8)
            to(5, j) = step_u*step_v*(uv - u*v)
            to(6, j) = step_u**2*step_v*(uuv - uu*v - 2.0_r8*u*(uv - u*v))
            to(7, j) = step_v**2*(vv - v*v)
            to(8, j) = step_u*step_v**2*(uvv - vv*u - 2.0_r8*v*(uv - u*v))
            to(9, j) = (step_u*step_v)**2*(uuvv - 2.0_r8*(uuv*v + uvv*u) - uu*vv - 2.0_r8*uv*uv + 2.0_r8*(uu*v*v + vv*u*u) + &
                                           8.0_r8*u*v*uv - 6.0_r8*(u*v)**2)
            to_positrons(:, j) = [data%positrons(1, j, i), step_u*x*data%positrons(2, j, i), step_v*t*data%positrons(3, j, i), &
                                  step_u*step_v*x*t*data%positrons(4, j, i)]
            if (.not. (all(ieee_is_finite(to(:, j))) .and. all(ieee_is_finite(to_positrons(:, j))))) bad = bad + 1
        end do
    end subroutine to_steps

    subroutine refuse(path, why, error)
        character(*), intent(in) :: path, why
        type(error_t), intent(inout) :: error

        call error%raise(exit_usage, "cannot use '"//path//"' as table of the equation of state: "//why, 'helmholtz', &
                         'create one with pw-eos-table, and set --eos-table')
    end subroutine refuse

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
        wrong = c_rows(self%table, int(mode, c_int32_t), only_few, int(n, c_int64_t), size(state, 1, c_int64_t), state, zone)
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
