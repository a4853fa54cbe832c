!> The command line of this program, read by pw_options; prints the values and exits with the error's code.
program test_pw_options
    use pw_error, only: error_t, stop_on
    use pw_json, only: json_t
    use pw_kinds, only: i8, r8
    use pw_options, only: option_bytes, option_choice, option_count, option_flag, option_real, option_text, options_t, rules_t
    implicit none
    type(options_t) :: options
    type(error_t) :: error
    type(json_t) :: json

    call options%start('test_pw_options', 'reads its command line')
    call options%add('size', option_bytes, '1KiB', 'a size', rules_t(lowest=512_i8))
    call options%add('count', option_count, '3', 'a count', rules_t(lowest=1_i8))
    call options%add('kind-of', option_choice, 'red', 'a choice', values='red|green')
    call options%add('fast', option_flag, '', 'a flag')
    call options%add('ratio', option_real, '', 'a real', rules_t(above=0.0_r8, most=1.0_r8))
    call options%add('shift', option_real, '0', 'a real', rules_t(least=-2.5_r8))
    call options%add('title', option_text, '', 'a text')
    call options%parse(error)
    call stop_on('test_pw_options', error)
    if (options%given('help')) then
        call options%print_help()
    else if (options%given('list-options')) then
        call options%print_list()
    else
        call options%set_default('ratio', '0.5', error)
        call stop_on('test_pw_options', error)
        call json%open_object('')
        call options%write_values(json)
        call json%put('kind_given', options%given('kind-of'))
        call json%close_object()
        print '(a)', json%text()
    end if
end program test_pw_options
