"""What is run for a match: kernels of ours in installed configurations, and tests of peers' programs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from pagewise.core.configuration import Configuration
from pagewise.core.kernel import Kernel
from pagewise.core.plan import subject
from pagewise.stack.binary import files_of
from pagewise.stack.catalog import Catalog, Entry
from pagewise.stack.commands import output_of
from pagewise.stack.files import sha256
from pagewise.workloads.peers.analysis import Candidate, Side
from pagewise.workloads.peers.known import PEERS
from pagewise.workloads.peers.peer import Ask, Peer, Program, Statistic, UnableError, find_library
from pagewise.workloads.peers.plan import CACHES, PROVIDERS, Match, Ours, Theirs

# In memory as many passes as the peers that report their best, fewer where all count; a repetition in a
# cache takes 10 ms, a peer some tenths of a second.
_REPETITIONS, _REPETITIONS_IN_CACHE = {"best": "10", "mean": "5", "worst": "5"}, "30"


@dataclass(frozen=True)
class OwnRun:
    """A kernel of ours in one configuration, and the statistic of its passes that is the figure."""

    candidate: Candidate
    entry: Entry
    kernel: Kernel
    arguments: tuple[str, ...]
    spec: Ours
    statistic: Statistic

    def as_entry(self) -> Entry:
        """Its module, with the candidate's name."""
        return replace(
            self.entry, configuration=replace(self.entry.configuration, module=self.candidate.label)
        )

    def files(self, tree: Path) -> list[Path]:
        """The files whose change makes its figures incomparable: module file, program, libraries."""
        program = self.entry.program(self.kernel.executable)
        libraries = [] if program is None else files_of(Path(program), self.entry.environment)
        return [tree / f"{self.entry.configuration.module}.lua", *libraries]


@dataclass(frozen=True)
class PeerRun:
    """A test of a peer's program."""

    candidate: Candidate
    peer: Peer
    program: Program
    ask: Ask

    def as_entry(self) -> Entry:
        """The program as a module, identified by its digest."""
        file = Path(self.program.path)
        configuration = Configuration.of_program(
            file,
            _digest(file),
            module=self.candidate.label,
            package=self.peer.name,
            compiler=self.program.compiler or "unknown",
            hugepages=self.ask.pages,
        )
        return Entry(configuration, {}, {})

    def files(self, tree: Path) -> list[Path]:
        """The files whose change makes its figures incomparable: program, libraries."""
        return files_of(Path(self.program.path), os.environ)


Run = OwnRun | PeerRun


def candidates(
    match: Match,
    catalog: Catalog,
    programs: Mapping[str, Sequence[Program]],
    libraries: Mapping[str, str | None],
) -> list[Run]:
    """What is run for a match. Raises UnableError, which names what is missing.

    programs: by peer. libraries: the files of those that peers call, by name.
    """
    if isinstance(match.other, Ours):
        ours = _own_runs(match, match.ours, catalog, "ours", "best")
        return [*ours, *_own_runs(match, match.other, catalog, "theirs", "best")]
    theirs = _peer_runs(match, match.other, programs[match.other.peer], libraries)
    statistic = PEERS[match.other.peer].statistic(match.other.tests[0])
    return [*_own_runs(match, match.ours, catalog, "ours", statistic), *theirs]


def _own_runs(match: Match, spec: Ours, catalog: Catalog, side: Side, statistic: Statistic) -> list[OwnRun]:
    kernel = catalog.kernels.get(spec.kernel)
    if kernel is None:
        raise UnableError(f"{spec.kernel}: it is not installed")
    entries = {
        entry.configuration.module: entry
        for entry in catalog.entries
        if spec.kernel in entry.kernels
        and any(fnmatchcase(entry.configuration.label, glob) for glob in spec.configurations)
        and match.compiler in (None, family(entry))
    }
    if not entries:
        raise UnableError(f"{spec.kernel}: no such build of it is installed")
    merged = subject(kernel, (entry.configuration for entry in entries.values()), "*/hardware-regular")
    repetitions = _REPETITIONS_IN_CACHE if match.level in CACHES else _REPETITIONS[statistic]
    common = ("--working-set", str(match.working_set), "--repetitions", repetitions)
    runs = []
    for cell in merged.cells:
        entry = entries[cell.measured.module]
        for extra in spec.alternatives:
            label = " ".join((f"{spec.kernel} {cell.measured.compiler}/{cell.measured.label}", *extra))
            candidate = Candidate(side, label, family(entry))
            runs.append(OwnRun(candidate, entry, kernel, (*common, *extra), spec, statistic))
    return runs


def _peer_runs(
    match: Match, spec: Theirs, programs: Sequence[Program], libraries: Mapping[str, str | None]
) -> list[PeerRun]:
    peer, library = PEERS[spec.peer], libraries.get(spec.library) if spec.library else ""
    if not programs:
        raise UnableError(f"{peer.name} is not installed")
    if library is None:
        raise UnableError(f"the library {spec.library} is not installed")
    runs = []
    for program in programs:
        if peer.by_compiler and program.compiler not in (None, match.compiler):
            continue
        offered = peer.tests(program.path)
        names = spec.tests if offered is None else [name for name in offered if _fits(name, spec)]
        # A program that offers nothing of it is run all the same: what it prints is then the reason.
        for name in names or spec.tests[:1]:
            for pages in spec.pages:
                shown = peer.name if peer.code is not None else Path(program.path).name
                label = f"{shown} {name}" + (" thp" if pages == "thp" else "")
                ask = Ask(name, match.working_set, match.threads, pages, library)
                runs.append(PeerRun(Candidate("theirs", label, program.compiler), peer, program, ask))
    if not runs:
        raise UnableError(f"{peer.name} is installed, but not one built with {match.compiler}")
    return runs


def _fits(name: str, spec: Theirs) -> bool:
    wanted, without = (any(fnmatchcase(name, g) for g in globs) for globs in (spec.tests, spec.without))
    return wanted and not without


@cache
def _digest(file: Path) -> str:
    return sha256(file) or ""


def family(entry: Entry) -> str:
    """The compiler without its version: gcc, llvm."""
    return entry.configuration.compiler.split("-")[0]


def providers(catalog: Catalog) -> dict[str, Sequence[str]]:
    """The libraries that our builds call, by what they are for; the usual ones where none does."""
    kernels = {"blas": "dgemm", "fftw": "fft"}
    return {kind: sorted(_callers(catalog, kernel)) or PROVIDERS[kind] for kind, kernel in kernels.items()}


def called_libraries(
    chosen: Iterable[Match], catalog: Catalog, folders: Sequence[Path]
) -> dict[str, str | None]:
    """The files of the libraries that peers call: those that our builds call, else as found by name."""
    names = {match.other.library for match in chosen if isinstance(match.other, Theirs)} - {""}
    callers = _callers(catalog, "dgemm", "fft")
    return {
        name: (_called_file(callers[name]) if name in callers else None) or find_library(name, folders)
        for name in sorted(names)
    }


def _callers(catalog: Catalog, *kernels: str) -> dict[str, Entry]:
    """A build per library that one of the kernels calls."""
    return {
        entry.configuration.library: entry
        for kernel in kernels
        for entry in catalog.entries
        if kernel in entry.kernels
    }


def _called_file(entry: Entry) -> str | None:
    """The file of the library that the programs of a build report; None where none does."""
    for kernel in entry.kernels.values():
        program = entry.program(kernel.executable)
        if program is None:
            continue
        text = output_of([str(program), "--version"], entry.environment, check=False) or ""
        if match := re.search(r"^library +[^:]+: (.+)$", text, re.MULTILINE):
            return match[1]
    return None
