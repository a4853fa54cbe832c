"""Counting the user's own program by perf and by the kernel's accounting, and `counters -- PROGRAM`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from builders import BASE, failed_record, kernel, record, varied
from pagewise.core.errors import SelectionError
from pagewise.core.events import PERF, SOFTWARE
from pagewise.core.plan import Cell, Step, Subject
from pagewise.core.record import Record
from pagewise.core.record_parts import PageFaults
from pagewise.session.launch import Start, Stopwatch
from pagewise.session.workload import Outcome
from pagewise.stack.provenance import find_hyperfine
from pagewise.workloads.counters.counting import CountingPlanner, Selection
from pagewise.workloads.counters.machine import kernel_events
from pagewise.workloads.counters.program import (
    Accounting,
    CountingLauncher,
    Counts,
    PerfStat,
    choose,
    perf_name,
)
from pagewise.workloads.program.launch import ProgramLauncher
from scripts import write_script
from stage import Stage

FILES = kernel_events()
EVENTS = FILES[SOFTWARE].natives(FILES[SOFTWARE].groups[0])
TEXT = "import array\nfor _ in range(40): array.array('d', bytes(8 << 21))\nprint('done')"


def perf_lines(*values: str, suffix: str = "", share: float = 100.0) -> str:
    lines = ["# started on a day", ""]
    for event, value in zip(EVENTS, values, strict=True):
        name = perf_name(event)
        unit = "msec" if name == "task-clock" else ""
        line = {"counter-value": value, "unit": unit, "event": name + suffix, "pcnt-running": share}
        lines.append(json.dumps(line))
    return "\n".join(lines)


@pytest.mark.parametrize("selected", [{}, {"LC_ALL": "de_DE.utf8"}, {"LC_ALL": ""}])
def test_a_counter_runs_in_the_c_locale_and_the_program_in_its_own(tmp_path: Path, selected: dict[str, str]):
    counter, program = tmp_path / "counter", tmp_path / "program"
    for file, rest in ((counter, 'exec "$@"\n'), (program, "")):
        write_script(file, f'#!/bin/sh\necho "${{LC_ALL-unset}}" > {file}.locale\n{rest}')
    given = {name: value for name, value in os.environ.items() if name != "LC_ALL"} | selected
    stopwatch = Stopwatch(find_hyperfine(), 20, tmp_path, wrapper=(str(counter),))
    stopwatch.measure(Start([str(program)], given))
    locales = [file.with_name(f"{file.name}.locale").read_text().strip() for file in (counter, program)]
    assert locales == ["C", selected.get("LC_ALL", "unset")]


VALUES = ("1.5", "70.000000", "60.000000", "10", "3", "1")


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        (perf_lines(*VALUES), 6),
        (perf_lines("1.5", "70", "60", "10", "<not supported>", "<not counted>"), 4),
        # Events of the kernel, of which perf counts none in user mode, and reports 0.
        (perf_lines(*VALUES, suffix=":u"), 4),
        # An estimate is not a count.
        (perf_lines(*VALUES, share=50.0), 0),
        *((text, 0) for text in ("", "# started on a day\n", '{"counter-value": "1"}\n')),
        (perf_lines(*VALUES).replace("100.0", "100,00"), 0),
    ],
)
def test_events_that_perf_does_not_count_are_refused(tmp_path: Path, text: str, counted: int):
    (tmp_path / "counts").write_text(text)
    actual = PerfStat("perf").counts(EVENTS, None, tmp_path / "counts")
    assert len(actual.values) == counted and set(actual.values).isdisjoint(actual.refused)
    assert actual.refused.keys() == {"all"} or actual.values.keys() | actual.refused.keys() == set(EVENTS)
    if counted:
        # perf reports clocks in milliseconds.
        assert actual.values["perf::TASK-CLOCK"] == 1_500_000 and actual.values["perf::PAGE-FAULTS"] == 70


def test_a_group_is_counted_as_a_whole():
    wrapper = PerfStat("perf").wrapper(FILES[PERF].natives(FILES[PERF].select(["tlb"])[0]), Path("file"))
    assert wrapper[-2:] == ("{cycles,instructions,dTLB-load-misses,iTLB-load-misses}", "--")


def test_the_kernels_accounting_matches_the_record():
    ran = replace(
        record(BASE, [2.0]),
        page_faults=PageFaults(compute_minor=60, compute_major=10),
        metrics={"user_seconds": 1.0, "system_seconds": 0.5},
    )
    actual = Accounting("no perf").counts(EVENTS, ran, Path("/nonexistent"))
    assert actual.values == {
        **{"perf::TASK-CLOCK": 1.5e9, "perf::PAGE-FAULTS": 70},
        **{"perf::MINOR-FAULTS": 60, "perf::MAJOR-FAULTS": 10},
    }
    assert actual.refused == dict.fromkeys(("perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS"), "no perf")


def test_without_perf_the_kernels_accounting_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    counter, choice = choose(Selection())
    assert isinstance(counter, Accounting) and choice.file.name == SOFTWARE and choice.remedy is not None
    broken = write_script(tmp_path / "perf", "#!/bin/sh\nexit 2\n")
    assert isinstance(choose(Selection())[0], Accounting)
    broken.write_text("#!/bin/sh\nexit 0\n")
    assert isinstance(choose(Selection())[0], PerfStat)
    # Events of a CPU cannot be named.
    with pytest.raises(SelectionError):
        choose(Selection(events="zen4"))


# ---- the launcher


@dataclass
class FakeCounter:
    """Counts 100 page faults in every run, 30 of them of hyperfine."""

    refused: dict[str, str]
    source: str = "perf_event"

    def wrapper(self, events: Sequence[str], exported: Path) -> tuple[str, ...]:
        return ("count",)

    def counts(self, events: Sequence[str], record: Record | None, exported: Path) -> Counts:
        values = {FAULTS: 30.0 if record is None else 100.0, CLOCK: 0.0}
        return Counts({name: n for name, n in values.items() if name not in self.refused}, self.refused)


SUBJECT = Subject(kernel(), (Cell(BASE, (BASE,), True),))
VALID = record(BASE, [2.0])
FAULTS, CLOCK = "perf::PAGE-FAULTS", "perf::TASK-CLOCK"


@pytest.fixture
def count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Record]:
    """Makes the record that is counted of a run with this record, where these events are refused."""

    def counted(refused: dict[str, str], made: Record = VALID, series: str = "counters") -> Record:
        def run(launcher: ProgramLauncher, step: Step) -> Outcome:
            assert launcher.stopwatch.wrapper == (() if step.group is None else ("count",))
            return Outcome([varied(made, "run", series=step.series)], 1.0, "", [])

        monkeypatch.setattr(ProgramLauncher, "run", run)
        monkeypatch.setattr(Stopwatch, "measure_overhead", lambda stopwatch: 0)
        parts = dict.fromkeys(ProgramLauncher.__dataclass_fields__)
        inner = ProgramLauncher(**{**parts, "stopwatch": Stopwatch("hyperfine", 60.0, tmp_path)})
        launcher = CountingLauncher(inner, {"software": EVENTS}, FakeCounter(refused))
        group = None if series == "trial" else "software"
        (actual,) = launcher.run(Step(SUBJECT.benchmark, SUBJECT.cells[0], series, 1, 1, group)).records
        return actual

    return counted


@pytest.mark.parametrize(
    ("refused", "counters"),
    [
        # Those of hyperfine are subtracted.
        ({}, {FAULTS: 70.0, CLOCK: 0.0}),
        ({CLOCK: "no permission"}, {FAULTS: 70.0}),
        (dict.fromkeys((FAULTS, CLOCK), "no permission"), {"unavailable": "no permission"}),
    ],
)
def test_the_counts_of_a_run_are_recorded_and_refused_events(
    count: Callable[..., Record], refused: dict, counters: dict
):
    made = count(refused)
    assert made.counters == counters and (made.run.group, made.counters_source) == ("software", "perf_event")
    assert made.counters_refused == ((refused or None) if FAULTS in counters else None)


def test_trial_runs_and_runs_that_failed_have_no_counts(count: Callable[..., Record]):
    failed = count({}, failed_record(BASE, "failed", "crashed"))
    assert (failed.status, failed.counters, failed.run.group) == ("failed", None, "software")
    trial = count({}, series="trial")
    assert (trial.counters, trial.run.series) == (VALID.counters, "trial")


def test_a_policy_that_is_unavailable_starts_no_program():
    planner = CountingPlanner([SUBJECT], 1, {"software": ()}, frozenset({BASE.module}))
    steps = planner.steps_of_round(1, ())
    assert len(steps) == 2 and not any(map(planner.can_run, steps))
    assert all(map(replace(planner, unavailable=frozenset()).can_run, steps))


# ---- the command


@pytest.mark.long
def test_a_program_is_counted_under_each_policy(stage: Stage):
    words = ("counters", "--output", str(stage.results), "--policies", "none,reuse", "-n", "2")
    done = stage.run(*words, "--json", "--check", "done", "--", sys.executable, "-c", TEXT, code=0)
    data = json.loads(done.stdout)
    quantities = {row["quantity"] for row in data["values"]}
    assert {"time", "page_faults", "PAGE_FAULTS", "TASK_CLOCK"} <= quantities
    result = stage.read_result()
    (program,) = result.manifest.programs.values()
    assert result.manifest.kind == "counters" and program["command"][0] == sys.executable
    series = [one.run.series for one in result.records]
    assert {name: series.count(name) for name in set(series)} == {"trial": 2, "counters": 4, "counters_aa": 2}
    faults = {row["hugepages"]: row["value"] for row in data["values"] if row["quantity"] == "PAGE_FAULTS"}
    assert faults["reuse"] < faults["none"] / 2


def test_options_of_the_other_subject_are_refused(stage: Stage):
    for words in (("--kernels", "ember", "--", "true"), ("--check", "done")):
        stage.run("counters", *words, code=2)
