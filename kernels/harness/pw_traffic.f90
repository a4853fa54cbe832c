!> Traffic of kernels by the facts in their kernel.yaml.
module pw_traffic
    use pw_kinds, only: r8
    use pw_line, only: line_bytes
    use pw_record, only: traffic_t
    implicit none
    private

    !> `traffic` in kernel.yaml: words of element_bytes that are loaded, stored, and read because their line is stored
    !> (write-allocate); or the cache lines that are moved for single words; and flops. Per element or the unit named there.
    type, public :: per_element_t
        real(r8) :: loads = 0.0_r8, stores = 0.0_r8, write_allocate = 0.0_r8, lines = 0.0_r8, flops = 0.0_r8
        real(r8) :: element_bytes = 8.0_r8
    contains
        procedure :: times
    end type per_element_t

contains

    !> The traffic of `units` elements or units with these stores: only regular ones, the default, read their line.
    pure function times(self, units, stores) result(moved)
        class(per_element_t), intent(in) :: self
        real(r8), intent(in) :: units
        character(*), intent(in), optional :: stores
        type(traffic_t) :: moved
        logical :: regular

        regular = .true.
        if (present(stores)) regular = stores == 'regular'
        moved%bytes_stream = (self%loads + self%stores)*self%element_bytes*units
        moved%bytes_hardware = moved%bytes_stream
        if (regular) moved%bytes_hardware = moved%bytes_stream + self%write_allocate*self%element_bytes*units
        if (self%lines > 0.0_r8) moved%bytes_hardware = self%lines*line_bytes*units
        moved%flops = self%flops*units
    end function times

end module pw_traffic
