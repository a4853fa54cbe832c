!> What a kernel prints of its measurements.
module pw_summary
    use, intrinsic :: iso_fortran_env, only: output_unit
    use pw_evidence, only: median, outcome
    use pw_kinds, only: r8
    use pw_record, only: record_t
    use pw_text, only: bytes_to_text, to_text
    implicit none
    private

    public :: print_summary, print_point

contains

    !> Print one measurement.
    subroutine print_summary(record)
        type(record_t), intent(in) :: record
        integer :: i

        associate (c => record%configuration, seconds => record%seconds)
            write (output_unit, '(a)') record%kernel//'  '//c%compiler//'  prefetch '//c%prefetch//'  stores '//c%stores// &
                '  loop '//c%loop, &
                '  working set   '//bytes_to_text(record%working_set)//' in '//to_text(record%arrays)//' array(s), '// &
                to_text(size(record%placement%cpus))//' thread(s), '//to_text(sum(record%placement%migrated))//' migrated', &
                '  pages         '//record%pages%policy//': '//bytes_to_text(record%pages%page_size_observed)// &
                ' observed, '//to_text(100.0_r8*record%pages%huge_coverage, 'f0.1')//' % huge; first touch '// &
                to_text(1.0e3_r8*record%first_touch_seconds, 'f0.2')//' ms', &
                '  time          '//to_text(1.0e3_r8*median(seconds), 'f0.3')//' ms median of '//to_text(size(seconds))// &
                ' (from '//to_text(1.0e3_r8*minval(seconds), 'f0.3')//' to '//to_text(1.0e3_r8*maxval(seconds), 'f0.3')// &
                '), '//to_text(record%passes)//' pass(es) each'
        end associate
        do i = 1, size(record%metrics)
            write (output_unit, '(a)') '  '//record%metrics(i)%field//'  '//to_text(record%metrics(i)%value, 'g0.5')
        end do
        write (output_unit, '(a)') '  check         '//outcome(record%validation)//': '//record%validation%method
    end subroutine print_summary

    !> Print one point of a sweep, which is described by `point`.
    subroutine print_point(record, point)
        type(record_t), intent(in) :: record
        character(*), intent(in) :: point

        write (output_unit, '(a)') record%kernel//'  '//point//'  '//record%metrics(1)%field//' '// &
            to_text(record%metrics(1)%value, 'g0.5')//'  '//outcome(record%validation)
    end subroutine print_point

end module pw_summary
