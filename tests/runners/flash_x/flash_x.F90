!> Stand-ins for what the white dwarf's simulation needs of Flash-X. The equation of state is P = K rho^2, whose star is known.
module Polytrope
  implicit none

  real, parameter :: gravity = 6.67408e-8, scale = 6.0e7   ! [cgs]; [cm]
  real, parameter :: k = 2.0*3.1415926535897932384*gravity*scale**2
end module Polytrope

module RuntimeParameters_interface
  implicit none
contains
  subroutine RuntimeParameters_get(name, value)
    character(*), intent(in) :: name
    real, intent(out) :: value

    select case (name)
    case ('sim_densCenter')
       value = 2.0e9
    case ('sim_densAmbient')
       value = 1.0e3
    case ('sim_temp')
       value = 1.0e8
    case ('sim_xc12')
       value = 0.25
    case default
       error stop 'a parameter that does not exist'
    end select
  end subroutine RuntimeParameters_get
end module RuntimeParameters_interface

module PhysicalConstants_interface
  use Polytrope, ONLY : gravity
  implicit none
contains
  subroutine PhysicalConstants_get(name, value)
    character(*), intent(in) :: name
    real, intent(out) :: value

    if (name /= 'Newton') error stop 'a constant that does not exist'
    value = gravity
  end subroutine PhysicalConstants_get
end module PhysicalConstants_interface

module Logfile_interface
  implicit none
contains
  subroutine Logfile_stamp(value, tag)
    real, intent(in) :: value
    character(*), intent(in) :: tag

    print '(a, es24.16e3)', 'log '//tag(index(tag, ' ') + 1:index(tag, ' in ')), value
  end subroutine Logfile_stamp
end module Logfile_interface

module Eos_interface
  implicit none
#include "Eos.h"
#include "Simulation.h"
#include "constants.h"
contains
  subroutine Eos(mode, pres, temp, dens, gamc, eint, entr, abar, zbar, ye, massFrac, derivs)
    use Polytrope, ONLY : k
    integer, intent(in) :: mode
    real, intent(inout) :: pres, temp, dens, gamc, eint, entr, abar, zbar, ye
    real, intent(in) :: massFrac(NSPECIES)
    real, optional, intent(out) :: derivs(EOS_VARS+1:EOS_NUM)

    if (mode /= MODE_DENS_TEMP .or. temp /= 1.0e8 .or. sum(massFrac) /= 1.0) error stop 'wrong arguments of Eos'
    pres = k*dens**2
    eint = pres/dens
    gamc = 2.0
    entr = 0.0
    abar = 1.0
    zbar = 1.0
    ye = 1.0
    if (present(derivs)) derivs = huge(pres)
    if (present(derivs)) derivs(EOS_DPD) = 2.0*k*dens
  end subroutine Eos
end module Eos_interface

module Grid_tile
  implicit none
#include "constants.h"
  type Grid_tile_t
     integer :: level = 3, limits(LOW:HIGH, MDIM) = reshape([17, 32, 1, 16, 1, 1], [2, MDIM])
  end type Grid_tile_t
end module Grid_tile

module Grid_interface
  implicit none
#include "constants.h"
contains
  !> Cells of 1/64 of 4e8 cm; the second axis begins at -1e8 cm.
  subroutine Grid_getCellCoords(axis, edge, level, lo, hi, at)
    integer, intent(in) :: axis, edge, level, lo(MDIM), hi(MDIM)
    real, intent(out) :: at(hi(axis) - lo(axis) + 1)
    integer :: i

    if (edge /= CENTER .or. level /= 3) error stop 'wrong arguments of Grid_getCellCoords'
    at = [((real(i) - 0.5)*4.0e8/64, i = lo(axis), hi(axis))]
    if (axis == JAXIS) at = at - 1.0e8
  end subroutine Grid_getCellCoords
end module Grid_interface

!> Print the profile, and the cells of a block.
program main
  use Grid_tile, ONLY : Grid_tile_t
  use Polytrope, ONLY : scale
  use Simulation_data
  implicit none

  interface
     subroutine Simulation_initBlock(solnData, tileDesc)
       use Grid_tile, ONLY : Grid_tile_t
       real, pointer :: solnData(:,:,:,:)
       type(Grid_tile_t), intent(in) :: tileDesc
     end subroutine Simulation_initBlock
  end interface

  real, pointer :: solnData(:,:,:,:)
  type(Grid_tile_t) :: tile
  integer :: i, j

  call Simulation_init()
  do i = 0, sim_nShells
     print '(a, 2es24.16e3)', 'shell', sim_radius(i)/scale, sim_dens(i)
  end do
  allocate(solnData(NUNK_VARS, 17:32, 1:16, 1:1))
  solnData = huge(1.0)
  call Simulation_initBlock(solnData, tile)
  do j = 1, 16
     do i = 17, 32
        print '(a, 2i4, 12es24.16e3)', 'cell', i, j, solnData(:, i, j, 1)
     end do
  end do
end program main
