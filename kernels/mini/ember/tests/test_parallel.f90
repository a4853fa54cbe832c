!> Communication between ranks arrives: exchanges of different lengths, gathers, messages, errors.
program test_parallel
    use, intrinsic :: iso_fortran_env, only: output_unit
    use ember_parallel, only: comm_t
    use pw_error, only: error_t, exit_check, exit_usage
    use pw_kinds, only: i8, r8
    implicit none
    type(comm_t) :: comm
    type(error_t) :: error
    integer :: failures = 0, round

    call comm%begin(error)
    call expect(.not. error%failed(), 'begin')
    call expect(comm%local_rank <= comm%rank .and. comm%rank < comm%n_ranks, 'ranks')
    do round = 1, 3
        call exchanges(round)
    end do
    call gathers()
    call messages()
    call errors()
    call comm%barrier()
    if (failures > 0) then
        flush (output_unit)
        call comm%abort(1)
    end if
    call comm%end()

contains

    !> Numbers that rank `from` sends to rank `to`: none in some pairs, none to itself.
    pure integer(i8) function count_between(from, to, round)
        integer, intent(in) :: from, to, round

        count_between = merge(0, modulo(11*from + 5*to + 3*round, 23), from == to)
    end function count_between

    !> The number at position i of the data that rank `from` sends to rank `to`.
    elemental real(r8) function sent(from, to, i)
        integer, intent(in) :: from, to
        integer(i8), intent(in) :: i

        sent = from + 1000.0_r8*to + 0.125_r8*real(i, r8)
    end function sent

    subroutine exchanges(round)
        integer, intent(in) :: round
        integer(i8), allocatable :: to_send(:), to_receive(:)
        real(r8), allocatable, target :: send(:), receive(:)
        integer(i8) :: i, at
        integer :: other

        allocate (to_send(0:comm%n_ranks - 1), to_receive(0:comm%n_ranks - 1))
        do other = 0, comm%n_ranks - 1
            to_send(other) = count_between(comm%rank, other, round)
            to_receive(other) = count_between(other, comm%rank, round)
        end do
        allocate (send(sum(to_send)), receive(sum(to_receive)))
        receive = -1.0_r8
        at = 0
        do other = 0, comm%n_ranks - 1
            send(at + 1:at + to_send(other)) = sent(comm%rank, other, [(i, i=1, to_send(other))])
            at = at + to_send(other)
        end do
        call comm%exchange_begin(send, to_send, receive, to_receive)
        call comm%exchange_finish()
        at = 0
        do other = 0, comm%n_ranks - 1
            do i = 1, to_receive(other)
                call expect(same(receive(at + i), sent(other, comm%rank, i)), 'exchange')
            end do
            at = at + to_receive(other)
        end do
    end subroutine exchanges

    !> Each rank r has 3*r values, so that the first has none.
    subroutine gathers()
        real(r8), allocatable :: reals(:)
        integer, allocatable :: integers(:)
        integer(i8), allocatable :: longs(:)
        real(r8) :: x
        integer :: i, rank, at

        call comm%all_gather([(comm%rank + 0.5_r8*i, i=1, 3*comm%rank)], reals)
        call comm%all_gather([(100*comm%rank + i, i=1, 3*comm%rank)], integers)
        call comm%all_gather([(2_i8**40*comm%rank + i, i=1, 3*comm%rank)], longs)
        call expect(size(reals) == 3*comm%n_ranks*(comm%n_ranks - 1)/2, 'length of a gather')
        at = 0
        do rank = 0, comm%n_ranks - 1
            do i = 1, 3*rank
                at = at + 1
                call expect(same(reals(at), rank + 0.5_r8*i), 'gather of reals')
                call expect(integers(at) == 100*rank + i, 'gather of integers')
                call expect(longs(at) == 2_i8**40*rank + i, 'gather of long integers')
            end do
        end do
        x = 1.5_r8*comm%rank
        call comm%all_max(x)
        call expect(same(x, 1.5_r8*(comm%n_ranks - 1)), 'all_max')
    end subroutine gathers

    !> Around the ring, each rank to the next.
    subroutine messages()
        real(r8) :: x(30)

        if (comm%n_ranks == 1) return
        x = 3.5_r8
        if (comm%rank > 0) call comm%receive(comm%rank - 1, x)
        x = x + 1.0_r8
        call comm%send(modulo(comm%rank + 1, comm%n_ranks), x)
        if (comm%rank == 0) then
            call comm%receive(comm%n_ranks - 1, x)
            call expect(all(same(x, 3.5_r8 + comm%n_ranks)), 'messages')
        end if
    end subroutine messages

    subroutine errors()
        type(error_t) :: error

        call comm%agree(error)
        call expect(.not. error%failed(), 'no error')
        if (comm%rank == comm%n_ranks - 1) call error%raise(exit_check, 'of the last', 'there', 'none')
        call comm%agree(error)
        call expect(error%code == exit_check .and. error%message == 'of the last', 'an error of the last rank')
        call expect(error%place == 'there' .and. error%remedy == 'none', 'place and remedy')
        if (comm%rank == 0) call error%raise(exit_usage, 'of the first', '', '')
        call comm%agree(error)
        call expect(error%code == exit_usage .and. error%message == 'of the first', 'the error of the first rank')
    end subroutine errors

    !> Equal to the last bit.
    elemental logical function same(a, b)
        real(r8), intent(in) :: a, b

        same = .not. (a < b .or. a > b)
    end function same

    subroutine expect(ok, label)
        logical, intent(in) :: ok
        character(*), intent(in) :: label

        if (ok) return
        failures = failures + 1
        print '(3a, i0)', 'wrong: ', label, ', rank ', comm%rank
    end subroutine expect

end program test_parallel
