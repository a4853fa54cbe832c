!> Evaluate Flash-X's equation of state at the points of standard input, for hydrogen, whose density is x: print pressure,
!> chemical potential and number of electrons and positrons.
program main
  use eos_helmData, only: abarRow, denRow, etaRow, neRow, pelRow, tempRow, zbarRow
  implicit none
  integer :: status

  call eos_helmSpeciesInit()
  abarRow = 1.0
  zbarRow = 1.0
  do
     read (*, *, iostat=status) denRow, tempRow
     if (status /= 0) exit
     call eos_helm()
     print '(a, 3es26.16e3)', 'point ', pelRow, etaRow, neRow
  end do
end program main
