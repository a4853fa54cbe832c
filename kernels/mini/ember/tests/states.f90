!> Shared by the tests of ember that write files: meshes of several levels and their states.
module ember_test_states
    use ember_container, only: store_interior
    use ember_mesh, only: cylindrical, first_species, mesh_t, outflow, periodic, reflecting, v_dens, v_ener, v_gamc, v_momx, &
        v_momz, v_pres, v_temp
    use ember_output_info, only: append, output_info_t
    use ember_parallel, only: comm_t
    use ember_test_meshes, only: give_container, share_out, take_slots
    use ember_testing, only: expect_success
    use ember_tree, only: tree_t
    use ember_tree_adapt, only: adapt_tree
    use pw_error, only: error_t
    use pw_kinds, only: r8
    implicit none
    private

    real(r8), parameter :: pi = acos(-1.0_r8)

    public :: build_mesh, fill_smooth, some_info

contains

    !> A mesh of several levels on the ranks of `comm`, with its container; `spare` slots stay free.
    subroutine build_mesh(mesh, comm, dims, geometry, variable_last, spare)
        type(mesh_t), intent(out) :: mesh
        type(comm_t), intent(in) :: comm
        integer, intent(in) :: dims, geometry, spare
        logical, intent(in) :: variable_last
        type(error_t) :: error
        type(tree_t) :: refined
        integer, allocatable :: mark(:), origin_kind(:), origin(:)
        integer :: leaf, pass, roots(3)
        logical :: is_periodic(3)

        call describe(mesh, dims, geometry, variable_last)
        roots = mesh%tree%roots
        is_periodic = mesh%tree%periodic
        call mesh%tree%start(dims, roots, is_periodic, 0, error)
        call expect_success(error, 'tree')
        do pass = 1, mesh%highest_level
            allocate (mark(mesh%tree%n_leaves), source=0)
            do leaf = 1, mesh%tree%n_leaves
                if (holds_corner(mesh, leaf)) mark(leaf) = 1
            end do
            call adapt_tree(mesh%tree, mark, mesh%lowest_level, mesh%highest_level, refined, origin_kind, origin)
            mesh%tree = refined
            deallocate (mark)
        end do
        call share_out(mesh, comm%rank, comm%n_ranks)
        call give_container(mesh, size(mesh%local) + spare)
        call take_slots(mesh)
    end subroutine build_mesh

    !> Refine around a point off the symmetry axes.
    pure logical function holds_corner(mesh, leaf)
        type(mesh_t), intent(in) :: mesh
        integer, intent(in) :: leaf
        real(r8) :: low(3), width(3), point(3)

        low = mesh%block_corner(leaf)
        width = mesh%zone_size(mesh%tree%level(leaf))*mesh%zones()
        point = mesh%lower + 0.3_r8*(mesh%upper - mesh%lower)
        holds_corner = all(low(:mesh%dims) <= point(:mesh%dims) .and. point(:mesh%dims) < low(:mesh%dims) + width(:mesh%dims))
    end function holds_corner

    subroutine describe(mesh, dims, geometry, variable_last)
        type(mesh_t), intent(out) :: mesh
        integer, intent(in) :: dims, geometry
        logical, intent(in) :: variable_last

        mesh%dims = dims
        mesh%geometry = geometry
        mesh%variable_last = variable_last
        mesh%n_species = 2
        mesh%n_variables = first_species - 1 + mesh%n_species
        mesh%highest_level = 3
        mesh%tree%dims = dims
        if (dims == 3) then
            mesh%highest_level = 2
            mesh%lower = [-0.5_r8, 0.0_r8, 0.25_r8]
            mesh%upper = [0.5_r8, 1.0_r8, 1.25_r8]
        else if (geometry == cylindrical) then
            mesh%lower = [0.0_r8, -1.0_r8, 0.0_r8]
            mesh%upper = [1.0_r8, 1.0_r8, 1.0_r8]
            mesh%tree%roots = [1, 2, 1]
        else
            mesh%lower = [0.0_r8, -0.5_r8, 0.0_r8]
            mesh%upper = [1.5_r8, 0.5_r8, 1.0_r8]
            mesh%tree%roots = [3, 2, 1]
        end if
        mesh%boundary(:, 1) = [reflecting, outflow]
        mesh%boundary(:, 2) = periodic
        mesh%boundary(:, 3) = outflow
        if (geometry == cylindrical) mesh%boundary(:, 2) = outflow
        mesh%tree%periodic = mesh%boundary(1, :) == periodic
    end subroutine describe

    !> A smooth state; test_plotfile.py has the same formulas.
    subroutine fill_smooth(mesh)
        type(mesh_t), intent(inout) :: mesh
        real(r8), allocatable :: u(:, :, :, :)
        real(r8) :: width(3), corner(3), x(3), velocity(3), share
        integer :: l, leaf, i, j, k, zones(3)

        zones = mesh%zones()
        allocate (u(mesh%n_variables, zones(1), zones(2), zones(3)))
        do l = 1, size(mesh%local)
            leaf = mesh%local(l)
            width = mesh%zone_size(mesh%tree%level(leaf))
            corner = mesh%block_corner(leaf)
            do k = 1, zones(3)
                do j = 1, zones(2)
                    do i = 1, zones(1)
                        x = corner + width*([i, j, k] - 0.5_r8)
                        if (mesh%dims == 2) x(3) = 0.0_r8
                        velocity = [x(1) - 0.3_r8, 0.5_r8*x(2) + 1.0_r8, x(3)*x(1) + 0.25_r8]
                        share = 0.25_r8 + 0.1_r8*x(1)
                        u(v_dens, i, j, k) = 2.0_r8 + sin(2.0_r8*pi*x(1))*cos(2.0_r8*pi*x(2)) + 0.4_r8*(1.0_r8 + x(1))*(x(2) + x(3))
                        u(v_momx:v_momz, i, j, k) = u(v_dens, i, j, k)*velocity
                        u(v_pres, i, j, k) = 1.0_r8 + 0.1_r8*x(1) + 0.2_r8*x(2)**2 + 0.3_r8*x(3)
                        u(v_ener, i, j, k) = u(v_pres, i, j, k)/0.4_r8 + 0.5_r8*u(v_dens, i, j, k)*sum(velocity**2)
                        u(v_temp, i, j, k) = 300.0_r8*u(v_pres, i, j, k)/u(v_dens, i, j, k)
                        u(v_gamc, i, j, k) = 1.4_r8
                        u(first_species, i, j, k) = u(v_dens, i, j, k)*share
                        u(first_species + 1, i, j, k) = u(v_dens, i, j, k)*(1.0_r8 - share)
                    end do
                end do
            end do
            call store_interior(mesh, mesh%slot(leaf), u)
        end do
    end subroutine fill_smooth

    function some_info() result(info)
        type(output_info_t) :: info

        info%time = 0.1_r8
        info%dt = 1.0e-3_r8/3.0_r8
        info%step = 17
        info%problem = 'test'
        allocate (info%species(2))
        info%species(1) = 'he4'
        info%species(2) = 'neon20'
        call append(info%parameters, 'gamma', '1.4')
        call append(info%parameters, 'cfl', '0.4')
        call append(info%parameters, 'levels', '4')
        call append(info%parameters, 'verbose', 'true')
        call append(info%parameters, 'geometry', 'as it is')
        call append(info%parameters, 'note', 'a text'//repeat(' that is long', 10))
        call append(info%parameters, 'empty', '')
    end function some_info

end module ember_test_states
