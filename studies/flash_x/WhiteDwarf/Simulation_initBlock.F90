!> Fill a block with the star at rest and the matter around it. solnData: the block's variables; tileDesc: its place.
!!REORDER(4): solnData
subroutine Simulation_initBlock(solnData, tileDesc)
  use Simulation_data
  use Eos_interface, ONLY : Eos
  use Grid_interface, ONLY : Grid_getCellCoords
  use Grid_tile, ONLY : Grid_tile_t

  implicit none
#include "constants.h"
#include "Simulation.h"
#include "Eos.h"

  real, pointer :: solnData(:,:,:,:)
  type(Grid_tile_t), intent(in) :: tileDesc
  real, allocatable :: x(:), y(:), z(:)
  real :: dens, temp, pres, eint, gamc, entr, abar, zbar, ye
  integer :: lo(MDIM), hi(MDIM), i, j, k

  lo = tileDesc%limits(LOW, :)
  hi = tileDesc%limits(HIGH, :)
  call centers(IAXIS, x)
  call centers(JAXIS, y)
  call centers(KAXIS, z)
  do k = lo(KAXIS), hi(KAXIS)
     do j = lo(JAXIS), hi(JAXIS)
        do i = lo(IAXIS), hi(IAXIS)
           dens = densityAt(x(i)**2 + y(j)**2 + z(k)**2)
           temp = sim_temp
           call Eos(MODE_DENS_TEMP, pres, temp, dens, gamc, eint, entr, abar, zbar, ye, massFrac=sim_massFrac)
           solnData(DENS_VAR,i,j,k) = dens
           solnData(TEMP_VAR,i,j,k) = temp
           solnData(PRES_VAR,i,j,k) = pres
           solnData(EINT_VAR,i,j,k) = eint
           solnData(ENER_VAR,i,j,k) = eint
           solnData(GAMC_VAR,i,j,k) = gamc
           solnData(GAME_VAR,i,j,k) = pres/(eint*dens) + 1.0
           solnData(VELX_VAR:VELZ_VAR,i,j,k) = 0.0
           solnData(SPECIES_BEGIN:SPECIES_END,i,j,k) = sim_massFrac
        end do
     end do
  end do

contains

  !> The cells' centres along an axis; zero along one that the simulation does not have.
  subroutine centers(axis, at)
    integer, intent(in) :: axis
    real, allocatable, intent(out) :: at(:)

    allocate(at(lo(axis):hi(axis)))
    at = 0.0
    if (axis <= NDIM) call Grid_getCellCoords(axis, CENTER, tileDesc%level, lo, hi, at)
  end subroutine centers

  !> The profile's density [g/cm^3] at the radius squared [cm^2], in which it is smooth at the centre.
  real function densityAt(square)
    real, intent(in) :: square
    integer :: inner, outer, middle

    densityAt = sim_densAmbient
    if (square >= sim_radius(sim_nShells)**2) return
    inner = 0
    outer = sim_nShells
    do while (outer - inner > 1)
       middle = (inner + outer)/2
       if (square < sim_radius(middle)**2) then
          outer = middle
       else
          inner = middle
       end if
    end do
    densityAt = sim_dens(inner) + (sim_dens(outer) - sim_dens(inner))* &
                (square - sim_radius(inner)**2)/(sim_radius(outer)**2 - sim_radius(inner)**2)
  end function densityAt

end subroutine Simulation_initBlock
