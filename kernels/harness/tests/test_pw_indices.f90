!> Every pattern of indices names each element once; the random ones leave few elements in place.
program test_pw_indices
    use pw_error, only: error_t
    use pw_indices, only: indices_t
    use pw_kinds, only: i8
    use pw_options, only: options_t
    implicit none
    character(10), parameter :: patterns(4) = [character(10) :: 'sequential', 'strided', 'blocked', 'random']
    integer(i8), parameter :: sizes(7) = [1_i8, 2_i8, 17_i8, 512_i8, 515_i8, 4096_i8, 100000_i8]
    type(options_t) :: options
    type(indices_t) :: indices
    type(error_t) :: error
    integer :: pattern, i

    call options%start('test', 'indices')
    call indices%declare(options, fixed=.false.)
    do pattern = 1, size(patterns)
        call options%replace('indices', trim(patterns(pattern)), error)
        call indices%read(options)
        do i = 1, size(sizes)
            call inspect(trim(patterns(pattern)), sizes(i))
        end do
    end do
    call indices%begin(2_i8**31, error)
    call expect(error%failed(), 'more elements than 4 bytes can address', 2_i8**31)

contains

    subroutine inspect(name, n)
        character(*), intent(in) :: name
        integer(i8), intent(in) :: n
        logical :: named(n)
        integer(i8) :: k, place, kept, pages

        call indices%begin(n, error)
        named = .false.
        kept = 0
        pages = 0
        do k = 1, n
            place = indices%at(k)
            call expect(indices%at(k + 3*n) == place, name//': another index in a later round', n)
            call expect(place >= 1 .and. place <= n, name//': an index out of bounds', n)
            call expect(.not. named(place), name//': an index twice', n)
            named(place) = .true.
            if (place == k) kept = kept + 1
            if ((place - 1)/512 /= (k - 1)/512) pages = pages + 1
        end do
        if (name == 'sequential') call expect(kept == n, name//': an element moved', n)
        if (name == 'blocked') call expect(pages == 0, name//': an index left its page', n)
        if (n < 4096) return
        if (name == 'random') call expect(pages > n*3/4, name//': too many stay in their page', n)
        if (name /= 'sequential') call expect(kept < n/100, name//': too many stay in place', n)
        if (name == 'strided') call expect(indices%at(3_i8) - indices%at(2_i8) == 16, name//': another stride', n)
    end subroutine inspect

    subroutine expect(right, label, n)
        logical, intent(in) :: right
        character(*), intent(in) :: label
        integer(i8), intent(in) :: n

        if (right) return
        print '(2a,i0)', label, ' of ', n
        error stop 'test_pw_indices: failed'
    end subroutine expect

end program test_pw_indices
