"""What launchers share: hyperfine as the stopwatch of a process, and what a record says of its run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console

from pagewise.core.configuration import Configuration
from pagewise.core.errors import SetupError
from pagewise.core.plan import Step
from pagewise.core.reading import parse_json, read_file
from pagewise.core.record import Record, Status
from pagewise.core.record_parts import BuildReport, Failure, RunOf
from pagewise.core.result import utc_text
from pagewise.core.signals import interruptible
from pagewise.machine.placement import Placement
from pagewise.machine.settings.prefetchers import find_control, switched_off
from pagewise.stack.provenance import hyperfine_version

TIMED_OUT = 124  # the exit code of coreutils' timeout
# With -N and --output, and a layout of the export that is known.
_OLDEST, _TOO_NEW = (1, 15), (2, 0)
# What hyperfine adds to a run: some milliseconds, more where the machine is busy.
_OVERHEAD_SECONDS, _OVERHEAD_SHARE = 2.0, 0.05
LONGEST_OUTPUT = 20_000
SIGNAL_BASE = 128


def by_name(placements: Sequence[Placement]) -> dict[str | None, Placement]:
    """The placements by the names that cells have; by None the first, for cells without."""
    return {None: placements[0], **{placement.name: placement for placement in placements}}


def print_placements(console: Console, places: Sequence[Placement]) -> None:
    """Prints each of several placements, and which others are the same here."""
    for place in places if len(places) > 1 or places[0].also else ():
        also = f"; here the same as {', '.join(place.also)}, which is not measured" if place.also else ""
        console.print(f"Placement {place.text}{also}.", highlight=False, soft_wrap=True)


def about_run(step: Step, wall: float | None, exit_code: int, command: Sequence[str]) -> RunOf:
    """The run of a step, for its records; `wall` are its seconds."""
    measured = step.cell.measured
    return RunOf(
        kernel=step.kernel.name,
        module=measured.module,
        hash=measured.hash,
        builder=measured.builder,
        round=step.round,
        position=step.position,
        series=step.series,
        wall_seconds=wall,
        exit_code=exit_code,
        command=tuple(command),
        pages=step.cell.pages,
        placement=step.cell.placement,
    )


def failed_record(step: Step, started: datetime, status: Status, failure: Failure) -> Record:
    """The record of a run that gave nothing valid."""
    built = step.cell.measured
    return Record(
        kernel=step.kernel.name,
        started=utc_text(started),
        status=status,
        failure=failure,
        configuration=build_of(built),
    )


def build_of(built: Configuration) -> BuildReport:
    """The configuration of a program that reports none itself."""
    return BuildReport(
        compiler=built.compiler, hugepages=built.hugepages, prefetch=built.prefetch, stores=built.stores
    )


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


def after(output: str, mark: str) -> str | None:
    """The rest of the first line of an output that has this mark, such as `error:`."""
    return next((line.split(mark, 1)[1].strip() for line in output.splitlines() if mark in line), None)


def signal_name(number: int) -> str:
    """A signal's name: SIGSEGV."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
