"""Kernels that take turns: one is continued while the others are stopped."""

from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from builders import configuration, kernel, record, subject_of, varied
from pagewise.analysis.analysis import analyse
from pagewise.analysis.consistency import inconsistent
from pagewise.analysis.series import run_seconds
from pagewise.core.plan import Step
from pagewise.core.record import Record
from pagewise.session.launch import TIMED_OUT, Start, Stopwatch
from pagewise.session.turns import measure_in_turns
from pagewise.workloads.kernels.turns import Room, turns_of
from stage import BASE, THP, TRIAD, Stage

TURNS = 6
# Writes when each of its turns begins and ends.
PROGRAM = """
import os, sys, time
import signal
over = []
signal.signal(signal.SIGUSR1, lambda *_: over.append(1))
def stop(): os.kill(os.getpid(), 19)
name, turns = sys.argv[1], int(sys.argv[2])
if turns < 0: sys.exit(3)
stop()
for _ in range(turns):
    if over and turns == 6: break
    begin = time.monotonic()
    time.sleep(0.002)
    with open("turns.txt", "a") as file: print(name, begin, time.monotonic(), file=file)
    stop()
print("valid", name)
"""


def measured(folder: Path, *turns: int, limit: float = 20.0, program: str = PROGRAM) -> list:
    """Runs of programs that take so many turns; negative: that end before."""
    starts = [
        Start([sys.executable, "-S", "-c", program, str(name), str(number)])
        for name, number in enumerate(turns)
    ]
    runs = measure_in_turns(Stopwatch("", limit, folder), starts, TURNS, "one")
    return [run for run, _ in runs]


def test_one_program_runs_at_a_time_and_each_has_all_its_turns(tmp_path: Path):
    runs = measured(tmp_path, TURNS, TURNS, TURNS)
    assert [(run.exit_code, run.output) for run in runs] == [(0, f"valid {n}\n") for n in range(3)]
    rows = [line.split() for line in (tmp_path / "turns.txt").read_text().splitlines()]
    spans = sorted((float(begin), float(end)) for _, begin, end in rows)
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))
    by_round = [[name for name, *_ in rows[at : at + 3]] for at in range(0, len(rows), 3)]
    assert [sorted(names) for names in by_round] == [["0", "1", "2"]] * TURNS
    assert len({tuple(names) for names in by_round}) > 1
    assert all(0.0 < run.wall < 5.0 for run in runs)


def test_programs_start_together(tmp_path: Path):
    """Each is ready only after all others have started."""
    started = "open(name, 'w').close()\nwhile not {'0', '1', '2'} <= {*os.listdir()}: time.sleep(0.01)\n"
    program = PROGRAM.replace("stop()\nfor", f"{started}stop()\nfor", 1)
    runs = measured(tmp_path, TURNS, TURNS, TURNS, program=program)
    assert [(run.exit_code, run.output) for run in runs] == [(0, f"valid {n}\n") for n in range(3)]


def test_a_program_that_ends_early_or_is_stopped_by_somebody_else_does_not_end_the_others(tmp_path: Path):
    early, stopped, whole = measured(tmp_path, -1, TURNS + 1, TURNS)
    assert (early.exit_code, early.fault, whole.exit_code) == (3, None, 0)
    assert stopped.fault is not None and stopped.exit_code != 0


@pytest.mark.parametrize("limit", [0.2, 0.0])
def test_programs_that_take_too_long_are_ended(tmp_path: Path, limit: float):
    """Also if the time was over before they began."""
    endless = Start(["sleep", "60"])
    began = time.monotonic()
    [(run, _)] = measure_in_turns(Stopwatch("", limit, tmp_path), [endless], 1, "one")
    assert run.exit_code == TIMED_OUT
    assert time.monotonic() - began < 20.0


@pytest.mark.parametrize(
    ("second", "code"), [(57, "wrong_times"), (59, None), (90, None), (93, "wrong_times")]
)
def test_a_record_of_a_run_in_turns_begins_before_the_end_of_all(second: int, code: str | None):
    """Others start at the same time. The clocks may differ by two seconds."""
    minutes, seconds = divmod(second, 60)
    run = {"method": "turns", "started": "2026-01-01T10:01:00Z", "ended": "2026-01-01T10:01:30Z"}
    made = replace(
        varied(record(configuration(), 0.1), "run", **run),
        started=f"2026-01-01T10:{minutes:02}:{seconds:02}Z",
    )
    subject = subject_of(kernel(), configuration())
    excluded = inconsistent(subject.benchmark, configuration(), [made])
    assert (excluded and excluded.code) == code


def test_common_noise_of_a_turn_cancels():
    noise = [1.0, 1.7, 0.6, 2.9, 1.1, 0.8, 1.4]
    base, again, thp = (
        record(configuration(), [factor * each for each in noise]) for factor in (1.0, 1.0, 0.98)
    )
    turns = turns_of([base, again])
    assert turns is not None
    assert turns.reference_seconds == pytest.approx(math.prod(noise) ** (1 / len(noise)))
    in_turns = [replace(each, run=replace(each.run, turns=turns)) for each in (base, thp)]
    own, other = run_seconds(in_turns[1]), run_seconds(in_turns[0])
    assert own / other == pytest.approx(0.98, rel=1e-12)
    # The turns of a further group are relative to its own baselines, and the result to those of the first.
    later = turns_of([record(configuration(), [3.0 * each for each in noise])], turns.reference_seconds)
    slow = record(configuration(), [3.0 * 0.98 * each for each in noise])
    again = replace(slow, run=replace(slow.run, turns=later))
    assert run_seconds(again) == pytest.approx(own, rel=1e-12)


def test_runs_that_do_not_fit_together_are_divided_with_the_baselines_in_each_group():
    labels = [("none", "hardware"), ("thp", "hardware"), ("hugetlbfs", "hardware"), ("none", "software")]
    configurations = [configuration(label=(*label, "regular")) for label in (*labels, ("thp", "software"))]
    subject = subject_of(kernel(), *configurations)
    base = next(cell for cell in subject.cells if cell.is_baseline)
    steps = [Step(subject.benchmark, cell, "compare", 1, at) for at, cell in enumerate(subject.cells)]
    steps.append(Step(subject.benchmark, base, "aa", 1, len(steps)))

    def divided(room: Room) -> list[list[str]]:
        return [[step.cell.measured.label for step in group] for group in room.groups(steps)]

    assert [len(group) for group in divided(Room())] == [len(steps)]
    # The working set has 64 MiB, of which a run needs up to 125 MiB with the margins.
    mib = 1 << 20
    first, second = divided(Room(500 * mib, {2 * mib: 100 * mib}))
    assert first.count(base.measured.label) == second.count(base.measured.label) == 2
    assert {*first, *second} == {one.label for one in configurations}
    assert len(first) + len(second) == len(steps) + 2
    assert divided(Room(200 * mib, {2 * mib: 100 * mib})) == []


def test_an_empty_pool_does_not_keep_other_runs_from_turns():
    pooled = configuration(label=("hugetlbfs", "hardware", "regular"))
    subject = subject_of(kernel(), configuration(label=BASE), pooled)
    steps = [Step(subject.benchmark, cell, "compare", 1, at) for at, cell in enumerate(subject.cells)]
    steps.append(replace(steps[-1], position=len(steps)))
    mib = 1 << 20
    for free, number in ((0, 1), (10 * mib, 1), (100 * mib, 2), (200 * mib, 1)):
        assert len(Room(250 * mib, {2 * mib: free}).groups(steps)) == number


def test_turns_that_differ_from_the_repetitions_are_a_contradiction():
    one, shorter = record(configuration(), [1.0, 1.1, 1.2]), record(configuration(), [1.0, 1.1])
    for source, number in ((one, 0), (shorter, 1)):
        with_turns = replace(one, run=replace(one.run, turns=turns_of([source])))
        assert len([*with_turns.contradictions()]) == number


def test_some_runs_of_a_configuration_may_take_no_turns():
    base, thp = configuration(), configuration(label=THP)
    runs = ((base, "compare"), (base, "aa"), (thp, "compare"))
    records = [
        record(one, 1.0 + 0.001 * number, number=number, series=series, options={"turns": turns})
        for number, turns in enumerate((0, 40, 40, 0), start=1)
        for one, series in runs
    ]
    [result] = analyse([subject_of(kernel(), base, thp)], records, 1)
    assert [row.invalid for row in result.ranked] == [None, None]


def turns_taken(
    stage: Stage, *arguments: str, code: int | None = None, **behaviour: str
) -> tuple[str, list[Record]]:
    """The output and records of base pages and faster huge pages, with a kernel that can take turns."""
    for label, more in (BASE, {}), (THP, {"factor": "0.97", **behaviour}):
        stage.add("gcc-12.2.0", label, [TRIAD], turns=str(stage.folder / "turns"), **more)
    done = stage.compare("--json", *arguments, code=code)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout, stage.read_result().records


@pytest.mark.long
def test_a_machine_that_changes_all_the_time_does_not_change_the_verdict(stage: Stage):
    output, records = turns_taken(stage, "--rounds", "3", "--no-sweep", code=0)
    [triad] = json.loads(output)["kernels"]
    [thp] = [row for row in triad["configurations"] if row["hugepages"] == "thp"]
    assert thp["verdict"] == "faster" and thp["time_ratio"] == pytest.approx(0.97, abs=0.003)
    assert len(records) == 9
    assert all(len(one.repetitions) == len(one.run.turns.baseline_seconds) >= 6 for one in records)
    assert len({one.run.turns.reference_seconds for one in records if one.round == 2}) == 1


@pytest.mark.parametrize("method", ["runs", "turns"])
def test_the_user_chooses_the_method_also_of_sweeps(method: str, stage: Stage):
    _, records = turns_taken(stage, "--rounds", "1", "--method", method)
    assert {(one.status, one.run.method == "turns") for one in records} == {("ok", method == "turns")}
    compared = [one for one in records if one.series != "sweep"]
    assert {one.run.turns is not None for one in compared} == {method == "turns"}
    swept = [one for one in records if one.series == "sweep"]
    assert {(one.run.turns, len(one.repetitions)) for one in swept} == {(None, 5)}
    assert len({one.run.module for one in swept}) == 2


def test_turns_are_refused_for_a_program_that_takes_none(small: Stage):
    small.compare("--rounds", "1", "--no-sweep", "--method", "turns", code=2)
    assert not small.results.exists()


@pytest.mark.parametrize(("mode", "status"), [("extra_turn", "failed"), ("check_failed", "check_failed")])
def test_a_run_with_wrong_turns_or_a_wrong_result_is_excluded_and_the_others_count(
    stage: Stage, mode: str, status: str
):
    _, records = turns_taken(stage, "--rounds", "3", "--no-sweep", code=1, mode=mode)
    assert {one.status for one in records if one.configuration.hugepages == "thp"} == {status}
    assert {one.status for one in records if one.configuration.hugepages == "none"} == {"ok"}


def test_programs_do_not_stay_stopped_when_the_session_is_killed(stage: Stage):
    stage.add("gcc-12.2.0", BASE, [TRIAD], turns=str(stage.folder / "turns"))
    stage.add("gcc-12.2.0", THP, [TRIAD], turns=str(stage.folder / "turns"), mode="hang")
    command = stage.command("kernels", "--rounds", "3", "--no-sweep", "--output", str(stage.results))
    process = subprocess.Popen(command, env=stage.variables(), cwd=stage.folder, stderr=subprocess.DEVNULL)

    def own() -> list[str]:
        states = []
        for file in Path("/proc").glob("[0-9]*"):
            try:
                words = (file / "cmdline").read_bytes()
                state = (file / "stat").read_bytes().rpartition(b")")[2].split()[0].decode()
            except OSError:
                continue
            if str(stage.folder / "opt").encode() in words:
                states.append(state)
        return states

    deadline = time.monotonic() + 60.0
    # One is stopped, and the next one hangs for some time.
    since = time.monotonic()
    while time.monotonic() < min(since + 1.0, deadline):
        time.sleep(0.05)
        since = since if {"T", "S"} <= {*own()} else time.monotonic()
    assert "T" in own()
    process.send_signal(signal.SIGKILL)
    process.wait()
    while set(own()) - {"Z"} and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not set(own()) - {"Z"}
