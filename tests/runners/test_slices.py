"""Programs that run at the same time, in slices: one is continued while the others are stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import pytest

from builders import BASE, kernel, record
from own_program import Own
from pagewise.core.plan import Cell, Step
from pagewise.core.record import Record
from pagewise.machine.groups import freezing
from pagewise.session.launch import TIMED_OUT, Measurement, Start, Stopwatch
from pagewise.session.processes import state_of
from pagewise.session.turns import SlicedRun, run_in_slices
from pagewise.session.workload import Outcome
from pagewise.workloads.program.launch import ProgramLauncher
from pagewise.workloads.program.runs import ProgramRuns

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


# Computes for 0.1 s.
COMPUTE = "import time\nwhile time.process_time() < 0.1: pass"
PYTHON = [sys.executable, "-S", "-c"]
BUSY = [*PYTHON, COMPUTE]
METHOD = ("--method", "turns", "--policies", "none,reuse")


def can_freeze() -> bool:
    with freezing() as freezer:
        return freezer is not None


needs_freezer = pytest.mark.skipif(not can_freeze(), reason="this process may not make a control group")
BY = [pytest.param(True, marks=needs_freezer, id="freezer"), pytest.param(False, id="signals")]


def sliced(
    folder: Path, *programs: list[str], limit: float = 30.0, freezes: bool = False
) -> list[tuple[Measurement, int]]:
    """What was measured of these programs, and the number of slices of each."""
    stopwatch = Stopwatch("", limit, folder)
    with ExitStack() as stack:
        runs = []
        for number, words in enumerate(programs):
            freezer = stack.enter_context(freezing()) if freezes else None
            started = stopwatch.start_run(Start(words), number)
            runs.append(stack.enter_context(SlicedRun.start_stopped(stack.enter_context(started), freezer)))
        run_in_slices(runs, 0.01, limit, "one")
    return [(run.run.measurement(), run.slices) for run in runs]


def spans_of(folder: Path, name: str) -> list[tuple[float, float]]:
    lines = (folder / f"spans-{name}.txt").read_text().splitlines()
    return [(float(begin), float(end)) for begin, end in map(str.split, lines)]


@pytest.mark.parametrize("freezes", BY)
def test_one_program_runs_at_a_time_with_its_children(tmp_path: Path, freezes: bool):
    began = time.monotonic()
    runs = sliced(
        tmp_path, [*PYTHON, PROGRAM, "a", "0.1"], [*PYTHON, PROGRAM, "b", "0.2", "fork"], freezes=freezes
    )
    elapsed = time.monotonic() - began
    assert [(run.exit_code, run.fault) for run, _ in runs] == [(0, None), (0, None)]
    own = [(*span, "a") for span in spans_of(tmp_path, "a")]
    other = [(*span, "b") for name in ("b", "b-child") for span in spans_of(tmp_path, name)]
    for (_, end, before), (begin, _, after) in pairwise(sorted(own + other)):
        # A process may be stopped a moment after its parent.
        assert before == after or end <= begin + 0.002
    a, b = (run.wall or 0.0 for run, _ in runs)
    assert 0.1 <= a < b >= 0.2 and a + b <= elapsed


@pytest.mark.parametrize("freezes", BY)
def test_a_program_that_ends_at_once_or_is_killed_or_takes_too_long_does_not_end_the_others(
    tmp_path: Path, freezes: bool
):
    programs = (["true"], ["sh", "-c", "kill -KILL $$"], [*PYTHON, "while True: pass"], ["true"])
    runs = sliced(tmp_path, *programs, limit=0.2, freezes=freezes)
    assert [run.exit_code for run, _ in runs] == [0, 128 + signal.SIGKILL, TIMED_OUT, 0]


# What it prints when nothing interrupts it, and whether it notices signals.
SENSITIVE = {
    "catches SIGCONT": (
        "import signal\ncaught = []\nsignal.signal(signal.SIGCONT, lambda *_: caught.append(1))\n"
        f"{COMPUTE}\nprint('continued' if caught else 'done')",
        True,
    ),
    "waits for stopped children": (
        f"import os\nif not (child := os.fork()):\n exec({COMPUTE!r})\n os._exit(0)\n"
        "print('stopped' if os.WIFSTOPPED(os.waitpid(child, os.WUNTRACED)[1]) else 'done')",
        True,
    ),
    "reads a pipe": (
        "import os, subprocess, sys\n"
        f"words = [sys.executable, '-S', '-c', {COMPUTE + chr(10) + 'print(chr(100) * 10**4)'!r}]\n"
        "print('done' if len(subprocess.run(words, stdout=-1).stdout) == 10**4 + 1 else 'short')",
        False,
    ),
    "begins another session": (
        f"import os\nif not (child := os.fork()):\n os.setsid()\n exec({COMPUTE!r})\n os._exit(0)\n"
        "print('done' if os.waitpid(child, 0)[1] == 0 else 'failed')",
        False,
    ),
    # By signals, the shell may see a stopped job, and take the next command.
    "controls jobs": (
        f"import os\njob = {sys.executable!r} + ' -S -c ' + {chr(34) + COMPUTE + chr(34)!r}\n"
        "os.execlp('bash', 'bash', '-c', f'set -m; {job} && echo done; true')",
        True,
    ),
}


@pytest.mark.parametrize("freezes", BY)
@pytest.mark.parametrize("kind", SENSITIVE)
def test_the_freezer_is_not_noticed_and_signals_are_only_by_some(tmp_path: Path, kind: str, freezes: bool):
    program, notices = SENSITIVE[kind]
    [(run, _), _] = sliced(tmp_path, [*PYTHON, program], BUSY, freezes=freezes)
    assert run.exit_code == 0
    # On a busy machine, a program may be over before it is stopped.
    assert run.output.strip() == "done" or (notices and not freezes)


@needs_freezer
def test_processes_of_a_removed_group_continue_in_its_parent():
    with freezing() as freezer, subprocess.Popen(["sleep", "60"]) as process:
        freezer.add(process.pid)
        freezer.freeze()
        freezer.remove()
        assert not freezer.folder.exists()
        assert str(process.pid) in (freezer.folder.parent / "cgroup.procs").read_text().split()
        process.terminate()
        assert process.wait() == -signal.SIGTERM


@pytest.mark.parametrize("freezes", BY)
def test_nothing_stays_stopped_after_an_interrupt(tmp_path: Path, freezes: bool):
    with pytest.raises(KeyboardInterrupt), ExitStack() as stack:
        freezer = stack.enter_context(freezing()) if freezes else None
        started = Stopwatch("", 5.0, tmp_path).start_run(Start(["sleep", "60"]), 0)
        run = stack.enter_context(SlicedRun.start_stopped(stack.enter_context(started), freezer))
        pid = run.run.running.pid
        is_frozen = freezer is not None and "frozen 1" in (freezer.folder / "cgroup.events").read_text()
        # On a busy machine, it may get to its signal later.
        deadline = time.monotonic() + 10.0
        while not is_frozen and state_of(pid) == "R" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert is_frozen or state_of(pid) == "T"
        raise KeyboardInterrupt
    assert not Path(f"/proc/{pid}").exists()


# Next to a busy program: what whole runs measure, and why.
WHOLE = {
    "waits": ("time.sleep(0.4)", "it waits"),
    "writes": (f"open('new', 'w').close()\n{COMPUTE}", "one folder"),
    "exchanges": (
        f"import os\nend, begin = os.pipe()\nif os.fork():\n os.read(end, 1)\n"
        f"else:\n exec({COMPUTE.replace('0.1', '0.6')!r})\n os.write(begin, b'x')",
        "pipe",
    ),
    "is ended by a timeout": (f"import signal\nsignal.alarm(4)\n{COMPUTE.replace('0.1', '0.7')}", "SIGALRM"),
    "ends by the clock": (
        "begin = time.monotonic()\nwhile time.monotonic() < begin + 1.5: pass",
        "a clock ends it",
    ),
    "is short": ("", "too short"),
}


def compared(own: Own, program: str, *options: str) -> list[Record]:
    """The records of a comparison in slices; of `true` without a program."""
    file = own.folder / "program.py"
    file.write_text(f"import time\n{program}\n")
    words = [sys.executable, "-S", str(file)] if program else ["true"]
    done = own.stage.run(*own.command(*METHOD, *options, "--", *words)[3:])
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [*own.records(), *own.records("aa")]


@pytest.mark.long
@pytest.mark.parametrize("kind", WHOLE)
def test_programs_that_slices_would_change_run_whole_with_the_reason(own: Own, kind: str):
    program, reason = WHOLE[kind]
    # Of more runs at a time, each computes for a smaller part of the time, also on a busy machine.
    records = compared(own, program, "--rounds", "1", "--aa", "5" if "by" in kind else "1")
    assert {(one.run.method, one.run.slices) for one in records} == {("runs", None)}
    # On a busy machine, the timeout may end whole runs, too.
    assert all(one.status == "ok" for one in records) or "timeout" in kind
    reasons = {one.run.whole_because for one in records}
    assert all(reason in each for each in reasons), reasons


@pytest.mark.parametrize(
    ("again", "reason"),
    [(1.25, None), (1.1, "in slices, it computed 1.18 times as long as alone: it lost caches")],
)
def test_a_machine_that_is_slower_than_in_the_trial_run_is_not_taken_for_lost_caches(
    monkeypatch: pytest.MonkeyPatch, again: float, reason: str | None
):
    def outcome(seconds: float) -> Outcome:
        return Outcome([replace(record(BASE, [seconds]), metrics={"user_seconds": seconds})], seconds, "", [])

    monkeypatch.setattr(ProgramLauncher, "run", lambda *_: outcome(again))
    known = {"trial_seconds": 1.0, "program": SimpleNamespace(service=None)}
    fields = {**dict.fromkeys(ProgramRuns.__dataclass_fields__), **known}
    parts = dict.fromkeys(ProgramLauncher.__dataclass_fields__)
    launcher = ProgramLauncher(**{**parts, "programs": {BASE.module: ProgramRuns(**fields)}})
    step = Step(kernel(), Cell(BASE, (BASE,), True), "compare", 1, 1)
    assert launcher._find_spoiled([step], [outcome(1.3)]) == (reason, False)


@pytest.mark.long
def test_a_program_that_only_computes_is_measured_in_slices(own: Own):
    records = compared(own, COMPUTE.replace("0.1", "0.3"), "--rounds", "2")
    assert {(one.status, one.run.method, one.run.whole_because) for one in records} == {("ok", "turns", None)}
    assert len(records) == 6 and all(one.run.slices for one in records)


@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_stays_stopped_when_the_session_is_killed_and_it_can_be_resumed(own: Own, number: int):
    # What left its group is stopped with it.
    file = own.folder / "program.py"
    file.write_text(
        "import os, time\nif not (child := os.fork()):\n os.setsid()\n"
        f" exec({COMPUTE.replace('0.1', '1.0')!r})\n os._exit(0)\nos.waitpid(child, 0)\n"
    )
    command = own.command(*METHOD, "--rounds", "1", "--", sys.executable, "-S", str(file))
    process = subprocess.Popen(command, env=own.stage.variables(), cwd=own.folder, stderr=subprocess.DEVNULL)

    def running() -> list[int]:
        lines = {int(each.parent.name): each for each in Path("/proc").glob("[0-9]*/cmdline")}
        living = []
        for pid, line in lines.items():
            with suppress(OSError):
                if str(file).encode() in line.read_bytes() and pid != process.pid and state_of(pid) != "Z":
                    living.append(pid)
        return living

    deadline = time.monotonic() + 60.0
    # Three runs with a child each, of which two are stopped at least.
    while len(started := running()) < 5 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(started) >= 5
    process.send_signal(number)
    process.wait()
    while running() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running()
    done = own.stage.resume(own.stage.result())
    assert done.returncode == 0, done.stderr
    assert {(one.status, one.run.method) for one in own.records()} == {("ok", "turns")}
    assert len(own.records()) == 2
