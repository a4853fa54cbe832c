"""What a program is: its file, C library and shared libraries."""

from __future__ import annotations

import mmap
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from elftools.construct import Container
from elftools.elf.constants import P_FLAGS
from elftools.elf.elffile import ELFFile
from elftools.elf.segments import InterpSegment

from pagewise.core.errors import SelectionError
from pagewise.core.reading import open_file
from pagewise.core.text import command_text
from pagewise.stack.commands import output_of
from pagewise.stack.files import sha256

_MOST_SCRIPTS = 5
_TUNABLE = b"glibc.malloc.trim_threshold"
_VERSION = re.compile(rb"GNU C Library \([^)]*\) \w+ release version (\d+)\.(\d+)")


class NotElfError(Exception):
    """The file is not a readable ELF file."""


@dataclass(frozen=True)
class Elf:
    """An ELF file. interpreter: its loader, None for a static one.

    text_bytes: the mapped machine code. static_bytes: the largest piece of static data (.data and .bss).
    zeroed: begin and end of the zeroed part of static data (.bss), relative to the first mapped address.
    aligned_bytes: each run maps it at the same address modulo this.
    """

    interpreter: str | None
    text_bytes: int
    static_bytes: int
    zeroed: tuple[int, int] | None
    aligned_bytes: int

    def holds(self, size: int, page: int) -> bool:
        """Whether a part of this size may have a whole page of this size, and has it in each run or none."""
        return size >= (page if self.aligned_bytes >= page else 2 * page - mmap.PAGESIZE)

    @property
    def zeroed_bytes(self) -> int:
        """The bytes of .bss."""
        return 0 if self.zeroed is None else self.zeroed[1] - self.zeroed[0]


@dataclass(frozen=True)
class Binary:
    """A program to compare.

    image: the ELF file that runs (a script's interpreter). c_library: `glibc`, `musl` or None. version: that
    of glibc, if known. allocator: what serves malloc, None for the C library or if it was not examined.
    """

    program: Path
    image: Path
    elf: Elf
    sha256: str
    script: bool
    libraries: tuple[str, ...]
    c_library: str | None
    version: tuple[int, int] | None
    allocator: str | None = None

    @property
    def static(self) -> bool:
        """Whether it runs without a loader."""
        return self.elf.interpreter is None

    @property
    def text(self) -> str:
        """In a sentence: `dynamic, glibc 2.36, 3 libraries`."""
        kind = "static" if self.static else "dynamic"
        library = self.c_library or "no known C library"
        number = "" if self.version is None else f" {self.version[0]}.{self.version[1]}"
        parts = [f"{kind}, {library}{number}"]
        if self.allocator:
            parts.append(f"allocator {self.allocator}")
        if self.script:
            parts.append(f"a script, run by {self.image}")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, object]:
        """As the manifest has it."""
        return {
            "path": str(self.program),
            "image": str(self.image),
            "sha256": self.sha256,
            "static": self.static,
            "c_library": self.c_library,
            "c_library_version": None if self.version is None else ".".join(map(str, self.version)),
            "allocator": self.allocator,
            "libraries": list(self.libraries),
            "text_bytes": self.elf.text_bytes,
            "bss_bytes": self.elf.zeroed_bytes,
        }


def examine(command: str, environment: Mapping[str, str], folder: Path | None = None) -> Binary:
    """Finds a program as a shell does and reads its properties; only its loader is run.

    Raises SelectionError when it is missing, not executable, or not a program.
    """
    path = shutil.which(command, path=environment.get("PATH", os.defpath))
    if path is None:
        exists = ((folder or Path.cwd()) / command).is_file()
        raise SelectionError(
            "this file is not executable" if exists else "there is no such program",
            where=command,
            remedy="name a program with its path, or one on PATH, after --",
        )
    program = Path(path).absolute()
    image = program
    try:
        image, script = _image(program, environment)
        elf = read_elf(image)
    except NotElfError as fault:
        raise SelectionError(
            "this is neither an ELF program nor a script with #!",
            where=program,
            remedy="name its interpreter first, as in: -- python3 my_app.py",
        ) from fault
    except OSError as fault:
        raise SelectionError(
            f"this program cannot be read: {fault.strerror}",
            where=image,
            remedy="make it readable: " + command_text(("chmod", "u+r", str(image))),
        ) from fault
    libraries = _libraries(image, elf, environment)
    c_library, version = _c_library(image, elf, libraries)
    return Binary(
        program,
        image,
        elf,
        sha256(program) or "",
        script,
        libraries,
        c_library,
        version,
    )


def files_of(program: Path, environment: Mapping[str, str]) -> list[Path]:
    """The files that a run of a program executes: itself, a script's interpreter, and shared libraries."""
    try:
        image, _ = _image(program, environment)
        libraries = _libraries(image, read_elf(image), environment)
    except (OSError, NotElfError, SelectionError):
        return [program]
    return [program, image, *map(Path, libraries)]


def starts_as_program(file: Path) -> bool:
    """Whether a file begins as an ELF program or a script does."""
    try:
        with open_file(file) as stream:
            return stream.read(4).startswith((b"#!", b"\x7fELF"))
    except (OSError, ValueError):
        return False


def _image(program: Path, environment: Mapping[str, str]) -> tuple[Path, bool]:
    """The ELF file that a program executes, and whether the program is a script."""
    image = program
    for _ in range(_MOST_SCRIPTS):
        with open_file(image) as stream:
            line = stream.readline(4096)
        if not line.startswith(b"#!"):
            return image.resolve(), image != program
        words = line[2:].decode(errors="replace").split()
        if words and Path(words[0]).name == "env":
            words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        interpreter = shutil.which(words[0], path=environment.get("PATH", os.defpath)) if words else None
        if interpreter is None:
            raise SelectionError(
                "the interpreter in its first line is missing",
                where=image,
                remedy="install it, or name another before the script",
            )
        image = Path(interpreter)
    raise SelectionError(
        f"more than {_MOST_SCRIPTS} scripts run each other",
        where=program,
        remedy="name the program that they run",
    )


def _libraries(image: Path, elf: Elf, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The shared libraries that its loader finds in this environment."""
    if elf.interpreter is None:
        return ()
    listed = output_of([elf.interpreter, "--list", str(image)], environment, check=False) or ""
    return tuple(dict.fromkeys(re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", listed, re.MULTILINE)))


def _c_library(
    image: Path, elf: Elf, libraries: tuple[str, ...]
) -> tuple[str | None, tuple[int, int] | None]:
    """Its name and version. A static program has the list of glibc's tunables."""
    if elf.interpreter is None:
        return ("glibc" if _holds(image, _TUNABLE) else None), None
    loader = Path(elf.interpreter)
    if loader.name.startswith("ld-musl"):
        return "musl", None
    library = next((file for file in map(Path, libraries) if re.match(r"libc\.so\.|libc-2", file.name)), None)
    version = None if library is None else _version(library)
    if version is None and not _holds(loader, b"GLIBC_TUNABLES", b"GLIBC_2"):
        return None, None
    return "glibc", version


def _version(file: Path) -> tuple[int, int] | None:
    try:
        match = _VERSION.search(file.read_bytes())
    except OSError:
        return None
    return None if match is None else (int(match[1]), int(match[2]))


@cache
def read_elf(path: Path) -> Elf:
    """Reads the headers. Raises NotElfError, OSError."""
    with open_file(path) as stream:
        try:
            file = ELFFile(stream)
            parts = list(file.iter_segments())
            loader = next((part for part in parts if isinstance(part, InterpSegment)), None)
            interpreter = None if loader is None else str(loader.get_interp_name())
            mapped = [part.header for part in parts if part.header.p_type == "PT_LOAD"]
            return _elf(interpreter, mapped, is_fixed=file.header.e_type == "ET_EXEC")
        except Exception as fault:  # pyelftools raises exceptions of any kind for a damaged header
            raise NotElfError(f"{path} is not a readable ELF file: {fault}") from fault


def _elf(interpreter: str | None, mapped: Sequence[Container], *, is_fixed: bool) -> Elf:
    """An ELF file with these mapped segments; addresses are those in the file, before it is relocated.

    is_fixed: it is never relocated.
    """
    data = [part for part in mapped if part.p_flags & P_FLAGS.PF_W]
    largest = max(data, key=lambda part: part.p_memsz - part.p_filesz, default=None)
    zeroed = None
    if largest is not None and largest.p_memsz > largest.p_filesz:
        start = largest.p_vaddr - (mapped[0].p_vaddr & -4096)
        zeroed = start + largest.p_filesz, start + largest.p_memsz
    return Elf(
        interpreter,
        sum(part.p_filesz for part in mapped if part.p_flags & P_FLAGS.PF_X),
        max((part.p_memsz for part in data), default=0),
        zeroed,
        sys.maxsize if is_fixed else max((part.p_align for part in mapped), default=0),
    )


def _holds(path: Path, *words: bytes) -> set[bytes]:
    """Those of these byte strings that occur in a file; none for an unreadable file."""
    try:
        with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return {word for word in words if content.find(word) >= 0}
    except (OSError, ValueError):
        return set()
