!> The fluxes through the faces of a pencil of zones in a time step: the piecewise parabolic method (ember_ppm) and its Riemann
!> solver (ember_ppm_riemann) on work space that stays in the cache.
module ember_pencil
    use ember_ppm, only: face_values, flatness, flatten, monotonise, n_w, pencil_first, pencil_last, steepen, trace, w_dens
    use ember_ppm_riemann, only: n_f, solve_faces, star_t
    use pw_kinds, only: r8
    implicit none
    private

    !> The work space of a thread: (zone, variable); all of it has values that no unused element of a vector fails on.
    type, public :: pencil_t
        real(r8) :: zone(pencil_first:pencil_last, n_w) = 1.0_r8         !< in: means of zones
        real(r8) :: half_by_radius(pencil_first:pencil_last) = 0.0_r8    !< in: half the time step over the radius, see trace
        real(r8) :: flux(0:pencil_last, n_f) = 0.0_r8                    !< out: through the faces 0 to n
        real(r8), private :: lower(pencil_first:pencil_last, n_w) = 1.0_r8, upper(pencil_first:pencil_last, n_w) = 1.0_r8
        real(r8), private :: at_lower(pencil_first:pencil_last, n_w) = 1.0_r8, at_upper(pencil_first:pencil_last, n_w) = 1.0_r8
        real(r8), private :: slope(pencil_first:pencil_last) = 0.0_r8, share(pencil_first:pencil_last) = 0.0_r8
        type(star_t), private :: star
    contains
        procedure :: solve
    end type pencil_t

contains

    !> The fluxes of the `n` zones in `zone`, which has sweep_guards more at each end; `dt_by_width`: the time step over the width
    !> of a zone; `steep`: steepen contacts.
    pure subroutine solve(self, n, dt_by_width, steep)
        class(pencil_t), intent(inout) :: self
        integer, intent(in) :: n
        real(r8), intent(in) :: dt_by_width
        logical, intent(in) :: steep
        integer :: v

        call flatness(n, self%zone, self%share)
        do v = 1, n_w
            call face_values(n, self%zone(:, v), self%slope, self%lower(:, v), self%upper(:, v))
            if (v == w_dens .and. steep) call steepen(n, self%zone, self%slope, self%lower(:, v), self%upper(:, v))
            call flatten(n, self%zone(:, v), self%share, self%lower(:, v), self%upper(:, v))
            call monotonise(n, self%zone(:, v), self%lower(:, v), self%upper(:, v))
        end do
        call trace(n, 1.0_r8, self%zone, self%upper, self%lower, dt_by_width, self%half_by_radius, self%at_upper)
        call trace(n, -1.0_r8, self%zone, self%lower, self%upper, dt_by_width, self%half_by_radius, self%at_lower)
        call solve_faces(n, self%at_upper, self%at_lower, self%star, self%flux)
    end subroutine solve

end module ember_pencil
