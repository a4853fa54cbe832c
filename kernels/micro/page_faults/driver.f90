!> Cost of pages: every pass releases the previous mapping, maps the memory again, and places its pages.
!>
!> Source: the FLASH huge-page studies (2022, 2023), whose programs touch their arrays first once per run, and the A64FX
!> micro-architecture guide, large pages: placing at the first access (demand) or when mapped (prepage).
module page_faults_kernel
    use, intrinsic :: iso_c_binding, only: c_int32_t
    use page_faults_h, only: pw_place_advise, pw_place_map, pw_place_touch, pw_place_wrong
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_choice
    use pw_pages, only: paged_array_t, pages_allocate, pages_free, pages_observe
    use pw_record, only: metric_t, pages_record_t, traffic_t, validation_t
    use pw_system, only: base_page_size, page_faults
    use pw_text, only: from_c, to_text
    use pw_threads, only: thread_share
    use pw_timer, only: wall_seconds
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8
    real(r8), parameter :: tolerated_share = 0.01_r8   ! as for the coverage of arrays by huge pages

    type, extends(kernel_t), public :: page_faults_t
        private
        character(:), allocatable :: mechanism
        integer(i8) :: page = 0, faults = 0
        integer(i8) :: wanted_page = 0      !< page size that the policy requests [B]
        real(r8) :: first_touch_seconds = 0.0_r8
        type(error_t) :: error              !< of a failed pass
    contains
        procedure :: declare_options, read_options, plan, initialise, run, validate, traffic, metrics
    end type page_faults_t

contains

    subroutine declare_options(self)
        class(page_faults_t), intent(inout) :: self

        call self%options%add('mechanism', option_choice, 'touch', 'how pages are placed: by the first store, or, before that, '// &
                              'on advice (MADV_POPULATE_WRITE) or on mapping (MAP_POPULATE)', values='touch|advise|map')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(page_faults_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: pages, allocation

        call self%options%get('mechanism', self%mechanism)
        call self%options%get('pages', pages)
        call self%options%get('allocation', allocation)
        if (self%mechanism /= 'map') return
        if (index(pages, 'thp') == 1) then
            call error%raise(exit_usage, 'pages placed on mapping cannot be advised to be huge', &
                             'page_faults', 'use --mechanism advise or touch with --pages '//pages)
        else if (allocation == 'static') then
            call error%raise(exit_usage, '--mechanism map: static memory was mapped when the program started', 'page_faults', &
                             'use --mechanism advise or touch with --allocation static')
        end if
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(page_faults_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error

        self%page = base_page_size()
        wanted = arrays_of('pages', bytes/self%page, self%page)
        if (wanted%elements < 1) call error%raise(exit_usage, 'the working set is below a page', 'page_faults', &
                                                  'choose at least --working-set '//to_text(self%page))
    end subroutine plan

    subroutine initialise(self)
        class(page_faults_t), intent(inout) :: self
        type(pages_record_t) :: observed

        self%faults = 0
        self%first_touch_seconds = 0.0_r8
        self%error = error_t()
        call pages_observe(self%memory, self%memory(1)%policy, observed, self%error)
        self%wanted_page = observed%page_size_requested
    end subroutine initialise

    !> The last mapping stays, so that the harness verifies the pages of a timed mapping; faults are counted over all passes.
    subroutine run(self, passes)
        class(page_faults_t), intent(inout) :: self
        integer(i8), intent(in) :: passes
        integer(i8) :: pass, before, after, major

        call page_faults(before, major)
        do pass = 1, passes
            if (.not. self%error%failed()) call map_again(self%memory(1), self%error)
            if (.not. self%error%failed()) call place(self)
        end do
        call page_faults(after, major)
        self%faults = self%faults + after - before
    end subroutine run

    subroutine map_again(array, error)
        type(paged_array_t), intent(inout) :: array
        type(error_t), intent(inout) :: error
        type(paged_array_t) :: old

        old = array
        call pages_free(array, error)
        if (.not. error%failed()) call pages_allocate(array, old%policy, from_c(old%name), old%bytes, old%offset, error, &
                                                      static=old%allocation /= 0)
    end subroutine map_again

    !> Each thread its share, in whole pages of the policy.
    subroutine place(self)
        class(page_faults_t), intent(inout) :: self
        integer(i8) :: first, last, pool_page
        integer(c_int32_t) :: status
        real(r8) :: start

        status = 0
        start = wall_seconds()
        associate (address => self%memory(1)%address)
            if (self%mechanism == 'map') then
                pool_page = merge(self%wanted_page, 0_i8, self%wanted_page > self%page)
                status = pw_place_map(address, self%memory(1)%bytes, pool_page)
            end if
            if (status == 0) then
                !$omp parallel private(first, last) reduction(max: status)
                call thread_share(self%elements, max(1_i8, self%wanted_page/self%page), first, last)
                status = 0
                if (self%mechanism == 'advise') status = pw_place_advise(address, self%page, first - 1, last)
                call pw_place_touch(address, self%page, first - 1, last)
                !$omp end parallel
            end if
        end associate
        self%first_touch_seconds = self%first_touch_seconds + wall_seconds() - start
        if (status /= 0) call self%error%raise(1, 'the system refuses to place the pages (errno '//to_text(status)//')', &
                                               'page_faults', '')
    end subroutine place

    !> The numbers in the pages of the last mapping; and whether all passes together took as many faults as pages of
    !> the requested size: a different number means passes on other pages.
    subroutine validate(self, outcome)
        class(page_faults_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome
        real(r8) :: wanted, tolerated

        if (self%error%failed()) then
            outcome%method = self%error%message
            return
        end if
        wanted = real(self%passes*((self%memory(1)%bytes + self%wanted_page - 1)/self%wanted_page), r8)
        tolerated = tolerated_share*wanted + real(2*self%passes*self%threads, r8)
        outcome%error = real(pw_place_wrong(self%memory(1)%address, self%page, 0_i8, self%elements), r8) &
            + max(0.0_r8, abs(real(self%faults, r8) - wanted) - tolerated)
        outcome%method = 'pages without their number, and excess or missing page faults for pages of '// &
                         to_text(self%wanted_page/1024)//' KiB in every pass'
    end subroutine validate

    !> One word per page in the source; the operating system clears the whole page.
    function traffic(self, passes) result(moved)
        class(page_faults_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved

        moved%bytes_stream = real(word_bytes*self%elements*passes, r8)
        moved%bytes_hardware = real(self%page*self%elements*passes, r8)
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(page_faults_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)

        figures = [metric_t('nanoseconds_per_page', 1.0e9_r8*seconds/real(self%elements*passes, r8)), &
                   metric_t('first_touch_gb_per_s', &
                            1.0e-9_r8*real(self%page*self%elements*self%passes, r8)/self%first_touch_seconds), &
                   metric_t('page_faults_per_pass', real(self%faults, r8)/real(self%passes, r8))]
    end function metrics

end module page_faults_kernel
