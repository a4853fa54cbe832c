!> Fills an allocated array, and prints its environment and its memory as the kernel shows them.
program shown
  use, intrinsic :: iso_fortran_env, only: int8, output_unit
  implicit none
  integer(int8), allocatable, volatile :: memory(:)
  allocate (memory(64*1024*1024))
  memory = 1_int8
  call show('/proc/self/environ')
  write (output_unit, '()')
  call show('/proc/self/smaps_rollup')
  if (memory(size(memory)/2) /= 1_int8) stop 1

contains

  subroutine show(name)
    character(len=*), intent(in) :: name
    character :: next
    integer :: unit, status
    open (newunit=unit, file=name, access='stream', form='unformatted', action='read', status='old')
    do
      read (unit, iostat=status) next
      if (status /= 0) exit
      write (output_unit, '(a)', advance='no') next
    end do
    close (unit)
  end subroutine show
end program shown
