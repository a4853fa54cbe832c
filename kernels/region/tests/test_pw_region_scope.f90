!> Objects whose regions end with their block.
program test_pw_region_scope
    use expectations, only: busy, expect, expect_fault, region_at
    use pw_error, only: error_t
    use pw_kinds, only: i4, r8
    use pw_record, only: region_record_t
    use pw_region, only: region_begin, region_end, region_handle, regions_collect, regions_reset
    use pw_region_scope, only: region_scope_t
    implicit none
    type(region_record_t), allocatable :: regions(:)
    type(region_record_t) :: region
    type(error_t) :: error, nested, stale
    integer(i4) :: handle
    integer :: i

    handle = region_handle('by handle')
    do i = 1, 4
        block
            type(region_scope_t) :: outer
            call outer%begin('outer')
            block
                type(region_scope_t) :: inner
                call inner%begin(handle)
                call busy(1.0e-3_r8)
                if (i == 2) cycle
                if (i == 3) exit
            end block
            call busy(2.0e-3_r8)
        end block
        ! The region ends here and not later.
        call busy(1.0e-3_r8)
    end do
    call leave(.true.)
    call leave(.false.)
    !$omp parallel do num_threads(5)
    do i = 1, 50
        block
            type(region_scope_t) :: scope
            call scope%begin('in parallel')
            if (modulo(i, 3) == 0) cycle
        end block
    end do
    call regions_collect(regions, error)
    call expect(.not. error%failed(), 'a fault')
    region = region_at(regions, 'outer', 3, 1)
    call expect(region%seconds >= 0.005_r8, 'the region ended early')
    call expect(region%seconds_exclusive >= 0.002_r8, 'the inner region ended late')
    region = region_at(regions, 'outer/by handle', 3, 1)
    call expect(region%seconds >= 0.003_r8, 'the inner region ended early')
    region = region_at(regions, 'local', 2, 1)
    region = region_at(regions, 'local/returns', 2, 1)
    do i = 1, size(regions)
        if (regions(i)%path == 'in parallel') call expect(regions(i)%calls == 50, 'calls in parallel')
    end do
    call regions_reset()

    ! Ended by hand, begun again, never begun.
    block
        type(region_scope_t) :: first, second, never
        call first%begin('first')
        call never%end()
        call first%end()
        call first%end()
        call second%begin('second')
        call second%begin('third')
        call region_begin('plain')
        call region_end('plain')
    end block
    call regions_collect(regions, error)
    call expect(.not. error%failed(), 'a fault')
    call expect(size(regions) == 4, 'number of paths')
    region = region_at(regions, 'third/plain', 1, 1)
    call regions_reset()

    ! A region begun inside and still open is a fault at the block's end.
    block
        type(region_scope_t) :: scope
        call scope%begin('scope')
        call region_begin('open')
    end block
    call regions_collect(regions, nested)
    call expect_fault(nested, ["'scope'", "'open' "])
    block
        type(region_scope_t) :: scope
        call scope%begin('scope')
        call region_end('scope')
        call scope%end(stale)
    end block
    call expect_fault(stale, ["'scope'"])

contains

    subroutine leave(early)
        logical, intent(in) :: early
        type(region_scope_t) :: local

        call local%begin('local')
        block
            type(region_scope_t) :: scope
            call scope%begin('returns')
            if (early) return
        end block
    end subroutine leave

end program test_pw_region_scope
