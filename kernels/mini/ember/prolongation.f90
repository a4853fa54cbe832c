!> Prolongation: fine zones from a star, the box of coarse zones that covers them with those across its faces.
module ember_prolongation
    use ember_container, only: pack_box, unpack_box
    use ember_mesh, only: cylindrical, first_species, mesh_t, v_dens, v_ener, v_momx, v_momz
    use pw_kinds, only: r8
    implicit none
    private

    !> Children whose internal energy falls below this share of their parent's take the parent's state unchanged.
    real(r8), parameter :: least_energy = 0.1_r8

    public :: star_size, pack_star, prolong_star

contains

    !> Values in the star of `box`.
    pure integer function star_size(mesh, box)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: box(2, 3)
        integer :: n(3)

        n = box(2, :) - box(1, :) + 1
        star_size = product(n) + 2*n(2)*n(3) + 2*n(1)*n(3)
        if (mesh%dims == 3) star_size = star_size + 2*n(1)*n(2)
        star_size = mesh%n_variables*star_size
    end function star_size

    !> Copy the star of `box` of slot `from` to the start of `buffer`.
    subroutine pack_star(mesh, from, box, buffer)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: from, box(2, 3)
        real(r8), contiguous, intent(inout) :: buffer(:)
        integer :: part(2, 3), k, p, margin

        margin = merge(1, 0, mesh%dims == 3)
        p = 0
        do k = box(1, 3) - margin, box(2, 3) + margin
            part = box
            part(:, 3) = k
            if (k < box(1, 3) .or. k > box(2, 3)) then
                call add()
            else
                part(:, 2) = box(1, 2) - 1
                call add()
                part(:, 2) = box(:, 2)
                part(:, 1) = box(:, 1) + [-1, 1]
                call add()
                part(:, 1) = box(:, 1)
                part(:, 2) = box(2, 2) + 1
                call add()
            end if
        end do

    contains

        subroutine add()
            integer :: n

            n = mesh%n_variables*(part(2, 1) - part(1, 1) + 1)*(part(2, 2) - part(1, 2) + 1)
            call pack_box(mesh, from, part, buffer(p + 1:p + n))
            p = p + n
        end subroutine add

    end subroutine pack_star

    !> Prolong: fill `to_box` of slot `to` from the star of the coarse zones that cover it (`to_box` starts at an odd index
    !> and ends at an even one in each direction). `volume` (mesh%first:mesh%last) is that of the fine leaf's zones
    !> (mesh%zone_volumes).
    !>
    !> In each coarse zone a value is a linear function of the position about the zone's centroid; its slopes are the
    !> monotonised central ones (van Leer 1977, J. Comput. Phys. 23, 276), and are reduced together if a child would
    !> leave the range of the zone and those across its faces. The mean of the children is therefore their parent, a linear
    !> function is reproduced, and positive values stay positive. If a child's internal energy would not be positive, or
    !> hardly so, all of the parent's children equal the parent. Species that add up to the density also do so in the
    !> children.
    subroutine prolong_star(mesh, star, volume, to, to_box)
        type(mesh_t), intent(inout) :: mesh
        real(r8), contiguous, intent(in) :: star(:)
        real(r8), intent(in) :: volume(mesh%first:mesh%last)
        integer, intent(in) :: to, to_box(2, 3)
        real(r8) :: coefficient(5, mesh%block/2)
        integer :: n(3)

        n = (to_box(2, :) - to_box(1, :) + 1)/2
        if (mesh%dims == 2) n(3) = 1
        call prolong_coefficients(mesh%geometry == cylindrical, volume(to_box(1, 1):to_box(2, 1)), n(1), coefficient)
        call prolong_rows(mesh, star, coefficient, n, to, to_box)
    end subroutine prolong_star

    !> For each of the `n` coarse zones of a row, which cover fine zones of the volumes `volume`: the
    !> coefficients that convert the differences to the zone below, to that above, and between the two to slopes; and the
    !> positions of the centroids of the two children. In units of the coarse zone's width, from its centroid.
    pure subroutine prolong_coefficients(round, volume, n, coefficient)
        logical, intent(in) :: round
        integer, intent(in) :: n
        real(r8), intent(in) :: volume(2*n)
        real(r8), intent(out) :: coefficient(5, n)
        real(r8) :: r, below, centroid, above, child
        integer :: i

        do i = 1, n
            coefficient(:, i) = [1.0_r8, 1.0_r8, 0.5_r8, -0.25_r8, 0.25_r8]
            if (.not. round) cycle
            associate (v => volume(2*i - 1:2*i))
                ! Volumes go with the radii, whose step is half a coarse zone. The centroid of a ring of width w about the
                ! radius r is at r + w**2/(12 r).
                r = 0.25_r8*(v(1) + v(2))/(v(2) - v(1))
                below = (r - 1.0_r8) + 1.0_r8/(12.0_r8*(r - 1.0_r8))
                centroid = r + 1.0_r8/(12.0_r8*r)
                above = (r + 1.0_r8) + 1.0_r8/(12.0_r8*(r + 1.0_r8))
                child = (r - 0.25_r8) + 1.0_r8/(48.0_r8*(r - 0.25_r8))
                coefficient(1, i) = 1.0_r8/(centroid - below)
                coefficient(2, i) = 1.0_r8/(above - centroid)
                coefficient(3, i) = 1.0_r8/(above - below)
                coefficient(4, i) = child - centroid
                coefficient(5, i) = -coefficient(4, i)*v(1)/v(2)
            end associate
        end do
    end subroutine prolong_coefficients

    !> The work of prolong_star: `coefficient` from prolong_coefficients, `n` coarse zones in each direction.
    subroutine prolong_rows(mesh, star, coefficient, n, to, to_box)
        type(mesh_t), intent(inout) :: mesh
        real(r8), intent(in) :: star(*)
        integer, intent(in) :: n(3), to, to_box(2, 3)
        real(r8), intent(in) :: coefficient(5, n(1))
        ! By variable and zone of a row: coefficients; slopes and the largest deviation of a child, in differences to the zone.
        real(r8) :: along(mesh%n_variables*n(1), 5), slope(mesh%n_variables*n(1), 3), deviation(mesh%n_variables*n(1))
        real(r8) :: fine(mesh%n_variables, 2*n(1), 2*n(2), 2)
        real(r8) :: u, fy, fz
        integer :: at(0:n(2) + 1, 0:n(3) + 1), box(2, 3)
        integer :: nv, n_row, n_halves, i, j, k, y, z, p, q, v, c, below, above, back, front

        nv = mesh%n_variables
        n_row = nv*n(1)
        n_halves = merge(2, 1, mesh%dims == 3)
        do i = 1, n(1)
            do q = nv*(i - 1) + 1, nv*i
                along(q, :) = coefficient(:, i)
            end do
        end do
        call star_rows(n, nv, mesh%dims, at)
        do k = 1, n(3)
            do j = 1, n(2)
                c = at(j, k)
                below = at(j - 1, k)
                above = at(j + 1, k)
                ! A plane has no slope in the third direction.
                back = merge(at(j, k - 1), c, n_halves == 2)
                front = merge(at(j, k + 1), c, n_halves == 2)
                call set_slopes(n_row, star(c + 1), star(c + 1 - nv), star(c + 1 + nv), star(below + 1), star(above + 1), &
                                star(back + 1), star(front + 1), along, slope, deviation)
                if (mesh%n_species > 0) call join_species(mesh%n_species, nv, n(1), star(c + 1), coefficient, slope)
                do i = 1, n(1)
                    p = nv*(i - 1)
                    if (.not. energy_stays(star(c + p + 1), slope(p + 1, 1), n_row, deviation(p + 1), coefficient(4, i))) &
                        slope(p + 1:p + nv, :) = 0.0_r8
                end do
                do z = 1, n_halves
                    fz = 0.5_r8*z - 0.75_r8
                    do y = 1, 2
                        fy = 0.5_r8*y - 0.75_r8
                        do i = 1, n(1)
                            do v = 1, nv
                                q = nv*(i - 1) + v
                                u = star(c + q) + (fy*slope(q, 2) + fz*slope(q, 3))
                                fine(v, 2*i - 1, 2*j - 2 + y, z) = u + coefficient(4, i)*slope(q, 1)
                                fine(v, 2*i, 2*j - 2 + y, z) = u + coefficient(5, i)*slope(q, 1)
                            end do
                        end do
                    end do
                end do
            end do
            box(:, :2) = to_box(:, :2)
            box(1, 3) = to_box(1, 3) + n_halves*(k - 1)
            box(2, 3) = box(1, 3) + n_halves - 1
            call unpack_fine(mesh, to, box, fine)
        end do
    end subroutine prolong_rows

    !> The slopes in each direction, and the largest deviation of a child, of the `n` values `here` of a row of zones. The
    !> rows across the faces in the three directions are left, right, below, above, back and front. By value, `along` is from
    !> prolong_coefficients.
    pure subroutine set_slopes(n, here, left, right, below, above, back, front, along, slope, deviation)
        integer, intent(in) :: n
        real(r8), intent(in) :: here(n), left(n), right(n), below(n), above(n), back(n), front(n), along(n, 5)
        real(r8), intent(out) :: slope(n, 3), deviation(n)
        real(r8) :: x, y, z, low, high, most, rest, scale
        integer :: q

        do q = 1, n
            x = central((here(q) - left(q))*along(q, 1), (right(q) - here(q))*along(q, 2), (right(q) - left(q))*along(q, 3))
            y = central(here(q) - below(q), above(q) - here(q), 0.5_r8*(above(q) - below(q)))
            z = central(here(q) - back(q), front(q) - here(q), 0.5_r8*(front(q) - back(q)))
            low = min(here(q), left(q), right(q), below(q), above(q), back(q), front(q))
            high = max(here(q), left(q), right(q), below(q), above(q), back(q), front(q))
            most = max(abs(along(q, 4)), abs(along(q, 5)))*abs(x) + 0.25_r8*(abs(y) + abs(z))
            rest = min(most, here(q) - low, high - here(q))
            scale = rest/max(most, tiny(1.0_r8))
            slope(q, 1) = scale*x
            slope(q, 2) = scale*y
            slope(q, 3) = scale*z
            deviation(q) = rest
        end do
    end subroutine set_slopes

    !> Make the slopes of species that add up to the density add up to the density's: the difference is distributed by mass
    !> fractions. If a child might then have a negative amount of a species, its fraction is the parent's.
    pure subroutine join_species(n_species, n_variables, n, here, coefficient, slope)
        integer, intent(in) :: n_species, n_variables, n
        real(r8), intent(in) :: here(n_variables, n), coefficient(5, n)
        real(r8), intent(inout) :: slope(n_variables, n, 3)
        real(r8), parameter :: adds_up = 1.0e-9_r8
        real(r8) :: missing, least
        integer :: i, d, s, first, last

        first = first_species
        last = first_species + n_species - 1
        do i = 1, n
            if (abs(sum(here(first:last, i)) - here(v_dens, i)) > adds_up*here(v_dens, i)) cycle
            do d = 1, 3
                missing = (slope(v_dens, i, d) - sum(slope(first:last, i, d)))/here(v_dens, i)
                slope(first:last, i, d) = slope(first:last, i, d) + missing*here(first:last, i)
            end do
            least = 0.0_r8
            do s = first, last
                least = min(least, here(s, i) - maxval(abs(coefficient(4:5, i)))*abs(slope(s, i, 1)) &
                            - 0.25_r8*(abs(slope(s, i, 2)) + abs(slope(s, i, 3))))
            end do
            if (least >= 0.0_r8) cycle
            do d = 1, 3
                slope(first:last, i, d) = slope(v_dens, i, d)*here(first:last, i)/here(v_dens, i)
            end do
        end do
    end subroutine join_species

    !> `fine` as the buffer of unpack_box.
    subroutine unpack_fine(mesh, to, box, fine)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: to, box(2, 3)
        real(r8), intent(in) :: fine(mesh%n_variables*product(box(2, :) - box(1, :) + 1))

        call unpack_box(mesh, to, box, fine)
    end subroutine unpack_fine

    !> The starts of a star's rows: before the first value of the box' first zone, or of the row beyond the box.
    pure subroutine star_rows(n, n_variables, dims, at)
        integer, intent(in) :: n(3), n_variables, dims
        integer, intent(out) :: at(0:n(2) + 1, 0:n(3) + 1)
        integer :: j, k, p
        logical :: inside_j, inside_k

        at = 0
        p = 0
        do k = 0, n(3) + 1
            inside_k = k >= 1 .and. k <= n(3)
            if (dims == 2 .and. .not. inside_k) cycle
            do j = 0, n(2) + 1
                inside_j = j >= 1 .and. j <= n(2)
                if (inside_j .and. inside_k) then
                    at(j, k) = p + n_variables
                    p = p + n_variables*(n(1) + 2)
                else if (inside_j .or. inside_k) then
                    at(j, k) = p
                    p = p + n_variables*n(1)
                end if
            end do
        end do
    end subroutine star_rows

    !> The monotonised central slope from the slopes below, above and between both neighbours.
    elemental real(r8) function central(below, above, between)
        real(r8), intent(in) :: below, above, between

        central = (sign(0.5_r8, below) + sign(0.5_r8, above))*min(2.0_r8*abs(below), 2.0_r8*abs(above), abs(between))
    end function central

    !> Whether the children of a zone keep their internal energy: parent, slope and deviation by conserved
    !> variable; the slopes in each direction lie `stride` values apart.
    pure logical function energy_stays(parent, slope, stride, deviation, offset)
        integer, intent(in) :: stride
        real(r8), intent(in) :: parent(v_ener), slope(stride, 3), deviation(v_ener), offset(2)
        real(r8) :: least, child(v_ener)
        integer :: x, y, z

        energy_stays = .true.
        if (.not. parent(v_dens) > 0.0_r8) return
        least = least_energy*(parent(v_ener) - 0.5_r8*sum(parent(v_momx:v_momz)**2)/parent(v_dens))
        if (.not. least > 0.0_r8) return
        ! Mostly the worst case is sufficient.
        if ((parent(v_ener) - deviation(v_ener) - least)*(parent(v_dens) - deviation(v_dens)) &
            > 0.5_r8*sum((abs(parent(v_momx:v_momz)) + deviation(v_momx:v_momz))**2)) return
        do z = -1, 1, 2
            do y = -1, 1, 2
                do x = 1, 2
                    child = parent + offset(x)*slope(:v_ener, 1) + 0.25_r8*(y*slope(:v_ener, 2) + z*slope(:v_ener, 3))
                    if ((child(v_ener) - least)*child(v_dens) < 0.5_r8*sum(child(v_momx:v_momz)**2)) energy_stays = .false.
                end do
            end do
        end do
    end function energy_stays

end module ember_prolongation
