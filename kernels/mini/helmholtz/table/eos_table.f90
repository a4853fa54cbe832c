!> The table of the free energy of electrons and positrons: computed point by point, written to a file
!> (docs/reference/helmholtz.md).
module eos_table
    use eos_table_pair_plasma, only: cold_electrons, n_functions, n_positron_values, n_pressure_eta, plasma_t
    use helmholtz_constants, only: avogadro, boltzmann, constants_source, electron_mass, planck, speed_of_light
    use pw_error, only: error_t, exit_system
    use pw_hdf5, only: file_t, kind_double, whole_file
    use pw_kinds, only: i8, r8
    use pw_text, only: to_text
    implicit none
    private

    character(*), parameter, public :: table_schema = 'pagewise.eos-table/1'
    real(r8), parameter, public :: table_accuracy = 1.0e-10_r8   !< relative, of each number in it
    !> Decimal logarithms of the limits: of x = rho Ye [g/cm^3] and of the temperature [K].
    integer, parameter, public :: dye_decades(2) = [-12, 15], temperature_decades(2) = [3, 13]
    character(*), parameter :: functions = 'f, f_x, f_T, f_xx, f_TT, f_xT, f_xxT, f_xTT, f_xxTT'

    ! Of pressure_eta: the value, d/dx, d/dT, d2/dxdT.
    integer, parameter :: dpdx_values(4) = [1, 2, 3, 4], eta_values(4) = [5, 6, 7, 8]

    !> Provenance of the numbers, for the file's attributes.
    type, public :: provenance_t
        character(:), allocatable :: program, version, compiler, date, command_line
    end type provenance_t

    type, public :: eos_table_t
        integer :: n_dye = 0, n_temperature = 0
        real(r8), allocatable :: dye(:)             !< x = rho Ye [g/cm^3]
        real(r8), allocatable :: temperature(:)     !< [K]
        real(r8), allocatable :: cold(:, :)         !< (dye, 3): f [erg/g], f_x, f_xx at zero temperature
        real(r8), allocatable :: thermal(:, :, :)   !< (9, temperature, dye): f minus the cold one, and its derivatives
        real(r8), allocatable :: positrons(:, :, :) !< (4, temperature, dye): ln n_pos [1/cm^3], d/dx, d/dT, d2/dxdT
        real(r8), allocatable :: pressure_eta(:, :, :) !< (8, temperature, dye): dp/dx and eta, each with d/dx, d/dT, d2/dxdT
    contains
        procedure :: start
        procedure :: make
        procedure :: write => write_file
    end type eos_table_t

contains

    !> Allocate memory for a table with these numbers of densities and temperatures, at least 2 of each. exit_system: out of
    !> memory.
    subroutine start(self, n_dye, n_temperature, error)
        class(eos_table_t), intent(inout) :: self
        integer, intent(in) :: n_dye, n_temperature
        type(error_t), intent(inout) :: error
        integer :: status

        self%n_dye = n_dye
        self%n_temperature = n_temperature
        status = 1
        ! pw_hdf5 counts the rows and the values of a row in 4 bytes.
        if (int(n_dye, i8)*n_temperature <= huge(1)/real(n_pressure_eta, r8)) &
            allocate (self%dye(n_dye), self%temperature(n_temperature), self%cold(n_dye, 3), &
                      self%thermal(n_functions, n_temperature, n_dye), &
                      self%positrons(n_positron_values, n_temperature, n_dye), &
                      self%pressure_eta(n_pressure_eta, n_temperature, n_dye), stat=status)
        if (status /= 0) then
            call error%raise(exit_system, 'no memory for '//to_text(n_dye)//' densities and '//to_text(n_temperature)// &
                             ' temperatures', 'eos_table', 'choose fewer (--densities, --temperatures)')
            return
        end if
        self%dye = points(dye_decades, n_dye)
        self%temperature = points(temperature_decades, n_temperature)
    end subroutine start

    !> Powers of ten at equal distances in the exponent. The points of a coarse table equal those of a finer one to the last
    !> bit.
    function points(decades, n) result(x)
        integer, intent(in) :: decades(2), n
        real(r8) :: x(n)
        integer(i8) :: above, span
        integer :: i

        span = n - 1
        do i = 1, n
            above = int(decades(2) - decades(1), i8)*(i - 1)
            x(i) = 10.0_r8**(real(modulo(above, span), r8)/span)*10.0_r8**int(decades(1) + above/span)
        end do
    end function points

    !> Compute all points, by all threads. exit_check: a point has no solution.
    subroutine make(self, error)
        class(eos_table_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        type(plasma_t), allocatable :: plasma(:)
        integer :: i, j

        allocate (plasma(self%n_temperature))
        !$omp parallel
        !$omp do schedule(dynamic)
        do j = 1, self%n_temperature
            call plasma(j)%start(self%temperature(j))
        end do
        !$omp end do
        !$omp do schedule(dynamic)
        do i = 1, self%n_dye
            call make_density(self, plasma, i, error)
        end do
        !$omp end do
        !$omp end parallel
    end subroutine make

    !> Compute the points of one density.
    subroutine make_density(table, plasma, i, error)
        class(eos_table_t), intent(inout) :: table
        type(plasma_t), intent(in) :: plasma(:)
        integer, intent(in) :: i
        type(error_t), intent(inout) :: error
        type(error_t) :: own
        integer :: j

        table%cold(i, :) = cold_electrons(table%dye(i))
        do j = 1, size(plasma)
            call plasma(j)%point(table%dye(i), table%thermal(:, j, i), table%positrons(:, j, i), own, &
                                 pressure_eta=table%pressure_eta(:, j, i))
            if (own%failed()) exit
        end do
        !$omp critical (eos_table_done)
        if (own%failed()) error = own
        !$omp end critical (eos_table_done)
    end subroutine make_density

    !> Write all to the file `path`, which gets its name when it is complete. After an error it is removed.
    subroutine write_file(self, path, provenance, error)
        class(eos_table_t), intent(in) :: self
        character(*), intent(in) :: path
        type(provenance_t), intent(in) :: provenance
        type(error_t), intent(inout) :: error
        type(file_t) :: file

        call file%create(path, error)
        call file%define('dye', kind_double, shape(self%dye), error)
        call file%define('temperature', kind_double, shape(self%temperature), error)
        call file%define('cold', kind_double, shape(self%cold), error)
        call file%define('thermal', kind_double, shape(self%thermal), error)
        call file%define('positrons', kind_double, shape(self%positrons), error)
        call file%define('dpdx', kind_double, shape(self%pressure_eta(dpdx_values, :, :)), error)
        call file%define('eta', kind_double, shape(self%pressure_eta(eta_values, :, :)), error)
        call file%reserve(error)

        call dataset('dye', size(self%dye), 1, self%dye, 'g/cm^3', 'density times electrons per nucleon, x = rho Ye')
        call dataset('temperature', size(self%temperature), 1, self%temperature, 'K', 'temperature')
        call dataset('cold', 3, self%n_dye, self%cold, 'erg/g, and that per g/cm^3 and per its square', &
                     'free energy of electrons at zero temperature divided by x: f, f_x, f_xx')
        call dataset('thermal', self%n_dye, size(self%thermal(:, :, 1)), self%thermal, 'erg/g, and that per g/cm^3 and K', &
                     'free energy of electrons and positrons divided by x, minus the cold part: '//functions)
        call dataset('positrons', self%n_dye, size(self%positrons(:, :, 1)), self%positrons, &
                     '1 (logarithm of 1/cm^3), and that per g/cm^3 and K', &
                     'natural logarithm of the number density of positrons: ln n, d/dx, d/dT, d2/dxdT')
        call dataset('dpdx', self%n_dye, size(self%pressure_eta(dpdx_values, :, 1)), self%pressure_eta(dpdx_values, :, :), &
                     'erg/g, and that per g/cm^3 and K', &
                     'derivative of the pressure of electrons and positrons with respect to x: dp/dx, d/dx, d/dT, d2/dxdT')
        call dataset('eta', self%n_dye, size(self%pressure_eta(eta_values, :, 1)), self%pressure_eta(eta_values, :, :), &
                     '1, and that per g/cm^3 and K', &
                     'chemical potential of the electrons without rest mass, divided by kT: eta, d/dx, d/dT, d2/dxdT')
        call file%put('thermal', 'functions', functions, error)

        call file%put(whole_file, 'schema', table_schema, error)
        call file%put(whole_file, 'accuracy', table_accuracy, error)
        call file%put(whole_file, 'dye_limits', [self%dye(1), self%dye(self%n_dye)], error)
        call file%put(whole_file, 'temperature_limits', [self%temperature(1), self%temperature(self%n_temperature)], error)
        call file%put(whole_file, 'constants', constants_source, error)
        call file%put(whole_file, 'constants_units', 'cgs and K', error)
        call file%put(whole_file, 'speed_of_light', speed_of_light, error)
        call file%put(whole_file, 'planck', planck, error)
        call file%put(whole_file, 'boltzmann', boltzmann, error)
        call file%put(whole_file, 'avogadro', avogadro, error)
        call file%put(whole_file, 'electron_mass', electron_mass, error)
        call file%put(whole_file, 'program', provenance%program, error)
        call file%put(whole_file, 'version', provenance%version, error)
        call file%put(whole_file, 'compiler', provenance%compiler, error)
        call file%put(whole_file, 'date', provenance%date, error)
        call file%put(whole_file, 'command_line', provenance%command_line, error)
        call file%commit(error)

    contains

        subroutine dataset(name, n, row_values, values, units, long_name)
            character(*), intent(in) :: name, units, long_name
            integer, intent(in) :: n, row_values
            real(r8), intent(in) :: values(*)

            call file%write_reals(name, 1, n, row_values, values, error)
            call file%put(name, 'units', units, error)
            call file%put(name, 'long_name', long_name, error)
        end subroutine dataset

    end subroutine write_file

end module eos_table
