"""Runs a kernel once: through hyperfine, in the environment of its module. Computes no statistics."""

from __future__ import annotations

import resource
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from pathlib import Path

from pagewise.core.plan import Step
from pagewise.core.record import Skipped, Status, read_records
from pagewise.core.record_parts import Failure, ProcessPlacement
from pagewise.core.result import utc_text
from pagewise.machine.placement import Placement, had_by
from pagewise.session.launch import (
    LONGEST_OUTPUT,
    SIGNAL_BASE,
    TIMED_OUT,
    about_run,
    after,
    failed_record,
    hyperfine_command,
    implausible,
    signal_name,
    timing,
)
from pagewise.session.processes import Running, in_session
from pagewise.session.workload import Outcome
from pagewise.stack.catalog import Entry

# The exit codes with which a kernel has written what happened (DESIGN.md, Contracts), and the record's
# status.
_EXIT_WITH_RECORD: dict[int, Status] = {0: "failed", 1: "check_failed", 3: "pages_unavailable"}


@dataclass(frozen=True)
class KernelLauncher:
    """Runs kernels. `scratch` is a folder for temporary files; `limit` the seconds a run may take.

    `entries` are by module, `placements` by the name that cells have, None for those without; `prefix` is a
    program with options that starts the kernel. `end_leftovers`: end processes that a run leaves behind.
    """

    entries: Mapping[str, Entry]
    hyperfine: str
    placements: Mapping[str | None, Placement]
    limit: float
    scratch: Path
    prefix: tuple[str, ...] = ()
    end_leftovers: bool = False

    def run(self, step: Step) -> Outcome:
        """Runs the kernel once and adds to its records how it was run.

        A run that wrote no record (a crash, a timeout, a refusal) gets one of the status `failed`.
        """
        written, exported = self.scratch / "record.jsonl", self.scratch / "hyperfine.json"
        for file in (written, exported):
            file.unlink(missing_ok=True)
        entry, started = self.entries[step.cell.measured.module], datetime.now(timezone.utc)
        command = self.command(step, entry, written)
        placement = self.placements[step.cell.placement]
        environment = {**entry.environment, **placement.environment, **dict(step.settings)}
        switches = _involuntary_switches()
        said, running, had = self._hyperfine(command, exported, environment, placement)
        wall, exit_code = timing(exported)
        if running.is_ended_by_us:
            exit_code = TIMED_OUT
        records, skipped = read_records(written) if written.exists() else ([], [])
        if not records or exit_code not in _EXIT_WITH_RECORD:
            failure = _failure(exit_code, said, self.limit, skipped)
            status = _EXIT_WITH_RECORD.get(exit_code, "failed")
            records.append(failed_record(step, started, status, failure))
        elif (wrong := implausible(wall, running.elapsed)) is not None:
            records = [failed_record(step, started, "failed", Failure(4, wrong))]
        run = replace(
            about_run(step, wall, exit_code, [Path(command[0]).name, *command[1:-2]]),
            bound=placement.binding(had),
            started=utc_text(started),
            involuntary_switches=_involuntary_switches() - switches,
            left_behind=running.left_behind,
            sweep=None if step.sweep is None else step.sweep.name,
            group=step.group,
            settings=None if step.group is None else dict(step.settings),
        )
        return Outcome([replace(record, run=run) for record in records], wall, said, skipped)

    def command(self, step: Step, entry: Entry, written: Path) -> list[str]:
        """The kernel's command line; the program's path as the module's PATH finds it."""
        program = entry.program(step.kernel.executable) or step.kernel.executable
        threads = ["--threads", str(self.placements[step.cell.placement].threads)]
        return [*self.prefix, program, *step.arguments, *threads, "--record", str(written)]

    def _hyperfine(
        self, command: list[str], exported: Path, environment: dict[str, str], placement: Placement
    ) -> tuple[str, Running, ProcessPlacement]:
        """The output of the run, how it ended, and where it was bound to."""
        arguments = [*hyperfine_command(self.hyperfine, exported), "--show-output", shlex.join(command)]
        said = self.scratch / "output.txt"
        with in_session(
            arguments,
            said,
            environment,
            self.scratch,
            placement.bound(),
            end_leftovers=self.end_leftovers,
        ) as running:
            had = had_by(running.pid)
            running.wait(self.limit)
        return said.read_text(encoding="utf-8", errors="replace")[-LONGEST_OUTPUT:], running, had


# What a signal tells besides its name, and what to do.
_WHY = {
    "SIGILL": (
        ": an instruction that this processor does not support",
        "build for this machine, or leave that target out with --configurations",
    )
}


def _failure(exit_code: int, said: str, limit: float, skipped: list[Skipped]) -> Failure:
    if exit_code == TIMED_OUT:
        message = f"ended after {limit:g} s, the limit of a run"
        remedy: str | None = "allow more with --timeout"
    elif exit_code > SIGNAL_BASE:
        name = signal_name(exit_code - SIGNAL_BASE)
        why, remedy = _WHY.get(name, ("", None))
        message = f"crashed by {name}{why}"
    elif exit_code == 0:
        reason = f": {skipped[0].reason}" if skipped else ""
        message, remedy = f"ended well but wrote no valid record{reason}", None
    else:
        message = after(said, "error:") or after(said, "Error:") or f"ended with exit code {exit_code}"
        remedy = after(said, "remedy:")
    return Failure(exit_code, message, remedy)


def _involuntary_switches() -> int:
    """How often the processes that this one started, and that are over, had to leave their core."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_nivcsw
