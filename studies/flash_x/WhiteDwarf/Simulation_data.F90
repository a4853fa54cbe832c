!> The initial star: parameters and the profile of its density.
module Simulation_data
  implicit none
#include "Simulation.h"

  !> Shells of the profile.
  integer, parameter :: sim_nShells = 1500

  real, save :: sim_densCenter, sim_densAmbient, sim_temp
  real, save :: sim_massFrac(NSPECIES)
  real, save :: sim_radius(0:sim_nShells), sim_dens(0:sim_nShells)   ! [cm], [g/cm^3], from the centre outwards
end module Simulation_data
