"""The launcher of production runs, `pagewise-exec` (exec.c), and its libraries: installed or compiled."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from pagewise.core.errors import RefusedError, SetupError
from pagewise.stack.c_code import Product, compiled, find_compiler
from pagewise.workloads.program.environment import LIBRARY

NAME = "pagewise-exec"
_HERE = Path(__file__).parent
# The libraries that the launcher preloads (macros of exec.c).
_LIBRARIES = {"PAGEWISE_REMAP": "remap.c", "PAGEWISE_REPORT": "report.c"}
_LAUNCHER = Product("the launcher pagewise-exec", LIBRARY.kind, ("-std=c11", "-O2"))


def find_launcher() -> Path:
    """The launcher beside this program, as Spack installs it, else one compiled on first use.

    Raises SetupError.
    """
    installed = Path(sys.argv[0]).resolve().with_name(NAME)
    if os.access(installed, os.X_OK):
        return installed
    compiler = _compiler()
    names = {macro: compiled(_HERE / file, LIBRARY, compiler).name for macro, file in _LIBRARIES.items()}
    macros = [f'-D{macro}="{name}"' for macro, name in names.items()]
    return compiled(_HERE / "exec.c", replace(_LAUNCHER, options=(*_LAUNCHER.options, *macros)), compiler)


def install_launcher(prefix: Path) -> Path:
    """Installs the launcher in `bin` of a folder, which can be moved; it needs no Python.

    Raises SetupError, RefusedError.
    """
    compiler = _compiler()
    launcher = prefix / "bin" / NAME
    files = {launcher: compiled(_HERE / "exec.c", _LAUNCHER, compiler)}
    for name in _LIBRARIES.values():
        made = prefix / "lib" / "pagewise" / Path(name).with_suffix(".so")
        files[made] = compiled(_HERE / name, LIBRARY, compiler)
    try:
        for file, source in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            # A program that runs from it keeps its file.
            fresh = file.with_name(f".{file.name}.new")
            shutil.copyfile(source, fresh)
            fresh.chmod(0o755)
            fresh.replace(file)
    except OSError as fault:
        raise RefusedError(f"the launcher cannot be installed: {fault}", where=prefix) from fault
    return launcher


def _compiler() -> list[str]:
    compiler = find_compiler()
    if compiler is None:
        raise SetupError(
            "there is no C compiler, and the launcher is compiled on first use",
            remedy="apt-get install gcc, or name one: CC=...",
        )
    return compiler
