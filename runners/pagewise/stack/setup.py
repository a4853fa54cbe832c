"""The facts in `.pagewise/setup.json`, which setup/detect.py writes."""

from __future__ import annotations

from dataclasses import dataclass

from pagewise.core.errors import FormatError
from pagewise.core.reading import parse_json, read_file
from pagewise.core.structure import from_data
from pagewise.stack.paths import project_root


@dataclass(frozen=True)
class Spack:
    """The pinned Spack, or why it is unavailable and what to do."""

    available: bool = False
    root: str | None = None
    version: str | None = None
    tree: str | None = None
    packages_commit: str | None = None
    reason: str | None = None
    remedy: str | None = None


@dataclass(frozen=True)
class Proof:
    """A test program that a compiler compiled, and the result of its run."""

    program: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Compiler:
    """A C and Fortran compiler; `reason` is why it did not enter the environments."""

    name: str
    version: str
    entered: bool
    c: str | None = None
    fortran: str | None = None
    reason: str | None = None
    proof: tuple[Proof, ...] = ()


@dataclass(frozen=True)
class Missing:
    """A system package that could not be installed."""

    package: str
    needed_for: str
    remedy: str


@dataclass(frozen=True)
class Lmod:
    """Lmod's init file for bash."""

    init: str | None = None


@dataclass(frozen=True)
class SetupFacts:
    """The content of the file."""

    spack: Spack = Spack()
    compilers: tuple[Compiler, ...] = ()
    missing: tuple[Missing, ...] = ()
    lmod: Lmod = Lmod()


def setup_facts() -> SetupFacts | None:
    """The facts, None before the setup ran. Raises FormatError for other content."""
    file = project_root() / ".pagewise" / "setup.json"
    try:
        return from_data(SetupFacts, parse_json(read_file(file)), ignored="null")
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as fault:
        raise FormatError(
            f"the facts of the setup cannot be read: {fault}", where=file, remedy="make setup"
        ) from fault
