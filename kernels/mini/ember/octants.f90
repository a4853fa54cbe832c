!> The octants of a leaf, which siblings of the next level cover.
module ember_octants
    use ember_mesh, only: mesh_t
    use ember_tree, only: tree_t
    implicit none
    private

    public :: interior, octant_box, octant_values, octant_of

contains

    !> All zones of a block except guard cells.
    pure function interior(mesh) result(box)
        type(mesh_t), intent(in) :: mesh
        integer :: box(2, 3)

        box(1, :) = 1
        box(2, :) = mesh%zones()
    end function interior

    !> The zones of the octant (quadrant) `c` of a block, from 0 in Morton order.
    pure function octant_box(mesh, c) result(box)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: c
        integer :: box(2, 3), half(3)

        half = max(1, mesh%zones()/2)
        box(1, :) = 1 + half*[ibits(c, 0, 1), ibits(c, 1, 1), ibits(c, 2, 1)]
        box(2, :) = box(1, :) + half - 1
    end function octant_box

    !> Values in an octant.
    pure integer function octant_values(mesh)
        type(mesh_t), intent(in) :: mesh

        octant_values = mesh%n_variables*product(max(1, mesh%zones()/2))
    end function octant_values

    !> The octant of its parent that a leaf is.
    pure integer function octant_of(tree, leaf) result(c)
        type(tree_t), intent(in) :: tree
        integer, intent(in) :: leaf

        c = iand(tree%place(1, leaf), 1) + 2*iand(tree%place(2, leaf), 1)
        if (tree%dims == 3) c = c + 4*iand(tree%place(3, leaf), 1)
    end function octant_of

end module ember_octants
