"""Runs a program in QEMU's user-mode emulation with the simulator as its plug-in."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pagewise.core.errors import PagewiseError, RefusedError, SelectionError, SetupError
from pagewise.core.reading import parse_json, read_end, read_file
from pagewise.core.record import Record, parse_record
from pagewise.core.structure import to_data
from pagewise.machine.settings.thp import refused_to_programs
from pagewise.session.launch import LONGEST_OUTPUT, after
from pagewise.session.processes import NOTHING, in_session
from pagewise.stack.binary import read_elf
from pagewise.stack.c_code import can_be_preloaded
from pagewise.stack.commands import output_of
from pagewise.workloads.simulation.origins import name_origins

#: The pages that addresses lie on; all but the first are assumptions (kernels/model/mapping.h).
PAGES = ("observed", "base", "huge", "fjmpg")
#: Machines whose programs can be traced, by e_machine of their files (elf.h: EM_X86_64, EM_AARCH64).
MACHINES = {"x86_64": 62, "aarch64": 183}
# QEMU 9 and later speak a newer version of the interface.
_OLDEST, _NEWEST = (6, 0), (8, 2)
_PLUGIN_FAILED = 125
_PAGES_UNAVAILABLE = 3
_LIBRARIES = {"aarch64": Path("/usr/aarch64-linux-gnu")}
_CPUS = {"aarch64": ("-cpu", "a64fx")}
_MARK = b"pw_mark_begin"
# Kernels would choose their passes by time, which emulation stretches.
_VARIABLES = {"OMP_WAIT_POLICY": "passive", "PAGEWISE_PASSES": "1"}
#: The output of the traced program, and of the program without the emulator: files in the scratch folder.
OUTPUT, NATIVE_OUTPUT = "output.txt", "native.txt"


class PagesUnavailableError(PagewiseError):
    """The pages of the program's policy are unavailable (exit code 3)."""

    exit_code = 3


@dataclass(frozen=True)
class TracedProgram:
    """What is traced: a file, its machine by name, and whether it marks its regions."""

    file: Path
    machine: str
    marked: bool


@dataclass(frozen=True)
class Tracer:
    """QEMU's emulation of one machine, with its version."""

    command: str
    machine: str
    version: str

    @property
    def name(self) -> str:
        """As records name it: `qemu-x86_64 7.2.22`."""
        return f"qemu-{self.machine} {self.version}"


@dataclass(frozen=True)
class Traced:
    """The result of a run under the tracer: the simulator's figures, and the program's record."""

    simulated: dict[str, object]
    record: Record | None


def find_file(name: str) -> Path:
    """The file of a program, by its path or by its name on PATH or here. Raises SelectionError."""
    path = shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), os.curdir)))
    if path is None:
        raise SelectionError(
            f"there is no program {name}",
            where="PROGRAM",
            remedy="give its path, as ./my_app, and make it executable",
        )
    return Path(path)


def find_program(name: str) -> TracedProgram:
    """A program to trace, as find_file finds it. Raises SelectionError."""
    file = find_file(name)
    content = file.read_bytes()
    code = int.from_bytes(content[18:20], "little")
    machine = next((name for name, number in MACHINES.items() if number == code), None)
    if content[:5] != b"\x7fELF\x02" or machine is None:
        raise SelectionError(
            "this is not a program for x86-64 or aarch64",
            where=file,
            remedy="give the program itself, not a script that starts it",
        )
    return TracedProgram(file, machine, _MARK in content)


def find_tracer(machine: str) -> Tracer:
    """QEMU for programs of this machine. Raises SetupError when QEMU with plug-ins is missing."""
    remedy = "apt-get install qemu-user (Debian 12: QEMU 7.2)"
    command = shutil.which(f"qemu-{machine}")
    if command is None:
        raise SetupError(f"qemu-{machine} is missing, which runs the programs to simulate", remedy=remedy)
    version, options = (output_of([command, option], check=False) or "" for option in ("--version", "-h"))
    match = re.search(r"version (\d+)\.(\d+)([.\d]*)", version)
    if match is None:
        raise SetupError("this QEMU does not report its version", where=command, remedy=remedy)
    if "-plugin" not in options:
        raise SetupError(
            "this QEMU was built without plug-ins (Debian 13's is)",
            where=command,
            remedy="put a QEMU 6.0 to 8.2 with plug-ins first on PATH, such as Debian 12's qemu-user",
        )
    if not _OLDEST <= (int(match[1]), int(match[2])) <= _NEWEST:
        raise SetupError(
            f"the plug-in supports QEMU {_text(_OLDEST)} to {_text(_NEWEST)}, not {match[1]}.{match[2]}",
            where=command,
            remedy=remedy,
        )
    return Tracer(command, machine, f"{match[1]}.{match[2]}{match[3]}")


@dataclass(frozen=True)
class ProgramRun:
    """How a program runs. scratch: folder for temporary files, and its own unless `folder` is another.

    limit: seconds; given: its standard input.
    """

    program: TracedProgram
    arguments: Sequence[str]
    scratch: Path
    folder: Path | None = None
    limit: float = 300.0
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    given: Path = NOTHING

    def preloading(self, library: Path) -> str:
        """LD_PRELOAD with a library before those of the environment; its copy if its path has spaces."""
        if not can_be_preloaded(library):
            library = Path(shutil.copy(library, self.scratch))
        return ":".join(filter(None, (str(library), self.environment.get("LD_PRELOAD"))))


def trace(
    tracer: Tracer,
    plugin: Path,
    geometry: str,
    run: ProgramRun,
    *,
    pages: str = "observed",
    without_thp: bool = False,
    records: bool = True,
    preload: Path | None = None,
) -> Traced:
    """Runs the program once under the simulator. geometry: as the model reads it.

    records: it has the option --record. preload: count misses by the origin of the memory, and the
    library that reports allocations.

    Raises RefusedError, PagesUnavailableError; the program's output is in the scratch folder in any case.
    """
    program, scratch = run.program, run.scratch
    out, lines, written = scratch / "model.json", scratch / "geometry", scratch / "record.jsonl"
    for file in (out, written):
        file.unlink(missing_ok=True)
    lines.write_text(geometry, encoding="ascii")
    whole = "off" if program.marked else "on"
    loaded = f"{plugin},geometry={lines},out={out},pages={pages},whole={whole}"
    loaded += "" if preload is None else ",origins=on"
    command = [tracer.command, *_CPUS.get(tracer.machine, ()), "-plugin", loaded]
    if preload is not None and _takes_library(program):
        command += ["-E", f"LD_PRELOAD={run.preloading(preload)}"]
    command += [str(program.file), *run.arguments, *(("--record", str(written)) if records else ())]
    variables = {**_VARIABLES, **run.environment}
    if preload is None:
        # Without origins, one thread is simulated.
        variables.setdefault("OMP_NUM_THREADS", "1")
    root = _LIBRARIES.get(tracer.machine)
    if root is not None and root.is_dir() and os.uname().machine != tracer.machine:
        variables.setdefault("QEMU_LD_PREFIX", str(root))
    within = refused_to_programs() if without_thp else contextlib.nullcontext()
    _run(run, command, scratch / OUTPUT, variables, within)
    simulated = _read(out, program)
    if preload is not None:
        reported: Any = simulated["origins"]
        simulated["origins"] = to_data(name_origins(reported))
    return Traced(simulated, _record(written))


def native_seconds(run: ProgramRun) -> tuple[float, float]:
    """Wall and CPU time in seconds of a run on base pages, without the emulator. Raises RefusedError."""
    before = os.times()
    # Absolute: a file in the working folder may have the name of another program on PATH.
    command, variables = [str(run.program.file.absolute()), *run.arguments], {**_VARIABLES, **run.environment}
    wall = _run(run, command, run.scratch / NATIVE_OUTPUT, variables, refused_to_programs())
    after = os.times()
    used = after.children_user + after.children_system - before.children_user - before.children_system
    return wall, used


def _run(
    run: ProgramRun,
    command: Sequence[str],
    output: Path,
    environment: Mapping[str, str],
    within: contextlib.AbstractContextManager[None],
) -> float:
    """Its wall time in seconds. Raises RefusedError, PagesUnavailableError for a run that failed."""
    folder = run.folder or run.scratch
    with in_session(
        command, output, environment, folder, within, end_leftovers=True, given=run.given
    ) as running:
        running.wait(run.limit)
    if running.is_ended_by_us:
        raise RefusedError(
            f"the program was ended after {run.limit:g} s",
            where=run.program.file,
            remedy="make it smaller (a traced program is some 30 times slower), or allow more with --timeout",
        )
    if running.process.returncode != 0:
        raise _failure(running.process.returncode, read_end(output, LONGEST_OUTPUT), run.program)
    return running.elapsed


def _takes_library(program: TracedProgram) -> bool:
    """Whether the preloaded library can report the program's allocations: it is dynamic, with glibc."""
    interpreter = read_elf(program.file).interpreter
    return interpreter is not None and "musl" not in interpreter and program.machine == os.uname().machine


def _read(out: Path, program: TracedProgram) -> dict[str, object]:
    """The simulator's figures. Raises RefusedError where they do not represent the program."""
    try:
        simulated: dict[str, object] = parse_json(read_file(out))
        unseen = simulated["unseen_instructions"]
    except (OSError, ValueError, KeyError) as fault:
        raise RefusedError(
            f"the simulator wrote no figures: {fault}",
            where=program.file,
            remedy="let the program end by itself: give it less to do, or more time with --timeout",
        ) from fault
    if unseen:
        raise RefusedError(
            f"{unseen} SVE loads and stores were not seen: QEMU up to 8.0 hides them from its plug-ins",
            where=program.file,
            remedy="build the program without SVE: -march=armv8.2-a",
        )
    if not simulated["whole"] and not simulated["regions"]:
        raise RefusedError(
            "the program entered no region, so nothing was simulated",
            where=program.file,
            remedy="is it stripped? The tracer finds the marks by their symbols",
        )
    return simulated


def _record(written: Path) -> Record | None:
    try:
        lines = read_file(written).splitlines()
    except OSError:
        return None
    return parse_record(lines[-1])[0] if lines else None


def _failure(code: int, output: str, program: TracedProgram) -> PagewiseError:
    """The error of a run that failed."""
    where = program.file
    if code == _PLUGIN_FAILED:
        return RefusedError(after(output, "pagewise model:") or "the simulator failed", where=where)
    if code == -signal.SIGILL or "Illegal instruction" in output:
        return RefusedError(
            "the program uses an instruction that QEMU does not support, such as those of AVX-512",
            where=where,
            remedy="build it for the tracer: -march=x86-64-v3 on x86-64, -march=armv8.2-a on aarch64",
        )
    ended = f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"
    last = "".join(f": {line[:200]}" for line in output.rstrip().splitlines()[-1:])
    message = after(output, "error:") or f"the traced program ended {ended}{last}"
    kind = PagesUnavailableError if code == _PAGES_UNAVAILABLE else RefusedError
    return kind(message, where=where, remedy=after(output, "remedy:"))


def _text(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"
