"""What a peer benchmark is to the comparison: how it is found, called and read."""

from __future__ import annotations

import ctypes.util
import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pagewise.stack.c_code import Product, compiled, find_compiler

# glibc's malloc advises transparent huge pages for its mappings under this setting (glibc 2.35 and later).
THP_MALLOC = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
Statistic = Literal["mean", "best", "worst"]
_PROGRAM = Product("a program of direct calls", "peers", ("-std=c11", "-O2"), ("-ldl", "-lm"))


class UnableError(Exception):
    """A peer cannot measure what is asked; the text is the reason."""


class UnreadableError(Exception):
    """A peer's output does not hold the figure that was asked for; the text is the fault."""


@dataclass(frozen=True)
class Ask:
    """What a run of a peer measures: the peer's name for it, bytes of all arrays, threads, pages.

    library: the file of the library that it calls, if it calls one.
    """

    test: str
    working_set: int
    threads: int = 1
    pages: str = "none"
    library: str = ""


@dataclass(frozen=True)
class Call:
    """How that is asked for: arguments and environment, and files in the folder it runs in.

    output: the file there that it writes to, None for its standard output. until: the text in it after which
    the peer is ended, because what follows is not needed.
    """

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    output: str | None = None
    until: str | None = None


@dataclass(frozen=True)
class Program:
    """An installed program of a peer; `compiler` built it, None where its name does not have one."""

    path: str
    compiler: str | None = None


@dataclass(frozen=True)
class Peer(ABC):
    """A peer benchmark.

    name: as it is chosen and shown. program: its executable. source: where it is available. by_compiler:
    whether the user builds it, so that it is compared against our builds with the same compiler
    (`stream-gcc`). code: the source of one that is part of pagewise and is compiled on first use.
    """

    name: str
    program: str
    source: str
    by_compiler: bool = False
    code: Path | None = None

    @abstractmethod
    def call(self, ask: Ask) -> Call:
        """The call for this. Raises UnableError."""

    @abstractmethod
    def value(self, output: str, ask: Ask) -> float:
        """The figure, in the unit and by the convention of the plan. Raises UnreadableError."""

    def statistic(self, test: str) -> Statistic:
        """Which of its passes the figure stands for: ours is taken in the same way."""
        return "best"

    def missing(self, compilers: Iterable[str]) -> str:
        """What to install where `find` finds nothing."""
        if self.code is not None:
            return "no C compiler (cc, gcc, clang, or CC=...)"
        names = (f"{self.program}-{name}" for name in compilers) if self.by_compiler else (self.program,)
        return f"no program {' or '.join(names)}"

    def tests(self, program: str) -> Sequence[str] | None:
        """The names of what it can measure; None when it does not list them: names are then used as given."""
        return None


def find_library(name: str, folders: Iterable[Path], environ: Mapping[str, str] = os.environ) -> str | None:
    """The file of a shared library in the folders and those of PAGEWISE_PEERS, else as the system has it."""
    for folder in (*folders, *_named_folders(environ)):
        if file := next(iter(sorted(folder.glob(f"lib{name}.so*"))), None):
            return str(file.resolve())
    return ctypes.util.find_library(name)


def find(
    peer: Peer, folders: Iterable[Path], compilers: Iterable[str], environ: Mapping[str, str] = os.environ
) -> list[Program]:
    """The peer's programs: in the folders, then in those of PAGEWISE_PEERS, then on PATH.

    Of a peer that goes by compiler, one for each (`stream-gcc`); a plain name counts when there is none. One
    that comes with pagewise is compiled. Raises SetupError where it does not compile.
    """
    if peer.code is not None:
        command = find_compiler(environ)
        return [] if command is None else [Program(str(compiled(peer.code, _PROGRAM, command, environ)))]
    places = [
        *(str(folder) for folder in (*folders, *_named_folders(environ))),
        environ.get("PATH", os.defpath),
    ]
    path = os.pathsep.join(places)
    found: list[Program] = []
    for compiler in compilers if peer.by_compiler else ():
        if program := shutil.which(f"{peer.program}-{compiler}", path=path):
            found.append(Program(str(Path(program).absolute()), compiler))
    plain = None if found else shutil.which(peer.program, path=path)
    return [*found, Program(str(Path(plain).absolute()))] if plain else found


def with_thp(ask: Ask) -> dict[str, str]:
    """The environment which gives a peer that allocates by malloc the pages asked for. Raises UnableError."""
    if ask.pages not in ("none", "thp"):
        raise UnableError(f"it cannot be given {ask.pages} pages")
    return dict(THP_MALLOC) if ask.pages == "thp" else {}


def _named_folders(environ: Mapping[str, str]) -> list[Path]:
    return [Path(part) for part in environ.get("PAGEWISE_PEERS", "").split(os.pathsep) if part]
