"""Programs that run at the same time, in slices: one is continued while the others are stopped."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import ExitStack, nullcontext
from itertools import pairwise
from pathlib import Path

import pytest

from pagewise.session.launch import TIMED_OUT, Measurement, Stopwatch
from pagewise.session.turns import SlicedRun, run_in_slices

# Writes when it could compute: begin and end of spans without a gap of 3 ms. So does its child.
PROGRAM = """
import os, sys, time
name, seconds = sys.argv[1], float(sys.argv[2])
if len(sys.argv) > 3:
    name += "-child" if os.fork() == 0 else ""
spans, used, last = [], 0.0, time.monotonic()
begin = last
while used < seconds:
    now = time.monotonic()
    if now - last > 0.003:
        spans.append((begin, last))
        begin = now
    else:
        used += now - last
    last = now
spans.append((begin, last))
with open(f"spans-{name}.txt", "w") as file:
    for span in spans: print(*span, file=file)
if len(sys.argv) > 3 and not name.endswith("child"): os.wait()
"""


def sliced(folder: Path, *programs: list[str], limit: float = 30.0) -> list[tuple[Measurement, int]]:
    """What was measured of these programs, and the number of slices of each."""
    stopwatch = Stopwatch("", limit, folder)
    with ExitStack() as stack:
        runs = []
        for number, words in enumerate(programs):
            started = stopwatch.started(words, os.environ, nullcontext(), number=number)
            runs.append(stack.enter_context(SlicedRun.stopped(stack.enter_context(started))))
        run_in_slices(runs, limit, "one")
    return [(run.run.measurement(), run.slices) for run in runs]


def spans_of(folder: Path, name: str) -> list[tuple[float, float]]:
    lines = (folder / f"spans-{name}.txt").read_text().splitlines()
    return [(float(begin), float(end)) for begin, end in map(str.split, lines)]


def test_one_program_runs_at_a_time_with_its_children(tmp_path: Path):
    program = [sys.executable, "-S", "-c", PROGRAM]
    runs = sliced(tmp_path, [*program, "a", "0.15"], [*program, "b", "0.15", "fork"])
    assert [(run.exit_code, run.fault) for run, _ in runs] == [(0, None), (0, None)]
    assert all(slices > 5 for _, slices in runs)
    ours = [(*span, "a") for span in spans_of(tmp_path, "a")]
    theirs = [(*span, "b") for name in ("b", "b-child") for span in spans_of(tmp_path, name)]
    for (_, end, before), (begin, _, after) in pairwise(sorted(ours + theirs)):
        # A process may be stopped a moment after its parent.
        assert before == after or end <= begin + 0.002
    for run, _ in runs:
        assert run.wall is not None and run.wall >= 0.15


def test_the_time_of_a_program_is_that_of_its_own_slices(tmp_path: Path):
    program = [sys.executable, "-S", "-c", PROGRAM]
    began = time.monotonic()
    runs = sliced(tmp_path, [*program, "a", "0.1"], [*program, "b", "0.3"])
    elapsed = time.monotonic() - began
    walls = [run.wall or 0.0 for run, _ in runs]
    assert walls[0] < walls[1] and sum(walls) <= elapsed


def test_a_program_that_ends_at_once_or_is_killed_does_not_end_the_others(tmp_path: Path):
    killed = [sys.executable, "-S", "-c", f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})"]
    runs = sliced(tmp_path, ["true"], killed, [sys.executable, "-S", "-c", PROGRAM, "c", "0.05"])
    assert [run.exit_code for run, _ in runs] == [0, 128 + signal.SIGKILL, 0]


def test_a_program_that_takes_too_long_is_ended(tmp_path: Path):
    busy = [sys.executable, "-S", "-c", "while True: pass"]
    [(run, _), (short, _)] = sliced(tmp_path, busy, ["true"], limit=0.2)
    assert (run.exit_code, short.exit_code) == (TIMED_OUT, 0)


def test_nothing_stays_stopped_after_an_interrupt(tmp_path: Path):
    with pytest.raises(KeyboardInterrupt), ExitStack() as stack:
        started = Stopwatch("", 5.0, tmp_path).started(["sleep", "60"], os.environ, nullcontext(), number=0)
        run = stack.enter_context(SlicedRun.stopped(stack.enter_context(started)))
        pid = run.run.running.pid
        assert Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T"
        raise KeyboardInterrupt
    assert not Path(f"/proc/{pid}").exists()
