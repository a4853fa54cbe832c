"""Runs a kernel once: through hyperfine, in the environment of its module. Computes no statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pagewise.core.plan import Step
from pagewise.core.record import Record, Skipped, Status, read_records
from pagewise.core.record_parts import Failure, PageUse
from pagewise.core.result import utc_text
from pagewise.machine.placement import Placement
from pagewise.session.launch import TIMED_OUT, Measurement, Stopwatch, after, failed_record, limited_by
from pagewise.session.ranks import Ranks
from pagewise.session.settings import MachineSettings
from pagewise.session.workload import Outcome
from pagewise.stack.catalog import Entry
from pagewise.stack.launcher import RankLauncher

# The exit codes with which a kernel has written what happened (DESIGN.md, Contracts), and the record's
# status.
_EXIT_WITH_RECORD: dict[int, Status] = {0: "failed", 1: "check_failed", 3: "pages_unavailable"}


@dataclass(frozen=True)
class KernelLauncher:
    """Runs kernels. `entries` are by module, `placements` by the name that cells have (None: the first).

    `settings` are those of the machine, `launchers` start the kernel's ranks, by module.
    """

    entries: Mapping[str, Entry]
    stopwatch: Stopwatch
    placements: Mapping[str | None, Placement]
    settings: MachineSettings = field(default_factory=MachineSettings)
    launchers: Mapping[str, RankLauncher] = field(default_factory=dict)

    def run(self, step: Step) -> Outcome:
        """Runs the kernel once and adds to its records how it was run.

        A run that wrote no record (a crash, a timeout, a refusal) gets one of the status `failed`.
        """
        written = self.stopwatch.scratch / "record.jsonl"
        written.unlink(missing_ok=True)
        entry, placement = self.entries[step.cell.measured.module], self.placements[step.cell.placement]
        command, ranks = self.command(step, entry, written), self._ranks(step, placement)
        inherited = {**entry.environment, **placement.environment, **dict(step.settings)}
        environment = step.cell.environment(inherited)
        launched = command
        if ranks is not None:
            launched, environment = ranks.command(command), environment | ranks.launcher.environment
        launched = [*self.settings.prefix(step.cell), *launched]
        with self.settings.set_for(step.cell):
            measured = self.stopwatch.measure(launched, environment, placement.bound())
        records, skipped = read_written(written)
        if not records or measured.exit_code not in _EXIT_WITH_RECORD:
            status = _EXIT_WITH_RECORD.get(measured.exit_code, "failed")
            records.append(failed_record(step, measured.started, status, self._failure(measured, skipped)))
        elif measured.implausible is not None:
            records = [failed_record(step, measured.started, "failed", Failure(4, measured.implausible))]
        if len(records) == 1 and records[0].status == "ok":
            # A sweep has several records of one run.
            records = [replace(records[0], metrics={**records[0].figures, **measured.energy})]
        if ranks is not None:
            records = [_of_ranks(record, ranks) for record in records]
        run = replace(
            measured.run_of(step, [Path(command[0]).name, *command[1:-2]], placement),
            started=utc_text(measured.started),
            involuntary_switches=measured.involuntary_switches,
            sweep=None if step.sweep is None else step.sweep.name,
            group=step.group,
            settings=None if step.group is None else dict(step.settings),
        )
        return Outcome([replace(record, run=run) for record in records], measured.wall, measured.log, skipped)

    def command(self, step: Step, entry: Entry, written: Path) -> list[str]:
        """The kernel's command line; the program's path as the module's PATH finds it."""
        program = entry.program(step.benchmark.executable) or step.benchmark.executable
        threads = ["--threads", str(self.placements[step.cell.placement].threads)]
        return [program, *step.arguments, *threads, "--record", str(written)]

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
        if record.status == "ok" and (record.seconds is None or record.seconds.populate is None):
            skipped.append(Skipped(written.name, number, "'seconds.populate' is missing"))
        elif record.status == "ok" and record.sizes is None:
            skipped.append(Skipped(written.name, number, "'sizes' is missing"))
        else:
            whole.append(record)
    return whole, skipped


def _of_ranks(record: Record, ranks: Ranks) -> Record:
    """The record with the observed pages of each rank; one of fewer ranks than started is a failed one."""
    started = ranks.started()
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
    huge, every = (
        (sum(sizes) for sizes in zip(*((array.huge_bytes, array.bytes) for array in own), strict=True))
        if own
        else (0, 0)
    )
    return replace(
        pages,
        page_size_observed_bytes=min((array.page_size_observed_bytes for array in own), default=0),
        huge_coverage=huge / every if every else 0.0,
        arrays=own,
    )
