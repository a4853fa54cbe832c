!> A measurement of the equation of state, from its parameters to its record.
module helmholtz_driver
    use, intrinsic :: iso_c_binding, only: c_f_pointer
    use, intrinsic :: iso_fortran_env, only: output_unit
    use helmholtz, only: helmholtz_t, table_arrays
    use helmholtz_columns, only: c_abar, c_cs, c_dens, c_eint, c_entr, c_pres, c_temp, c_zbar, given_energy, given_pressure, &
        given_temperature, n_columns
    use helmholtz_parameters, only: parameters_t
    use helmholtz_points, only: point, scatter
    use helmholtz_reference, only: reference_t
    use pw_deviation, only: worse, worst_of
    use pw_error, only: error_t, exit_check
    use pw_evidence, only: median, outcome, first_touch_all, first_touch_t, put_regions
    use pw_kinds, only: i8, r8
    use pw_options, only: options_t
    use pw_pages, only: paged_array_t, pages_allocate, pages_begin, pages_observe, pages_verify, pages_require
    use pw_record, only: configuration_t, metric_t, placement_t, record_t
    use pw_record_json, only: record_to_json
    use pw_region, only: region_t, regions_open
    use pw_system, only: append_line, page_faults, utc_now
    use pw_text, only: bytes_to_text, to_text
    use pw_threads, only: placement_begin, placement_update, thread_share, threads_begin
    implicit none
    private

    !> A measurement.
    type, public :: run_t
        type(parameters_t) :: parameters
        type(helmholtz_t), private :: eos
        type(paged_array_t), private :: memory
        type(first_touch_t), private :: first_touched
        type(region_t), private :: region
        !> (zone of a row, column, row)
        real(r8), pointer, contiguous, private :: state(:, :, :) => null()
        type(placement_t), private :: placement
        integer(i8), private :: minor = 0, major = 0, zones = 0, n_rows = 0
        real(r8), allocatable, private :: seconds(:)
    contains
        procedure :: begin
        procedure :: measure
        procedure :: finish
        procedure, private :: initialise, start_again, evaluate, validate, print_summary
    end type run_t

contains

    !> Threads, table and zones on the requested pages, and the given states. Exit codes: 1 a state outside of the
    !> table; 2 an invalid table; 3 pages; 4 the system.
    subroutine begin(self, error)
        class(run_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        integer(i8) :: bytes

        associate (given => self%parameters)
            call threads_begin(given%threads, error)
            if (.not. error%failed()) call pages_begin(given%policy, error)
            if (error%failed()) return
            self%eos%coulomb = given%coulomb
            self%eos%layout = given%layout
            if (given%distance > 0) self%eos%prefetch_distance = given%distance
            call self%eos%load(given%table, given%policy, error)
            if (error%failed()) return
            ! Whole rows.
            self%n_rows = (given%zones + given%row - 1)/given%row
            self%zones = self%n_rows*given%row
            bytes = 8*n_columns*self%zones
            call pages_require(given%policy, [bytes], error)
            if (.not. error%failed()) call pages_allocate(self%memory, given%policy, 'zones', bytes, 0_i8, error)
            if (error%failed()) return
            call first_touch_all([self%memory], .true., .false., self%first_touched)
            call pages_verify([self%memory], given%policy, error)
            if (error%failed()) return
            call c_f_pointer(self%memory%address, self%state, [int(given%row, i8), int(n_columns, i8), self%n_rows])
            call self%initialise(error)
        end associate
    end subroutine begin

    !> Density and composition of all zones, and the other given quantity.
    subroutine initialise(self, error)
        class(run_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        integer(i8) :: first, last, row
        integer :: i
        real(r8) :: range(4)

        range = [self%eos%least_density, self%eos%most_density, self%eos%least_temperature, self%eos%most_temperature]
        !$omp parallel private(first, last, row, i)
        call thread_share(self%n_rows, 1_i8, first, last)
        do row = first, last
            self%state(:, :, row) = 0.0_r8
            do i = 1, self%parameters%row
                call point(self%parameters%points, (row - 1)*self%parameters%row + i - 1, range, self%state(i, c_dens, row), &
                           self%state(i, c_temp, row), self%state(i, c_abar, row), self%state(i, c_zbar, row))
            end do
        end do
        if (self%parameters%mode /= given_temperature) call evaluate_share(self, given_temperature, .true., error)
        !$omp end parallel
    end subroutine initialise

    !> Set the first guesses of the temperatures, which an evaluation overwrites.
    subroutine start_again(self)
        class(run_t), intent(inout) :: self
        integer(i8) :: first, last, row, zone
        integer :: i
        real(r8), parameter :: near = 0.01_r8
        real(r8) :: range(4), dens, temp, abar, zbar

        if (self%parameters%mode == given_temperature) return
        range = [self%eos%least_density, self%eos%most_density, self%eos%least_temperature, self%eos%most_temperature]
        !$omp parallel private(first, last, row, i, zone, dens, temp, abar, zbar)
        call thread_share(self%n_rows, 1_i8, first, last)
        do row = first, last
            do i = 1, self%parameters%row
                zone = (row - 1)*self%parameters%row + i - 1
                call point(self%parameters%points, zone, range, dens, temp, abar, zbar)
                self%state(i, c_temp, row) = 0.0_r8
                if (self%parameters%guess) &
                    self%state(i, c_temp, row) = temp*(1.0_r8 + near*(2.0_r8*scatter(zone + 77777_i8) - 1.0_r8))
            end do
        end do
        !$omp end parallel
    end subroutine start_again

    !> The timed work: all rows, each thread its share.
    subroutine evaluate(self, error)
        class(run_t), intent(inout) :: self
        type(error_t), intent(inout) :: error

        !$omp parallel
        call evaluate_share(self, self%parameters%mode, self%parameters%few, error)
        !$omp end parallel
    end subroutine evaluate

    !> The calling thread's share of the rows; call it from all threads of a parallel region.
    subroutine evaluate_share(self, mode, few, error)
        class(run_t), intent(inout) :: self
        integer, intent(in) :: mode
        logical, intent(in) :: few
        type(error_t), intent(inout) :: error
        type(error_t) :: mine
        integer(i8) :: first, last, row

        call thread_share(self%n_rows, 1_i8, first, last)
        do row = first, last
            call self%eos%rows(mode, self%parameters%row, self%state(:, :, row), mine, few=few)
            if (mine%failed()) exit
        end do
        if (.not. mine%failed()) return
        !$omp critical (helmholtz_failure)
        error = mine
        !$omp end critical (helmholtz_failure)
    end subroutine evaluate_share

    !> The timed repetitions, after an untimed one. Errors: those of the equation of state.
    subroutine measure(self, error)
        class(run_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        integer(i8) :: minor, major, minor_after, major_after
        integer :: i

        call regions_open()
        self%region%name = 'eos'
        call self%start_again()
        call self%evaluate(error)
        allocate (self%seconds(self%parameters%repetitions), source=0.0_r8)
        call placement_begin(self%placement)
        do i = 1, size(self%seconds)
            if (error%failed()) exit
            call self%start_again()
            call page_faults(minor, major)
            call self%region%begin()
            call self%evaluate(error)
            call self%region%end(self%seconds(i))
            call placement_update(self%placement)
            call page_faults(minor_after, major_after)
            self%minor = self%minor + minor_after - minor
            self%major = self%major + major_after - major
        end do
    end subroutine measure

    !> Validate the result, observe the pages, and write record and summary. Exit code 1 if validation fails.
    subroutine finish(self, options, configuration, error)
        class(run_t), intent(inout) :: self
        type(options_t), intent(in) :: options
        type(configuration_t), intent(in) :: configuration
        type(error_t), intent(inout) :: error
        type(record_t) :: record
        type(paged_array_t) :: memory(2)

        memory = [self%memory, self%eos%memory]
        record%kernel = 'helmholtz'
        record%started = utc_now()
        record%configuration = configuration
        record%elements = self%zones
        record%element_bytes = 8*n_columns
        record%arrays = size(memory)
        record%working_set = sum(memory%bytes)
        record%seconds = self%seconds
        record%first_touch_seconds = self%first_touched%seconds + self%eos%first_touched%seconds
        record%first_touch_minor = self%first_touched%minor + self%eos%first_touched%minor
        record%first_touch_major = self%first_touched%major + self%eos%first_touched%major
        record%compute_minor = self%minor
        record%compute_major = self%major
        record%placement = self%placement
        call put_regions(record, 'eos', error)
        if (error%failed()) return
        call count_traffic(self%parameters, record)
        record%metrics = [metric_t('evaluations_per_s', self%zones/median(self%seconds)), &
                          metric_t('nanoseconds_per_evaluation', 1.0e9_r8*median(self%seconds)/self%zones)]
        call pages_observe(memory, self%parameters%policy, record%pages, error)
        if (error%failed()) return
        call self%validate(record, error)
        if (error%failed()) return
        if (len(self%parameters%record) > 0) call append_line(self%parameters%record, record_to_json(record, options), error)
        if (error%failed()) return
        call self%print_summary(record)
        if (.not. record%validation%passed) &
            call error%raise(exit_check, 'the result failed its check: '//record%validation%method, 'helmholtz_driver', &
                             'do not use this configuration; try another compiler version')
    end subroutine finish

    !> The bytes of the state that are read and written, and of the table if each zone loads its own cell once: 4 nodes of 9
    !> numbers, the cold part's 6, 16 of the positrons; from separate arrays also 16 of dp/dx and 16 of eta. With
    !> write-allocate, written lines are read first.
    subroutine count_traffic(given, record)
        type(parameters_t), intent(in) :: given
        type(record_t), intent(inout) :: record
        real(r8) :: written, read

        read = merge(4, 5, given%mode == given_temperature)
        written = merge(c_cs, n_columns, given%few) - read + merge(0, 1, given%mode == given_temperature)
        read = read + 36 + 6 + merge(0, 16, given%few)
        if (given%layout == table_arrays) read = read + 16 + merge(0, 16, given%few)
        record%traffic%bytes_stream = 8.0_r8*record%elements*(read + written)
        record%traffic%bytes_hardware = 8.0_r8*record%elements*(read + 2.0_r8*written)
    end subroutine count_traffic

    !> A sample of the zones against the reference; if the temperature was searched for, all of them against the temperature
    !> from which they were computed. Its relative error may be that of the given quantity, epsilon, times the condition
    !> number of the problem, kappa = |q/(T dq/dT)|.
    subroutine validate(self, record, error)
        class(run_t), intent(inout) :: self
        type(record_t), intent(inout) :: record
        type(error_t), intent(inout) :: error
        type(reference_t) :: reference
        integer(i8), parameter :: sample = 2000_i8
        real(r8), parameter :: tolerance = 1.0e-10_r8, rounding = 200.0_r8*epsilon(1.0_r8)
        real(r8) :: range(4), dens, temp, abar, zbar, pres, eint, entr, given, slope, high_given, worst, deviation, scale(3)
        integer(i8) :: zone, row
        integer :: i
        logical :: sampled

        record%validation%method = 'a sample of p, e, s by a second method from the file, and every temperature that was '// &
            'searched for, largest relative difference beyond rounding'
        record%validation%tolerance = tolerance
        call reference%load(self%parameters%table, error)
        if (error%failed()) return
        reference%coulomb = self%parameters%coulomb
        range = [self%eos%least_density, self%eos%most_density, self%eos%least_temperature, self%eos%most_temperature]
        worst = 0.0_r8
        !$omp parallel do schedule(static) reduction(max: worst) &
        !$omp private(zone, i, sampled, dens, temp, abar, zbar, pres, eint, entr, given, slope, high_given, deviation, scale)
        do row = 1, self%n_rows
            do i = 1, self%parameters%row
                zone = (row - 1)*self%parameters%row + i - 1
                associate (at => self%state(i, :, row))
                    sampled = modulo(zone, max(1_i8, self%zones/sample)) == 0
                    ! A number adds nothing, anything else the largest error.
                    worst = worse(worst, worst_of(-abs(at)))
                    if (self%parameters%mode == given_temperature .and. .not. sampled) cycle
                    call point(self%parameters%points, zone, range, dens, temp, abar, zbar)
                    deviation = abs(at(c_temp)/temp - 1.0_r8)
                    if (deviation > tolerance) then
                        ! dq/dT by a difference, so that it is also known with `few`.
                        call reference%state(dens, 1.0001_r8*temp, abar, zbar, pres, eint, entr)
                        high_given = pick(self%parameters%mode, pres, eint, entr)
                        call reference%state(dens, temp/1.0001_r8, abar, zbar, pres, eint, entr)
                        slope = abs(high_given - pick(self%parameters%mode, pres, eint, entr))/2.0e-4_r8
                        given = abs(at(merge(c_eint, merge(c_pres, c_entr, self%parameters%mode == given_pressure), &
                                             self%parameters%mode == given_energy)))
                        deviation = deviation - rounding*given/slope
                    end if
                    worst = worse(worst, deviation)
                    if (.not. sampled) cycle
                    call reference%state(at(c_dens), at(c_temp), at(c_abar), at(c_zbar), pres, eint, entr, scale)
                    worst = worse(worst, worst_of(abs([at(c_pres) - pres, at(c_eint) - eint, at(c_entr) - entr])/scale))
                end associate
            end do
        end do
        !$omp end parallel do
        record%validation%error = worst
        record%validation%passed = worst <= tolerance
    end subroutine validate

    pure real(r8) function pick(mode, pres, eint, entr)
        integer, intent(in) :: mode
        real(r8), intent(in) :: pres, eint, entr

        select case (mode)
        case (given_energy)
            pick = eint
        case (given_pressure)
            pick = pres
        case default
            pick = entr
        end select
    end function pick

    !> Print the measurement.
    subroutine print_summary(self, record)
        class(run_t), intent(in) :: self
        type(record_t), intent(in) :: record
        integer :: i

        associate (c => record%configuration, p => self%parameters)
            write (output_unit, '(a)') 'helmholtz  '//c%compiler//'  prefetch '//c%prefetch, &
                '  states        '//to_text(self%zones)//' of points '//p%points_name//', mode '//p%mode_name//', in rows of '// &
                to_text(p%row)//'; '//to_text(p%threads)//' thread(s)', &
                '  pages         '//record%pages%policy//': '//bytes_to_text(record%pages%page_size_observed)// &
                ' observed, '//to_text(100.0_r8*record%pages%huge_coverage, 'f0.1')//' % huge; first touch '// &
                to_text(1.0e3_r8*record%first_touch_seconds, 'f0.2')//' ms', &
                '  time          '//to_text(1.0e3_r8*median(record%seconds), 'f0.3')//' ms median of '// &
                to_text(size(record%seconds))//' (from '//to_text(1.0e3_r8*minval(record%seconds), 'f0.3')//' to '// &
                to_text(1.0e3_r8*maxval(record%seconds), 'f0.3')//')'
        end associate
        do i = 1, size(record%metrics)
            write (output_unit, '(a)') '  '//record%metrics(i)%field//'  '//to_text(record%metrics(i)%value, 'g0.6')
        end do
        write (output_unit, '(a)') '  check         '//outcome(record%validation)//': '//record%validation%method
    end subroutine print_summary

end module helmholtz_driver
