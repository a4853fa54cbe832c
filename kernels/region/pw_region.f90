!> Measured regions: a named stretch of code with its time and its event counts.
!>
!> What is counted is the comma-separated list in the environment variable PAGEWISE_EVENTS (page faults
!> where it is not set), for the calling thread.
module pw_region
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_int32_t, c_int64_t, c_null_char, c_null_ptr, c_ptr
    use pw_kinds, only: i8, r8
    use pw_text, only: from_c
    use pw_timer, only: wall_seconds
    implicit none
    private

    integer, parameter :: text_length = 256
    character(*), parameter :: default_events = 'perf::PAGE-FAULTS'

    !> An open set of counters; `reason` says why nothing is counted.
    type, public :: counters_t
        private
        type(c_ptr) :: handle = c_null_ptr
        integer(c_int32_t) :: n_events = 0
        character(:), allocatable, public :: reason
    contains
        procedure :: open => open_counters
        procedure :: close => close_counters
        procedure :: counting
        procedure :: event_names
    end type counters_t

    !> Sums over all passages between `begin` and `end`.
    type, public :: region_t
        character(:), allocatable :: name
        integer(i8) :: calls = 0
        real(r8) :: seconds = 0.0_r8
        integer(i8), allocatable :: counts(:)   !< one an event
        logical :: counts_valid = .true.
        real(r8), private :: start_seconds = 0.0_r8
        integer(i8), allocatable, private :: start_counts(:)
    contains
        procedure :: begin => region_begin
        procedure :: end => region_end
    end type region_t

    interface
        type(c_ptr) function c_open(events, n_events, reason, length) bind(c, name='pw_counters_open')
            import :: c_char, c_int32_t, c_ptr
            character(kind=c_char), intent(in) :: events(*)
            integer(c_int32_t), intent(out) :: n_events
            character(kind=c_char), intent(out) :: reason(*)
            integer(c_int32_t), value :: length
        end function c_open

        integer(c_int32_t) function c_read(counters, counts) bind(c, name='pw_counters_read')
            import :: c_int32_t, c_int64_t, c_ptr
            type(c_ptr), value :: counters
            integer(c_int64_t), intent(inout) :: counts(*)
        end function c_read

        subroutine c_name(counters, i, name, length) bind(c, name='pw_counters_name')
            import :: c_char, c_int32_t, c_ptr
            type(c_ptr), value :: counters
            integer(c_int32_t), value :: i, length
            character(kind=c_char), intent(out) :: name(*)
        end subroutine c_name

        subroutine c_close(counters) bind(c, name='pw_counters_close')
            import :: c_ptr
            type(c_ptr), value :: counters
        end subroutine c_close

        subroutine mark_begin(name, length) bind(c, name='pw_mark_begin')
            import :: c_char, c_int32_t
            character(kind=c_char), intent(in) :: name(*)
            integer(c_int32_t), value :: length
        end subroutine mark_begin

        subroutine mark_end() bind(c, name='pw_mark_end')
        end subroutine mark_end
    end interface

contains

    !> Start counting; a machine that cannot count leaves `reason` and is no error.
    subroutine open_counters(self)
        class(counters_t), intent(inout) :: self
        character(kind=c_char) :: reason(text_length)
        character(:), allocatable :: events
        integer :: length

        call get_environment_variable('PAGEWISE_EVENTS', length=length)
        if (length > 0) then
            allocate (character(length) :: events)
            call get_environment_variable('PAGEWISE_EVENTS', events)
        else
            events = default_events
        end if
        self%handle = c_open(events//c_null_char, self%n_events, reason, int(text_length, c_int32_t))
        if (.not. c_associated(self%handle)) self%reason = from_c(reason)
    end subroutine open_counters

    subroutine close_counters(self)
        class(counters_t), intent(inout) :: self

        if (c_associated(self%handle)) call c_close(self%handle)
        self%handle = c_null_ptr
        self%n_events = 0
    end subroutine close_counters

    logical function counting(self)
        class(counters_t), intent(in) :: self

        counting = c_associated(self%handle)
    end function counting

    !> Names of the events that are counted, in the order of `region_t%counts`.
    function event_names(self) result(names)
        class(counters_t), intent(in) :: self
        character(64), allocatable :: names(:)
        character(kind=c_char) :: buffer(64)
        integer(c_int32_t) :: i

        allocate (names(self%n_events))
        do i = 1, self%n_events
            call c_name(self%handle, i - 1_c_int32_t, buffer, 64_c_int32_t)
            names(i) = from_c(buffer)
        end do
    end function event_names

    !> Enter the region.
    subroutine region_begin(self, counters)
        class(region_t), intent(inout) :: self
        type(counters_t), intent(in) :: counters

        if (.not. allocated(self%counts)) then
            allocate (self%counts(counters%n_events), source=0_i8)
            allocate (self%start_counts(counters%n_events), source=0_i8)
        end if
        if (counters%counting()) then
            if (c_read(counters%handle, self%start_counts) == 0) self%counts_valid = .false.
        end if
        call mark_begin(self%name, len(self%name, c_int32_t))
        self%start_seconds = wall_seconds()
    end subroutine region_begin

    !> Leave the region: add its time and counts; `seconds` is the time of this passage.
    subroutine region_end(self, counters, seconds)
        class(region_t), intent(inout) :: self
        type(counters_t), intent(in) :: counters
        real(r8), intent(out) :: seconds
        integer(i8) :: now(size(self%counts))

        seconds = wall_seconds() - self%start_seconds
        call mark_end()
        self%seconds = self%seconds + seconds
        self%calls = self%calls + 1
        if (.not. counters%counting()) return
        if (c_read(counters%handle, now) == 0) self%counts_valid = .false.
        self%counts = self%counts + (now - self%start_counts)
    end subroutine region_end

end module pw_region
