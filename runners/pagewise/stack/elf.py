"""The properties of an ELF file that page policies depend on: segments, interpreter, static or dynamic."""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elftools.construct import Container
from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from pagewise.core.reading import open_file


class NotElfError(Exception):
    """The file is not a readable ELF file."""


@dataclass(frozen=True)
class Segment:
    """A part of the file that is mapped; addresses are those in the file, before it is relocated."""

    offset: int
    address: int
    file_bytes: int
    memory_bytes: int
    executable: bool
    writable: bool


@dataclass(frozen=True)
class Elf:
    """An ELF file. interpreter: its loader, None for a static one."""

    path: Path
    interpreter: str | None
    segments: tuple[Segment, ...]

    @property
    def text_bytes(self) -> int:
        """The bytes of machine code that are mapped."""
        return sum(segment.file_bytes for segment in self.segments if segment.executable)

    @property
    def zeroed(self) -> tuple[int, int] | None:
        """Begin and end of the zeroed part of static data (.bss), relative to the first segment."""
        start = self.segments[0].address & -4096 if self.segments else 0
        parts = [part for part in self.segments if part.writable and part.memory_bytes > part.file_bytes]
        if not parts:
            return None
        bss = max(parts, key=lambda part: part.memory_bytes - part.file_bytes)
        return bss.address + bss.file_bytes - start, bss.address + bss.memory_bytes - start

    @property
    def zeroed_bytes(self) -> int:
        """The bytes of .bss."""
        return 0 if self.zeroed is None else self.zeroed[1] - self.zeroed[0]

    @property
    def static_bytes(self) -> int:
        """The bytes of the largest piece of static data (.data and .bss)."""
        return max((part.memory_bytes for part in self.segments if part.writable), default=0)


@cache
def read_elf(path: Path) -> Elf:
    """Reads the headers. Raises NotElfError, OSError."""
    with open_file(path) as stream:
        try:
            file = ELFFile(stream)
            parts = list(file.iter_segments())
            loader = next((part for part in parts if isinstance(part, InterpSegment)), None)
            interpreter = None if loader is None else str(loader.get_interp_name())
            return Elf(
                path,
                interpreter,
                tuple(_segment(part.header) for part in parts if part.header.p_type == "PT_LOAD"),
            )
        except Exception as fault:  # pyelftools raises exceptions of any kind for a damaged header
            raise NotElfError(f"{path} is not a readable ELF file: {fault}") from fault


def holds(path: Path, *words: bytes) -> set[bytes]:
    """Those of these byte strings that occur in a file; none for an unreadable file."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return {word for word in words if content.find(word) >= 0}
    except (OSError, ValueError):
        return set()


def _segment(header: Container) -> Segment:
    return Segment(
        header.p_offset,
        header.p_vaddr,
        header.p_filesz,
        header.p_memsz,
        bool(header.p_flags & P_FLAGS.PF_X),
        bool(header.p_flags & P_FLAGS.PF_W),
    )
