!> Independent multiply-adds in registers: the arithmetic that a core does at most.
!>
!> The loop is timed code, made by pw_peak.h.
module pw_peak
    use, intrinsic :: iso_c_binding, only: c_double, c_int32_t, c_int64_t, c_loc, c_null_ptr, c_ptr
    use pw_kinds, only: i8, r8
    use pw_registers, only: register_grain
    use pw_timer, only: wall_seconds
    implicit none
    private

    integer(i8), parameter, public :: peak_steps = 256_i8     !< multiply-adds of each element in a pass; as in pw_peak_call.h

    !> struct pw_peak_call.
    type, bind(c), public :: peak_call_t
        integer(c_int64_t) :: passes = 0, elements = 0
        type(c_ptr) :: x = c_null_ptr
        real(c_double) :: factor = 1.0_c_double, summand = 1.0_c_double
        integer(c_int32_t) :: type = 1, simd = 1
    end type peak_call_t

    interface
        !> See pw_peak_call.h.
        integer(c_int32_t) function pw_peak_run(request) bind(c)
            import :: c_int32_t, peak_call_t
            type(peak_call_t), intent(inout) :: request
        end function pw_peak_run
    end interface

    public :: peak_flop_per_s, pw_peak_run

contains

    !> The fp64 peak of the calling thread's core, measured now, by vectors of this width: the best of some short runs.
    real(r8) function peak_flop_per_s(simd) result(peak)
        integer(c_int32_t), intent(in) :: simd
        integer, parameter :: runs = 15
        integer(i8), parameter :: passes = 8
        real(r8), target :: x(register_grain)
        type(peak_call_t) :: request
        real(r8) :: start, seconds
        integer(c_int32_t) :: status
        integer :: i

        x = 0.0_r8
        request%passes = passes
        request%elements = size(x, kind=i8)
        request%x = c_loc(x)
        peak = 0.0_r8
        do i = 1, runs
            request%simd = simd
            start = wall_seconds()
            status = pw_peak_run(request)
            seconds = wall_seconds() - start
            if (status == 0) peak = max(peak, 2.0_r8*real(passes*peak_steps*request%elements, r8)/seconds)
        end do
    end function peak_flop_per_s

end module pw_peak
