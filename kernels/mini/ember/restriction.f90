!> Restriction: coarse zones from the means of the fine ones that they cover, between boxes of the container's blocks.
module ember_restriction
    use ember_container, only: make_view, short, view_t
    use ember_mesh, only: mesh_t
    use pw_kinds, only: r8
    implicit none
    private

    public :: restrict_box, restrict_to

contains

    !> The means over pairs of zones in each direction of slot `from`, weighted by volume: `box` counts the means, from 1 to
    !> half a block's zones in each direction; `volume` (mesh%first:mesh%last) is that of the leaf's zones
    !> (mesh%zone_volumes). The sums go by pairs, so that a mirrored block has mirrored means to the last bit.
    subroutine restrict_box(mesh, from, volume, box, buffer)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: from, box(2, 3)
        real(r8), intent(in) :: volume(mesh%first:mesh%last)
        real(r8), contiguous, intent(inout) :: buffer(:)
        integer :: n(3), stride(0:4)

        n = box(2, :) - box(1, :) + 1
        stride(1) = 1
        stride(2) = mesh%n_variables
        stride(3) = stride(2)*n(1)
        stride(4) = stride(3)*n(2)
        stride(0) = -sum(stride(2:)*box(1, :))
        call restrict_any(mesh, from, volume, box, buffer, stride)
    end subroutine restrict_box

    !> The same means into `to_box` of slot `to`.
    subroutine restrict_to(mesh, from, volume, box, to, to_box)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: from, box(2, 3), to, to_box(2, 3)
        real(r8), intent(in) :: volume(mesh%first:mesh%last)
        type(view_t) :: view

        call make_view(mesh, to, view)
        call restrict_any(mesh, from, volume, box, view%values, &
                          [view%origin + sum(view%zone*(to_box(1, :) - box(1, :))), view%variable, view%zone])
    end subroutine restrict_to

    !> Means of slot `from` to means(dot_product(stride, [1, v, i, j, k])), of mean (i, j, k) in the count of `box`. With
    !> the variable first its stride is 1.
    subroutine restrict_any(mesh, from, volume, box, means, stride)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: from, box(2, 3), stride(0:4)
        real(r8), intent(in) :: volume(mesh%first:mesh%last)
        real(r8), intent(inout) :: means(*)
        real(r8) :: tilt(mesh%block/2)
        type(view_t) :: view
        integer :: i

        do i = 1, mesh%block/2
            tilt(i) = (volume(2*i) - volume(2*i - 1))/(volume(2*i) + volume(2*i - 1))
        end do
        call make_view(mesh, from, view)
        if (mesh%variable_last) then
            call restrict_planes(view%values, tilt, box, mesh%n_variables, mesh%bounds(), means, stride)
        else
            call restrict_rows(view%values, tilt, box, mesh%n_variables, mesh%bounds(), means, stride)
        end if
    end subroutine restrict_any

    pure subroutine restrict_rows(zones, tilt, box, n_variables, bounds, means, stride)
        integer, intent(in) :: box(2, 3), n_variables, bounds(2, 3), stride(0:4)
        real(r8), intent(in) :: zones(n_variables, bounds(1, 1):bounds(2, 1), bounds(1, 2):bounds(2, 2), bounds(1, 3):bounds(2, 3))
        real(r8), intent(in) :: tilt(*)
        real(r8), intent(inout) :: means(*)
        real(r8) :: t
        integer :: i, j, k, v, f, g, h(2), p

        do k = box(1, 3), box(2, 3)
            h = pair_of(k, bounds(1, 3) == bounds(2, 3))
            do j = box(1, 2), box(2, 2)
                g = 2*j - 1
                do i = box(1, 1), box(2, 1)
                    f = 2*i - 1
                    t = tilt(i)
                    p = stride(0) + stride(2)*i + stride(3)*j + stride(4)*k
                    do v = 1, n_variables
                        means(p + v) = 0.125_r8*((pair(zones(v, f, g, h(1)), zones(v, f + 1, g, h(1)), t) &
                                                  + pair(zones(v, f, g + 1, h(1)), zones(v, f + 1, g + 1, h(1)), t)) &
                                                 + (pair(zones(v, f, g, h(2)), zones(v, f + 1, g, h(2)), t) &
                                                    + pair(zones(v, f, g + 1, h(2)), zones(v, f + 1, g + 1, h(2)), t)))
                    end do
                end do
            end do
        end do
    end subroutine restrict_rows

    pure subroutine restrict_planes(zones, tilt, box, n_variables, bounds, means, stride)
        integer, intent(in) :: box(2, 3), n_variables, bounds(2, 3), stride(0:4)
        real(r8), intent(in) :: zones(bounds(1, 1):bounds(2, 1), bounds(1, 2):bounds(2, 2), bounds(1, 3):bounds(2, 3), n_variables)
        real(r8), intent(in) :: tilt(*)
        real(r8), intent(inout) :: means(*)
        real(r8) :: t
        integer :: i, j, k, v, f, g, h(2), p

        do k = box(1, 3), box(2, 3)
            h = pair_of(k, bounds(1, 3) == bounds(2, 3))
            do v = 1, n_variables
                if (box(2, 1) - box(1, 1) < short) then
                    do i = box(1, 1), box(2, 1)
                        f = 2*i - 1
                        t = tilt(i)
                        p = stride(0) + stride(1)*v + stride(2)*i + stride(4)*k
                        do j = box(1, 2), box(2, 2)
                            g = 2*j - 1
                            means(p + stride(3)*j) = &
                                0.125_r8*((pair(zones(f, g, h(1), v), zones(f + 1, g, h(1), v), t) &
                                           + pair(zones(f, g + 1, h(1), v), zones(f + 1, g + 1, h(1), v), t)) &
                                          + (pair(zones(f, g, h(2), v), zones(f + 1, g, h(2), v), t) &
                                             + pair(zones(f, g + 1, h(2), v), zones(f + 1, g + 1, h(2), v), t)))
                        end do
                    end do
                else
                    do j = box(1, 2), box(2, 2)
                        g = 2*j - 1
                        p = stride(0) + stride(1)*v + stride(3)*j + stride(4)*k
                        do i = box(1, 1), box(2, 1)
                            f = 2*i - 1
                            means(p + stride(2)*i) = &
                                0.125_r8*((pair(zones(f, g, h(1), v), zones(f + 1, g, h(1), v), tilt(i)) &
                                           + pair(zones(f, g + 1, h(1), v), zones(f + 1, g + 1, h(1), v), tilt(i))) &
                                          + (pair(zones(f, g, h(2), v), zones(f + 1, g, h(2), v), tilt(i)) &
                                             + pair(zones(f, g + 1, h(2), v), zones(f + 1, g + 1, h(2), v), tilt(i))))
                        end do
                    end do
                end if
            end do
        end do
    end subroutine restrict_planes

    !> The two zones of mean k in the third direction; in a plane its only zone, twice: halving doubled sums gives the same
    !> bits.
    pure function pair_of(k, plane) result(h)
        integer, intent(in) :: k
        logical, intent(in) :: plane
        integer :: h(2)

        h = [2*k - 1, 2*k]
        if (plane) h = 1
    end function pair_of

    !> Twice the mean of two zones, weighted by volumes whose difference is `tilt` of their sum. A single product gives
    !> compilers no choice of contractions, so that layouts agree to the last bit.
    elemental real(r8) function pair(lower, upper, tilt)
        real(r8), intent(in) :: lower, upper, tilt

        pair = (lower + upper) + tilt*(upper - lower)
    end function pair

end module ember_restriction
