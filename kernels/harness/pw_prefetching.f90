!> Options of builds with prefetch=software or block, or stores=zfill: what kernels of several streams load into the caches
!> before its use.
module pw_prefetching
    use, intrinsic :: iso_c_binding, only: c_int32_t, c_int64_t
    use pw_error, only: error_t, exit_usage
    use pw_harness_h, only: by_sve => pw_prefetch_sve, into_l2 => pw_prefetch_into_l2, of_surplus => pw_prefetch_surplus, &
        prefetch_plan_t => pw_prefetch_plan_t, pw_sve_built
    use pw_kinds, only: i8
    use pw_line, only: line_bytes
    use pw_options, only: option_bytes, option_choice, option_count, options_t, rules_t
    use pw_record, only: configuration_t
    implicit none
    private

    integer(i8), parameter :: largest = 2_i8**40

    !> As timed code takes it; all 0 in builds that neither prefetch nor zero lines.
    type, public :: prefetching_t
        type(prefetch_plan_t) :: plan                 !< software prefetch
        integer(c_int64_t) :: zero = 0         !< zfill: distance in bytes of the zeroed output
        integer(c_int64_t) :: block = 0        !< block preload: bytes of all streams at once
        integer(c_int32_t) :: fused = 0        !< block preload: all streams in one loop
        integer(c_int32_t) :: by_prefetch = 0  !< block preload: by prefetch instructions
    end type prefetching_t

    integer(i8), parameter :: zeroed_lines = 2     ! of an iteration: its prefetches come before it zeroes lines

    public :: of_surplus, declare_prefetching, read_prefetching, declare_sve, read_sve

contains

    !> Declare the options of a build of this configuration. `stream`: the kernel's name of its streams, such as input;
    !> `least`: bytes of the smallest block. The best distance for zeroing lines on A64FX is in its micro-architecture guide
    !> (Fujitsu, 2021, zfill, triad).
    subroutine declare_prefetching(options, configuration, stream, least)
        type(options_t), intent(inout) :: options
        type(configuration_t), intent(in) :: configuration
        character(*), intent(in) :: stream
        integer(i8), intent(in) :: least

        select case (configuration%prefetch)
        case ('software')
            call options%add('prefetch-distance', option_count, '32', 'prefetch distance in cache lines of each stream; into '// &
                             'L1', rules_t(lowest=1_i8), '1,2,4,8,16,32,64,128,256')
            call options%add('prefetch-distance-l2', option_count, '0', 'distance in cache lines of further prefetches into '// &
                             'L2 (0: none)', values='0,10,15,20,25,30,35,40,70')
        case ('block')
            call options%add('block-size', option_bytes, '24KiB', 'bytes of all '//stream//'s that are loaded into a cache at '// &
                             'once', rules_t(lowest=least), '6KiB,12KiB,24KiB,48KiB,96KiB,192KiB,384KiB,768KiB,1536KiB')
            call options%add('preload', option_choice, 'separate', 'load one '//stream//' after the other, or all in one loop', &
                             values='separate|fused')
            call options%add('preload-by', option_choice, 'loads', 'instruction per line: a load, or a prefetch', &
                             values='loads|prefetch')
        end select
        if (configuration%stores == 'zfill') call options%add('zero-distance', option_count, '18', 'distance in cache lines of '// &
            'the output that is zeroed in advance', values='0,1,2,4,8,12,16,18,20,24,32,64,100')
    end subroutine declare_prefetching

    !> Read what `declare_prefetching` declared. Exit code 2 for a distance or block larger than any memory.
    !>
    !> A prefetch of a line that is zeroed later would read it from memory, which zfill avoids: with zfill, what is written is
    !> prefetched from where it was zeroed before, or was already written.
    subroutine read_prefetching(options, configuration, prefetching, error)
        type(options_t), intent(in) :: options
        type(configuration_t), intent(in) :: configuration
        type(prefetching_t), intent(out) :: prefetching
        type(error_t), intent(inout) :: error
        character(:), allocatable :: word
        integer(i8) :: value, second, zero

        value = 0
        second = 0
        zero = 0
        if (configuration%stores == 'zfill') call options%get('zero-distance', zero)
        select case (configuration%prefetch)
        case ('software')
            call options%get('prefetch-distance', value)
            call options%get('prefetch-distance-l2', second)
            prefetching%plan%read = min([value, second], largest)*line_bytes
            prefetching%plan%written = prefetching%plan%read
            if (configuration%stores == 'zfill') prefetching%plan%written = min(value, zero - zeroed_lines, largest)*line_bytes
            if (second > 0) prefetching%plan%mode = into_l2
        case ('block')
            call options%get('block-size', value)
            prefetching%block = value
            call options%get('preload', word)
            if (word == 'fused') prefetching%fused = 1
            call options%get('preload-by', word)
            if (word == 'prefetch') prefetching%by_prefetch = 1
        end select
        prefetching%zero = min(zero, largest)*line_bytes
        if (max(value, second, zero) > largest) call error%raise(exit_usage, 'a distance or block is larger than any memory', &
            'pw_prefetching', 'choose a smaller --prefetch-distance, --block-size or --zero-distance')
    end subroutine read_prefetching

    !> Declare how prefetch=software prefetches with SVE: `word` instead of `usual`, what it means in `help`. Builds without
    !> SVE have no such option.
    subroutine declare_sve(options, configuration, usual, word, help)
        type(options_t), intent(inout) :: options
        type(configuration_t), intent(in) :: configuration
        character(*), intent(in) :: usual, word, help

        if (configuration%prefetch /= 'software') return
        if (pw_sve_built() /= 0) call options%add('prefetch-by', option_choice, usual, help, values=usual//'|'//word)
    end subroutine declare_sve

    !> by_sve if `word` is chosen, else 0.
    integer(c_int64_t) function read_sve(options, configuration, word) result(mode)
        type(options_t), intent(in) :: options
        type(configuration_t), intent(in) :: configuration
        character(*), intent(in) :: word
        character(:), allocatable :: given

        mode = 0
        if (configuration%prefetch /= 'software') return
        if (pw_sve_built() == 0) return
        call options%get('prefetch-by', given)
        if (given == word) mode = by_sve
    end function read_sve

end module pw_prefetching
