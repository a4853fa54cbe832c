"""Production runs: the launcher `pagewise-exec` (exec.c), installed or compiled, and modules of policies."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.core.fields import Natural, Share
from pagewise.core.structure import Limits
from pagewise.stack.c_code import Product, can_be_preloaded, compile_code, find_compiler
from pagewise.stack.paths import project_root
from pagewise.workloads.program.policy import IN_MODULES, module_of

NAME = "pagewise-exec"
#: The folder of modulefiles in an installation.
MODULES = "share/pagewise/modulefiles"
_FOLDER = "lib/pagewise"
_HERE = Path(__file__).parent
# The libraries that the launcher preloads (macros of exec.c).
_LIBRARIES = {
    "PAGEWISE_REMAP": "remap.c",
    "PAGEWISE_REPORT": "report.c",
    "PAGEWISE_SELECTED": "selected.c",
}
_LIBRARY = Product(
    "the library to be preloaded",
    "preload",
    ("-std=c11", "-O2", "-fno-optimize-sibling-calls", "-fPIC", "-shared"),
    suffix=".so",
)
_LAUNCHER = Product("the launcher pagewise-exec", _LIBRARY.kind, ("-std=c11", "-O2"))


@dataclass(frozen=True)
class KindRow:
    """Memory of a kind. eligible_bytes: aligned and large enough for huge pages."""

    resident_bytes: Natural
    huge_bytes: Natural
    eligible_bytes: Natural


@dataclass(frozen=True)
class SelectedMemory:
    """The memory that the policy `where` selects. allocated_bytes: most at one time, with static objects."""

    allocated_bytes: Natural
    resident_bytes: Natural
    huge_bytes: Natural


@dataclass(frozen=True)
class ExecRecord:
    """The pages of a process at its end (exec --record), one object per line."""

    schema: Literal["pagewise.exec/1"]
    policy: str
    program: Annotated[str, "the program file of the process"]
    host: str
    process: Annotated[int, Limits(1)]
    rank: Annotated[Natural | None, "the MPI rank, null without one"]
    seconds: Annotated[float, Limits(0)]
    page_size_bytes: Annotated[int, Limits(1), "of the policy's huge pages"]
    met: Annotated[bool | None, "80 % on huge pages, for none and reuse none; null: unobserved"]
    coverage: Annotated[Share, "of the policy's memory on huge pages, of several parts the least"]
    peak_bytes: Natural
    observed_bytes: Annotated[Natural, "in memory at the moment for which the kinds are"]
    kinds: Mapping[Literal["heap", "anonymous", "bss", "data", "stack", "text", "file", "shared"], KindRow]
    unobserved_processes: Annotated[Natural, "with memory, ended by a signal: without a record"] = 0
    selected: Annotated[SelectedMemory | None, "null: another policy"] = None


def find_launcher() -> Path:
    """The launcher next to this program, as Spack installs it, else one compiled on first use.

    Without a compiler: the one that the set-up installed in this checkout. Raises SetupError.
    """
    installed = Path(sys.argv[0]).resolve().with_name(NAME)
    if os.access(installed, os.X_OK):
        return installed
    set_up = project_root() / ".pagewise" / "exec" / "bin" / NAME
    if find_compiler() is None and os.access(set_up, os.X_OK):
        return set_up
    compiler = _compiler()
    names = {macro: compile_code(_HERE / file, _LIBRARY, compiler).name for macro, file in _LIBRARIES.items()}
    macros = [f'-D{macro}="{name}"' for macro, name in names.items()]
    return compile_code(_HERE / "exec.c", replace(_LAUNCHER, options=(*_LAUNCHER.options, *macros)), compiler)


def install(prefix: Path) -> Path:
    """Installs the launcher in `bin` of a folder and the modules in `share`; returns the launcher.

    The folder can be moved, and needs no Python. Raises SelectionError, SetupError, RefusedError.
    """
    if not can_be_preloaded(prefix):
        raise SelectionError(
            "the loader splits LD_PRELOAD at spaces and colons: programs cannot load libraries from here",
            where=f"--install {prefix}",
            remedy="install into a folder whose path contains neither",
        )
    compiler = _compiler()
    launcher = prefix / "bin" / NAME
    built = compile_code(_HERE / "exec.c", _LAUNCHER, compiler)
    files = {launcher: built.read_bytes()}
    for name in _LIBRARIES.values():
        made = prefix / _FOLDER / Path(name).with_suffix(".so")
        files[made] = compile_code(_HERE / name, _LIBRARY, compiler).read_bytes()
    texts = {
        prefix / MODULES / f"{module_of(policy)}.lua": module_text(built, policy) for policy in IN_MODULES
    }
    try:
        for file, content in (*files.items(), *texts.items()):
            _make_folder(file.parent)
            # A program that runs from it keeps its file.
            fresh = file.with_name(f".{file.name}.new")
            fresh.write_bytes(content)
            fresh.chmod(0o755 if file in files else 0o644)
            fresh.replace(file)
    except OSError as fault:
        raise RefusedError(f"the launcher cannot be installed: {fault}", where=prefix) from fault
    return launcher


def module_text(launcher: Path, policy: str) -> bytes:
    """The module of a policy, for Lmod."""
    return subprocess.run([launcher, "--module", policy], stdout=subprocess.PIPE, check=True).stdout


def _make_folder(folder: Path) -> None:
    """Creates a folder that all users may enter, with its parents, whatever the umask. Raises OSError."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def _compiler() -> list[str]:
    compiler = find_compiler()
    if compiler is None:
        raise SetupError(
            "there is no C compiler, and the launcher is compiled on first use",
            remedy="apt-get install gcc, or name one: CC=...",
        )
    return compiler
