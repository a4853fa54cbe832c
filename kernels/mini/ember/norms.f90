!> Norms of a state: of the density, the speed and the pressure, then of the partial density of each species.
!>
!> L1 and L2 are averages over the domain's volume, of absolute values and (its root) of squares. Sums are leaf by leaf in
!> Morton order, so that the result does not depend on ranks or threads.
module ember_norms
    use ember_container, only: load_interior
    use ember_mesh, only: first_species, mesh_t, v_dens, v_momx, v_momz, v_pres
    use ember_simulation, only: simulation_t
    use pw_deviation, only: worse
    use pw_kinds, only: r8
    implicit none
    private

    integer, parameter, public :: n_norms = 3, norm_l1 = 1, norm_l2 = 2, norm_max = 3
    integer, parameter, public :: q_dens = 1, q_speed = 2, q_pres = 3, n_flow = 3   !< quantities; species follow

    public :: norms_of

contains

    !> The norms, (norm, quantity).
    function norms_of(simulation) result(norm)
        type(simulation_t), intent(in) :: simulation
        real(r8), allocatable :: norm(:, :)
        real(r8), allocatable :: variables(:, :, :, :), mine(:, :, :), mine_volume(:), all(:), all_volume(:)
        integer :: n, nq, zones(3)

        associate (mesh => simulation%mesh)
            nq = n_flow + mesh%n_species
            zones = mesh%zones()
            allocate (mine(n_norms, nq, size(mesh%local)), mine_volume(size(mesh%local)))
            !$omp parallel private(variables)
            allocate (variables(mesh%n_used(), zones(1), zones(2), zones(3)))
            !$omp do schedule(static)
            do n = 1, size(mesh%local)
                call load_interior(mesh, mesh%slot(mesh%local(n)), variables)
                call sums_of_leaf(mesh, mesh%local(n), variables, mine(:, :, n), mine_volume(n))
            end do
            !$omp end parallel
            call simulation%comm%all_gather(reshape(mine, [size(mine)]), all)
            call simulation%comm%all_gather(mine_volume, all_volume)
        end associate
        norm = together(reshape(all, [n_norms, nq, size(all_volume)]))
        norm(norm_l1, :) = norm(norm_l1, :)/sum(all_volume)
        norm(norm_l2, :) = sqrt(norm(norm_l2, :)/sum(all_volume))
    end function norms_of

    !> The sums of absolute values and of squares over a leaf's zones, by volume, and the largest value; and the volume.
    subroutine sums_of_leaf(mesh, leaf, variables, total, whole)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        real(r8), intent(in) :: variables(:, :, :, :)
        real(r8), intent(out) :: total(:, :), whole
        real(r8) :: volume(mesh%first:mesh%last), value(size(total, 2))
        integer :: i, j, k

        volume = mesh%zone_volumes(leaf)
        total = 0.0_r8
        whole = 0.0_r8
        do k = 1, size(variables, 4)
            do j = 1, size(variables, 3)
                do i = 1, size(variables, 2)
                    associate (zone => variables(:, i, j, k))
                        value(q_dens) = zone(v_dens)
                        value(q_speed) = norm2(zone(v_momx:v_momz))/zone(v_dens)
                        value(q_pres) = zone(v_pres)
                        value(n_flow + 1:) = zone(first_species:)
                    end associate
                    value = abs(value)
                    total(norm_l1, :) = total(norm_l1, :) + volume(i)*value
                    total(norm_l2, :) = total(norm_l2, :) + volume(i)*value**2
                    total(norm_max, :) = worse(total(norm_max, :), value)
                    whole = whole + volume(i)
                end do
            end do
        end do
    end subroutine sums_of_leaf

    !> Those of all leaves.
    pure function together(leaves) result(total)
        real(r8), intent(in) :: leaves(:, :, :)
        real(r8) :: total(size(leaves, 1), size(leaves, 2))
        integer :: n

        total = 0.0_r8
        do n = 1, size(leaves, 3)
            total(norm_l1:norm_l2, :) = total(norm_l1:norm_l2, :) + leaves(norm_l1:norm_l2, :, n)
            total(norm_max, :) = worse(total(norm_max, :), leaves(norm_max, :, n))
        end do
    end function together

end module ember_norms
