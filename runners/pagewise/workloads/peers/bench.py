"""Runs the candidates of a match: ours through their modules, a peer's program by its own command line."""

from __future__ import annotations

import mmap
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from statistics import mean, median

from pagewise.analysis.consistency import inconsistent
from pagewise.analysis.validity import Exclusion, exclusion, wrong_pages, wrongly_bound
from pagewise.core.kernel import Kernel
from pagewise.core.plan import Cell, Step, subject
from pagewise.core.record import Record
from pagewise.core.record_parts import Binding, Failure, LeftProcess, PageUse, PeerFigure
from pagewise.core.result import utc_text
from pagewise.core.units import percent_text
from pagewise.machine.placement import Placement, had_by
from pagewise.session.launch import Stopwatch, about_run, build_of
from pagewise.session.processes import in_session
from pagewise.session.workload import Outcome
from pagewise.stack.binary import files_of
from pagewise.stack.catalog import Catalog, Entry
from pagewise.stack.lmod import clean_environment
from pagewise.workloads.kernels.launch import KernelLauncher
from pagewise.workloads.peers.analysis import Candidate, Side
from pagewise.workloads.peers.known import PEERS
from pagewise.workloads.peers.peer import Ask, Call, Peer, Program, Statistic, UnableError, UnreadableError
from pagewise.workloads.peers.plan import CACHES, MIB, Match, Ours, Theirs

_LOOK_SECONDS, _VERSION_SECONDS = 0.02, 20
# In memory as many passes as the peers make that tell their best, fewer where all count; a repetition in a
# cache takes 10 ms, a peer some tenths of a second.
_REPETITIONS, _REPETITIONS_IN_CACHE = {"best": "10", "mean": "5", "worst": "5"}, "30"
# Of what a peer was asked to have on huge pages, so much must be seen there. malloc leaves the ends of its
# blocks out, which is much of a small one.
_LARGE, _ENOUGH_HUGE, _ENOUGH_HUGE_OF_SMALL, _TOO_HUGE = 64 * MIB, 0.9, 0.4, 0.01
_LONGEST_OUTPUT = 200_000
# A peer is given huge pages by advice, and none where it asks for none.
_ADVISE = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"


@dataclass(frozen=True)
class OwnRun:
    """A kernel of ours in one configuration, and the statistic which its figure is to be."""

    candidate: Candidate
    entry: Entry
    kernel: Kernel
    arguments: tuple[str, ...]
    spec: Ours
    statistic: Statistic


@dataclass(frozen=True)
class PeerRun:
    """A test of a peer's program."""

    candidate: Candidate
    peer: Peer
    program: Program
    ask: Ask


Run = OwnRun | PeerRun


@dataclass
class Ran:
    """How a peer's program ran. `huge`: the most bytes seen on huge pages; `about`: for its record."""

    exit_code: int = 4
    output: str = ""
    huge: int = 0
    bound: Binding | None = None
    left_behind: tuple[LeftProcess, ...] | None = None


def candidates(
    match: Match,
    catalog: Catalog,
    programs: Mapping[str, Sequence[Program]],
    libraries: Mapping[str, str | None] | None = None,
) -> tuple[list[Run], str | None]:
    """What is run for a match, and None; or nothing, and what is missing for it.

    libraries: the files of those that peers call, by name.
    """
    statistic: Statistic = "best"
    if isinstance(match.other, Theirs):
        statistic = PEERS[match.other.peer].statistic(match.other.tests[0])
        if not programs[match.other.peer]:
            return [], f"{match.other.peer} is not here"
        name = match.other.library
        library = (libraries or {}).get(name) if name else ""
        if library is None:
            return [], f"the library {name} is not here"
        theirs: list[Run] = list(_peer_runs(match, match.other, programs[match.other.peer], library))
        if not theirs:
            return [], f"{match.other.peer} is here, but not one built with {match.compiler}"
    else:
        theirs = list(_own_runs(match, match.other, catalog, "theirs", statistic))
    ours = list(_own_runs(match, match.ours, catalog, "ours", statistic))
    for spec, found in ((match.ours, ours), (match.other, theirs)):
        if not found and isinstance(spec, Ours):
            what = "no such build of it is" if spec.kernel in catalog.kernels else "it is not"
            return [], f"{spec.kernel}: {what} installed"
    return [*ours, *theirs], None


@dataclass(frozen=True)
class PeerLauncher:
    """Runs candidates, each bound to the CPUs of its match.

    `runs` has the match and the candidate by the kernel's name and the module of a step.
    """

    runs: Mapping[tuple[str, str], tuple[Match, Run]]
    stopwatch: Stopwatch
    placements: Mapping[int, Placement]

    def run(self, step: Step) -> Outcome:
        """Runs a candidate once. Its record holds the figure, or why there is none."""
        match, run = self.runs[step.kernel.name, step.cell.measured.module]
        return self._own(step, match, run) if isinstance(run, OwnRun) else self._peer(step, match, run)

    def _own(self, step: Step, match: Match, run: OwnRun) -> Outcome:
        configuration = run.entry.configuration
        launcher = KernelLauncher(
            {configuration.module: run.entry}, self.stopwatch, {None: self.placements[match.threads]}
        )
        kernel = replace(run.kernel, arguments=run.arguments)
        cell = Cell(configuration, (configuration,), False)
        outcome = launcher.run(replace(step, kernel=kernel, cell=cell))
        record = outcome.records[0]
        fault = exclusion(record) or inconsistent(run.kernel, configuration, [record])
        value = None if fault else figure(record, run.spec, run.statistic)
        reason = None if fault is None else fault.reason
        if value is None and reason is None:
            reason = f"its record has no {run.spec.field}"
        about = record.run and replace(record.run, kernel=step.kernel.name, module=step.cell.measured.module)
        pages = None if record.pages is None else f"{percent_text(record.pages.huge_coverage)} huge"
        sample = _figure(match, run.candidate, value, reason, pages)
        return replace(outcome, records=[replace(record, run=about, sample=sample)])

    def _peer(self, step: Step, match: Match, run: PeerRun) -> Outcome:
        started, began = utc_text(), time.monotonic()
        placement, look = self.placements[match.threads], step.series == "trial"
        command: tuple[str, ...] = (run.peer.program,)
        ran = Ran()
        value, reason, pages = None, None, None
        fault: Exclusion | None = None
        try:
            call = run.peer.call(run.ask)
            settings = (f"{key}={value}" for key, value in call.environment.items())
            command = (*settings, *command, *call.arguments)
            output = self._launch(run.program, call, placement, look, ran)
            value = run.peer.value(output, run.ask)
        except (UnableError, UnreadableError) as error:
            reason = str(error)
        if look and reason is None:
            share = min(1.0, ran.huge / run.ask.working_set)
            fault, pages = page_fault(share, run.ask), f"{percent_text(share)} huge"
            reason = None if fault is None else f"{fault.reason} ({run.ask.pages})"
        measured = step.cell.measured
        about = about_run(step, time.monotonic() - began, ran.exit_code, command)
        record = Record(
            kernel=run.peer.name,
            started=started,
            status="ok" if reason is None else "failed" if fault is None else "pages_unavailable",
            failure=None if reason is None else Failure(ran.exit_code, reason, _ADVISE if fault else None),
            configuration=build_of(measured),
            sample=_figure(match, run.candidate, None if reason else value, reason, pages),
            run=replace(about, bound=ran.bound, left_behind=ran.left_behind),
        )
        return Outcome([record], about.wall_seconds, ran.output, [])

    def _launch(self, program: Program, call: Call, placement: Placement, look: bool, ran: Ran) -> str:
        """What it wrote; how it ran is kept in `ran`. Raises UnreadableError."""
        with tempfile.TemporaryDirectory(dir=self.stopwatch.scratch) as folder:
            for name, text in call.files.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
            said = Path(folder) / "output.txt"
            written = said if call.output is None else Path(folder) / call.output
            arguments = [program.path, *call.arguments]
            environment = {**clean_environment(), **placement.environment, **call.environment}
            try:
                with in_session(
                    arguments,
                    said,
                    environment,
                    Path(folder),
                    placement.bound(),
                    end_leftovers=self.stopwatch.end_leftovers,
                ) as running:
                    bound = placement.binding(had_by(running.pid))
                    # `look` is for trial runs alone: it takes time from the run.
                    ended, ran.huge = self._wait(running.process, written, call.until, look)
            except OSError as fault:
                raise UnreadableError(f"it cannot be run: {fault.strerror}") from fault
            ran.exit_code = running.process.wait()
            ran.bound, ran.left_behind = bound, running.left_behind
            ran.output = said.read_text(encoding="utf-8", errors="replace")[-_LONGEST_OUTPUT:]
            if (wrong := wrongly_bound(bound)) is not None:
                raise UnreadableError(f"wrong placement: {wrong}")
            if not ended:
                raise UnreadableError(f"ended after {self.stopwatch.limit:g} s, the limit of a run")
            text = written.read_text(encoding="utf-8", errors="replace") if written.exists() else ""
            if ran.exit_code != 0 and (call.until is None or call.until not in text):
                last = ran.output.strip().splitlines()[-1:] or ["nothing"]
                raise UnreadableError(f"ended with exit code {ran.exit_code}, and said: {last[0]}")
            return text[-_LONGEST_OUTPUT:]

    def _wait(
        self, process: subprocess.Popen[bytes], written: Path, until: str | None, look: bool
    ) -> tuple[bool, int]:
        """Whether it came to its end (or the text `until`) in time, and what was seen of its huge pages."""
        deadline = time.monotonic() + self.stopwatch.limit
        huge = 0
        while time.monotonic() < deadline:
            if look:
                huge = max(huge, _huge_bytes(process.pid))
            if until is not None and written.exists() and until in written.read_text(errors="replace"):
                return True, huge
            try:
                process.wait(_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return True, huge
        return False, huge


def watched(run: Run) -> list[Path]:
    """The files whose change makes a candidate's figures incomparable."""
    if isinstance(run, PeerRun):
        return files_of(Path(run.program.path), os.environ)
    program = run.entry.program(run.kernel.executable)
    return [] if program is None else files_of(Path(program), run.entry.environment)


def figure(record: Record, spec: Ours, statistic: Statistic) -> float | None:
    """The figure of a record by the peer's statistic: a kernel's own stands for its median repetition."""
    value, seconds = record.figures.get(spec.field), record.repetitions
    if value is None:
        return None
    chosen = {"mean": mean(seconds), "best": min(seconds), "worst": max(seconds)}[statistic]
    scale = median(seconds) / chosen
    is_time = spec.field.endswith("_ns")
    return float(value) * (1 / scale if is_time else scale)


def _own_runs(match: Match, spec: Ours, catalog: Catalog, side: Side, statistic: Statistic) -> list[Run]:
    kernel = catalog.kernels.get(spec.kernel)
    if kernel is None:
        return []
    entries = {
        entry.configuration.module: entry
        for entry in catalog.entries
        if spec.kernel in entry.kernels
        and any(fnmatchcase(entry.configuration.label, glob) for glob in spec.configurations)
        and match.compiler in (None, family(entry))
    }
    merged = subject(kernel, (entry.configuration for entry in entries.values()), "*/hardware-regular")
    runs: list[Run] = []
    for cell in merged.cells:
        entry = entries[cell.measured.module]
        for extra in spec.alternatives:
            label = " ".join((f"{spec.kernel} {cell.measured.compiler}/{cell.measured.label}", *extra))
            repetitions = _REPETITIONS_IN_CACHE if match.level in CACHES else _REPETITIONS[statistic]
            arguments = ("--working-set", str(match.working_set), "--repetitions", repetitions, *extra)
            runs.append(
                OwnRun(Candidate(side, label, family(entry)), entry, kernel, arguments, spec, statistic)
            )
    return runs


def _peer_runs(match: Match, spec: Theirs, programs: Sequence[Program], library: str) -> list[Run]:
    peer = PEERS[spec.peer]
    runs: list[Run] = []
    for program in programs:
        if peer.by_compiler and program.compiler not in (None, match.compiler):
            continue
        offered = peer.tests(program.path)
        names = spec.tests if offered is None else [name for name in offered if _fits(name, spec)]
        # One that offers nothing of it is asked all the same: its own words are then the reason.
        names = names or spec.tests[:1]
        for name in names:
            for pages in spec.pages:
                shown = peer.name if peer.code is not None else Path(program.path).name
                label = f"{shown} {name}" + (" thp" if pages == "thp" else "")
                ask = Ask(name, match.working_set, match.threads, pages, library)
                runs.append(PeerRun(Candidate("theirs", label, program.compiler), peer, program, ask))
    return runs


def called_file(entry: Entry) -> str | None:
    """The file of the library that the programs of a build call, as they tell it; None where they do not."""
    for kernel in entry.kernels.values():
        program = entry.program(kernel.executable)
        if program is None:
            continue
        try:
            told = subprocess.run(
                [program, "--version"],
                env=entry.environment,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_VERSION_SECONDS,
                check=False,
            ).stdout
        except (OSError, subprocess.TimeoutExpired):
            continue
        if found := re.search(r"^library +[^:]+: (.+)$", told, re.MULTILINE):
            return found[1]
    return None


def family(entry: Entry) -> str:
    """The compiler without its version: gcc, llvm."""
    return entry.configuration.compiler.split("-")[0]


def _fits(name: str, spec: Theirs) -> bool:
    return any(fnmatchcase(name, glob) for glob in spec.tests) and not any(
        fnmatchcase(name, glob) for glob in spec.without
    )


def _figure(
    match: Match, candidate: Candidate, value: float | None, reason: str | None, pages: str | None
) -> PeerFigure:
    return PeerFigure(match.name, candidate.side, candidate.compiler, value, reason, pages)


def page_fault(share: float, ask: Ask) -> Exclusion | None:
    """Why a peer with this share of its arrays on huge pages, seen from outside, is excluded; None if not."""
    if ask.pages == "none":
        # Other memory of the process, or all of a small one, may be there.
        share = share if share > _TOO_HUGE and ask.working_set > MIB else 0.0
    size = 2 * MIB if ask.pages == "thp" else mmap.PAGESIZE
    enough = _ENOUGH_HUGE if ask.working_set >= _LARGE else _ENOUGH_HUGE_OF_SMALL
    return wrong_pages(
        PageUse(
            policy=ask.pages,
            page_size_requested_bytes=size,
            page_size_observed_bytes=size,
            huge_coverage=share,
            enough_coverage=enough,
            arrays=(),
        ),
        ask.pages,
    )


def _huge_bytes(pid: int) -> int:
    """Bytes of a process on transparent huge pages now; 0 when it is gone."""
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0
    found = re.search(r"^AnonHugePages:\s+(\d+) kB", text, re.MULTILINE)
    return int(found[1]) * 1024 if found else 0
