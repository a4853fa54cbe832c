!> Mass and charge numbers of carbon and oxygen.
subroutine Simulation_initSpecies()
  use Multispecies_interface, ONLY : Multispecies_setProperty

  implicit none
#include "Simulation.h"
#include "Multispecies.h"

  call Multispecies_setProperty(C12_SPEC, A, 12.0)
  call Multispecies_setProperty(C12_SPEC, Z, 6.0)
  call Multispecies_setProperty(O16_SPEC, A, 16.0)
  call Multispecies_setProperty(O16_SPEC, Z, 8.0)
end subroutine Simulation_initSpecies
