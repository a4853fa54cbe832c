!> Compute the profile of an isothermal star in hydrostatic equilibrium, dP/dr = -G m rho/r^2 and dm/dr = 4 pi r^2 rho.
!>
!> With the density as the independent variable there are no small steps at the steep surface, and no equation of state has
!> to be inverted: dr/dln(rho) = -(dP/drho) r^2/(G m), by the midpoint rule. At the centre ln(rho) falls with r^2; its steps
!> grow so that those of r are equal there.
subroutine Simulation_init()
  use Simulation_data
  use Logfile_interface, ONLY : Logfile_stamp
  use PhysicalConstants_interface, ONLY : PhysicalConstants_get
  use RuntimeParameters_interface, ONLY : RuntimeParameters_get

  implicit none
#include "constants.h"
#include "Simulation.h"

  real, parameter :: sunMass = 1.98841e33   ! [g], IAU 2015 and CODATA 2018
  real :: gravity, step, r, m, rMid, mMid, rhoMid
  integer :: i

  call RuntimeParameters_get('sim_densCenter', sim_densCenter)
  call RuntimeParameters_get('sim_densAmbient', sim_densAmbient)
  call RuntimeParameters_get('sim_temp', sim_temp)
  call RuntimeParameters_get('sim_xc12', sim_massFrac(C12_SPEC - SPECIES_BEGIN + 1))
  sim_massFrac(O16_SPEC - SPECIES_BEGIN + 1) = 1.0 - sim_massFrac(C12_SPEC - SPECIES_BEGIN + 1)
  call PhysicalConstants_get('Newton', gravity)

  sim_dens = [(sim_densCenter*(sim_densAmbient/sim_densCenter)**((real(i)/sim_nShells)**2), i = 0, sim_nShells)]
  ! The innermost shell has constant density: P falls by 2/3 pi G rho^2 r^2.
  sim_radius(0) = 0.0
  r = sqrt(1.5*slope(sim_densCenter)*(sim_dens(0) - sim_dens(1))/(PI*gravity*sim_densCenter**2))
  m = 4.0/3.0*PI*r**3*sim_densCenter
  sim_radius(1) = r
  do i = 2, sim_nShells
     step = log(sim_dens(i)/sim_dens(i-1))
     rhoMid = sqrt(sim_dens(i)*sim_dens(i-1))
     rMid = r + 0.5*step*growth(r, m, sim_dens(i-1))
     mMid = m + 4.0*PI*r**2*sim_dens(i-1)*(rMid - r)
     m = m + 4.0*PI*rMid**2*rhoMid*step*growth(rMid, mMid, rhoMid)
     r = r + step*growth(rMid, mMid, rhoMid)
     sim_radius(i) = r
  end do
  call Logfile_stamp(m/sunMass, '[WhiteDwarf] mass in solar masses')
  call Logfile_stamp(r, '[WhiteDwarf] radius in cm')

contains

  !> dr/dln(rho).
  real function growth(r, m, rho)
    real, intent(in) :: r, m, rho

    growth = -slope(rho)*r**2/(gravity*m)
  end function growth

  !> dP/drho at constant temperature.
  real function slope(rho)
    use Eos_interface, ONLY : Eos
#include "Eos.h"
    real, intent(in) :: rho
    real :: pres, temp, dens, gamc, eint, entr, abar, zbar, ye, derivs(EOS_VARS+1:EOS_NUM)

    temp = sim_temp
    dens = rho
    call Eos(MODE_DENS_TEMP, pres, temp, dens, gamc, eint, entr, abar, zbar, ye, massFrac=sim_massFrac, derivs=derivs)
    slope = derivs(EOS_DPD)
  end function slope

end subroutine Simulation_init
