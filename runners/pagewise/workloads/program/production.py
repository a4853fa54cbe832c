"""Production runs: the launcher `pagewise-exec` (exec.c), installed or compiled, and modules of policies."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.core.node_state import ProcessThp
from pagewise.stack.c_code import Product, can_be_preloaded, compiled, find_compiler
from pagewise.stack.paths import project_root
from pagewise.workloads.program.environment import LIBRARY
from pagewise.workloads.program.policy import IN_MODULES, Policy, parse_policy
from pagewise.workloads.program.table import LISTINGS, Chosen, variable_names

NAME = "pagewise-exec"
#: The folder of modulefiles in an installation.
MODULES = "share/pagewise/modulefiles"
#: What the preloaded library refuses where the launcher's refusal is not inherited (remap.c).
REFUSALS: Mapping[ProcessThp, list[str]] = {
    "allowed": [],
    "advised": ["refuse-unadvised"],
    "refused": ["refuse"],
}
_FOLDER = "lib/pagewise"
_SPLIT = "The loader splits LD_PRELOAD at spaces and colons. Move this installation to another folder: "
_HERE = Path(__file__).parent
# The libraries that the launcher preloads (macros of exec.c).
_LIBRARIES = {"PAGEWISE_REMAP": "remap.c", "PAGEWISE_REPORT": "report.c"}
_LAUNCHER = Product("the launcher pagewise-exec", LIBRARY.kind, ("-std=c11", "-O2"))


def find_launcher() -> Path:
    """The launcher beside this program, as Spack installs it, else one compiled on first use.

    Without a compiler: the one that the set-up installed in this checkout. Raises SetupError.
    """
    installed = Path(sys.argv[0]).resolve().with_name(NAME)
    if os.access(installed, os.X_OK):
        return installed
    set_up = project_root() / ".pagewise" / "exec" / "bin" / NAME
    if find_compiler() is None and os.access(set_up, os.X_OK):
        return set_up
    compiler = _compiler()
    names = {macro: compiled(_HERE / file, LIBRARY, compiler).name for macro, file in _LIBRARIES.items()}
    macros = [f'-D{macro}="{name}"' for macro, name in names.items()]
    return compiled(_HERE / "exec.c", replace(_LAUNCHER, options=(*_LAUNCHER.options, *macros)), compiler)


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
    files = {launcher: compiled(_HERE / "exec.c", _LAUNCHER, compiler).read_bytes()}
    for name in _LIBRARIES.values():
        made = prefix / _FOLDER / Path(name).with_suffix(".so")
        files[made] = compiled(_HERE / name, LIBRARY, compiler).read_bytes()
    texts = {}
    for policy in map(parse_policy, IN_MODULES):
        texts[prefix / MODULES / f"{policy.module}.lua"] = module_text(policy).encode()
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


def module_text(policy: Policy) -> str:
    """The module of a policy, for Lmod. It advises on every node, because it may be loaded on another one."""
    chosen = Chosen(policy.parts, policy.size, ("advised", "replaced"))
    actions = [*chosen.actions, *REFUSALS[policy.thp]]
    variables = {
        **chosen.variables,
        **({"PAGEWISE_PRELOAD": ",".join(actions)} if actions else {}),
        "PAGEWISE_EXEC_POLICY": policy.name,
        "PAGEWISE_EXEC_REPORT": "warn",
    }
    removed = [name for name in variable_names() if name not in variables]
    listed = [
        f"append_path({_lua(listing.variable)}, {_lua(entry)}, {_lua(listing.separator)})"
        for listing in LISTINGS
        for entry in chosen.entries(listing)
    ]
    lines = [
        f"whatis({_lua(f'Page policy {policy.name}: {policy.meaning}')})",
        'family("pagewise_pages")',
        # The folder that --install named, wherever it is now.
        f'local libraries = myFileName():gsub("/{MODULES}/.*$", "/{_FOLDER}")',
        'if libraries:find("[ :]") then',
        f"    LmodError({_lua(_SPLIT)} .. libraries)",
        "end",
        *(f"unsetenv({_lua(name)})" for name in removed),
        *(f"setenv({_lua(name)}, {_lua(value)})" for name, value in variables.items()),
        # The last of two values counts.
        *listed,
        'prepend_path("LD_PRELOAD", pathJoin(libraries, "remap.so"))',
        # First, so that it looks before memory is given back.
        'prepend_path("LD_PRELOAD", pathJoin(libraries, "report.so"))',
    ]
    return "\n".join(lines) + "\n"


def _make_folder(folder: Path) -> None:
    """Creates a folder that all users may enter, with its parents, whatever the umask. Raises OSError."""
    if not folder.is_dir():
        _make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        folder.chmod(0o755)


def _lua(text: str) -> str:
    """A string of Lua."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _compiler() -> list[str]:
    compiler = find_compiler()
    if compiler is None:
        raise SetupError(
            "there is no C compiler, and the launcher is compiled on first use",
            remedy="apt-get install gcc, or name one: CC=...",
        )
    return compiler
