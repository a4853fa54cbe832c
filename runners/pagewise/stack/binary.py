"""The properties of a program that page policies depend on: C library, allocator, privileges."""

from __future__ import annotations

import os
import re
import shutil
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.core.errors import SelectionError
from pagewise.core.reading import open_file
from pagewise.core.text import command_text
from pagewise.stack.commands import output_of
from pagewise.stack.elf import Elf, NotElfError, holds, read_elf
from pagewise.stack.files import sha256

_MOST_SCRIPTS = 5
_TUNABLE, _OLD_TUNABLE = b"glibc.malloc.hugetlb", b"glibc.malloc.trim_threshold"
# By allocator: the name of its library, and a string in programs that are linked with it statically.
_ALLOCATORS = {
    "jemalloc": (r"libjemalloc", b"MALLOC_CONF"),
    "tcmalloc": (r"libtcmalloc", b"TCMALLOC_"),
    "mimalloc": (r"libmimalloc", b"MIMALLOC_"),
    "TBB malloc": (r"libtbbmalloc_proxy", b"TBB_MALLOC_"),
    "Hoard": (r"libhoard", b"libhoard"),
    "snmalloc": (r"libsnmalloc", b"snmalloc"),
    # GCC's and Clang's; the string is a message of the runtime, because tools know its other names.
    "AddressSanitizer": (r"libasan\.so|libclang_rt\.asan", b"ASan runtime does not come first"),
}
# The allocator of a language, beside malloc: the name of its library, and a string in its program.
_BESIDE = {"pymalloc": (r"libpython", b"PYTHONMALLOC")}
_GO = b"\xff Go build"
_VERSION = re.compile(rb"GNU C Library \([^)]*\) \w+ release version (\d+)\.(\d+)")


@dataclass(frozen=True)
class Binary:
    """A program to compare.

    image: the ELF file that runs (a script's interpreter). c_library: `glibc`, `musl` or None. version: that
    of glibc, if known. tunable: whether its malloc has a tunable for huge pages. allocator: what serves
    malloc, None for the C library. beside: the allocator of a language, for small objects. secured: why the
    loader ignores settings of page policies, None if it does not.
    """

    program: Path
    image: Path
    elf: Elf
    sha256: str
    script: bool
    libraries: tuple[str, ...]
    c_library: str | None
    version: tuple[int, int] | None
    tunable: bool
    allocator: str | None
    beside: str | None
    go: bool
    secured: str | None

    @property
    def static(self) -> bool:
        """Whether it runs without a loader."""
        return self.elf.interpreter is None

    @property
    def is_sanitized(self) -> bool:
        """Whether it has AddressSanitizer's library, which must be loaded before any other."""
        return self.allocator == "AddressSanitizer"

    def can_preload(self, machine: int) -> bool:
        """Whether a library for this machine (of ELF) that needs glibc can be preloaded into it."""
        is_alike = self.elf.machine == machine and self.elf.bits == 64
        return is_alike and self.c_library == "glibc" and not self.static and not self.is_sanitized

    @property
    def text(self) -> str:
        """In a sentence: `dynamic, glibc 2.36, 3 libraries`."""
        kind = "static" if self.static else "dynamic"
        library = self.c_library or "no known C library"
        number = "" if self.version is None else f" {self.version[0]}.{self.version[1]}"
        parts = [f"{kind}, {library}{number}"]
        if self.allocator:
            parts.append(f"allocator {self.allocator}")
        if self.beside:
            parts.append(self.beside)
        if self.go:
            parts.append("Go")
        if self.script:
            parts.append(f"a script, run by {self.image}")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
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
        secured = _secured(image)
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
    c_library, tunable, version = _c_library(image, elf, libraries)
    return Binary(
        program,
        image,
        elf,
        sha256(program) or "",
        script,
        libraries,
        c_library,
        version,
        tunable,
        _allocator(image, libraries, environment, _ALLOCATORS),
        _allocator(image, libraries, {}, _BESIDE),
        bool(holds(image, _GO)),
        secured,
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
) -> tuple[str | None, bool, tuple[int, int] | None]:
    """Its name, whether it has the tunable, and its version.

    The tunable is in the loader's list of tunables, or in a static program's.
    """
    if elf.interpreter is None:
        if _TUNABLE in holds(image, _TUNABLE):
            return "glibc", True, None
        return ("glibc" if holds(image, _OLD_TUNABLE) else None), False, None
    loader = Path(elf.interpreter)
    if loader.name.startswith("ld-musl"):
        return "musl", False, None
    library = next((file for file in map(Path, libraries) if re.match(r"libc\.so\.|libc-2", file.name)), None)
    version = None if library is None else _version(library)
    if version is None and not holds(loader, b"GLIBC_TUNABLES", b"GLIBC_2"):
        return None, False, None
    return "glibc", bool(holds(loader, _TUNABLE)), version


def _version(file: Path) -> tuple[int, int] | None:
    try:
        match = _VERSION.search(file.read_bytes())
    except OSError:
        return None
    return None if match is None else (int(match[1]), int(match[2]))


def _allocator(
    image: Path,
    libraries: tuple[str, ...],
    environment: Mapping[str, str],
    known: Mapping[str, tuple[str, bytes]],
) -> str | None:
    """The first of the known allocators that is there: a library, preloaded or linked, or in the program."""
    files = (*environment.get("LD_PRELOAD", "").replace(":", " ").split(), *libraries)
    for name, (pattern, _) in known.items():
        if any(re.match(pattern, Path(file).name) for file in files):
            return name
    inside = holds(image, *(word for _, word in known.values()))
    return next((f"{name} (inside)" for name, (_, word) in known.items() if word in inside), None)


def _secured(image: Path) -> str | None:
    """Why the loader drops LD_PRELOAD and GLIBC_TUNABLES (ld.so(8), secure-execution mode)."""
    status = image.stat()
    if status.st_mode & stat.S_ISUID and status.st_uid != os.geteuid():
        return "it is set-user-ID"
    if status.st_mode & stat.S_ISGID and status.st_gid not in (os.getegid(), *os.getgroups()):
        return "it is set-group-ID"
    if os.geteuid() != 0:
        try:
            os.getxattr(image, "security.capability")
        except OSError:
            return None
        return "it has file capabilities"
    return None
