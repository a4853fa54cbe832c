"""A peer benchmark: how its program is found, called and read."""

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
        """The statistic of its passes that the figure is; the same is computed of ours."""
        return "best"

    def missing(self, compilers: Iterable[str]) -> str:
        """What to install where `find` finds nothing."""
        if self.code is not None:
            return "no C compiler (cc, gcc, clang, or CC=...)"
        names = (f"{self.program}-{name}" for name in compilers) if self.by_compiler else (self.program,)
        return f"no program {' or '.join(names)}"

    def tests(self, program: str) -> Sequence[str] | None:
        """The names of its tests; None when it does not list them."""
        return None


def find_library(name: str, folders: Iterable[Path], environ: Mapping[str, str] = os.environ) -> str | None:
    """The file of a shared library in the folders or those of PAGEWISE_PEERS, otherwise the system's."""
    for folder in (*folders, *_named_folders(environ)):
        if file := next(iter(sorted(folder.glob(f"lib{name}.so*"))), None):
            return str(file.resolve())
    return ctypes.util.find_library(name)


def find(
    peer: Peer, folders: Iterable[Path], compilers: Iterable[str], environ: Mapping[str, str] = os.environ
) -> list[Program]:
    """The peer's programs: in the folders, then in those of PAGEWISE_PEERS, then on PATH.

    Of a peer that the user builds, one per compiler (`stream-gcc`), or else the one with a plain name. A peer
    that is part of pagewise is compiled. Raises SetupError where it does not compile.
    """
    if peer.code is not None:
        command = find_compiler(environ)
        return [] if command is None else [Program(str(compiled(peer.code, _PROGRAM, command, environ)))]
    path = os.pathsep.join(map(str, (*folders, *_named_folders(environ), environ.get("PATH", os.defpath))))
    names = {name: f"{peer.program}-{name}" for name in compilers} if peer.by_compiler else {}
    files = {compiler: shutil.which(name, path=path) for compiler, name in names.items()}
    built = [Program(str(Path(file).absolute()), name) for name, file in files.items() if file]
    plain = None if built else shutil.which(peer.program, path=path)
    return built if plain is None else [Program(str(Path(plain).absolute()))]


def with_thp(ask: Ask) -> dict[str, str]:
    """The environment in which malloc uses the pages asked for. Raises UnableError."""
    if ask.pages not in ("none", "thp"):
        raise UnableError(f"it cannot be given {ask.pages} pages")
    return dict(THP_MALLOC) if ask.pages == "thp" else {}


def _named_folders(environ: Mapping[str, str]) -> list[Path]:
    return [Path(part) for part in environ.get("PAGEWISE_PEERS", "").split(os.pathsep) if part]
