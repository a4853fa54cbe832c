"""Counting events of the user's own program, unchanged, under page policies: from outside, all its processes.

`perf stat` counts; where it is missing or refused, the kernel's accounting of ended processes (getrusage).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeAlias

from rich.console import Console

from pagewise.core.environment import C_LOCALE
from pagewise.core.errors import SelectionError
from pagewise.core.events import PERF, SOFTWARE
from pagewise.core.plan import Step
from pagewise.core.record import CounterSource, Record
from pagewise.core.units import count_text
from pagewise.machine.host import read_host
from pagewise.session.recorder import Recorder
from pagewise.session.session import Session
from pagewise.session.workload import Launcher, Outcome
from pagewise.stack.commands import run_to_end
from pagewise.workloads.counters.counting import CountingPlanner, Selection, session_part
from pagewise.workloads.counters.machine import (
    INSTALL_PERF,
    EventChoice,
    find_file,
    hardware_counters,
    kernel_events,
)
from pagewise.workloads.program.launch import ProgramLauncher
from pagewise.workloads.program.prepare import arrange
from pagewise.workloads.program.program import Program
from pagewise.workloads.program.workload import ProgramOptions, Programs

# Without permission for more, perf counts user mode only (suffix u), and reports 0 for these.
_IN_KERNEL = ("perf::CONTEXT-SWITCHES", "perf::CPU-MIGRATIONS")
_FULL_PERCENT = 99.5


@dataclass(frozen=True)
class Counts:
    """What was counted in a run by native name, and why other events were not."""

    values: Mapping[str, float]
    refused: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PerfStat:
    """Linux's `perf stat`, which counts all events of a group at the same time."""

    program: str
    source: CounterSource = "perf_event"

    def wrapper(self, events: Sequence[str], exported: Path) -> tuple[str, ...]:
        """The command that starts and counts a run, and writes one line of JSON per event to `exported`."""
        group = f"{{{','.join(map(perf_name, events))}}}"
        return (self.program, "stat", "-j", "-o", str(exported), "-e", group, "--")

    def counts(self, events: Sequence[str], record: Record | None, exported: Path) -> Counts:
        """What was counted, by the lines of its file, which are in the order of the events."""
        lines = exported.read_text(encoding="utf-8").splitlines() if exported.exists() else []
        try:
            counted = [json.loads(line) for line in lines if line.startswith("{")]
        except ValueError:
            return Counts({}, {"all": "perf stat wrote no JSON"})
        if len(counted) != len(events):
            return Counts({}, {"all": "perf stat reported nothing"})
        values, refused = {}, {}
        for event, line in zip(events, counted, strict=True):
            reason = self._missing(event, line)
            if reason is not None:
                refused[event] = reason
            else:
                # perf reports clocks in ms.
                scale = 1e6 if line.get("unit") == "msec" else 1.0
                values[event] = round(float(line["counter-value"]) * scale)
        return Counts(values, refused)

    def _missing(self, event: str, line: Mapping[str, str]) -> str | None:
        value = line["counter-value"]
        if not re.fullmatch(r"[0-9.]+", value):
            return f"perf stat: {value.strip('<>')}"
        if event in _IN_KERNEL and re.search(r":\w*u\w*$", line["event"]):
            return "an event of the kernel, and this user may count in user mode only"
        if float(line["pcnt-running"]) < _FULL_PERCENT:
            return f"counted during {line['pcnt-running']} % of the run only"
        return None


@dataclass(frozen=True)
class Accounting:
    """The kernel's accounting of ended processes, from the record. `reason`: why perf does not count."""

    reason: str
    source: CounterSource = "software"

    def wrapper(self, events: Sequence[str], exported: Path) -> tuple[str, ...]:
        """No command is needed."""
        return ()

    def counts(self, events: Sequence[str], record: Record | None, exported: Path) -> Counts:
        """Page faults, and user and system time, of a valid run; without a record there are none."""
        known = {}
        if record is not None and (faults := record.page_faults) is not None:
            minor, major = faults.compute_minor or 0, faults.compute_major or 0
            known = {"MINOR-FAULTS": minor, "MAJOR-FAULTS": major, "PAGE-FAULTS": minor + major}
        if record is not None and "user_seconds" in record.figures:
            seconds = record.figures["user_seconds"] + record.figures["system_seconds"]
            known["TASK-CLOCK"] = round(seconds * 1e9)
        values = {f"perf::{name}": float(value) for name, value in known.items()}
        return Counts(
            {name: values[name] for name in events if name in values},
            {name: self.reason for name in events if name not in values},
        )


#: Counts events, by their native names, in a run from outside.
Counter: TypeAlias = PerfStat | Accounting


@dataclass
class CountingLauncher(Launcher):
    """Runs the program with one group of events; what is counted of hyperfine itself is subtracted."""

    inner: ProgramLauncher
    groups: Mapping[str, tuple[str, ...]]
    counter: Counter
    # By group, with what is counted of hyperfine with `true`.
    _launchers: dict[str, tuple[ProgramLauncher, Mapping[str, float]]] = field(default_factory=dict)

    def run(self, step: Step) -> Outcome:
        """Runs the program once; its record has the counts. Trial runs are not counted."""
        if step.group is None:
            outcome = self.inner.run(step)
            return replace(outcome, records=list(map(_as_counting, outcome.records)))
        exported = self.inner.stopwatch.scratch / "counts.jsonl"
        launcher, overhead = self._launcher(step.group, exported)
        exported.unlink(missing_ok=True)
        outcome = launcher.run(step)
        (record,) = outcome.records
        record = replace(record, run=record.run and replace(record.run, group=step.group))
        if record.status == "ok":
            counts = self.counter.counts(self.groups[step.group], record, exported)
            record = self._counted_record(record, counts, overhead)
        return replace(outcome, records=[record])

    def _launcher(self, group: str, exported: Path) -> tuple[ProgramLauncher, Mapping[str, float]]:
        if group not in self._launchers:
            stopwatch = replace(
                self.inner.stopwatch, wrapper=self.counter.wrapper(self.groups[group], exported)
            )
            stopwatch.measure_overhead()
            launcher = replace(self.inner, stopwatch=stopwatch)
            overhead = self.counter.counts(self.groups[group], None, exported).values
            self._launchers[group] = launcher, overhead
        return self._launchers[group]

    def _counted_record(self, record: Record, counts: Counts, overhead: Mapping[str, float]) -> Record:
        values = {name: max(0.0, n - overhead.get(name, 0.0)) for name, n in counts.values.items()}
        reason = "; ".join(dict.fromkeys(counts.refused.values()))
        return replace(
            record,
            counters=values or {"unavailable": reason},
            counters_source=self.counter.source,
            counters_refused=dict(counts.refused) or None if values else None,
        )


@dataclass(frozen=True)
class ProgramCounting(Programs):
    """The runs of a comparison of the program, which are counted. groups: native events by group."""

    groups: Mapping[str, tuple[str, ...]]
    counter: Counter

    @property
    def planner(self) -> CountingPlanner:
        """Every policy once per round and group."""
        return CountingPlanner(
            self.subjects, self.options.runs.seed, dict.fromkeys(self.groups, ()), frozenset(self.unavailable)
        )

    def launcher(self, scratch: Path) -> CountingLauncher:
        """Launches the program as a comparison does, and counts."""
        return CountingLauncher(self.program_launcher(scratch), self.groups, self.counter)


def prepare(options: ProgramOptions, program: Program, selection: Selection, console: Console) -> Session:
    """Finds what can be counted of the program here; nothing is counted or written yet.

    Raises SetupError, SelectionError or FormatError.
    """
    counter, choice = choose(selection)
    groups = {group.name: choice.file.natives(group) for group in choice.file.select(selection.groups)}
    part = session_part(choice, list(groups), selection)
    runs, manifest = arrange(options, [program], "counters", console, counters=part)
    rank_launcher = runs.programs[0].rank_launcher
    if rank_launcher is not None and not rank_launcher.kind.inherits:
        raise SelectionError(
            f"the events of ranks that {rank_launcher.name} starts cannot be counted from outside",
            where="--ranks",
            remedy="count with mpiexec: name it as the launcher in the site's site.yaml "
            "(docs/how-to/ranks.md)",
        )
    workload = ProgramCounting(**vars(runs), groups=groups, counter=counter)
    # Which policies the programs of a script can have is known after its trial run.
    unavailable = {} if program.starts_others else workload.unavailable
    steps = workload.planner.steps_of_round(1, ())
    runs_of_round = sum(step.cell.measured.module not in unavailable for step in steps)
    rounds, number = count_text(options.runs.rounds, "round"), count_text(runs_of_round, "run")
    text = f"{choice.text}\nOf: {program.name}. {rounds} of {number}."
    console.print(text, soft_wrap=True)
    return Session(options, workload, Recorder(manifest), console)


def choose(selection: Selection, perf: str | None = None) -> tuple[Counter, EventChoice]:
    """The counter and the events for a program here; `perf` is its path (default: found on PATH).

    Raises SelectionError when other events are named.
    """
    files = kernel_events()
    hardware = hardware_counters(read_host())
    event_file = None if selection.events is None else find_file(files, selection.events)
    path = perf or shutil.which("perf")
    software = files[SOFTWARE].natives(files[SOFTWARE].groups[0])
    fault = "perf is not installed" if path is None else _fault(PerfStat(path), software)
    if path is None or fault is not None:
        remedy = INSTALL_PERF if path is None else hardware.remedy
        counter: Counter = Accounting(fault or "")
        return counter, EventChoice(
            event_file or files[SOFTWARE], f"by the kernel's accounting: {fault}", remedy
        )
    counter = PerfStat(path)
    if event_file is not None:
        return counter, EventChoice(event_file, "by perf stat, named by --events")
    if hardware.state == "good":
        return counter, EventChoice(files[PERF], "by perf stat")
    return counter, EventChoice(
        files[SOFTWARE], f"by perf stat; the hardware counters: {hardware.detail}", hardware.remedy
    )


def perf_name(event: str) -> str:
    """perf's name for an event of the kernel: dTLB-load-misses for perf::DTLB-LOAD-MISSES."""
    name = event.removeprefix("perf::").lower()
    return re.sub(r"^([di])tlb", r"\1TLB", name).replace("l1-", "L1-")


def _fault(counter: PerfStat, events: Sequence[str]) -> str | None:
    """Why perf cannot count these events here; None when it can. Old versions have no `-j`."""
    command = [*counter.wrapper(events, Path(os.devnull)), "true"]
    try:
        done = run_to_end(command, {**os.environ, **C_LOCALE})
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"perf cannot be run: {error}"
    return None if done.returncode == 0 else f"perf stat exits with {done.returncode}"


def _as_counting(record: Record) -> Record:
    """A record of a trial run; one that failed counts as a run of its configuration."""
    run = record.run
    if run is None or run.series != "compare":
        return record
    return replace(record, run=replace(run, series="counters"))
