"""Runs the user's program once under a page policy, through hyperfine, and looks at its memory meanwhile."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path

from pagewise.core.plan import CellKey, Step
from pagewise.core.reading import parse_json, read_file
from pagewise.core.record import Record
from pagewise.core.record_parts import (
    Failure,
    LeftProcess,
    PageFaults,
    ProcessPlacement,
    RecordedHost,
    ThreadPlaces,
    Times,
    Validation,
)
from pagewise.core.result import utc_text
from pagewise.core.units import bytes_text, seconds_text
from pagewise.machine.placement import Placement, had_by
from pagewise.machine.settings.thp import refused
from pagewise.session.launch import (
    LONGEST_OUTPUT,
    SIGNAL_BASE,
    TIMED_OUT,
    about_run,
    build_of,
    failed_record,
    hyperfine_command,
    implausible,
    signal_name,
    timing,
)
from pagewise.session.processes import in_session
from pagewise.session.workload import Outcome
from pagewise.stack.binary import Binary
from pagewise.workloads.program.output import Check, Pattern
from pagewise.workloads.program.policy import (
    Lack,
    Machine,
    PageRequest,
    Policy,
    page_size,
    preloaded_actions,
    request,
    settings,
)
from pagewise.workloads.program.preload import Libraries
from pagewise.workloads.program.proof import (
    FEWEST_SAMPLES,
    Memory,
    completed,
    has_room,
    lack,
    pages,
    summed_up,
    told_by_snapshots,
)
from pagewise.workloads.program.sampler import Sampler, Samples
from pagewise.workloads.program.smaps import KINDS, Usage, by_kind, parse
from pagewise.workloads.program.transparent import gauge, only_size

UNCHANGED = "unchanged binary"
_NOISE = "Warning: Ignoring non-zero exit code."
_WHAT_CAN_KILL = "the pool may have run short: glibc's arenas and children of fork take its pages unreserved"


@dataclass(frozen=True)
class Program:
    """What is run and how its runs are judged.

    command: the program and its arguments. folder: where it runs, None: in a fresh one for each run, with
    copies of `inputs` and files of the `texts`. reads: files that it writes (globs), taken with its output.
    ok: the exit codes that are good.
    """

    name: str
    command: tuple[str, ...]
    binary: Binary
    environment: Mapping[str, str]
    folder: Path | None
    inputs: tuple[Path, ...]
    reads: tuple[str, ...]
    metrics: tuple[Pattern, ...]
    checks: tuple[Check, ...]
    ok: tuple[int, ...] = (0,)
    texts: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Run:
    """What a run gave. `memory` is None where it could not be looked at."""

    wall: float | None
    times: Mapping[str, float]
    exit_code: int
    output: str
    said: str
    memory: Memory | None
    faults: int
    major: int
    fault: str | None
    had: ProcessPlacement
    left_behind: tuple[LeftProcess, ...] | None


@dataclass
class ProgramLauncher:
    """Runs the program. `environments`: by module, `lacks`: why policies are unavailable, by name.

    `proved` is filled with what trial runs showed of the program's memory. `wrapper`: a command that starts
    hyperfine, such as a counter of events, and exits with its exit code.
    """

    environments: Mapping[str, Mapping[str, str]]
    hyperfine: str
    placements: Mapping[str | None, Placement]
    limit: float
    scratch: Path
    program: Program
    policies: Mapping[str, Policy]
    machine: Machine
    libraries: Libraries | None
    lacks: Mapping[str, Lack]
    enough: float
    interval: float | None
    proved: dict[CellKey, Memory]
    end_leftovers: bool = False
    wrapper: tuple[str, ...] = ()
    _own_faults: int | None = None

    def run(self, step: Step) -> Outcome:
        """Runs the program once; its one record. With an unavailable policy it is not run: the reason.

        A step of the series `trial` is not timed: it shows whether the policy works and, where the program
        can preload that, the memory at its end. One that fails counts as a run of its configuration.
        """
        policy = self.policies[step.cell.measured.module]
        missing = self.lacks.get(policy.name)
        if missing is not None:
            started = datetime.now(timezone.utc)
            failure = Failure(3, missing.reason, missing.remedy)
            record = failed_record(step, started, "pages_unavailable", failure)
            run = about_run(step, None, 3, self.program.command)
            return Outcome([replace(record, run=run)], None, "", [])
        return self._recorded(step, policy, self.environments[step.cell.measured.module])

    def measure_overhead(self) -> int:
        """The page faults of hyperfine itself and of the wrapper, counted once, by running `true`."""
        true = shutil.which("true")
        if self._own_faults is None and true is not None:
            before = _faults()
            said, exported = self.scratch / "output.txt", self.scratch / "hyperfine.json"
            arguments = self._arguments([true], exported)
            with in_session(arguments, said, os.environ, self.scratch, nullcontext()) as running:
                running.wait(self.limit)
            self._own_faults = _faults()[0] - before[0]
        return self._own_faults or 0

    def _recorded(self, step: Step, policy: Policy, environment: Mapping[str, str]) -> Outcome:
        trial = step.series == "trial"
        wanted = request(policy, self.machine, self.enough)
        started = datetime.now(timezone.utc)
        placement = self.placements[step.cell.placement]
        ran = self._run(policy, environment, wanted, placement, trial)
        if trial and ran.memory is not None:
            self.proved[step.cell.key] = ran.memory
        memory = self._memory(step, policy, ran.memory)
        record = self._judged(step, policy, started, ran, memory, wanted)
        run = replace(
            about_run(step, ran.wall, ran.exit_code, self.program.command),
            series="compare" if trial and record.status != "ok" else step.series,
            bound=placement.binding(ran.had),
            left_behind=ran.left_behind,
        )
        program = None if memory is None else memory.recorded()
        return Outcome([replace(record, program=program, run=run)], ran.wall, ran.said, [])

    def _memory(self, step: Step, policy: Policy, seen: Memory | None) -> Memory | None:
        """What was seen in this run; of a run too short for that, what an untimed one showed."""
        proved = self.proved.get(step.cell.key)
        if seen is None or (seen.full < FEWEST_SAMPLES and proved is not None and proved.full > seen.full):
            return proved or seen
        wanted = request(policy, self.machine, self.enough)
        return completed(seen, proved, {kind for kinds in wanted.targets for kind in kinds})

    def _judged(  # noqa: PLR0917 what a record is made of
        self,
        step: Step,
        policy: Policy,
        started: datetime,
        ran: Run,
        memory: Memory | None,
        wanted: PageRequest,
    ) -> Record:
        if ran.exit_code not in self.program.ok or ran.wall is None:
            return failed_record(step, started, "failed", self._failure(ran, policy))
        if ran.fault is not None:
            return failed_record(step, started, "check_failed", Failure(1, ran.fault))
        placement = self.placements[step.cell.placement]
        told = pages(wanted, memory, self.machine.base)
        missing = lack(wanted, memory, told)
        if missing is not None:
            room = bool(memory and has_room(wanted, memory))
            failure = Failure(3, missing, _remedy(policy, memory, room))
            return replace(failed_record(step, started, "pages_unavailable", failure), pages=told)
        return Record(
            kernel=step.kernel.name,
            started=utc_text(started),
            status="ok",
            configuration=build_of(step.cell.measured),
            seconds=Times(repetitions=(ran.wall,)),
            metrics=self._metrics(ran, memory),
            validation=Validation(True, self._method()),
            pages=told,
            page_faults=PageFaults(compute_minor=ran.faults, compute_major=ran.major),
            placement=ThreadPlaces(placement.threads, placement.cpus),
            host=RecordedHost(hostname=socket.gethostname(), kernel=os.uname().release),
        )

    def _run(
        self,
        policy: Policy,
        environment: Mapping[str, str],
        wanted: PageRequest,
        placement: Placement,
        trial: bool,
    ) -> Run:
        own_faults = self.measure_overhead()
        exported, said = self.scratch / "hyperfine.json", self.scratch / "output.txt"
        for file in (exported, said):
            file.unlink(missing_ok=True)
        snapshots = self.scratch / "snapshots"
        changed = self._environment(policy, environment, snapshots / "smaps" if trial else None)
        env = shutil.which("env") or "/usr/bin/env"
        command = [env, *(f"--unset={name}" for name, value in changed.items() if value is None)]
        command += [f"{name}={value}" for name, value in changed.items() if value is not None]
        command += [str(self.program.binary.program), *self.program.command[1:]]
        with self._folder() as folder, only_size(self._switched(policy)):
            shutil.rmtree(snapshots, ignore_errors=True)
            snapshots.mkdir()
            sampler = self._sampler(wanted, env, placement)
            before, began = _faults(), time.time()
            arguments = self._arguments(command, exported)
            environment = {**environment, **placement.environment}
            inherited = self._inherited(policy, placement)
            try:
                with in_session(
                    arguments, said, environment, folder, inherited, end_leftovers=self.end_leftovers
                ) as running:
                    had = had_by(running.pid)
                    sampler.watch(running.pid)
                    running.wait(self.limit)
            finally:
                found = sampler.finish()
            faults = [after - ago for after, ago in zip(_faults(), before, strict=True)]
            wall, exit_code = timing(exported)
            exit_code = TIMED_OUT if running.is_ended_by_us else exit_code
            text = _said(said)
            output = text + "".join(_written(folder, self.program.reads, began))
            fault = implausible(wall, running.elapsed)
            if fault is None and exit_code in self.program.ok:
                fault = self._fault(output, folder)
            memory = self._seen(found, snapshots, wanted)
        return Run(
            wall,
            _times(exported),
            exit_code,
            output,
            text[-LONGEST_OUTPUT:],
            memory,
            max(0, faults[0] - own_faults),
            faults[1],
            fault,
            had,
            running.left_behind,
        )

    @contextmanager
    def _inherited(self, policy: Policy, placement: Placement) -> Iterator[None]:
        """What a run has from the process that starts it."""
        with refused(policy.refuses_huge_pages), placement.bound():
            yield

    def _seen(self, found: Samples, snapshots: Path, wanted: PageRequest) -> Memory | None:
        """From samples, and from what an untimed run wrote itself."""
        sampled = summed_up(found)
        told = told_by_snapshots(list(_snapshots(snapshots, wanted.huge).values()))
        if sampled is None or (sampled.full < FEWEST_SAMPLES and told is not None):
            return told
        return completed(sampled, told, KINDS)

    def _sampler(self, wanted: PageRequest, env: str, placement: Placement) -> Sampler:
        watched = gauge(wanted.page) if wanted.watched else None
        others = sorted(os.sched_getaffinity(0) - set(placement.cpus))
        launchers = [Path(env), Path(self.hyperfine)]
        return Sampler(wanted.huge, self.interval, launchers, watched, others)

    def _switched(self, policy: Policy) -> int | None:
        """The size of transparent huge pages that this run alone is to have."""
        if not self.machine.settable or "thp" not in policy.parts or policy.size is None:
            return None
        return page_size(policy, self.machine)

    def _arguments(self, command: list[str], exported: Path) -> list[str]:
        # What hyperfine says itself would be mixed with what the program says.
        quiet = ["--style", "none", "--output", "inherit"]
        hyperfine = hyperfine_command(self.hyperfine, exported)
        return [*self.wrapper, *hyperfine, *quiet, shlex.join(command)]

    def _environment(
        self, policy: Policy, environment: Mapping[str, str], snapshots: Path | None
    ) -> dict[str, str | None]:
        """What the program's environment has instead of the inherited one."""
        changed = settings(policy, self.machine, environment)
        actions = preloaded_actions(policy, self.machine, self.program.binary)
        preloaded = []
        if "libhugetlbfs" in policy.parts and self.machine.hugetlbfs_library:
            preloaded.append(self.machine.hugetlbfs_library)
        if actions and self.libraries is not None:
            preloaded.append(str(self.libraries.remap))
            changed["PAGEWISE_PRELOAD"] = ",".join(actions)
            changed["PAGEWISE_PRELOAD_SIZE"] = str(page_size(policy, self.machine))
            changed["PAGEWISE_PRELOAD_LOG"] = str(self.scratch / "preload.log")
        binary = self.program.binary
        alike = binary.c_library == "glibc" and binary.elf.machine == self.machine.elf_machine
        if snapshots is not None and self.libraries is not None and alike and not binary.static:
            preloaded.append(str(self.libraries.snapshot))
            changed["PAGEWISE_SNAPSHOT"] = str(snapshots)
        if preloaded:
            theirs = environment.get("LD_PRELOAD", "")
            changed["LD_PRELOAD"] = ":".join([*preloaded, *filter(None, [theirs])])
        return changed

    @contextmanager
    def _folder(self) -> Iterator[Path]:
        """The folder of a run: the one named, or a fresh one with copies of the inputs."""
        if self.program.folder is not None:
            yield self.program.folder
            return
        folder = self.scratch / "run"
        folder.mkdir()
        try:
            for file in self.program.inputs:
                if file.is_dir():
                    shutil.copytree(file, folder / file.name)
                else:
                    shutil.copy(file, folder / file.name)
            for name, text in self.program.texts.items():
                (folder / name).write_text(text, encoding="utf-8")
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def _fault(self, output: str, folder: Path) -> str | None:
        """Why its result is wrong: a check failed, or a metric is not in its output."""
        for check in self.program.checks:
            fault = check.fault(output, folder, self.program.environment)
            if fault is not None:
                return fault
        for one in self.program.metrics:
            if one.value(output) is None:
                return f"its output has no {one.label}: nothing fits '{one.pattern.pattern}'"
        return None

    def _metrics(self, ran: Run, memory: Memory | None) -> dict[str, float]:
        values = {
            one.field: value for one in self.program.metrics if (value := one.value(ran.output)) is not None
        }
        values |= ran.times
        if memory is not None:
            values["peak_memory_gib"] = memory.total_peak.resident / (1 << 30)
        return values

    def _method(self) -> str:
        told = [f"check '{check.text}'" for check in self.program.checks]
        return ", ".join(["exit code", *told])

    def _failure(self, ran: Run, policy: Policy) -> Failure:
        remedy = None
        if ran.exit_code == TIMED_OUT:
            message, remedy = f"ended after {self.limit:g} s, the limit of a run", "allow more with --timeout"
        elif ran.exit_code > SIGNAL_BASE:
            name = signal_name(ran.exit_code - SIGNAL_BASE)
            message = f"crashed by {name}"
            if policy.from_pool and name in ("SIGBUS", "SIGKILL"):
                message, remedy = f"{message}: {_WHAT_CAN_KILL}", "more pages in the pool: --pool-memory"
        else:
            message = f"ended with exit code {ran.exit_code}"
        last = ran.said.strip().splitlines()[-1:]
        return Failure(ran.exit_code, ": ".join([message, *last])[:500], remedy)


def trial_text(policy: str, record: Record) -> str:
    """What a trial run showed, in a line."""
    if record.failure is not None:
        return f"{policy}: {record.failure.message}"
    text = f"{policy}: {seconds_text(record.repetitions[0])}"
    if record.program is None:
        return f"{text}, too short to look at its memory"
    peak = record.program.total.peak
    share = f", {peak.huge_coverage:.0%} of it on huge pages" if peak.huge_bytes else ""
    return f"{text}, {bytes_text(peak.resident_bytes)} in memory{share}"


def _remedy(policy: Policy, memory: Memory | None, room: bool) -> str | None:
    if memory is None:
        return "give it more to do: it must run for some milliseconds"
    if not room:
        return None
    if policy.from_pool:
        return "more pages in the pool: --pool-memory. What the program maps itself is never taken from it"
    return "--enough-coverage PERCENT accepts less; `pages` in the result tells the kinds of its memory"


def _snapshots(folder: Path, page: int) -> dict[str, list[dict[str, Usage]]]:
    """What processes wrote of their own memory, by process."""
    found: dict[str, list[dict[str, Usage]]] = {}
    for file in sorted(folder.glob("smaps.*")):
        kinds = by_kind(parse(_text(file)), page)
        if kinds:
            found.setdefault(file.name.split(".")[1], []).append(kinds)
    return found


def _said(file: Path) -> str:
    """The program's output, without what hyperfine says of exit codes."""
    lines = _text(file).splitlines(keepends=True)
    while lines and (not lines[-1].strip() or lines[-1].strip() == _NOISE):
        lines.pop()
    return "".join(lines)


def _written(folder: Path, globs: Sequence[str], since: float) -> Iterator[str]:
    """The texts of the files that a run wrote; one from before it tells of another run."""
    for one in globs:
        for file in sorted(folder.glob(one)):
            if file.stat().st_mtime >= since - 1.0:
                yield _text(file)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _times(exported: Path) -> dict[str, float]:
    """CPU seconds of the program by itself and by the kernel for it, as hyperfine tells them."""
    try:
        told = parse_json(read_file(exported))["results"][0]
        return {"user_seconds": float(told["user"]), "system_seconds": float(told["system"])}
    except (OSError, ValueError, LookupError, TypeError):
        return {}


def _faults() -> tuple[int, int]:
    """Minor and major page faults of all processes that this one started and that are over."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_minflt, used.ru_majflt
