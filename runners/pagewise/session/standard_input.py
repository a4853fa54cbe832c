"""The standard input that the user gives to a program: each of its runs gets the same."""

from __future__ import annotations

import errno
import hashlib
import os
import select
import stat
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from rich.console import Console

from pagewise.core.errors import RefusedError, SelectionError, refused_by_system
from pagewise.core.units import bytes_text
from pagewise.session.processes import NOTHING

#: The most that is kept of an input which cannot be opened again: a pipe, or a file from its middle on.
LARGEST = 1 << 30
#: How long the first byte of a pipe may take. Launchers such as srun give a pipe that stays open and empty.
SECONDS_OF_SILENCE = 10.0
_SECONDS_BEFORE_MESSAGE = 1.0
_PIECE = 1 << 20
_WHERE = "standard input"


@dataclass(frozen=True)
class StandardInput:
    """An input that each run opens again, by a descriptor of this process.

    kind: file, device, pipe, silent (a pipe that gave nothing in time) or none. name: the path of a file or
    device. start: the offset in a file. size: bytes from there on; None for a device. sha256: that of an
    input of which a copy was kept. kept: the copy, which has no name and is gone with this process.
    """

    kind: str
    descriptor: int = -1
    name: str | None = None
    start: int = 0
    size: int | None = None
    sha256: str | None = None
    kept: IO[bytes] | None = None

    @property
    def path(self) -> Path:
        """What a run opens."""
        if self.descriptor < 0:
            return NOTHING
        return Path(f"/proc/{os.getpid()}/fd/{self.descriptor}")

    @property
    def watched(self) -> tuple[Path, ...]:
        """The file that must not change between runs."""
        if self.kind != "file" or self.kept is not None or self.name is None:
            return ()
        file = Path(self.name)
        return (file,) if file.is_file() else ()

    def to_dict(self) -> dict[str, object] | None:
        """For the manifest."""
        if self.kind == "none":
            return None
        facts = {"path": self.name, "start": self.start, "bytes": self.size, "sha256": self.sha256}
        return {"kind": self.kind, **{name: value for name, value in facts.items() if value is not None}}


NO_INPUT, SILENT = StandardInput("none"), StandardInput("silent")


def take_input(console: Console) -> StandardInput:
    """The standard input of this process for runs of a program; NO_INPUT for a terminal and an empty pipe.

    Raises SelectionError, RefusedError.
    """
    if sys.__stdin__ is None:
        return NO_INPUT
    try:
        status = os.fstat(0)
        if os.isatty(0) or status.st_rdev == NOTHING.stat().st_rdev:
            return NO_INPUT
        if stat.S_ISFIFO(status.st_mode) or stat.S_ISSOCK(status.st_mode):
            if not _has_data(console):
                return SILENT
            kept = _keep("pipe", 0)
            return kept if kept.size else NO_INPUT
        return _of_file(status)
    except OSError as fault:
        unreadable = RefusedError(
            f"the standard input cannot be read: {fault.strerror}",
            where=_WHERE,
            remedy="redirect it from a file that you can read, or < /dev/null for none",
        )
        raise refused_by_system(fault) or unreadable from fault


def _of_file(status: os.stat_result) -> StandardInput:
    # Opened again: this process's offset stays where the user's shell continues.
    name = os.readlink("/proc/self/fd/0")  # noqa: PTH115
    try:
        descriptor = os.open("/proc/self/fd/0", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        # Another user opened it, as before sudo.
        return _keep("file", 0, name, os.lseek(0, 0, os.SEEK_CUR))
    if not stat.S_ISREG(status.st_mode):
        return StandardInput("device", descriptor, name)
    start = os.lseek(0, 0, os.SEEK_CUR)
    if start == 0:
        return StandardInput("file", descriptor, name, size=status.st_size)
    os.lseek(descriptor, start, os.SEEK_SET)
    return _keep("file", descriptor, name, start)


def _has_data(console: Console) -> bool:
    """Whether a pipe gives data or its end in time; what is waited for is printed."""
    if select.select([0], [], [], _SECONDS_BEFORE_MESSAGE)[0]:
        return True
    text = "Reading the standard input, a pipe, for the runs of the program (< /dev/null: without input) ..."
    console.print(text, soft_wrap=True)
    if select.select([0], [], [], SECONDS_OF_SILENCE - _SECONDS_BEFORE_MESSAGE)[0]:
        return True
    console.print(
        f"pagewise: warning: the standard input, a pipe, gave nothing within {SECONDS_OF_SILENCE:g} s: runs "
        "of the program have no input\n  remedy: give it from a file: < FILE; or < /dev/null for none",
        style="yellow",
        soft_wrap=True,
    )
    return False


def _keep(kind: str, descriptor: int, name: str | None = None, start: int = 0) -> StandardInput:
    """The rest of an input in a file without a name. Raises OSError, SelectionError."""
    kept = tempfile.TemporaryFile(prefix="pagewise-input-")  # noqa: SIM115 kept as long as this process
    digest, size = hashlib.sha256(), 0
    for piece in _pieces(descriptor):
        size += len(piece)
        if size > LARGEST:
            raise SelectionError(
                f"the standard input has more than {bytes_text(LARGEST)}, the most that is kept of a pipe, "
                "or of a file from its middle on",
                where=_WHERE,
                remedy="put it in a file, and give that from its beginning: < FILE",
            )
        digest.update(piece)
        kept.write(piece)
    kept.flush()
    return StandardInput(kind, kept.fileno(), name, start, size, digest.hexdigest(), kept)


def _pieces(descriptor: int) -> Iterator[bytes]:
    while True:
        try:
            piece = os.read(descriptor, _PIECE)
        except OSError as fault:
            if fault.errno != errno.EAGAIN:
                raise
            select.select([descriptor], [], [])
            continue
        if not piece:
            return
        yield piece
