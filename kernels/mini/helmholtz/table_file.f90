!> The table's file (docs/reference/helmholtz.md), and the conversion of its numbers to those that rows.c interpolates.
module helmholtz_table_file
    use, intrinsic :: ieee_arithmetic, only: ieee_is_finite
    use helmholtz_constants, only: gas_constant
    use pw_error, only: error_t, exit_usage
    use pw_hdf5, only: file_t, whole_file
    use pw_kinds, only: i8, r8
    implicit none
    private

    character(*), parameter :: schema = 'pagewise.eos-table/1'
    integer, parameter, public :: node_values = 9, cold_values = 3, positron_values = 4
    integer, parameter :: public_values = 4                     ! of dp/dx and eta each: value, d/dx, d/dT, d2/dxdT
    integer, parameter, public :: n_further = 2*public_values

    !> A table as its file has it. `dpdx` and `eta` are read only on request.
    type, public :: stored_t
        real(r8), allocatable :: dye(:), temperature(:), cold(:, :), thermal(:, :, :), positrons(:, :, :)
        real(r8), allocatable :: dpdx(:, :, :), eta(:, :, :)
    contains
        procedure :: read
    end type stored_t

    public :: further_to_steps, refuse, to_steps

contains

    !> Read the open file `path`; `further`: also dp/dx and eta. Exit codes: 2 it is not a table; 4 it is damaged.
    subroutine read(self, file, path, further, error)
        class(stored_t), intent(out) :: self
        type(file_t), intent(inout) :: file
        character(*), intent(in) :: path
        logical, intent(in) :: further
        type(error_t), intent(inout) :: error
        character(:), allocatable :: file_schema
        integer(i8), allocatable :: shape(:)
        integer :: nx, nt

        file_schema = ''
        if (file%has_attribute(whole_file, 'schema')) call file%get(whole_file, 'schema', file_schema, error)
        if (error%failed()) return
        if (file_schema /= schema) then
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
        if (further) call expect('dpdx', [public_values, nt, nx])
        if (further) call expect('eta', [public_values, nt, nx])
        if (error%failed()) return
        if (nx < 2 .or. nt < 2) then
            call refuse(path, 'it has no cells', error)
            return
        end if
        allocate (self%dye(nx), self%temperature(nt), self%cold(nx, cold_values), self%thermal(node_values, nt, nx), &
                  self%positrons(positron_values, nt, nx))
        call file%read_reals('dye', 1, nx, 1, self%dye, error)
        call file%read_reals('temperature', 1, nt, 1, self%temperature, error)
        call file%read_reals('cold', 1, cold_values, nx, self%cold, error)
        call file%read_reals('thermal', 1, nx, node_values*nt, self%thermal, error)
        call file%read_reals('positrons', 1, nx, positron_values*nt, self%positrons, error)
        if (.not. further) return
        allocate (self%dpdx(public_values, nt, nx), self%eta(public_values, nt, nx))
        call file%read_reals('dpdx', 1, nx, public_values*nt, self%dpdx, error)
        call file%read_reals('eta', 1, nx, public_values*nt, self%eta, error)

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

    end subroutine read

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

    !> The same for the layout of separate arrays: ln(dp/dx) and eta, with their derivatives with respect to u, v, uv times the
    !> steps. `bad` counts values that are not finite, and dp/dx that are not above zero.
    pure subroutine further_to_steps(data, i, step, to, bad)
        type(stored_t), intent(in) :: data
        integer, intent(in) :: i
        real(r8), intent(in) :: step(2)
        real(r8), intent(out) :: to(:, :)
        integer, intent(inout) :: bad
        real(r8) :: scale(public_values), slope(public_values)
        integer :: j

        do j = 1, size(data%temperature)
            scale = [1.0_r8, step(1)*data%dye(i), step(2)*data%temperature(j), &
                     step(1)*data%dye(i)*step(2)*data%temperature(j)]
            associate (dpdx => data%dpdx(1, j, i))
                if (.not. dpdx > 0.0_r8) then
                    bad = bad + 1
                    cycle
                end if
                slope = scale*data%dpdx(:, j, i)/dpdx
                to(:public_values, j) = [log(dpdx), slope(2), slope(3), slope(4) - slope(2)*slope(3)]
            end associate
            to(public_values + 1:, j) = scale*data%eta(:, j, i)
            if (.not. all(ieee_is_finite(to(:, j)))) bad = bad + 1
        end do
    end subroutine further_to_steps

    subroutine refuse(path, why, error)
        character(*), intent(in) :: path, why
        type(error_t), intent(inout) :: error

        call error%raise(exit_usage, "cannot use '"//path//"' as table of the equation of state: "//why, 'helmholtz', &
                         'create one with pw-eos-table, and set --eos-table')
    end subroutine refuse

end module helmholtz_table_file
