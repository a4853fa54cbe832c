!> Patterns of indices for indirect access, in closed form, so that a check can recompute every index. The first n indices of
!> each but `fixed` are a permutation of 1..n: threads may store through them concurrently without conflicts. The next n are the
!> same.
module pw_indices
    use pw_error, only: error_t, exit_usage
    use pw_kinds, only: i4, i8
    use pw_options, only: option_choice, option_count, options_t, rules_t
    use pw_text, only: to_text
    implicit none
    private

    integer(i8), parameter :: page_elements = 512             ! doubles in 4 KiB: a block of the pattern `blocked`
    integer(i8), parameter :: most = huge(1_i4)               ! indices have 4 bytes
    integer(i8), parameter :: factors(3) = [1640531527_i8, 1540483477_i8, 1000000007_i8]   ! odd, below 2^31

    type, public :: indices_t
        private
        character(:), allocatable :: pattern
        integer(i8) :: n = 0, stride = 0
    contains
        procedure :: declare
        procedure :: read
        procedure :: begin
        procedure :: at
        procedure :: lines_apart
    end type indices_t

contains

    !> fixed: whether all indices may be the same.
    subroutine declare(self, options, fixed)
        class(indices_t), intent(in) :: self
        type(options_t), intent(inout) :: options
        logical, intent(in) :: fixed
        character(:), allocatable :: patterns

        patterns = 'sequential|strided|blocked|random'
        if (fixed) patterns = patterns//'|fixed'
        call options%add('indices', option_choice, 'random', 'order of the indices; blocked is random inside each 4 KiB', &
                         values=patterns)
        call options%add('index-stride', option_count, '16', 'elements from one index of the strided order to the next', &
                         rules_t(lowest=1_i8), '1,2,4,8,16,32,64,128,256,512,1024')
    end subroutine declare

    subroutine read(self, options)
        class(indices_t), intent(inout) :: self
        type(options_t), intent(in) :: options

        call options%get('indices', self%pattern)
        call options%get('index-stride', self%stride)
    end subroutine read

    !> Set the number of elements that the indices permute to n.
    subroutine begin(self, n, error)
        class(indices_t), intent(inout) :: self
        integer(i8), intent(in) :: n
        type(error_t), intent(inout) :: error

        self%n = n
        if (n > most) call error%raise(exit_usage, 'indices of 4 bytes address at most '//to_text(most)//' elements', &
                                       'pw_indices', 'choose a smaller --working-set')
    end subroutine begin

    !> Index number i, both from 1.
    pure integer(i4) function at(self, i)
        class(indices_t), intent(in) :: self
        integer(i8), intent(in) :: i
        integer(i8) :: k, base, rows

        k = modulo(i - 1, self%n)
        select case (self%pattern)
        case ('random')
            k = shuffled(k, self%n, 0_i8)
        case ('blocked')
            base = k/page_elements*page_elements
            k = base + shuffled(k - base, min(page_elements, self%n - base), base)
        case ('fixed')
            k = 0
        case ('strided')
            rows = self%n/self%stride
            if (k < rows*self%stride) k = modulo(k, rows)*self%stride + k/rows
        end select
        at = int(k + 1, i4)
    end function at

    !> Whether successive indices name different cache lines that are not reused soon.
    pure logical function lines_apart(self, elements_in_line)
        class(indices_t), intent(in) :: self
        integer(i8), intent(in) :: elements_in_line

        lines_apart = self%pattern == 'random' .or. (self%pattern == 'strided' .and. self%stride >= elements_in_line)
    end function lines_apart

    !> The image of k under permutation `key` of 0..n-1: multiplications and shifts permute the numbers of as many
    !> bits as n needs; a result of n or more is permuted again until it is below n (cycle walking: Black and Rogaway,
    !> Ciphers with arbitrary finite domains, 2002).
    pure integer(i8) function shuffled(k, n, key) result(mixed)
        integer(i8), intent(in) :: k, n, key
        integer :: bits, step
        integer(i8) :: mask

        bits = max(1, int(bit_size(n)) - leadz(n - 1))
        mask = 2_i8**bits - 1
        mixed = k
        do
            mixed = iand(mixed + key, mask)
            do step = 1, size(factors)
                mixed = iand(mixed*factors(step), mask)
                mixed = ieor(mixed, shiftr(mixed, (bits + 1)/2))
            end do
            if (mixed < n) exit
        end do
    end function shuffled

end module pw_indices
