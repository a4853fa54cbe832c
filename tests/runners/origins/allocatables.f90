! Allocatable arrays of a module, and a static one.
module fields
  implicit none
  real(8), allocatable :: density(:), energy(:, :)
  real(8), save :: lookup(50 * 512)
contains
  subroutine allocate_fields(n)
    integer, intent(in) :: n
    allocate (density(n))
    allocate (energy(n, 2))
  end subroutine allocate_fields

  subroutine sweep(values, times)
    real(8), intent(inout) :: values(:)
    integer, intent(in) :: times
    integer :: i, k
    do k = 1, times
      do i = 1, size(values), 512
        values(i) = values(i) + k
      end do
    end do
  end subroutine sweep
end module fields

program main
  use fields
  implicit none
  call allocate_fields(100 * 512)
  call sweep(density, 20)
  call sweep(energy(:, 2), 10)
  call sweep(lookup, 30)
end program main
