!> Stand-ins for what the Helmholtz unit needs of Flash-X.
module Driver_interface
  implicit none
  private

  public :: Driver_abort

contains
  subroutine Driver_abort(message)
    character(*), intent(in) :: message

    print '(a)', message
    error stop 1
  end subroutine Driver_abort
end module Driver_interface

module Logfile_interface
  implicit none
  private

  public :: Logfile_stampMessage

contains
  subroutine Logfile_stampMessage(message)
    character(*), intent(in) :: message

    error stop 'the equation of state has something to log'
  end subroutine Logfile_stampMessage
end module Logfile_interface

module Timers_interface
  implicit none
  private

  public :: Timers_start, Timers_stop

contains
  subroutine Timers_start(name)
    character(*), intent(in) :: name
  end subroutine Timers_start

  subroutine Timers_stop(name)
    character(*), intent(in) :: name
  end subroutine Timers_stop
end module Timers_interface

module Eos_data
  implicit none
  private

  public :: eos_type, eos_meshMe, eos_eintSwitch, eos_smallt

  integer :: eos_type, eos_meshMe = 0
  real :: eos_eintSwitch = 0.0, eos_smallt
end module Eos_data

module RuntimeParameters_interface
  implicit none
  private

  public :: RuntimeParameters_get

  interface RuntimeParameters_get
     module procedure get_real, get_integer, get_logical
  end interface RuntimeParameters_get
contains
  !> Coulomb corrections are off: they are not in the table.
  subroutine get_real(name, value)
    character(*), intent(in) :: name
    real, intent(out) :: value

    value = 0.0
  end subroutine get_real

  subroutine get_integer(name, value)
    character(*), intent(in) :: name
    integer, intent(out) :: value

    value = 50
  end subroutine get_integer

  subroutine get_logical(name, value)
    character(*), intent(in) :: name
    logical, intent(out) :: value

    value = .false.
  end subroutine get_logical
end module RuntimeParameters_interface

!> One process has the table already.
subroutine MPI_Bcast(table, length, kind, root, communicator, error)
  implicit none
  integer, intent(in) :: length, kind, root, communicator
  integer, intent(out) :: error
  real, intent(in) :: table(length)

  error = 0
end subroutine MPI_Bcast

!> Flash-X would write a copy that only it reads.
subroutine eos_writeHfet(length, table)
  implicit none
  integer, intent(in) :: length
  real, intent(in) :: table(length)
end subroutine eos_writeHfet

subroutine eos_readHfet(length, table)
  implicit none
  integer, intent(in) :: length
  real, intent(out) :: table(length)

  error stop 'the table is text'
end subroutine eos_readHfet
