"""Runs a kernel once: through hyperfine, in the environment of its module. Computes no statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pagewise.core.plan import Step
from pagewise.core.record import Record, Skipped, Status, read_records
from pagewise.core.record_parts import Failure, PageUse, TurnsOf
from pagewise.core.result import utc_text
from pagewise.machine.placement import Placement
from pagewise.session.launch import TIMED_OUT, Measurement, Start, Stopwatch, after, failed_record, limited_by
from pagewise.session.ranks import Ranks
from pagewise.session.settings import MachineSettings
from pagewise.session.turns import STOPPED, measure_in_turns
from pagewise.session.workload import Launcher, Outcome
from pagewise.stack.catalog import Entry
from pagewise.stack.launcher import RankLauncher
from pagewise.workloads.kernels.turns import TURNS, Room, turns_of

# The exit codes with which a kernel has written what happened (DESIGN.md, Contracts), and the record's
# status.
_EXIT_WITH_RECORD: dict[int, Status] = {0: "failed", 1: "check_failed", 3: "pages_unavailable"}

#: See `run_in_turns`.
_TOO_LARGE = "one of its configurations does not fit into memory together with the baselines"


@dataclass(frozen=True)
class KernelLauncher(Launcher):
    """Runs kernels. `entries` are by module, `placements` by the name that cells have (None: the first).

    `settings` are those of the machine, `launchers` start the kernel's ranks, by module. `turns`: how many a
    run takes with others. `room`: for runs at the same time, now.
    """

    entries: Mapping[str, Entry]
    stopwatch: Stopwatch
    placements: Mapping[str | None, Placement]
    settings: MachineSettings = field(default_factory=MachineSettings)
    launchers: Mapping[str, RankLauncher] = field(default_factory=dict)
    turns: int = TURNS
    room: Callable[[], Room] = Room

    def run(self, step: Step) -> Outcome:
        """Runs the kernel once and adds to its records how it was run.

        A run that wrote no record (a crash, a timeout, a refusal) gets one of the status `failed`.
        """
        written, start = self._record_file(0), self._start(step, 0)
        with self.settings.set_for(step.cell):
            measured = self.stopwatch.measure(start)
        return self._outcome(step, measured, *read_written(written))

    def run_in_turns(self, steps: Sequence[Step]) -> list[Outcome]:
        """Runs configurations in turns, in groups that fit into memory, each with the baselines.

        The runs of baselines in a further group are what its turns are relative to; they do not count.
        """
        outcomes: dict[int, Outcome] = {}
        reference: TurnsOf | None = None
        groups = self.room().groups(steps)
        if not groups:
            # Times in turns and of whole runs are not compared: others use the caches during turns.
            return [self.run(step).with_run(whole_because=_TOO_LARGE) for step in steps]
        for number, group in enumerate(groups):
            results = self._run_group(group, number)
            ended = utc_text()
            records = [result.records[0] for result in results]
            baselines = (each for step, each in zip(group, records, strict=True) if step.cell.is_baseline)
            known = None if reference is None else reference.reference_seconds
            turns = None
            if group[0].sweep is None:
                turns = turns_of(baselines, known) or turns_of(records, known)
            reference = reference or turns
            for step, result in zip(group, results, strict=True):
                outcomes.setdefault(step.position, result.with_run(method="turns", turns=turns, ended=ended))
        return [outcomes[step.position] for step in steps]

    def _run_group(self, steps: Sequence[Step], group: int) -> list[Outcome]:
        files = [self._record_file(number) for number in range(len(steps))]
        measured = measure_in_turns(
            self.stopwatch,
            [self._start(step, number, in_turns=True) for number, step in enumerate(steps)],
            # The first one finds the number of passes.
            None if steps[0].sweep else self.turns + 1,
            f"{steps[0].benchmark.name}:{steps[0].swept}:{steps[0].round}:{group}",
        )
        outcomes = []
        for step, (run, taken), file in zip(steps, measured, files, strict=True):
            records, skipped = read_written(file)
            # It is continued before its repetitions to find the number of passes, and after them to validate
            # the result and to prepare the next size.
            expected = sum(len(record.repetitions) + 2 for record in records)
            if run.exit_code == 0 and records and taken != expected:
                run = replace(run, fault=STOPPED)  # noqa: PLW2901
            valid = [] if run.fault is not None else records
            outcomes.append(self._outcome(step, run, valid, skipped))
        return outcomes

    def _record_file(self, number: int) -> Path:
        """The file for the records of one of the runs at the same time, which is then missing."""
        written = self.stopwatch.scratch / f"record-{number}.jsonl"
        written.unlink(missing_ok=True)
        return written

    def _start(self, step: Step, number: int, *, in_turns: bool = False) -> Start:
        entry, placement = self.entries[step.cell.measured.module], self.placements[step.cell.placement]
        command = self.command(step, entry)
        if in_turns:
            command += ["--turns", str(self.turns if step.sweep is None else step.sweep.repetitions)]
        command += ["--record", str(self.stopwatch.scratch / f"record-{number}.jsonl")]
        environment = step.cell.environment(
            {**entry.environment, **placement.environment, **dict(step.settings)}
        )
        if (ranks := self._ranks(step, placement)) is not None:
            command, environment = ranks.command(command), environment | ranks.launcher.environment
        return Start([*self.settings.prefix(step.cell), *command], environment, placement.bind())

    def _outcome(
        self, step: Step, measured: Measurement, records: list[Record], skipped: list[Skipped]
    ) -> Outcome:
        entry, placement = self.entries[step.cell.measured.module], self.placements[step.cell.placement]
        if not records or measured.exit_code not in _EXIT_WITH_RECORD:
            status = _EXIT_WITH_RECORD.get(measured.exit_code, "failed")
            records.append(failed_record(step, measured.started, status, self._failure(measured, skipped)))
        elif measured.implausible is not None:
            records = [failed_record(step, measured.started, "failed", Failure(4, measured.implausible))]
        if len(records) == 1 and records[0].status == "ok":
            # A sweep has several records of one run.
            records = [replace(records[0], metrics={**records[0].figures, **measured.energy})]
        if (ranks := self._ranks(step, placement)) is not None:
            records = [_of_ranks(record, ranks) for record in records]
        command = self.command(step, entry)
        run = replace(
            measured.run_of(step, [Path(command[0]).name, *command[1:]], placement),
            started=utc_text(measured.started),
            involuntary_switches=measured.involuntary_switches,
            sweep=None if step.sweep is None else step.sweep.name,
            group=step.group,
            settings=None if step.group is None else dict(step.settings),
        )
        return Outcome([replace(record, run=run) for record in records], measured.wall, measured.log, skipped)

    def command(self, step: Step, entry: Entry) -> list[str]:
        """The kernel's command line; the program's path as the module's PATH finds it."""
        program = entry.program(step.benchmark.executable) or step.benchmark.executable
        threads = ["--threads", str(self.placements[step.cell.placement].threads)]
        return [program, *step.arguments, *threads]

    def _ranks(self, step: Step, placement: Placement) -> Ranks | None:
        launcher = self.launchers.get(step.cell.measured.module)
        return None if launcher is None else Ranks(launcher, placement, self.stopwatch.scratch / "ranks")

    def _failure(self, measured: Measurement, skipped: list[Skipped]) -> Failure:
        failure, output = limited_by(measured.limit, self.stopwatch.failure(measured)), measured.log
        if failure.exit_code != measured.exit_code or measured.fault is not None:
            return failure
        if measured.exit_code == 0:
            reason = f": {skipped[0].reason}" if skipped else ""
            return replace(failure, message=f"ended well but wrote no valid record{reason}")
        if measured.signal == "SIGILL":
            return replace(
                failure,
                message=f"{failure.message}: an instruction that this processor does not support",
                remedy="build for this machine, or exclude that target with --configurations",
            )
        if measured.signal is not None or measured.exit_code == TIMED_OUT:
            return failure
        message = after(output, "error:") or after(output, "Error:") or failure.message
        return replace(failure, message=message, remedy=after(output, "remedy:"))


def read_written(written: Path) -> tuple[list[Record], list[Skipped]]:
    """The records that a kernel wrote, and the lines that are not records, or not those of a kernel."""
    records, skipped = read_records(written) if written.exists() else ([], [])
    whole = []
    for number, record in enumerate(records, start=1):
        if record.status == "ok" and (record.seconds is None or record.seconds.first_touch is None):
            skipped.append(Skipped(written.name, number, "'seconds.first_touch' is missing"))
        elif record.status == "ok" and record.sizes is None:
            skipped.append(Skipped(written.name, number, "'sizes' is missing"))
        else:
            whole.append(record)
    return whole, skipped


def _of_ranks(record: Record, ranks: Ranks) -> Record:
    """The record with the observed pages of each rank; one of fewer ranks than started is a failed one."""
    started = ranks.rank_uses()
    if record.pages is None:
        return replace(record, ranks=started)
    pages = {use.rank: _pages_of(record.pages, use.rank, ranks.number) for use in started}
    uses = tuple(replace(use, pages=pages[use.rank]) for use in started)
    fault = ranks.failure()
    if fault is None and (silent := [str(number) for number, use in pages.items() if not use.arrays]):
        text = f"the record has no pages of rank {', '.join(silent)}: the launcher is not that of its MPI"
        fault = Failure(
            4, text, f"the launcher was {ranks.launcher.program}: load the MPI that built the program"
        )
    if fault is None:
        return replace(record, ranks=uses)
    return replace(record, status="failed", failure=fault, ranks=uses)


def _pages_of(pages: PageUse, rank: int, number: int) -> PageUse:
    """The pages of a rank: of several, its arrays have its number at the end of their names."""
    own = tuple(array for array in pages.arrays if number == 1 or array.name.endswith(f".{rank}"))
    huge, every = sum(array.huge_bytes for array in own), sum(array.bytes for array in own)
    return replace(
        pages,
        page_size_observed_bytes=min((array.page_size_observed_bytes for array in own), default=0),
        huge_coverage=huge / every if every else 0.0,
        arrays=own,
    )
