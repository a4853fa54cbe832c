"""Runs one step: the kernel through hyperfine, in the environment of its module. Computes no statistics."""

from __future__ import annotations

import os
import re
import resource
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pagewise.core.configuration import Configuration
from pagewise.core.errors import SetupError
from pagewise.core.plan import Step
from pagewise.core.reading import parse_json, read_file
from pagewise.core.record import SCHEMA, Record, Skipped, read_records
from pagewise.core.signals import interruptible
from pagewise.machine.placement import Placement, had_by
from pagewise.machine.settings.prefetchers import find_control, switched_off
from pagewise.session.processes import Running, in_session
from pagewise.stack.catalog import Entry
from pagewise.stack.provenance import hyperfine_version

TIMED_OUT = 124  # the exit code of coreutils' timeout
# The exit codes with which a kernel has written what happened (DESIGN.md, Contracts), and the record's
# status.
_EXIT_WITH_RECORD = {0: "failed", 1: "check_failed", 3: "pages_unavailable"}
# With -N and --output, and a layout of the export that is known.
_OLDEST, _TOO_NEW = (1, 15), (2, 0)
# What hyperfine adds to a run: some milliseconds, more where the machine is busy.
_OVERHEAD_SECONDS, _OVERHEAD_SHARE = 2.0, 0.05
LONGEST_OUTPUT = 20_000
SIGNAL_BASE = 128


@dataclass(frozen=True)
class Outcome:
    """What a run gave: its records (one at least), its time as hyperfine took it, its output."""

    records: list[Record]
    wall_seconds: float | None
    output: str
    skipped: list[Skipped]

    @property
    def failed(self) -> bool:
        """Whether the run ended otherwise than well."""
        return any(record["status"] != "ok" for record in self.records)


@dataclass(frozen=True)
class Launcher:
    """Launches steps. `scratch` is a folder for files in passing; `limit` the seconds a run may take.

    `placements` are by the name that cells have, None for those without; `prefix` is a program with options
    that starts the kernel. `end_leftovers`: end processes that a run leaves behind.
    """

    hyperfine: str
    placements: Mapping[str | None, Placement]
    limit: float
    scratch: Path
    prefix: tuple[str, ...] = ()
    end_leftovers: bool = False

    def run(self, step: Step, entry: Entry) -> Outcome:
        """Runs the kernel once and adds to its records how it was run.

        A run that wrote no record (a crash, a timeout, a refusal) gets one of the status `failed`.
        """
        written, exported = self.scratch / "record.jsonl", self.scratch / "hyperfine.json"
        for file in (written, exported):
            file.unlink(missing_ok=True)
        started = datetime.now(timezone.utc)
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
            records.append(_failed_record(step, entry.configuration, started, failure))
        elif (wrong := implausible(wall, running.elapsed)) is not None:
            failure = {"exit_code": 4, "message": wrong, "remedy": None}
            records = [_failed_record(step, entry.configuration, started, failure)]
        run = about_run(step, wall, exit_code, [Path(command[0]).name, *command[1:-2]])
        run |= {"bound": placement.told(had), "started": started.strftime("%Y-%m-%dT%H:%M:%SZ")}
        run |= {"involuntary_switches": _involuntary_switches() - switches, **running.left_behind}
        if step.sweep is not None:
            run["sweep"] = step.sweep.name
        if step.group is not None:
            run |= {"group": step.group, "settings": dict(step.settings)}
        return Outcome([{**record, "run": run} for record in records], wall, said, skipped)

    def command(self, step: Step, entry: Entry, written: Path) -> list[str]:
        """The kernel's command line; the program's path as the module's PATH finds it."""
        program = entry.program(step.kernel.executable) or step.kernel.executable
        threads = ["--threads", str(self.placements[step.cell.placement].threads)]
        return [*self.prefix, program, *step.arguments, *threads, "--record", str(written)]

    def _hyperfine(
        self, command: list[str], exported: Path, environment: dict[str, str], placement: Placement
    ) -> tuple[str, Running, dict[str, Any]]:
        """What the run said, how it ended, and where it was bound to."""
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


def about_run(step: Step, wall: float | None, exit_code: int, command: Sequence[str]) -> dict[str, Any]:
    """What a record tells of the run that it is of; `wall` are its seconds."""
    of_cell = {"pages": step.cell.pages, "placement": step.cell.placement}
    return {
        **{name: value for name, value in of_cell.items() if value is not None},
        "kernel": step.kernel.name,
        "module": step.cell.measured.module,
        "hash": step.cell.measured.hash,
        "builder": step.cell.measured.builder,
        "round": step.round,
        "position": step.position,
        "series": step.series,
        "wall_seconds": wall,
        "exit_code": exit_code,
        "command": list(command),
    }


def hyperfine_command(hyperfine: str, exported: Path) -> list[str]:
    """hyperfine for one run without a shell; what it measured goes to a file."""
    runs = ["--runs", "1", "--warmup", "0", "--ignore-failure"]
    return [hyperfine, "-N", *runs, "--export-json", str(exported)]


def run_without_prefetchers(
    names: Sequence[str], command: Sequence[str], environment: Mapping[str, str], root: Path = Path("/")
) -> int:
    """Runs a command with hardware prefetchers off on the CPUs of this process; its exit code.

    Raises SelectionError or RefusedError before anything is run, Interrupted when the user ends it.
    """
    control = find_control(names, os.sched_getaffinity(0), root)
    with interruptible(), switched_off(control):
        process = subprocess.Popen([*control.program, *command], env=environment)
        try:
            process.wait()
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
    return process.returncode if process.returncode >= 0 else SIGNAL_BASE - process.returncode


def find_hyperfine() -> str:
    """The path of hyperfine. Raises SetupError when it is missing, or of a version that is not supported."""
    found = shutil.which("hyperfine")
    if found is None:
        raise SetupError(
            "hyperfine is not here, and runs are timed by it", remedy="apt-get install hyperfine"
        )
    told = hyperfine_version(found) or "none"
    version = re.fullmatch(r"(\d{1,4})\.(\d{1,4})(\.\d{1,4})?", told)
    if version is None or not _OLDEST <= (int(version[1]), int(version[2])) < _TOO_NEW:
        known = " and before ".join(".".join(map(str, one)) for one in (_OLDEST, _TOO_NEW))
        raise SetupError(
            f"hyperfine has version {told[:40]}, and runs are timed by versions from {known}",
            where=found,
            remedy="apt-get install hyperfine (Debian 12 or later), or put another first on PATH",
        )
    return found


def implausible(wall: float | None, elapsed: float) -> str | None:
    """Why hyperfine's time of a run cannot be right; None when it can.

    wall: hyperfine's time. elapsed: from its start to its end by our own clock. Both are in seconds.
    """
    if wall is None or wall <= elapsed <= wall * (1.0 + _OVERHEAD_SHARE) + _OVERHEAD_SECONDS:
        return None
    return f"hyperfine reports {wall:.3f} s for a run that took {elapsed:.3f} s with its own start and end"


def timing(exported: Path) -> tuple[float | None, int]:
    """Wall seconds and exit code from hyperfine's export; None and 4 when it measured nothing."""
    try:
        result: dict[str, Any] = parse_json(read_file(exported))["results"][0]
        return float(result["times"][0]), int(result["exit_codes"][0])
    except (OSError, ValueError, LookupError, TypeError):
        return None, 4


# What a signal tells besides its name, and what to do.
_WHY: dict[str, tuple[str, str | None]] = {
    "SIGILL": (
        ": an instruction that this processor has not",
        "build for this machine, or leave that target out with --configurations",
    )
}


def _failure(exit_code: int, said: str, limit: float, skipped: list[Skipped]) -> dict[str, Any]:
    remedy: str | None
    if exit_code == TIMED_OUT:
        message, remedy = f"ended after {limit:g} s, the limit of a run", "allow more with --limit"
    elif exit_code > SIGNAL_BASE:
        name = signal_name(exit_code - SIGNAL_BASE)
        why, remedy = _WHY.get(name, ("", None))
        message = f"crashed by {name}{why}"
    elif exit_code == 0:
        reason = f": {skipped[0].reason}" if skipped else ""
        message, remedy = f"ended well but wrote no valid record{reason}", None
    else:
        message = _after(said, "error:") or _after(said, "Error:") or f"ended with exit code {exit_code}"
        remedy = _after(said, "remedy:")
    return {"exit_code": exit_code, "message": message, "remedy": remedy}


def signal_name(number: int) -> str:
    """A signal's name: SIGSEGV."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _after(said: str, mark: str) -> str | None:
    return next((line.split(mark, 1)[1].strip() for line in said.splitlines() if mark in line), None)


def _involuntary_switches() -> int:
    """How often the processes that this one started, and that are over, had to leave their core."""
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_nivcsw


def _failed_record(step: Step, built: Configuration, started: datetime, failure: dict[str, Any]) -> Record:
    return {
        "schema": SCHEMA,
        "kernel": step.kernel.name,
        "started": started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "status": _EXIT_WITH_RECORD.get(failure["exit_code"], "failed"),
        "failure": failure,
        "configuration": _told_configuration(built),
    }


def _told_configuration(configuration: Configuration) -> dict[str, Any]:
    return {
        "compiler": configuration.compiler,
        "hugepages": configuration.hugepages,
        "prefetch": configuration.prefetch,
        "stores": configuration.stores,
    }
