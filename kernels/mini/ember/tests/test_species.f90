!> Species on rows: fluxes add up to that of the mass, uniform mixtures stay uniform, fractions are advected to second
!> order; and the children of a prolonged zone have species that add up to their density, whose means are their parent's.
program test_species
    use ember_container, only: container_create, container_free, container_touch, load_interior
    use ember_prolongation, only: pack_star, prolong_star, star_size
    use ember_godunov, only: half_step_t, n_primitive, n_sloped, p_gamc, p_ratio, p_velx, p_velz, row_first, row_last
    use ember_mesh, only: cylindrical, first_guard, first_species, last_guard, mesh_t, n_conserved, v_dens
    use ember_slopes, only: slopes_of_row
    use ember_species, only: matter_t, species_fluxes, trace_matter
    use ember_testing, only: expect, failures, next_random
    use pw_error, only: error_t
    use pw_kinds, only: i8, r8
    use pw_pages, only: pages_begin, pages_none
    use pw_text, only: to_text
    implicit none
    integer, parameter :: n = 3
    real(r8), parameter :: rounding = 4.0e-15_r8
    type(error_t) :: error
    integer :: layout

    call fluxes()
    call carried()
    call pages_begin(pages_none, error)
    do layout = 0, 1
        call children(layout == 1)
    end do
    if (failures > 0) error stop 'test_species: failures'

contains

    subroutine fluxes()
        type(matter_t) :: matter
        type(half_step_t) :: half
        real(r8) :: gas(row_first:row_last, n_primitive), row(row_first:row_last, n), slope(row_first:row_last, 3, n_sloped)
        real(r8) :: flux(row_first:row_last, n_sloped), species(row_first:row_last, n)
        integer :: i, s, round

        call matter%start(n)
        matter%simple = .true.
        half%by_width = [0.2_r8, 0.1_r8, 0.15_r8]
        slope = 0.0_r8
        do round = 1, 20
            do i = row_first, row_last
                gas(i, :) = 0.5_r8 + next_random()
                gas(i, p_velx:p_velz) = 2.0_r8*next_random() - 1.0_r8
                flux(i, :) = 2.0_r8*next_random() - 1.0_r8
                do s = 1, n
                    row(i, s) = next_random()
                end do
                row(i, :) = row(i, :)/sum(row(i, :))
            end do
            call trace_matter(planes(gas), planes(row), 1, 1, half, slope, matter)
            call species_fluxes(1, matter%upper(:, :, 1), matter%lower(:, :, 1), flux, species)
            call expect(all(abs(sum(species(0:16, :), dim=2) - flux(0:16, 1)) <= rounding), 'the sum is the mass')
            do s = 1, 3
                call expect(all(abs(matter%upper_gas(:, p_ratio, s) - gas(:, p_ratio)) <= 0.0_r8), 'a simple gas')
            end do
            row = spread([0.2_r8, 0.5_r8, 0.3_r8], 1, row_last - row_first + 1)
            call trace_matter(planes(gas), planes(row), 1, 1, half, slope, matter)
            call species_fluxes(1, matter%upper(:, :, 1), matter%lower(:, :, 1), flux, species)
            do s = 1, n
                call expect(all(abs(species(0:16, s) - row(0, s)*flux(0:16, 1)) <= rounding), 'a uniform mixture')
            end do
        end do
    end subroutine fluxes

    !> A linear fraction in a uniform flow, and a ratio of energy to pressure in a flow that expands.
    subroutine carried()
        type(matter_t) :: matter
        type(half_step_t) :: half
        real(r8) :: gas(row_first:row_last, n_primitive), row(row_first:row_last, 1), slope(row_first:row_last, 3, n_sloped)
        integer :: i, v

        call matter%start(1)
        half%by_width = [0.25_r8, 0.25_r8, 0.0_r8]
        gas = 1.0_r8
        gas(:, p_gamc) = 1.6_r8
        gas(:, p_ratio) = 2.0_r8
        do i = row_first, row_last
            row(i, 1) = 0.5_r8 + 0.01_r8*i
            gas(i, p_velx) = 0.02_r8*i
        end do
        do v = 1, n_sloped
            call slopes_of_row(planes(gas), v, 1, 1, half, slope(:, :, v))
        end do
        call trace_matter(planes(gas), planes(row), 1, 1, half, slope, matter)
        do i = first_guard, last_guard
            call expect(abs(matter%upper(i, 1, 1) - (row(i, 1) + 0.01_r8*(0.5_r8 - 0.25_r8*gas(i, p_velx)))) <= rounding, 'upper')
            call expect(abs(matter%lower(i, 1, 2) - (row(i, 1) - 0.01_r8*0.25_r8*gas(i, p_velx))) <= rounding, 'across')
            ! d(ratio) = (ratio (gamc - 1) - 1) dt/2 div(v)
            call expect(abs(matter%upper_gas(i, p_ratio, 1) - (2.0_r8 + (2.0_r8*0.6_r8 - 1.0_r8)*0.25_r8*0.02_r8)) <= rounding, &
                        'ratio')
        end do
    end subroutine carried

    !> Three planes of equal rows.
    pure function planes(row)
        real(r8), intent(in) :: row(:, :)
        real(r8) :: planes(size(row, 1), size(row, 2), first_guard:last_guard, 3)

        planes = spread(spread(row, 3, size(planes, 3)), 4, 3)
    end function planes

    subroutine children(variable_last)
        logical, intent(in) :: variable_last
        type(mesh_t) :: mesh
        real(r8), allocatable :: star(:), parent(:, :, :, :), child(:, :, :, :)
        real(r8) :: volume(first_guard:last_guard), mean, worst, least, off
        integer :: i, j, v, s, round, last

        mesh%dims = 2
        mesh%geometry = cylindrical
        mesh%variable_last = variable_last
        mesh%n_species = n
        mesh%n_variables = first_species + n - 1
        mesh%highest_level = 1
        call mesh%tree%start(2, [1, 1, 1], [.false., .false., .false.], 1, error)
        call container_create(mesh, 1024_i8**2, pages_none, error)
        call expect(.not. error%failed(), 'container')
        call container_touch(mesh)
        last = mesh%n_variables
        allocate (parent(last, 16, 16, 1), child(last, 16, 16, 1))
        volume = mesh%zone_volumes(1)
        worst = 0.0_r8
        least = 1.0_r8
        off = 0.0_r8
        do round = 1, 5
            do j = first_guard, last_guard
                do i = first_guard, last_guard
                    call put(mesh, i, j)
                end do
            end do
            call load_interior(mesh, 1, parent)
            allocate (star(star_size(mesh, reshape([1, 8, 1, 8, 1, 1], [2, 3]))))
            call pack_star(mesh, 1, reshape([1, 8, 1, 8, 1, 1], [2, 3]), star)
            call prolong_star(mesh, star, volume, 2, reshape([1, 16, 1, 16, 1, 1], [2, 3]))
            deallocate (star)
            call load_interior(mesh, 2, child)
            do j = 1, 16
                do i = 1, 16
                    worst = max(worst, abs(sum(child(first_species:, i, j, 1))/child(v_dens, i, j, 1) - 1.0_r8))
                    least = min(least, minval(child(first_species:, i, j, 1)))
                end do
            end do
            do j = 1, 8
                do i = 1, 8
                    do s = 0, n
                        v = merge(v_dens, first_species + s - 1, s == 0)
                        mean = sum(volume(2*i - 1:2*i)*sum(child(v, 2*i - 1:2*i, 2*j - 1:2*j, 1), dim=2)) &
                               /(2.0_r8*sum(volume(2*i - 1:2*i)))
                        off = max(off, abs(mean - parent(v, i, j, 1)))
                    end do
                end do
            end do
        end do
        call expect(worst <= rounding, 'children add up: '//to_text(worst, 'es9.2'))
        call expect(least >= -rounding, 'no child has a negative amount: '//to_text(least, 'es9.2'))
        call expect(off <= rounding, 'means are the parents: '//to_text(off, 'es9.2'))
        call container_free(mesh, error)
    end subroutine children

    !> A random zone of slot 1, every other one of a single species.
    subroutine put(mesh, i, j)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: i, j
        real(r8) :: zone(mesh%n_variables)
        integer :: s

        do s = 1, size(zone)
            zone(s) = next_random()
        end do
        zone(v_dens) = 0.2_r8 + zone(v_dens)
        zone(2:n_conserved) = zone(2:n_conserved)*0.1_r8 + 3.0_r8
        if (next_random() < 0.5_r8) zone(first_species + 1:) = 0.0_r8
        zone(first_species:) = zone(v_dens)*zone(first_species:)/sum(zone(first_species:))
        if (mesh%variable_last) then
            mesh%soa(i, j, 1, :, 1) = zone
        else
            mesh%aos(:, i, j, 1, 1) = zone
        end if
    end subroutine put

end program test_species
