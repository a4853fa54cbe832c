"""Runs a kernel once: through hyperfine, in the environment of its module. Computes no statistics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pagewise.core.plan import Step
from pagewise.core.record import Skipped, Status, read_records
from pagewise.core.record_parts import Failure
from pagewise.core.result import utc_text
from pagewise.machine.placement import Placement
from pagewise.session.launch import TIMED_OUT, Measurement, Stopwatch, after, failed_record
from pagewise.session.workload import Outcome
from pagewise.stack.catalog import Entry

# The exit codes with which a kernel has written what happened (DESIGN.md, Contracts), and the record's
# status.
_EXIT_WITH_RECORD: dict[int, Status] = {0: "failed", 1: "check_failed", 3: "pages_unavailable"}


@dataclass(frozen=True)
class KernelLauncher:
    """Runs kernels. `entries` are by module, `placements` by the name that cells have (None: the first).

    `prefix` is a program with options that starts the kernel.
    """

    entries: Mapping[str, Entry]
    stopwatch: Stopwatch
    placements: Mapping[str | None, Placement]
    prefix: tuple[str, ...] = ()

    def run(self, step: Step) -> Outcome:
        """Runs the kernel once and adds to its records how it was run.

        A run that wrote no record (a crash, a timeout, a refusal) gets one of the status `failed`.
        """
        written = self.stopwatch.scratch / "record.jsonl"
        written.unlink(missing_ok=True)
        entry, placement = self.entries[step.cell.measured.module], self.placements[step.cell.placement]
        command = self.command(step, entry, written)
        environment = {**entry.environment, **placement.environment, **dict(step.settings)}
        measured = self.stopwatch.measure(command, environment, placement.bound())
        records, skipped = read_records(written) if written.exists() else ([], [])
        if not records or measured.exit_code not in _EXIT_WITH_RECORD:
            status = _EXIT_WITH_RECORD.get(measured.exit_code, "failed")
            records.append(failed_record(step, measured.started, status, self._failure(measured, skipped)))
        elif measured.implausible is not None:
            records = [failed_record(step, measured.started, "failed", Failure(4, measured.implausible))]
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
        program = entry.program(step.kernel.executable) or step.kernel.executable
        threads = ["--threads", str(self.placements[step.cell.placement].threads)]
        return [*self.prefix, program, *step.arguments, *threads, "--record", str(written)]

    def _failure(self, measured: Measurement, skipped: list[Skipped]) -> Failure:
        failure, output = self.stopwatch.failure(measured), measured.log
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
