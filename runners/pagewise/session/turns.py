"""Runs of several programs in turns on the same CPUs: one is continued, and the others are stopped.

A program that takes turns stops itself (SIGSTOP) when it is ready and after each turn. SIGCONT begins a turn;
with SIGUSR1 before it, the program ends. The speed of a shared machine changes within tenths of a second.
Turns of about 10 ms in random order see the same changes, which cancel in the ratio of two programs
(docs/explanation/statistics.md).

Any other program is stopped and continued in slices, with all processes that it started. Its time is the sum
of its slices. Longer slices see other speeds of the machine; shorter ones begin with cold caches more often.
Where this process may make a control group, its freezer stops and continues them, which nobody notices;
elsewhere signals do.
"""

from __future__ import annotations

import os
import random
import select
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass

from pagewise.core.record_parts import Failure
from pagewise.machine.groups import Freezer
from pagewise.session.launch import Measurement, Start, StartedRun, Stopwatch
from pagewise.session.processes import descendants, state_of

# Turns take as long as starting. Computed for turns that scatter by 4 %: against half as long, the same
# precision takes 17 % less time if processes differ by 0.6 %, and 7 % more if they differ by 2 %.
_SHARE_OF_START, _FEWEST_TURNS = 1.0, 8
_LONGEST_STOP_SECONDS, _POLL_SECONDS = 0.1, 0.00002
#: Why a run has no valid time that had other turns than it was given.
STOPPED = Failure(
    4,
    "another process stopped or continued it during its turns",
    "find what sends signals, or use --method runs",
)


@dataclass
class SlicedRun:
    """A run in slices. descriptor: of its process, readable when that has ended. slices: how many it had.

    freezer: the control group of its processes; None: signals stop and continue them.
    """

    run: StartedRun
    descriptor: int
    freezer: Freezer | None = None
    slices: int = 1
    is_over: bool = False

    @classmethod
    @contextmanager
    def start_stopped(cls, run: StartedRun, freezer: Freezer | None = None) -> Iterator[SlicedRun]:
        """A run that has just been started, stopped; its start is its first slice. Raises OSError.

        freezer: an empty group for its processes, if there is one.
        """
        descriptor = os.pidfd_open(run.running.pid)
        sliced = cls(run, descriptor, freezer)
        try:
            if freezer is not None:
                freezer.add(run.running.pid)
            sliced._stop(run.running.began)
            # What it started before it was in the group.
            if freezer is not None:
                for pid in descendants(run.running.pid):
                    with suppress(OSError):
                        freezer.add(pid)
            yield sliced
        finally:
            if freezer is not None:
                freezer.thaw()
            os.close(descriptor)

    def continue_for(self, seconds: float) -> None:
        """Continues it, and stops it after this time unless it ends before."""
        began = time.monotonic()
        if self.freezer is None:
            self._signal(signal.SIGCONT)
        else:
            self.freezer.thaw()
        self.slices += 1
        if self._ends_within(seconds):
            self.run.seconds += time.monotonic() - began
            self.is_over = True
        else:
            self._stop(began)

    def _stop(self, began: float) -> None:
        if self.freezer is None:
            self._signal(signal.SIGSTOP)
            self.is_over = self._waits_for_stop()
            self.run.seconds += time.monotonic() - began
        else:
            self.freezer.freeze()
            self.run.seconds += time.monotonic() - began
            self.is_over = self._ends_within(0.0)

    def _waits_for_stop(self) -> bool:
        """Waits until its process has stopped or ended; whether it has ended.

        One that waits for a stopped child to begin (vfork), or for a disk, stops later, but does not run. A
        debugger, such as that of a leak sanitizer, gets the signal instead of the parent.
        """
        options = os.WSTOPPED | os.WEXITED | os.WNOWAIT | os.WNOHANG
        latest = time.monotonic() + _LONGEST_STOP_SECONDS
        while time.monotonic() < latest:
            state = os.waitid(os.P_PID, self.run.running.pid, options)
            if state is not None:
                return state.si_code != os.CLD_STOPPED
            if state_of(self.run.running.pid) in ("D", "t"):
                break
            time.sleep(_POLL_SECONDS)
        return False

    def _ends_within(self, seconds: float) -> bool:
        """Waits at most so long for the end of its process; whether it has ended."""
        poll = select.poll()
        poll.register(self.descriptor, select.POLLIN)
        return bool(poll.poll(1000.0 * seconds))

    def _signal(self, number: int) -> None:
        """Sends a signal to its group, and to processes that left the group."""
        running = self.run.running
        running.send(number)
        for pid in descendants(running.pid):
            with suppress(ProcessLookupError, PermissionError):
                if os.getpgid(pid) != running.pid:
                    os.kill(pid, number)


def run_in_slices(runs: Sequence[SlicedRun], seconds: float, limit: float, seed: str) -> None:
    """Continues each of these runs in turn for so many seconds, in random order, until all have ended.

    limit: seconds in its slices after which a run is ended. seed: of the order.
    """
    shuffle = random.Random(seed)
    while living := [run for run in runs if not run.is_over]:
        for run in shuffle.sample(living, len(living)):
            run.continue_for(seconds)
            if run.run.seconds > limit and not run.is_over:
                run.run.running.is_ended_by_us = run.is_over = True
                run.run.running.send(signal.SIGKILL)
    for run in runs:
        run.run.wait(limit)


@dataclass
class _TurnTaker:
    """A run that takes turns: how many it took. is_over: there is nothing to continue."""

    run: StartedRun
    taken: int = 0
    is_over: bool = False

    def take_turn(self) -> None:
        """Continues it until it stops or ends."""
        self.taken += 1
        began = time.monotonic()
        self.run.running.send(signal.SIGCONT)
        self.wait(began)

    def wait(self, began: float) -> None:
        """Waits until it stops or ends. began: when it was continued, by the monotonic clock."""
        # An ended process stays a zombie, which its owner reaps.
        state = os.waitid(os.P_PID, self.run.running.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        self.run.seconds += time.monotonic() - began
        self.is_over = state is None or state.si_code != os.CLD_STOPPED

    def end(self, limit: float) -> None:
        """Continues it to its end, after its last turn."""
        if not self.is_over:
            self.run.running.send(signal.SIGUSR1)
            self.take_turn()
        if not self.is_over:
            self.run.fault = STOPPED
            self.run.running.send(signal.SIGKILL)
            self.is_over = True
        self.run.wait(limit)


def measure_in_turns(
    stopwatch: Stopwatch, starts: Sequence[Start], turns: int | None, seed: str
) -> list[tuple[Measurement, int]]:
    """Runs programs that take up to `turns` turns, and fewer if these are long; None: until all have ended.

    They start together, and so populate their memory at the same time. One by one, one place in the order
    gets memory in smaller pieces in every round, and is slower on base pages.

    Returns what was measured and how often each was continued, its end included; in the order of `starts`.
    After the stopwatch's limit times their number, the runs that are left are ended. seed: of the order of
    turns. Raises OSError if one cannot be started.
    """
    shuffle, takers, began = random.Random(seed), list[_TurnTaker](), time.monotonic()
    with ExitStack() as stack:
        stack.enter_context(_ended_after(stopwatch.limit * len(starts), takers))
        for number, start in enumerate(starts):
            takers.append(_TurnTaker(stack.enter_context(stopwatch.start_run(start, number))))
        for taker in takers:
            taker.wait(began)
        made, ready = 0, time.monotonic()
        for taker in takers:
            taker.run.seconds = (ready - began) / len(takers)
        enough = ready + _SHARE_OF_START * (ready - began)
        while not all(taker.is_over for taker in takers):
            is_enough = made >= _FEWEST_TURNS and time.monotonic() > enough
            if turns is not None and (made == turns or is_enough):
                break
            made += 1
            for taker in shuffle.sample(takers, len(takers)):
                if not taker.is_over:
                    taker.take_turn()
        for taker in takers:
            taker.end(stopwatch.limit)
    return [(taker.run.measurement(), taker.taken) for taker in takers]


@contextmanager
def _ended_after(limit: float, takers: Sequence[_TurnTaker]) -> Iterator[None]:
    """Kills the runs that are left after so many seconds in the block, also those that start later."""
    done = threading.Event()

    def end() -> None:
        seconds = limit
        while not done.wait(seconds):
            for taker in list(takers):
                if not taker.is_over:
                    taker.run.running.is_ended_by_us = True
                    taker.run.running.send(signal.SIGKILL)
            seconds = _LONGEST_STOP_SECONDS

    threading.Thread(target=end, daemon=True).start()
    try:
        yield
    finally:
        done.set()
