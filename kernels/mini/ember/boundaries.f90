!> The boundaries of the domain: which faces of leaves are on them, and the guard cells beyond them.
module ember_boundaries
    use ember_container, only: copy_box, make_view, view_t
    use ember_mesh, only: mesh_t, reflecting, v_momx
    implicit none
    private

    public :: touches_boundary, on_boundary, fill_boundaries

contains

    !> Whether `leaf` has a face on the boundary of the domain.
    pure logical function touches_boundary(mesh, leaf)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        integer :: d

        touches_boundary = .false.
        do d = 1, mesh%dims
            if (on_boundary(mesh, leaf, d, 1) .or. on_boundary(mesh, leaf, d, 2)) touches_boundary = .true.
        end do
    end function touches_boundary

    !> Whether the lower (1) or upper (2) face of `leaf` in direction `d` is on the boundary of the domain.
    pure logical function on_boundary(mesh, leaf, d, side)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf, d, side

        if (mesh%tree%periodic(d)) then
            on_boundary = .false.
        else if (side == 1) then
            on_boundary = mesh%tree%place(d, leaf) == 0
        else
            on_boundary = mesh%tree%place(d, leaf) == shiftl(mesh%tree%roots(d), mesh%tree%level(leaf)) - 1
        end if
    end function on_boundary

    !> Fill the guard cells of `leaf` beyond the boundary of the domain: each direction includes the guard cells of the
    !> previous ones, so that edges are correct.
    subroutine fill_boundaries(mesh, leaf)
        type(mesh_t), intent(inout) :: mesh
        integer, intent(in) :: leaf
        type(view_t) :: view
        integer :: from(2, 3), to(2, 3), d, side, g, slot, first, i, j, k

        slot = mesh%slot(leaf)
        call make_view(mesh, slot, view)
        do d = 1, mesh%dims
            do side = 1, 2
                if (.not. on_boundary(mesh, leaf, d, side)) cycle
                from = mesh%bounds()
                to = from
                do g = 1, mesh%guards
                    to(:, d) = merge(1 - g, mesh%block + g, side == 1)
                    ! Outflow has no gradient.
                    from(:, d) = merge(1, mesh%block, side == 1)
                    if (mesh%boundary(side, d) == reflecting) from(:, d) = merge(g, mesh%block + 1 - g, side == 1)
                    call copy_box(mesh, slot, from, slot, to)
                    if (mesh%boundary(side, d) /= reflecting) cycle
                    do k = to(1, 3), to(2, 3)
                        do j = to(1, 2), to(2, 2)
                            first = view%origin + (v_momx + d - 1)*view%variable + sum(view%zone*[0, j, k])
                            do i = to(1, 1), to(2, 1)
                                view%values(first + i*view%zone(1)) = -view%values(first + i*view%zone(1))
                            end do
                        end do
                    end do
                end do
            end do
        end do
    end subroutine fill_boundaries

end module ember_boundaries
