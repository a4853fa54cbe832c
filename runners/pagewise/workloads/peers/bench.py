"""Runs the candidates of a match: ours through their modules, a peer's program by its own command line."""

from __future__ import annotations

import mmap
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from pagewise.analysis.consistency import inconsistent
from pagewise.analysis.validity import Exclusion, exclusion, wrong_pages, wrongly_bound
from pagewise.core.plan import Cell, Step
from pagewise.core.record import Record
from pagewise.core.record_parts import Binding, Failure, LeftProcess, PageUse, PeerFigure
from pagewise.core.result import utc_text
from pagewise.core.units import percent_text
from pagewise.machine.host import size, thp_size
from pagewise.machine.placement import Placement, observed_placement
from pagewise.session.launch import Stopwatch, about_run, build_of
from pagewise.session.processes import in_session
from pagewise.session.workload import Outcome
from pagewise.stack.lmod import clean_environment
from pagewise.workloads.kernels.launch import KernelLauncher
from pagewise.workloads.peers.analysis import Candidate
from pagewise.workloads.peers.candidates import OwnRun, PeerRun
from pagewise.workloads.peers.peer import Ask, Call, Program, Statistic, UnableError, UnreadableError
from pagewise.workloads.peers.plan import MIB, Match, Ours
from pagewise.workloads.peers.planner import Comparison

_POLL_SECONDS = 0.02
# Of what a peer was asked to have on huge pages, so much must be seen there. malloc leaves the ends of its
# blocks out, which is much of a small one.
_LARGE, _ENOUGH_HUGE, _ENOUGH_HUGE_OF_SMALL, _TOO_HUGE = 64 * MIB, 0.9, 0.4, 0.01
_LONGEST_OUTPUT = 200_000
# A peer is given huge pages by advice, and none where it asks for none.
_ADVISE = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"


@dataclass
class Ran:
    """How a peer's program ran. `huge`: the most bytes seen on huge pages."""

    exit_code: int = 4
    output: str = ""
    huge: int = 0
    bound: Binding | None = None
    left_behind: tuple[LeftProcess, ...] | None = None


@dataclass(frozen=True)
class PeerLauncher:
    """Runs candidates, each bound to the CPUs of its match. `comparisons` are by the name of their kernel.

    placements: by number of threads.
    """

    comparisons: Mapping[str, Comparison]
    stopwatch: Stopwatch
    placements: Mapping[int, Placement]

    def run(self, step: Step) -> Outcome:
        """Runs a candidate once. Its record holds the figure, or why there is none."""
        comparison = self.comparisons[step.kernel.name]
        run = comparison.runs[step.cell.measured.module]
        if isinstance(run, OwnRun):
            return self._own(step, comparison.match, run)
        return self._peer(step, comparison.match, run)

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
        """What the program wrote; how it ran is kept in `ran`. Raises UnreadableError."""
        with tempfile.TemporaryDirectory(dir=self.stopwatch.scratch) as folder:
            for name, text in call.files.items():
                (Path(folder) / name).write_text(text, encoding="utf-8")
            printed = Path(folder) / "output.txt"
            written = printed if call.output is None else Path(folder) / call.output
            arguments = [program.path, *call.arguments]
            environment = {**clean_environment(), **placement.environment, **call.environment}
            try:
                with in_session(
                    arguments,
                    printed,
                    environment,
                    Path(folder),
                    placement.bound(),
                    end_leftovers=self.stopwatch.end_leftovers,
                ) as running:
                    bound = placement.binding(observed_placement(running.pid))
                    # `look` is for trial runs only: it takes time from the run.
                    ended, ran.huge = self._wait(running.process, written, call.until, look)
            except OSError as fault:
                raise UnreadableError(f"it cannot be run: {fault.strerror}") from fault
            ran.exit_code = running.process.wait()
            ran.bound, ran.left_behind = bound, running.left_behind
            ran.output = printed.read_text(encoding="utf-8", errors="replace")[-_LONGEST_OUTPUT:]
            if (wrong := wrongly_bound(bound)) is not None:
                raise UnreadableError(f"wrong placement: {wrong}")
            if not ended:
                raise UnreadableError(f"ended after {self.stopwatch.limit:g} s, the limit of a run")
            text = written.read_text(encoding="utf-8", errors="replace") if written.exists() else ""
            if ran.exit_code != 0 and (call.until is None or call.until not in text):
                last = ran.output.strip().splitlines()[-1:] or ["nothing"]
                raise UnreadableError(f"ended with exit code {ran.exit_code}, and printed: {last[0]}")
            return text[-_LONGEST_OUTPUT:]

    def _wait(
        self, process: subprocess.Popen[bytes], written: Path, until: str | None, look: bool
    ) -> tuple[bool, int]:
        """Whether it ended (or wrote the text `until`) in time, and the most bytes seen on huge pages."""
        deadline = time.monotonic() + self.stopwatch.limit
        huge = 0
        while time.monotonic() < deadline:
            if look:
                huge = max(huge, size(Path(f"/proc/{process.pid}/smaps_rollup"), "AnonHugePages") or 0)
            if until is not None and written.exists() and until in written.read_text(errors="replace"):
                return True, huge
            try:
                process.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return True, huge
        return False, huge


def figure(record: Record, spec: Ours, statistic: Statistic) -> float | None:
    """The figure of a record by the peer's statistic: a kernel's own stands for its median repetition."""
    value, seconds = record.figures.get(spec.field), record.repetitions
    if value is None:
        return None
    chosen = {"mean": mean(seconds), "best": min(seconds), "worst": max(seconds)}[statistic]
    scale = median(seconds) / chosen
    is_time = spec.field.endswith("_ns")
    return float(value) * (1 / scale if is_time else scale)


def _figure(
    match: Match, candidate: Candidate, value: float | None, reason: str | None, pages: str | None
) -> PeerFigure:
    return PeerFigure(match.name, candidate.side, candidate.compiler, value, reason, pages)


def page_fault(share: float, ask: Ask) -> Exclusion | None:
    """Why a peer with this share of its arrays on huge pages, seen from outside, is excluded; None if not."""
    if ask.pages == "none":
        # Other memory of the process, or all of a small one, may be there.
        share = share if share > _TOO_HUGE and ask.working_set > MIB else 0.0
    page = (thp_size() if ask.pages == "thp" else None) or mmap.PAGESIZE
    enough = _ENOUGH_HUGE if ask.working_set >= _LARGE else _ENOUGH_HUGE_OF_SMALL
    return wrong_pages(
        PageUse(
            policy=ask.pages,
            page_size_requested_bytes=page,
            page_size_observed_bytes=page,
            huge_coverage=share,
            enough_coverage=enough,
            arrays=(),
        ),
        ask.pages,
    )
