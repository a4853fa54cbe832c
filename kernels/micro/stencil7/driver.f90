!> A Jacobi sweep for the Poisson equation on a 3-d grid: the 7-point stencil.
!>
!> Source: A64FX micro-architecture guide, sector cache, case 2, whose loop and grid are used here.
module stencil7
    use, intrinsic :: iso_c_binding, only: c_f_pointer
    use pw_deviation, only: worse
    use pw_error, only: error_t, exit_usage
    use pw_harness, only: arrays_of, bandwidth_metrics, plan_t
    use pw_kinds, only: i8, r8
    use pw_line, only: line_bytes
    use pw_options, only: option_choice, option_count, option_text, rules_t
    use pw_record, only: metric_t, traffic_t
    use pw_shares, only: shared_kernel_t
    use stencil7_h, only: pw_stencil7
    implicit none
    private

    integer(i8), parameter :: element_bytes = 8, most_points = 2_i8**40, point_flops = 10
    real(r8), parameter :: h(4) = [1.0_r8, 2.0_r8, 5.0_r8, 0.0625_r8]   ! 1/h1**2, 1/h2**2, 1/h3**2, half their sum's inverse

    type, extends(shared_kernel_t), public :: stencil_t
        private
        integer(i8) :: grid(3) = 0, rows = 0, distance = 0
        logical :: cube = .false.
        real(r8), pointer, contiguous :: u(:, :, :) => null(), rhs(:, :, :) => null(), unew(:, :, :) => null()
    contains
        procedure :: declare_options, read_options, plan, connect, fill, work, deviation, traffic, metrics
        procedure, private :: planes
    end type stencil_t

contains

    subroutine declare_options(self)
        class(stencil_t), intent(inout) :: self

        call self%options%add('grid', option_text, '452x52x322', 'points in each direction, edges included; without '// &
                              'it, a cube of the size --working-set')
        call self%options%add('blocking', option_choice, 'none', 'whole planes, or blocks of their rows through all planes', &
                              values='none|rows')
        call self%options%add('block-rows', option_count, '32', 'maximum rows per block, with --blocking rows', &
                              rules_t(lowest=1_i8), '1,2,4,8,12,16,24,32,48,64,96,128,192,256')
        if (self%configuration%prefetch == 'software') call self%options%add('prefetch-distance', option_count, '16', &
            'prefetch distance in cache lines', rules_t(lowest=1_i8), '1,2,4,8,12,16,24,32,48,64,96,128')
    end subroutine declare_options

    subroutine read_options(self, error)
        class(stencil_t), intent(inout) :: self
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer :: i, status, crosses

        self%cube = .not. self%options%given('grid')
        if (self%options%given('working-set') .and. .not. self%cube) call error%raise(exit_usage, &
            '--grid and --working-set exclude each other', 'stencil7', 'choose one of them')
        call self%options%get('grid', word)
        status = verify(word, '0123456789x')
        crosses = 0
        do i = 1, len(word)
            if (word(i:i) /= 'x') cycle
            crosses = crosses + 1
            word(i:i) = ' '
        end do
        if (status == 0 .and. crosses /= 2) status = 1
        if (status == 0) read (word, *, iostat=status) self%grid
        if (status == 0 .and. any(self%grid > most_points)) status = 1
        if (status == 0) then
            if (product(real(self%grid, r8)) > real(most_points, r8) .or. any(self%grid < 3)) status = 1
        end if
        if (status /= 0) call error%raise(exit_usage, '--grid needs three numbers of at least 3', 'stencil7', &
                                          'write it as in --grid 452x52x322')
        call self%options%get('blocking', word)
        self%rows = most_points
        if (word == 'rows') call self%options%get('block-rows', self%rows)
        if (self%configuration%prefetch /= 'software') return
        call self%options%get('prefetch-distance', self%distance)
        self%distance = min(self%distance, most_points)*(line_bytes/element_bytes)
    end subroutine read_options

    subroutine plan(self, bytes, wanted, error)
        class(stencil_t), intent(inout) :: self
        integer(i8), intent(in) :: bytes
        type(plan_t), intent(out) :: wanted
        type(error_t), intent(inout) :: error
        integer(i8) :: blocks

        if (self%cube) self%grid = int((real(bytes/(3*element_bytes), r8) + 0.5_r8)**(1.0_r8/3.0_r8), i8)
        if (any(self%grid < 3)) then
            call error%raise(exit_usage, 'a grid needs 3 points in each direction', 'stencil7', &
                             'choose a --working-set of at least 648 bytes')
            return
        end if
        blocks = (self%grid(2) - 3)/min(self%rows, self%grid(2) - 2) + 1
        self%rows = (self%grid(2) - 3)/blocks + 1       ! no small block remains
        wanted = arrays_of('u rhs unew', product(self%grid), element_bytes)
    end subroutine plan

    !> The threads share the inner planes.
    subroutine connect(self)
        class(stencil_t), intent(inout) :: self

        self%items = self%grid(3) - 2
        call c_f_pointer(self%memory(1)%address, self%u, self%grid)
        call c_f_pointer(self%memory(2)%address, self%rhs, self%grid)
        call c_f_pointer(self%memory(3)%address, self%unew, self%grid)
    end subroutine connect

    !> The first and the last plane of inner planes first:last with the edges next to them.
    pure function planes(self, first, last) result(range)
        class(stencil_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: range(2)

        range = [first, last] + 1
        if (first == 1) range(1) = 1
        if (last == self%items) range(2) = self%grid(3)
    end function planes

    !> u is a cubic polynomial, rhs its Laplacian except for a known defect: whole numbers, so that the result is exact with
    !> and without fused multiply-add. unew gets a value that no result has.
    subroutine fill(self, first, last)
        class(stencil_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        integer(i8) :: i, j, k, range(2)

        range = self%planes(first, last)
        do k = range(1), range(2)
            do j = 1, self%grid(2)
                do i = 1, self%grid(1)
                    self%u(i, j, k) = u_value(i, j, k)
                    self%rhs(i, j, k) = 6*(h(1)*i + 2*h(2)*j + 3*h(3)*k) + defect(i, j, k)/h(4)
                    self%unew(i, j, k) = -1.0_r8
                end do
            end do
        end do
    end subroutine fill

    pure elemental real(r8) function u_value(i, j, k)
        integer(i8), intent(in) :: i, j, k

        u_value = real(i**3 + 2*j**3 + 3*k**3, r8)
    end function u_value

    pure elemental real(r8) function defect(i, j, k)
        integer(i8), intent(in) :: i, j, k

        defect = real(i + 2*j + 3*k, r8)
    end function defect

    subroutine work(self, passes, first, last)
        class(stencil_t), intent(inout) :: self
        integer(i8), intent(in) :: passes, first, last
        integer(i8) :: pass

        associate (u => self%u, rhs => self%rhs, unew => self%unew, grid => self%grid)
            do pass = 1, passes
                call pw_stencil7([grid(:2), last - first + 1], self%rows, self%distance, h, u(1, 1, first), &
                                 rhs(1, 1, first), unew(1, 1, first))
            end do
        end associate
    end subroutine work

    !> If rhs were the Laplacian of u, u would not change; the sweep subtracts the defect. Edges stay unchanged.
    real(r8) function deviation(self, first, last) result(error)
        class(stencil_t), intent(in) :: self
        integer(i8), intent(in) :: first, last
        real(r8) :: expected
        integer(i8) :: i, j, k, range(2)

        error = 0.0_r8
        range = self%planes(first, last)
        do k = range(1), range(2)
            do j = 1, self%grid(2)
                do i = 1, self%grid(1)
                    expected = u_value(i, j, k) - defect(i, j, k)
                    if (any([i, j, k] == 1) .or. any([i, j, k] == self%grid)) expected = -1.0_r8
                    error = worse(error, abs(self%unew(i, j, k) - expected))
                end do
            end do
        end do
    end function deviation

    !> Each point of u that is a neighbour, of inner points or faces, and each inner point of rhs is loaded once, and one of
    !> unew stored; a regular store first reads its line (write-allocate).
    function traffic(self, passes) result(moved)
        class(stencil_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        type(traffic_t) :: moved
        real(r8) :: inner(3), points, faces

        inner = real(self%grid - 2, r8)
        points = product(inner)*real(passes, r8)
        faces = 2*sum(1/inner)*points
        moved%bytes_stream = element_bytes*(3*points + faces)
        moved%bytes_hardware = moved%bytes_stream
        if (self%configuration%stores == 'regular') moved%bytes_hardware = element_bytes*(4*points + faces)
        moved%flops = point_flops*points
    end function traffic

    function metrics(self, passes, seconds) result(figures)
        class(stencil_t), intent(in) :: self
        integer(i8), intent(in) :: passes
        real(r8), intent(in) :: seconds
        type(metric_t), allocatable :: figures(:)
        type(traffic_t) :: moved

        moved = self%traffic(passes)
        figures = [bandwidth_metrics(moved, seconds), metric_t('updates_per_s', moved%flops/point_flops/seconds), &
                   metric_t('gflop_per_s', moved%flops/seconds*1.0e-9_r8)]
    end function metrics

end module stencil7
