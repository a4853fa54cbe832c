"""The user's program: where it runs, and whether the result of a run is right."""

from __future__ import annotations

import errno
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.environment import ENV
from pagewise.core.errors import SelectionError
from pagewise.core.reading import open_file, read_file
from pagewise.core.signals import limit_time
from pagewise.core.units import bytes_text
from pagewise.session.launch import LARGEST_OUTPUT
from pagewise.session.processes import Shell
from pagewise.stack.binary import Binary, starts_as_program
from pagewise.stack.commands import output_of
from pagewise.workloads.program.output import SECONDS_TO_MATCH, OutputCheck, Pattern
from pagewise.workloads.program.service import Service
from pagewise.workloads.program.suite import SuiteFile

#: Stands for the number of MPI ranks in a code's input.
RANKS = "{ranks}"
#: Stands for the number of threads in the arguments of a program.
THREADS = "{threads}"
WITHOUT_CASE = SuiteFile(schema="pagewise.suite/1")
_TOO_LARGE = (
    f"its output is larger than {bytes_text(LARGEST_OUTPUT)}, the most that metrics and checks read: "
    "let it print less, or run it in a script that prints only what they need"
)


def _files_of(folder: Path, pattern: str) -> list[Path]:
    """The files of a glob, which may be absolute."""
    root = Path("/") if pattern.startswith("/") else folder
    return sorted(root.glob(pattern.lstrip("/")))


def checked_input(file: Path) -> Path:
    """A file or folder that is copied for each run. Raises SelectionError."""
    try:
        _check_input(file)
    except OSError as fault:
        raise SelectionError(
            f"this input cannot be copied: {fault.strerror}",
            where=fault.filename or file,
            remedy="name files and folders in `inputs` that this user can read",
        ) from fault
    return file.absolute()


def _check_input(file: Path, above: tuple[Path, ...] = ()) -> None:
    """Raises OSError, SelectionError for what cannot be copied: pipes, devices, a folder in itself."""
    if not file.is_dir():
        open_file(file).close()
        return
    folder = Path(os.path.realpath(file))
    if folder in above:
        raise SelectionError(
            "this folder holds itself, by a link", where=file, remedy="remove the link, or name the files"
        )
    for inside in file.iterdir():
        _check_input(inside, (*above, folder))


@dataclass(frozen=True)
class Relation:
    """Another program of the session, by its key, and the targets of metrics relative to that program's."""

    program: str
    targets: Mapping[str, tuple[float | None, float | None]]


@dataclass(frozen=True, kw_only=True)
class Program:
    """What is run and how its runs are judged.

    command: the program and its arguments. folder: where it runs; None: in a new one for each run, with
    copies of `inputs`. case: files that it gets and writes, exit codes, commands before the run. service: for
    a program that serves, how it is loaded; then metrics, checks and exit codes are those of the load.
    relation: what it is compared with in addition to itself under other policies. build: the name of its
    build, if several builds are compared.
    """

    name: str
    command: tuple[str, ...]
    binary: Binary
    environment: Mapping[str, str]
    folder: Path | None
    case: SuiteFile = WITHOUT_CASE
    inputs: tuple[Path, ...] = ()
    metrics: tuple[Pattern, ...] = ()
    checks: tuple[OutputCheck, ...] = ()
    service: Service | None = None
    relation: Relation | None = None
    build: str = ""

    @property
    def key(self) -> str:
        """Its name in a session: `npb_cg_b/tuned`."""
        return f"{self.name}/{self.build}" if self.build else self.name

    def command_on(self, threads: int) -> tuple[str, ...]:
        """The command of a run with this number of threads."""
        return tuple(word.replace(THREADS, str(threads)) for word in self.command)

    @property
    def starts_others(self) -> bool:
        """Whether it is a script, or an argument is a program or a script that it may start."""
        path = self.environment.get("PATH", os.defpath)
        files = (Path(shutil.which(word, path=path) or word) for word in self.command[1:])
        return self.binary.script or any(starts_as_program(file) for file in files)

    @contextmanager
    def run_folder(self, scratch: Path, ranks: int | None = None) -> Iterator[Path]:
        """The folder of a run: the one named, or a new one in `scratch` that is deleted at its end.

        The texts of the case name the number of MPI ranks.
        """
        if self.folder is not None:
            yield self.folder
            return
        folder = scratch / "run"
        folder.mkdir()
        try:
            for file in self.inputs:
                if file.is_dir():
                    shutil.copytree(file, folder / file.name)
                else:
                    shutil.copy(file, folder / file.name)
            for name, text in (self.case.input or {}).items():
                (folder / name).write_text(text.replace(RANKS, str(ranks or 1)), encoding="utf-8")
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def write(self, folder: Path, since: float, room: int = LARGEST_OUTPUT) -> str | None:
        """The texts of the files that a run wrote; an older file is of another run.

        None if they have more than `room` bytes.
        """
        texts: list[str] = []
        for file in (file for glob in self.case.reads for file in _files_of(folder, glob)):
            try:
                if file.stat().st_mtime < since - 1.0:
                    continue
                content = read_file(file, room)
            except OSError as fault:
                if fault.errno == errno.EFBIG:
                    return None
                continue
            room -= len(content)
            texts.append(content.decode(errors="replace"))
        return "".join(texts)

    def judge(self, output: str | None, shell: Shell) -> tuple[dict[str, float], str | None]:
        """The values of the metrics in the output of a run, and why its result is wrong.

        output: None if it is too large.
        """
        values: dict[str, float] = {}
        if output is None:
            return values, _TOO_LARGE if self.checks or self.metrics else None
        # Progress that overwrites itself: a carriage return begins a line, too.
        output = re.sub("\r\n?", "\n", output)
        faults = (check.fault(output, shell) for check in self.checks)
        if (fault := next(filter(None, faults), None)) is not None:
            return values, fault
        for wanted in self.metrics:
            label, pattern = wanted.metric.label, wanted.pattern.pattern
            try:
                with limit_time(SECONDS_TO_MATCH):
                    value = wanted.value(output, self._has_comma)
            except TimeoutError:
                return values, f"its {label} was not found within {SECONDS_TO_MATCH} s by '{pattern}'"
            except ValueError as text:
                return values, f"its {label} is not a number: {text}"
            if value is not None:
                values[wanted.metric.field] = value
            elif not wanted.optional:
                return values, f"its output has no {label}: nothing matches '{pattern}'"
        return values, None

    def _has_comma(self) -> bool:
        """Whether the program's locale has a decimal comma."""
        names = (self.environment.get(name) for name in ("LC_ALL", "LC_NUMERIC", "LANG"))
        locale = next(filter(None, names), "C")
        return output_of([ENV, f"LC_ALL={locale}", "locale", "decimal_point"], self.environment) == ","

    @property
    def validation(self) -> str:
        """How results are validated, for records."""
        return ", ".join(["exit code", *(f"check '{check.text}'" for check in self.checks)])
