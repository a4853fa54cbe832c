"""Reads of an ELF file what page policies depend on: segments, interpreter, static or dynamic."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_EXECUTABLE, _WRITABLE = 1, 2
_SHARED_OBJECT = 3


class NotElfError(Exception):
    """The file is no ELF file that can be read."""


@dataclass(frozen=True)
class Segment:
    """A part of the file that is mapped: addresses are those in the file, before it is loaded somewhere."""

    offset: int
    address: int
    file_bytes: int
    memory_bytes: int
    executable: bool
    writable: bool


@dataclass(frozen=True)
class Elf:
    """An ELF file. `interpreter` is its loader, None for a static one. `movable`: it is loaded anywhere."""

    path: Path
    bits: int
    machine: int
    movable: bool
    dynamic: bool
    interpreter: str | None
    segments: tuple[Segment, ...]

    @property
    def text_bytes(self) -> int:
        """The bytes of machine code that are mapped."""
        return sum(segment.file_bytes for segment in self.segments if segment.executable)

    @property
    def zeroed(self) -> tuple[int, int] | None:
        """Where the zeroed part of static data (.bss) begins and ends, relative to the first segment."""
        start = self.segments[0].address & -4096 if self.segments else 0
        found = [one for one in self.segments if one.writable and one.memory_bytes > one.file_bytes]
        if not found:
            return None
        last = max(found, key=lambda one: one.memory_bytes - one.file_bytes)
        return last.address + last.file_bytes - start, last.address + last.memory_bytes - start

    @property
    def zeroed_bytes(self) -> int:
        """The bytes of .bss."""
        return 0 if self.zeroed is None else self.zeroed[1] - self.zeroed[0]


@cache
def read_elf(path: Path) -> Elf:
    """Reads the headers. Raises NotElfError, OSError."""
    with path.open("rb") as stream:
        head = stream.read(64)
        if head[:4] != b"\x7fELF" or len(head) < 52 or head[4] not in (1, 2) or head[5] not in (1, 2):
            raise NotElfError(f"{path} is no ELF file")
        order = "<" if head[5] == 1 else ">"
        wide = head[4] == 2
        try:
            kind, machine = struct.unpack_from(order + "HH", head, 16)
            table = struct.unpack_from(order + "Q", head, 32)[0] if wide else 0
            if not wide:
                table = struct.unpack_from(order + "I", head, 28)[0]
            size, count = struct.unpack_from(order + "HH", head, 54 if wide else 42)
            stream.seek(table)
            rows = [_row(order, wide, stream.read(size)) for _ in range(count)]
            loader = next((row for row in rows if row[0] == _INTERPRETER), None)
            interpreter = None
            if loader is not None:
                stream.seek(loader[2])
                interpreter = stream.read(min(loader[4], 4096)).rstrip(b"\0").decode(errors="replace")
        except struct.error as fault:
            raise NotElfError(f"{path} is cut short") from fault
    return Elf(
        path,
        64 if wide else 32,
        machine,
        kind == _SHARED_OBJECT,
        any(row[0] == _DYNAMIC for row in rows),
        interpreter,
        tuple(_segments(rows)),
    )


def holds(path: Path, *words: bytes) -> set[bytes]:
    """Which of these byte strings occur in a file; none in one that cannot be read."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return {word for word in words if content.find(word) >= 0}
    except (OSError, ValueError):
        return set()


def _row(order: str, wide: bool, text: bytes) -> tuple[int, ...]:
    """Type, flags, offset, address, bytes in the file, bytes in memory."""
    if wide:
        kind, flags, offset, address, _, in_file, in_memory, _ = struct.unpack_from(order + "IIQQQQQQ", text)
    else:
        kind, offset, address, _, in_file, in_memory, flags, _ = struct.unpack_from(order + "IIIIIIII", text)
    return kind, flags, offset, address, in_file, in_memory


def _segments(rows: list[tuple[int, ...]]) -> Iterator[Segment]:
    for kind, flags, offset, address, in_file, in_memory in rows:
        if kind == _LOAD:
            executable, writable = bool(flags & _EXECUTABLE), bool(flags & _WRITABLE)
            yield Segment(offset, address, in_file, in_memory, executable, writable)
