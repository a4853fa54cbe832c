!> The deviation of a simulation from the problem's exact solution, and the radius of its shock.
module ember_solution_errors
    use ember_container, only: load_interior
    use ember_mesh, only: v_dens, v_momx, v_pres
    use ember_problem, only: known_problem_t
    use ember_problems, only: sedov_problem_t
    use ember_simulation, only: simulation_t
    use pw_kinds, only: r8
    implicit none
    private

    public :: density_error, blast_radius

contains

    !> The L1 norm of the density's error: its absolute value, averaged over the domain's volume. Sums are leaf by leaf in
    !> Morton order.
    function density_error(simulation, problem) result(norm)
        type(simulation_t), intent(in) :: simulation
        class(known_problem_t), intent(in) :: problem
        real(r8) :: norm
        real(r8), allocatable :: variables(:, :, :, :), mine(:, :), all(:)
        real(r8) :: volume(simulation%mesh%first:simulation%mesh%last), corner(3), width(3), dens, velocity(3), pres
        integer :: i, j, k, n, leaf, zones(3)

        associate (mesh => simulation%mesh)
            zones = mesh%zones()
            allocate (mine(2, size(mesh%local)), source=0.0_r8)
            !$omp parallel do schedule(static) private(variables, leaf, volume, corner, width, i, j, k, dens, velocity, pres)
            do n = 1, size(mesh%local)
                if (.not. allocated(variables)) allocate (variables(mesh%n_used(), zones(1), zones(2), zones(3)))
                leaf = mesh%local(n)
                call load_interior(mesh, mesh%slot(leaf), variables)
                volume = mesh%zone_volumes(leaf)
                corner = mesh%block_corner(leaf)
                width = mesh%zone_size(mesh%tree%level(leaf))
                do k = 1, zones(3)
                    do j = 1, zones(2)
                        do i = 1, zones(1)
                            call problem%exact(simulation%time, corner + width*[i - 1, j - 1, k - 1], &
                                               corner + width*[i, j, k], dens, velocity, pres)
                            mine(1, n) = mine(1, n) + volume(i)*abs(variables(v_dens, i, j, k) - dens)
                            mine(2, n) = mine(2, n) + volume(i)
                        end do
                    end do
                end do
            end do
            call simulation%comm%all_gather(reshape(mine, [size(mine)]), all)
        end associate
        norm = sum(all(1::2))/sum(all(2::2))
    end function density_error

    !> The radius of the explosion: outside the densest shell, where the mean density of shells as thick as the finest zone
    !> has fallen to half of the excess over the surrounding gas. 0 without excess.
    function blast_radius(simulation, problem) result(radius)
        type(simulation_t), intent(in) :: simulation
        type(sedov_problem_t), intent(in) :: problem
        real(r8) :: radius
        real(r8), allocatable :: variables(:, :, :, :), shell(:, :), all(:)
        real(r8) :: volume(simulation%mesh%first:simulation%mesh%last), corner(3), width(3), finest(3), place(3), half
        integer :: i, j, k, n, leaf, zones(3), bin, n_bins, dims, densest

        associate (mesh => simulation%mesh)
            dims = mesh%dims
            zones = mesh%zones()
            finest = mesh%zone_size(maxval(mesh%tree%level(:mesh%tree%n_leaves)))
            n_bins = int(norm2((mesh%upper(:dims) - mesh%lower(:dims))/finest(1))) + 2
            allocate (shell(2, n_bins), source=0.0_r8)
            allocate (variables(mesh%n_used(), zones(1), zones(2), zones(3)))
            do n = 1, size(mesh%local)
                leaf = mesh%local(n)
                call load_interior(mesh, mesh%slot(leaf), variables)
                volume = mesh%zone_volumes(leaf)
                corner = mesh%block_corner(leaf)
                width = mesh%zone_size(mesh%tree%level(leaf))
                do k = 1, zones(3)
                    do j = 1, zones(2)
                        do i = 1, zones(1)
                            place = corner + width*([i, j, k] - 0.5_r8) - problem%centre
                            bin = 1 + int(norm2(place(:dims))/finest(1))
                            shell(1, bin) = shell(1, bin) + volume(i)*variables(v_dens, i, j, k)
                            shell(2, bin) = shell(2, bin) + volume(i)
                        end do
                    end do
                end do
            end do
            call simulation%comm%all_gather(reshape(shell, [size(shell)]), all)
            shell = 0.0_r8
            do n = 0, mesh%n_ranks - 1
                shell = shell + reshape(all(n*size(shell) + 1:(n + 1)*size(shell)), [2, n_bins])
            end do
        end associate
        where (shell(2, :) > 0.0_r8) shell(1, :) = shell(1, :)/shell(2, :)
        densest = maxloc(shell(1, :), dim=1)
        half = 0.5_r8*(shell(1, densest) + problem%density)
        radius = 0.0_r8
        do n = densest, n_bins - 1
            if (shell(1, n + 1) > half .or. .not. shell(1, n) > shell(1, n + 1)) cycle
            radius = finest(1)*(n - 0.5_r8 + (shell(1, n) - half)/(shell(1, n) - shell(1, n + 1)))
            return
        end do
    end function blast_radius

end module ember_solution_errors
