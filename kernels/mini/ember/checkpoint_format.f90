!> What the writer and the reader of checkpoints share: names, bounds, and the description of the mesh.
module ember_checkpoint_format
    use ember_mesh, only: cylindrical, outflow, reflecting
    use pw_error, only: error_t, exit_system
    use pw_kinds, only: r8
    implicit none
    private

    character(*), parameter :: format_name = 'ember checkpoint'
    integer, parameter :: format_version = 1
    integer, parameter :: bunch_bytes = 1024**2
    integer, parameter :: marker = 1     ! of a complete file

    ! Ember never writes values above these.
    integer, parameter :: max_variables = 256, max_names = 4096, max_text = 65536

    !> The description of the mesh in a checkpoint.
    type :: head_t
        integer :: dims = 0, roots(3) = 0, geometry = 0, boundary(2, 3) = 0, levels(2) = 0, block = 0, guards = 0, &
                   n_variables = 0, n_leaves = 0
        real(r8) :: lower(3) = 0.0_r8, upper(3) = 0.0_r8
    end type head_t

    public :: geometry_name, boundary_name, refuse, head_t, format_name, format_version, bunch_bytes, marker, max_variables, &
        max_names, max_text

contains

    pure function geometry_name(geometry) result(name)
        integer, intent(in) :: geometry
        character(:), allocatable :: name

        name = trim(merge('cylindrical', 'cartesian  ', geometry == cylindrical))
    end function geometry_name

    pure character(10) function boundary_name(boundary) result(name)
        integer, intent(in) :: boundary

        select case (boundary)
        case (reflecting)
            name = 'reflecting'
        case (outflow)
            name = 'outflow'
        case default
            name = 'periodic'
        end select
    end function boundary_name

    !> Raise the error for an unusable file.
    subroutine refuse(path, reason, error)
        character(*), intent(in) :: path, reason
        type(error_t), intent(inout) :: error

        if (error%failed()) return
        call error%raise(exit_system, "cannot read the checkpoint '"//path//"': "//reason, 'read_checkpoint', &
                         'use another checkpoint')
    end subroutine refuse

end module ember_checkpoint_format
