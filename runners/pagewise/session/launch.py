"""Common parts of launchers: a stopwatch of processes (hyperfine), and the run in a record."""

from __future__ import annotations

import os
import resource
import shlex
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console

from pagewise.core.configuration import Configuration
from pagewise.core.environment import C_LOCALE, ENV
from pagewise.core.plan import Step
from pagewise.core.reading import parse_json, read_end, read_file
from pagewise.core.record import Record, Status
from pagewise.core.record_parts import BuildReport, Failure, LeftProcess, ProcessPlacement, RunOf
from pagewise.core.result import utc_text
from pagewise.core.signals import exit_text, signal_name
from pagewise.machine.energy import Meter, Reading, find_meter
from pagewise.machine.groups import Reached, read_reached
from pagewise.machine.placement import Placement, observed_placement
from pagewise.session.processes import NOTHING, Running, in_session

TIMED_OUT = 124  # the exit code of coreutils' timeout
# One run without a shell; --style none: only the program's own output is kept.
_OPTIONS = ("-N", "--runs=1", "--warmup=0", "--ignore-failure", "--style=none", "--output=inherit")
# Time that hyperfine adds to a run: some milliseconds, more on a busy machine.
_OVERHEAD_SECONDS, _OVERHEAD_SHARE = 2.0, 0.05
LONGEST_OUTPUT = 20_000
#: The most that is read of what a run writes, in bytes.
LARGEST_OUTPUT = 256 << 20
_END = 4096
# The exit code of what the system refused.
_REFUSED = 4
_TRY_HYPERFINE = "try `hyperfine true` here; a program that signals its group ends it too"
_LEAST_SPACE = 1 << 16
# Linux takes no argument of 128 KiB or more (MAX_ARG_STRLEN).
_LONGEST_ARGUMENT = 100_000
#: The script that starts a run, in the scratch folder.
SCRIPT = "pagewise-command.sh"
_NOISE = "Warning: Ignoring non-zero exit code."
# What getrusage reports of ended processes that a measurement has.
_USAGE = ("ru_utime", "ru_stime", "ru_minflt", "ru_majflt", "ru_nivcsw")


@dataclass(frozen=True)
class Start:
    """How a run is started. inherited: a context whose settings it inherits. folder: None: for scratch."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    inherited: AbstractContextManager[Any] = field(default_factory=nullcontext)
    folder: Path | None = None


@dataclass(frozen=True)
class Measurement:
    """A run as it was measured: its time by hyperfine, where its process was, what it used and left behind.

    wall: seconds, None when hyperfine measured nothing. cpu_seconds: `user_seconds` and `system_seconds`.
    faults: minor and major page faults, including those of hyperfine. implausible: why `wall` is wrong.
    energy: metrics of the node's energy during the run; empty where it is unavailable.
    output: only its end if it has more than LARGEST_OUTPUT; output_bytes: the size of all of it.
    fault: why hyperfine measured nothing, unless the run was ended. limit: the limit of a control group that
    explains the failure of the run.
    """

    started: datetime
    wall: float | None
    exit_code: int
    cpu_seconds: Mapping[str, float]
    output: str
    observed: ProcessPlacement
    faults: tuple[int, int]
    involuntary_switches: int
    left_behind: tuple[LeftProcess, ...] | None
    implausible: str | None
    energy: Mapping[str, float] = field(default_factory=dict)
    output_bytes: int = 0
    fault: Failure | None = None
    limit: str | None = None

    @property
    def log(self) -> str:
        """The end of the output."""
        return self.output[-LONGEST_OUTPUT:]

    @property
    def signal(self) -> str | None:
        """The name of the signal that ended the run: SIGSEGV."""
        return signal_name(self.exit_code)

    def run_of(self, step: Step, command: Sequence[str], placement: Placement) -> RunOf:
        """The run of a step, for its records."""
        run = about_run(step, self.wall, self.exit_code, command)
        return replace(run, bound=placement.binding(self.observed), left_behind=self.left_behind)


@dataclass
class StartedRun:
    """A run that has been started. Its `measurement` is known when its block is over.

    exported: what hyperfine writes; None: `seconds` is how long it ran. fault: why it has no valid time.
    """

    running: Running
    output: Path
    exported: Path | None
    started: datetime
    reached: Reached
    observed: ProcessPlacement
    energy: Reading | None
    seconds: float = 0.0
    fault: Failure | None = None
    _used: Mapping[str, float] = field(default_factory=dict)

    def wait(self, limit: float) -> None:
        """Waits until it is over, and ends it after so many seconds."""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        self.running.wait(limit)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        self._used = {name: getattr(after, name) - getattr(before, name) for name in _USAGE}

    def measurement(self) -> Measurement:
        """What was measured."""
        running, used, size = self.running, self._used, self.output.stat().st_size
        wall, exit_code = self.seconds or None, running.exit_code
        cpu_seconds: Mapping[str, float] = {
            "user_seconds": used["ru_utime"],
            "system_seconds": used["ru_stime"],
        }
        if self.exported is not None:
            wall, exit_code, cpu_seconds = _read_export(self.exported)
        output = _program_output(read_end(self.output, size if size <= LARGEST_OUTPUT else LONGEST_OUTPUT))
        if wall is None and not running.is_ended_by_us:
            last = [line for line in output[-LONGEST_OUTPUT:].splitlines() if line.strip()][-1:]
            message = f"hyperfine, which times runs, {exit_text(running.process.returncode)}"
            self.fault = Failure(_REFUSED, ": ".join([message, *last]), _TRY_HYPERFINE)
        return Measurement(
            self.started,
            wall,
            TIMED_OUT if running.is_ended_by_us else exit_code,
            cpu_seconds,
            output,
            self.observed,
            (int(used["ru_minflt"]), int(used["ru_majflt"])),
            int(used["ru_nivcsw"]),
            running.left_behind,
            None if self.exported is None else implausible(wall, running.elapsed),
            {} if self.energy is None else self.energy.metrics,
            size,
            self.fault,
            read_reached().cause(self.reached) if exit_code != 0 else None,
        )


@dataclass(frozen=True)
class Stopwatch:
    """Runs programs through hyperfine.

    limit: seconds that a run may take. scratch: a folder for temporary files. end_leftovers: end processes
    that a run leaves behind. wrapper: a command that starts hyperfine, such as a counter of events, and exits
    with its exit code; it runs in the C locale, the program in its own. meter: measures the energy of runs.
    given: the standard input of programs. starter: what starts programs, whose page faults are overhead.
    """

    hyperfine: str
    limit: float
    scratch: Path
    end_leftovers: bool = False
    wrapper: tuple[str, ...] = ()
    meter: Meter = field(default_factory=find_meter)
    given: Path = NOTHING
    starter: tuple[str, ...] = ()
    _overheads: dict[bool, int] = field(default_factory=dict, init=False)

    def measure(self, start: Start) -> Measurement:
        """Runs a program once. Raises OSError if hyperfine cannot be started."""
        with self.start_run(start) as run:
            run.wait(self.limit)
        return run.measurement()

    @contextmanager
    def start_run(self, start: Start, number: int | None = None) -> Iterator[StartedRun]:
        """A run that hyperfine times, or one of several at the same time; in the block it is waited for.

        number: of one of several, which is started directly, and timed by who continues it.
        """
        output, exported = self.scratch / f"output-{number or 0}.txt", None
        arguments, given = list(start.command), self.given
        if number is None:
            exported, given = self.scratch / "hyperfine.json", NOTHING
            exported.unlink(missing_ok=True)
            timer = [self.hyperfine, *_OPTIONS, "--export-json", str(exported)]
            arguments = [*self._wrap(start.environment), *timer, self._as_text(start.command)]
        started, reached = datetime.now(timezone.utc), read_reached()
        inherits: list[ProcessPlacement] = []
        with (
            self.meter.measuring() if number is None else nullcontext() as energy,
            in_session(
                arguments,
                output,
                start.environment,
                start.folder or self.scratch,
                _observing(start.inherited, inherits),
                end_leftovers=self.end_leftovers,
                given=given,
            ) as running,
        ):
            yield StartedRun(running, output, exported, started, reached, inherits[0], energy)

    def _as_text(self, command: Sequence[str]) -> str:
        """The command for hyperfine; a script has what it does not take: long texts, bytes, an input."""
        text = shlex.join(command)
        content = os.fsencode(text)
        is_utf8 = content == text.encode(errors="ignore")
        if self.given == NOTHING and len(content) <= _LONGEST_ARGUMENT and is_utf8:
            return text
        script = self.scratch / SCRIPT
        script.write_bytes(b"exec %b < %b\n" % (content, os.fsencode(self.given)))
        return shlex.join(["/bin/sh", str(script)])

    def _wrap(self, environment: Mapping[str, str]) -> list[str]:
        """The wrapper in the C locale, and what restores the locale for the program."""
        if not self.wrapper:
            return []
        own = [
            f"{name}={environment[name]}" if name in environment else f"--unset={name}" for name in C_LOCALE
        ]
        return [ENV, *(f"{name}={value}" for name, value in C_LOCALE.items()), *self.wrapper, ENV, *own]

    def measure_overhead(self, *, is_timed: bool = True) -> int:
        """The minor page faults of starter, hyperfine and wrapper, measured once, by running `true`.

        is_timed: by hyperfine.
        """
        if is_timed not in self._overheads:
            true = shutil.which("true") or "true"
            with self.start_run(Start([*self.starter, true]), None if is_timed else 0) as started:
                started.wait(self.limit)
            self._overheads[is_timed] = started.measurement().faults[0]
        return self._overheads[is_timed]

    def failure(self, measured: Measurement) -> Failure:
        """How a failed run ended, and what to do."""
        code = measured.exit_code
        if shutil.disk_usage(self.scratch).free < _LEAST_SPACE:
            text = f"{self.scratch.parent}, which has the output of runs, is full"
            return Failure(_REFUSED, text, "free some space, or set TMPDIR to another folder")
        if measured.fault is not None:
            return measured.fault
        if code == TIMED_OUT:
            text = f"ended after {self.limit:g} s, the limit of a run"
            return Failure(code, text, "allow more with --timeout")
        return Failure(code, exit_text(code))


@contextmanager
def _observing(within: AbstractContextManager[Any], inherits: list[ProcessPlacement]) -> Iterator[None]:
    """The context; adds the placement that a program inherits in it, which may bind itself when it starts."""
    with within:
        inherits.append(observed_placement(threading.get_native_id()))
        yield


def limited_by(limit: str | None, failure: Failure) -> Failure:
    """The failure, with the limit of a control group that explains it, if there is one."""
    if limit is None:
        return failure
    remedy = "allow it more: the batch system, the service manager or the container has set this limit"
    return Failure(failure.exit_code, f"{failure.message}: {limit}", remedy)


def by_name(placements: Sequence[Placement]) -> dict[str | None, Placement]:
    """The placements by the names that cells have; by None the first, for cells without."""
    return {None: placements[0], **{placement.name: placement for placement in placements}}


def print_placements(console: Console, places: Sequence[Placement]) -> None:
    """Prints each of several placements, and which others are equal to it here."""
    for place in places if len(places) > 1 or places[0].also else ():
        also = f"; here equal to {', '.join(place.also)}, which is not measured" if place.also else ""
        console.print(f"Placement {place.text}{also}.", soft_wrap=True)


def about_run(step: Step, wall: float | None, exit_code: int, command: Sequence[str]) -> RunOf:
    """The run of a step, for its records; `wall` are its seconds."""
    measured = step.cell.measured
    return RunOf(
        kernel=step.benchmark.name,
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
        options=step.cell.options,
    )


def failed_record(step: Step, started: datetime, status: Status, failure: Failure) -> Record:
    """The record of a run without a valid result."""
    built = step.cell.measured
    return Record(
        kernel=step.benchmark.name,
        started=utc_text(started),
        status=status,
        failure=failure,
        configuration=build_of(built),
    )


def build_of(built: Configuration) -> BuildReport:
    """The configuration of a program that does not report it itself."""
    return BuildReport(
        compiler=built.compiler,
        hugepages=built.hugepages,
        prefetch=built.prefetch,
        stores=built.stores,
        loop=built.loop,
    )


def implausible(wall: float | None, elapsed: float) -> str | None:
    """Why hyperfine's time of a run cannot be right; None if it can.

    wall: hyperfine's time. elapsed: from its start to its end by the clock of pagewise. Both in seconds.
    """
    if wall is None or wall <= elapsed <= wall * (1.0 + _OVERHEAD_SHARE) + _OVERHEAD_SECONDS:
        return None
    return f"hyperfine reports {wall:.3f} s for a run that took {elapsed:.3f} s with its own start and end"


def _read_export(file: Path) -> tuple[float | None, int, dict[str, float]]:
    """Wall seconds, exit code and CPU seconds; None, 4 and none if hyperfine measured nothing."""
    try:
        result: dict[str, Any] = parse_json(read_file(file))["results"][0]
        wall, exit_code = float(result["times"][0]), int(result["exit_codes"][0])
        return wall, exit_code, {f"{name}_seconds": float(result[name]) for name in ("user", "system")}
    except (OSError, ValueError, LookupError, TypeError):
        return None, _REFUSED, {}


def after(output: str, mark: str) -> str | None:
    """The rest of the first line of an output that has this mark, such as `error:`."""
    return next((line.split(mark, 1)[1].strip() for line in output.splitlines() if mark in line), None)


def _program_output(output: str) -> str:
    """The output of a run, without hyperfine's warning about its exit code."""
    begin = output.rfind("\n", 0, max(0, len(output) - _END)) + 1
    lines = output[begin:].splitlines(keepends=True)
    while lines and lines[-1].strip() in ("", _NOISE):
        lines.pop()
    return output[:begin] + "".join(lines)
