"""Runs of several programs in turns on the same CPUs: one is continued, and the others are stopped.

A program that takes turns stops itself (SIGSTOP) when it is ready and after each turn. SIGCONT begins a turn;
with SIGUSR1 before it, the program ends. The speed of a shared machine changes within tenths of a second.
Turns of about 10 ms in random order see the same changes, which cancel in the ratio of two programs
(docs/explanation/statistics.md).
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from pagewise.core.record_parts import Failure
from pagewise.session.launch import Measurement, StartedRun, Stopwatch

# Where a pass over the working set takes long, turns are long: then fewer turns and more rounds are better.
_ENOUGH_SECONDS, _FEWEST_TURNS = 1.0, 6
_STOPPED = Failure(
    4,
    "another process stopped or continued it during its turns",
    "find what sends signals, or use --method runs",
)


@dataclass(frozen=True)
class Start:
    """How a run is started. inherited: a context whose settings it inherits."""

    command: Sequence[str]
    environment: Mapping[str, str]
    inherited: AbstractContextManager[Any]


@dataclass
class _TurnTaker:
    """A run that takes turns. is_over: there is nothing to continue."""

    run: StartedRun
    is_over: bool = False

    def take_turn(self) -> None:
        """Continues it until it stops or ends."""
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
            self.run.fault = _STOPPED
            self.run.running.send(signal.SIGKILL)
            self.is_over = True
        self.run.wait(limit)


def measure_in_turns(
    stopwatch: Stopwatch, starts: Sequence[Start], turns: int, seed: str
) -> list[Measurement]:
    """Runs programs that take up to `turns` turns, and fewer if these are long; in the order of `starts`.

    After the stopwatch's limit times their number, the runs that are left are ended. seed: of the order of
    turns. Raises OSError if one cannot be started.
    """
    shuffle, takers = random.Random(seed), list[_TurnTaker]()
    with ExitStack() as stack:
        stack.enter_context(_ended_after(stopwatch.limit * len(starts), takers))
        for number, start in enumerate(starts):
            run = stopwatch.started(start.command, start.environment, start.inherited, number=number)
            takers.append(_TurnTaker(stack.enter_context(run)))
            takers[-1].wait(takers[-1].run.running.began)
        enough = time.monotonic() + _ENOUGH_SECONDS * len(starts)
        for number in range(turns):
            if number >= _FEWEST_TURNS and time.monotonic() > enough:
                break
            for taker in shuffle.sample(takers, len(takers)):
                if not taker.is_over:
                    taker.take_turn()
        for taker in takers:
            taker.end(stopwatch.limit)
    return [taker.run.measurement() for taker in takers]


@contextmanager
def _ended_after(limit: float, takers: Sequence[_TurnTaker]) -> Iterator[None]:
    """Kills the runs that are left after so many seconds in the block."""

    def end() -> None:
        for taker in takers:
            if not taker.is_over:
                taker.run.running.is_ended_by_us = True
                taker.run.running.send(signal.SIGKILL)

    timer = threading.Timer(limit, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
