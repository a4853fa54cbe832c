!> Levels, entries, ways and costs of the data TLB, inferred from latencies of chases through pages; timed is a chase through
!> one line of each base page, which is the same work under every page policy.
!>
!> Source: Saavedra and Smith, Measuring cache and TLB performance and their effect on benchmark runtimes (1995).
module tlb_kernel
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_int32_t, c_null_char, c_null_ptr, c_ptr
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, kernel_t, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_count, option_text
    use pw_record, only: metric_t, traffic_t, validation_t
    use pw_system, only: base_page_size
    use pw_text, only: bytes_to_text, from_c
    use tlb_h, only: pw_tlb_can_write, pw_tlb_chase, pw_tlb_figure, pw_tlb_join, pw_tlb_measure, pw_tlb_page, pw_tlb_print, &
        pw_tlb_write, pw_tlb_wrong
    implicit none
    private

    integer(i8), parameter :: word_bytes = 8, least_base_pages = 256, most_pages = 16384
    integer(c_int32_t), parameter :: text_length = 512

    type, extends(kernel_t), public :: tlb_t
        private
        character(:), allocatable :: geometry     !< file to write
        integer(i8) :: page = 0, seed = 0
        logical :: infers = .true.                !< not under emulation
        character(:), allocatable :: failure      !< of the inference
        type(c_ptr) :: first = c_null_ptr, at = c_null_ptr
    contains
        procedure :: declare_options, read_options, plan, initialise, run, validate, traffic, metrics
    end type tlb_t

contains

    subroutine declare_options(self)
        class(tlb_t), intent(inout) :: self

        call self%options%add('geometry', option_text, '', 'file for pagewise simulate, to write; the TLBs of huge pages are '// &
                              'added to a file from a run with base pages, and vice versa')
        call self%options%add('seed', option_count, '1', 'seed of the random orders')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(tlb_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: pages
        character(kind=c_char) :: reason(text_length), remedy(text_length)
        integer :: status

        call self%options%get('geometry', self%geometry)
        call self%options%get('seed', self%seed)
        call self%options%get('pages', pages)
        self%page = max(pw_tlb_page(pages//c_null_char), base_page_size())
        ! As for the harness: under emulation, times mean nothing.
        call get_environment_variable('PAGEWISE_PASSES', status=status)
        self%infers = status /= 0
        if (self%threads > 1) then
            call error%raise(exit_usage, 'tlb measures the TLB of one core', 'tlb', 'use --threads 1')
        else if (len(self%geometry) > 0 .and. .not. self%infers) then
            call error%raise(exit_usage, '--geometry: nothing is inferred with PAGEWISE_PASSES, as under emulation', 'tlb', &
                             'unset it')
        else if (len(self%geometry) > 0) then
            if (.not. pw_tlb_can_write(self%geometry//c_null_char, self%page, reason, remedy, text_length)) &
                call error%raise(exit_usage, '--geometry: '//from_c(reason), 'tlb', from_c(remedy))
        end if
    end subroutine read_options

    !> At most as many pages of the policy's size as chases are long.
    subroutine plan(self, bytes, wanted, error)
        class(tlb_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        integer(i8) :: least

        least = max(2*self%page, least_base_pages*base_page_size())
        if (bytes < least) call error%raise(exit_usage, 'a working set of '//bytes_to_text(bytes)//' has too few pages of '// &
                                            bytes_to_text(self%page), 'tlb', 'choose --working-set '//bytes_to_text(least)// &
                                            ' or more; four times the entries of the TLB, to find all of its levels')
        ! Base pages, so that a pass is the same work under every policy.
        wanted = arrays_of('pages', min(bytes/base_page_size(), most_pages), base_page_size(), &
                           [min(bytes/self%page, most_pages)*self%page])
    end subroutine plan

    subroutine initialise(self)
        class(tlb_t), intent(inout) :: self

        if (allocated(self%failure)) deallocate (self%failure)
        associate (array => self%memory(1))
            if (self%infers) then
                if (.not. pw_tlb_measure(array%address, array%bytes, self%page, self%seed)) self%failure = 'memory is exhausted'
                if (.not. allocated(self%failure)) call pw_tlb_print()
            end if
            self%first = pw_tlb_join(array%address, self%elements, base_page_size(), self%seed)
        end associate
        if (.not. c_associated(self%first)) self%failure = 'memory is exhausted'
        self%at = self%first
    end subroutine initialise

    subroutine run(self, passes)
        class(tlb_t), intent(inout) :: self
        integer(i8), intent(in) :: passes

        if (c_associated(self%at)) self%at = pw_tlb_chase(self%elements*passes, self%at)
    end subroutine run

    !> Each chase, also those of the inference, ends where it began: it makes whole cycles. Writes the geometry file.
    subroutine validate(self, outcome)
        class(tlb_t), intent(inout) :: self
        type(validation_t), intent(out) :: outcome

        outcome%method = 'chases that did not end at their first line after whole cycles'
        if (.not. allocated(self%failure) .and. self%infers .and. len(self%geometry) > 0) then
            if (.not. pw_tlb_write(self%geometry//c_null_char)) self%failure = &
                'no level was found for --geometry, the system reports no caches, or the file could not be written'
        end if
        if (allocated(self%failure)) then
            outcome%method = self%failure
            return
        end if
        outcome%error = real(pw_tlb_wrong(), r8)
        if (.not. c_associated(self%at, self%first)) outcome%error = outcome%error + 1.0_r8
    end subroutine validate

    !> One word per hop, as the source names it; the hardware moves its line.
    function traffic(self, passes) result(moved)
        class(tlb_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved

        moved%bytes_stream = real(word_bytes*self%elements*passes, r8)
        moved%bytes_hardware = real(line_bytes*self%elements*passes, r8)
    end function traffic

    !> The latency of the timed chase, and what was inferred.
    function metrics(self, passes, seconds) result(figures)
        class(tlb_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        character(kind=c_char) :: field(text_length)
        real(r8) :: value
        integer(c_int32_t) :: i

        figures = [metric_t('latency_ns', 1.0e9_r8*seconds/real(self%elements*passes, r8))]
        i = 0
        do while (pw_tlb_figure(i, field, text_length, value))
            figures = [figures, metric_t(from_c(field), value)]
            i = i + 1
        end do
    end function metrics

end module tlb_kernel
