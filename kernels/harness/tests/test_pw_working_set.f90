!> The default working set on a machine whose /sys and /proc are in the folder --root.
program test_pw_working_set
    use pw_error, only: error_t, stop_on
    use pw_kinds, only: i8
    use pw_options, only: option_bytes, option_text, options_t
    use pw_system, only: free_memory, last_level_cache
    use pw_working_set, only: fit_working_set, memory_working_set
    implicit none
    type(options_t) :: options
    type(error_t) :: error
    character(:), allocatable :: root, cpus, warning
    integer(i8) :: cache, bytes

    call options%start('test_pw_working_set', 'prints sizes')
    call options%add('root', option_text, '', 'folder')
    call options%add('cpus', option_text, '', 'list of CPUs')
    call options%add('working-set', option_bytes, '', 'size')
    call options%parse(error)
    call stop_on('test_pw_working_set', error)
    call options%get('root', root)
    call options%get('cpus', cpus)
    cache = last_level_cache(root, cpus)
    call options%set_default('working-set', memory_working_set(cache), error)
    call fit_working_set(options, 'test_pw_working_set', free_memory(root), warning, error)
    call stop_on('test_pw_working_set', error)
    call options%get('working-set', bytes)
    print '(a,i0,3a,i0,a,l1)', 'cache ', cache, ' default ', memory_working_set(cache), ' size ', bytes, ' warning ', &
        len(warning) > 0
end program test_pw_working_set
