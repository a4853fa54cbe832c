"""What a program is, as far as page policies depend on it: its C library, its allocator, its rights."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.core.errors import SelectionError
from pagewise.stack.elf import Elf, NotElfError, holds, read_elf

_MOST_SCRIPTS = 5
_SECONDS_TO_LIST = 20
_TUNABLE, _OLD_TUNABLE = b"glibc.malloc.hugetlb", b"glibc.malloc.trim_threshold"
# Names of libraries, and words that stand in a program that has the allocator inside.
_ALLOCATORS = {
    "jemalloc": (r"libjemalloc", b"MALLOC_CONF"),
    "tcmalloc": (r"libtcmalloc", b"TCMALLOC_"),
    "mimalloc": (r"libmimalloc", b"MIMALLOC_"),
    "TBB malloc": (r"libtbbmalloc_proxy", b"TBB_MALLOC_"),
    "Hoard": (r"libhoard", b"libhoard"),
    "snmalloc": (r"libsnmalloc", b"snmalloc"),
}
_GO = b"\xff Go build"
_VERSION = re.compile(rb"GNU C Library \([^)]*\) \w+ release version (\d+)\.(\d+)")


@dataclass(frozen=True)
class Binary:
    """A program that is to be compared.

    program: what is run. image: the ELF file that runs then (a script's interpreter). c_library: `glibc`,
    `musl` or None. version: that of glibc, where it is known. tunable: whether its malloc can be told to use
    huge pages. allocator: the one that serves malloc, None where it is the C library's own. secured: why the
    loader ignores what we set, None when it does not.
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
    go: bool
    secured: str | None

    @property
    def static(self) -> bool:
        """Whether no loader takes part."""
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
        if self.go:
            parts.append("Go")
        if self.script:
            parts.append(f"a script, run by {self.image}")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """For the manifest."""
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
    """Finds a program as a shell would and looks at it; it is not run, only its loader is asked.

    Raises SelectionError when it is not there, may not be run, or is no program.
    """
    found = shutil.which(command, path=environment.get("PATH", os.defpath))
    if found is None:
        there = (folder or Path.cwd()) / command
        known = "it is there but may not be run" if there.is_file() else "there is no such program"
        raise SelectionError(
            known, where=command, remedy="name a program with its path, or one on PATH, after --"
        )
    program = Path(found).absolute()
    image, script = _image(program, environment)
    try:
        elf = read_elf(image)
    except NotElfError as fault:
        raise SelectionError(
            "this is neither an ELF program nor a script with #!",
            where=program,
            remedy="name its interpreter first, as in: -- python3 my_app.py",
        ) from fault
    except OSError as fault:
        raise SelectionError(
            f"it cannot be read: {fault.strerror}",
            where=image,
            remedy=f"let this user read it: chmod u+r {image}",
        ) from fault
    libraries = _libraries(image, elf, environment)
    c_library, tunable, version = _c_library(image, elf, libraries)
    return Binary(
        program,
        image,
        elf,
        hashlib.sha256(program.read_bytes()).hexdigest(),
        script,
        libraries,
        c_library,
        version,
        tunable,
        _allocator(image, libraries, environment),
        bool(holds(image, _GO)),
        _secured(image),
    )


def files_of(program: Path, environment: Mapping[str, str]) -> list[Path]:
    """The files that run when a program is run: itself, of a script the interpreter, and shared libraries."""
    try:
        image, _ = _image(program, environment)
        libraries = _libraries(image, read_elf(image), environment)
    except (OSError, NotElfError, SelectionError):
        return [program]
    return [program, image, *map(Path, libraries)]


def _image(program: Path, environment: Mapping[str, str]) -> tuple[Path, bool]:
    """The ELF file that runs when this is run, and whether scripts led to it."""
    image = program
    for _ in range(_MOST_SCRIPTS):
        with image.open("rb") as stream:
            line = stream.readline(4096)
        if not line.startswith(b"#!"):
            return image.resolve(), image != program
        words = line[2:].decode(errors="replace").split()
        if words and Path(words[0]).name == "env":
            words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        next_one = shutil.which(words[0], path=environment.get("PATH", os.defpath)) if words else None
        if next_one is None:
            raise SelectionError(
                "the interpreter that its first line names is not there",
                where=image,
                remedy="install it, or name another before the script",
            )
        image = Path(next_one)
    raise SelectionError(
        "scripts that run scripts, without end",
        where=program,
        remedy="name the program that they run in the end",
    )


def _libraries(image: Path, elf: Elf, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The shared libraries that its loader finds for it, in the environment given."""
    if elf.interpreter is None:
        return ()
    try:
        said = subprocess.run(
            [elf.interpreter, "--list", str(image)],
            env=dict(environment),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS_TO_LIST,
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = re.findall(r"^\s*(?:\S+ => )?(/\S+) \(0x", said, re.MULTILINE)
    return tuple(dict.fromkeys(found))


def _c_library(
    image: Path, elf: Elf, libraries: tuple[str, ...]
) -> tuple[str | None, bool, tuple[int, int] | None]:
    """Which it is, whether it knows the tunable, and its version.

    The loader's list of tunables tells of the tunable, a static program's own list of it.
    """
    if elf.interpreter is None:
        if _TUNABLE in holds(image, _TUNABLE):
            return "glibc", True, None
        return ("glibc" if holds(image, _OLD_TUNABLE) else None), False, None
    loader = Path(elf.interpreter)
    if loader.name.startswith("ld-musl"):
        return "musl", False, None
    library = next((Path(one) for one in libraries if re.match(r"libc\.so\.|libc-2", Path(one).name)), None)
    version = None if library is None else _version(library)
    if version is None and not holds(loader, b"GLIBC_TUNABLES", b"GLIBC_2"):
        return None, False, None
    return "glibc", bool(holds(loader, _TUNABLE)), version


def _version(file: Path) -> tuple[int, int] | None:
    try:
        found = _VERSION.search(file.read_bytes())
    except OSError:
        return None
    return None if found is None else (int(found[1]), int(found[2]))


def _allocator(image: Path, libraries: tuple[str, ...], environment: Mapping[str, str]) -> str | None:
    """The allocator that stands in for the C library's: a library, preloaded or linked, or inside."""
    names = [
        Path(one).name for one in (*environment.get("LD_PRELOAD", "").replace(":", " ").split(), *libraries)
    ]
    for name, (pattern, _) in _ALLOCATORS.items():
        if any(re.match(pattern, one) for one in names):
            return name
    inside = holds(image, *(word for _, word in _ALLOCATORS.values()))
    return next((f"{name} (inside)" for name, (_, word) in _ALLOCATORS.items() if word in inside), None)


def _secured(image: Path) -> str | None:
    """Why the loader drops LD_PRELOAD and GLIBC_TUNABLES (ld.so(8), secure-execution mode)."""
    about = image.stat()
    if about.st_mode & stat.S_ISUID and about.st_uid != os.geteuid():
        return "it is set-user-ID"
    if about.st_mode & stat.S_ISGID and about.st_gid not in (os.getegid(), *os.getgroups()):
        return "it is set-group-ID"
    if os.geteuid() != 0:
        try:
            os.getxattr(image, "security.capability")
        except OSError:
            return None
        return "it has file capabilities"
    return None
