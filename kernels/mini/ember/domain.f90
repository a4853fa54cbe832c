!> Sums and extremes over the domain, the same for any number of ranks and threads.
module ember_domain
    use ember_container, only: load_interior
    use ember_mesh, only: first_species, mesh_t, n_conserved, v_dens
    use ember_parallel, only: comm_t
    use pw_kinds, only: r8
    implicit none
    private

    public :: totals, largest_density

contains

    !> The conserved variables and species summed over the domain; leaf by leaf in Morton order, so that the result does not
    !> depend on ranks or threads.
    function totals(mesh, comm) result(total)
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        real(r8), allocatable :: total(:)
        real(r8), allocatable :: variables(:, :, :, :), mine(:), all(:)
        real(r8) :: volume(mesh%first:mesh%last)
        integer :: which(n_conserved + mesh%n_species), i, j, k, n, v, zones(3), n_sums

        zones = mesh%zones()
        which = [(v, v=1, n_conserved), (first_species + v, v=0, mesh%n_species - 1)]
        n_sums = size(which)
        allocate (variables(mesh%n_used(), zones(1), zones(2), zones(3)))
        allocate (mine(n_sums*size(mesh%local)), source=0.0_r8)
        do n = 1, size(mesh%local)
            call load_interior(mesh, mesh%slot(mesh%local(n)), variables)
            volume = mesh%zone_volumes(mesh%local(n))
            do k = 1, zones(3)
                do j = 1, zones(2)
                    do i = 1, zones(1)
                        do v = 1, n_sums
                            associate (total_of_leaf => mine(n_sums*(n - 1) + v))
                                total_of_leaf = total_of_leaf + volume(i)*variables(which(v), i, j, k)
                            end associate
                        end do
                    end do
                end do
            end do
        end do
        call comm%all_gather(mine, all)
        allocate (total(n_sums), source=0.0_r8)
        do n = 1, size(all), n_sums
            total = total + all(n:n + n_sums - 1)
        end do
    end function totals

    !> The largest density: that in the centre of a star.
    real(r8) function largest_density(mesh, comm) result(largest)
        type(mesh_t), intent(in) :: mesh
        type(comm_t), intent(in) :: comm
        real(r8), allocatable :: variables(:, :, :, :)
        integer :: n, zones(3)

        zones = mesh%zones()
        allocate (variables(mesh%n_used(), zones(1), zones(2), zones(3)))
        largest = 0.0_r8
        do n = 1, size(mesh%local)
            call load_interior(mesh, mesh%slot(mesh%local(n)), variables)
            largest = max(largest, maxval(variables(v_dens, :, :, :)))
        end do
        call comm%all_max(largest)
    end function largest_density

end module ember_domain
