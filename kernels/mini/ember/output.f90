!> Output: plotfiles, checkpoints and restart, and the names of their files.
module ember_output
    use ember_checkpoint, only: write_checkpoint
    use ember_checkpoint_reader, only: read_checkpoint, read_checkpoint_head
    use ember_output_info, only: name_length, output_info_t
    use ember_plotfile, only: write_plotfile
    implicit none
    private

    public :: output_info_t, name_length
    public :: write_plotfile, write_checkpoint, read_checkpoint, read_checkpoint_head
    public :: plotfile_name, checkpoint_name, remove_file

contains

    !> The name of plotfile `number` of the run `base`, such as folder/sedov: yt recognises its kind by hdf5_plt_cnt.
    pure function plotfile_name(base, number) result(name)
        character(*), intent(in) :: base
        integer, intent(in) :: number
        character(:), allocatable :: name

        name = base//'_hdf5_plt_cnt_'//counted(number)
    end function plotfile_name

    !> The name of checkpoint `number` of the run `base`.
    pure function checkpoint_name(base, number) result(name)
        character(*), intent(in) :: base
        integer, intent(in) :: number
        character(:), allocatable :: name

        name = base//'_checkpoint_'//counted(number)
    end function checkpoint_name

    !> Remove a file if it exists.
    subroutine remove_file(path)
        character(*), intent(in) :: path
        integer :: unit, status

        open (newunit=unit, file=path, status='old', iostat=status)
        ! A file that cannot be removed is replaced, or refused, by what writes it.
        ! allow(C181)
        if (status == 0) close (unit, status='delete', iostat=status)
    end subroutine remove_file

    !> At least four digits.
    pure function counted(number) result(text)
        integer, intent(in) :: number
        character(:), allocatable :: text
        character(16) :: buffer

        write (buffer, '(i0.4)') number
        text = trim(buffer)
    end function counted

end module ember_output
