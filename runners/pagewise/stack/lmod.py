"""Reads the environments of modules by `module load` in a clean shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import SetupError
from pagewise.stack.commands import output_of, run_to_end
from pagewise.stack.setup import SetupFacts

_LOADER = Path(__file__).with_name("load_modules.bash")
_KEPT = ("HOME", "USER", "LOGNAME", "TMPDIR", "TERM")
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USUAL_PLACES = ("/usr/share/lmod/lmod", "/usr/local/lmod/lmod", "/opt/lmod/lmod", "/opt/apps/lmod/lmod")
_SHELL_STATE = ("BASH_FUNC_", "_ModuleTable", "__LMOD", "SHLVL", "PWD", "OLDPWD", "_=")
_SECONDS_PER_LOAD = 30


@dataclass(frozen=True)
class Loaded:
    """A loaded module: its environment, or None with Lmod's message."""

    name: str
    environment: dict[str, str] | None
    message: str


def find_init(facts: SetupFacts | None) -> Path:
    """Lmod's init file for bash: the setup's, by LMOD_PKG, the one that Spack installed, or in a usual place.

    Raises SetupError.
    """
    candidates = [Path((facts or SetupFacts()).lmod.init or "/nonexistent")]
    packages = (os.environ.get("LMOD_PKG"), os.environ.get("PAGEWISE_LMOD"))
    candidates += [Path(package) / "init" / "bash" for package in packages if package]
    candidates += [Path(place) / "init" / "bash" for place in USUAL_PLACES]
    for file in candidates:
        if file.is_file():
            return file
    raise SetupError(
        "Lmod is missing; configurations are read by `module load`",
        where=", ".join(str(file.parent.parent) for file in candidates[1:]),
        remedy="apt-get install lmod (or: make setup; or: spack install lmod), or set LMOD_PKG to its folder",
    )


def load_each(init: Path, tree: Path, names: Sequence[str]) -> list[Loaded]:
    """Loads each module separately, in a clean environment with this module tree only.

    Raises SetupError when Lmod does not work. For a module that does not load, `message` has the reason.
    """
    with tempfile.TemporaryDirectory(prefix="pagewise-modules-") as folder:
        command = [*_bash(), str(_LOADER), str(init), str(tree.absolute()), folder, *names]
        try:
            shell = run_to_end(command, clean_environment(), _SECONDS_PER_LOAD * (len(names) + 1))
        except subprocess.TimeoutExpired as fault:
            raise SetupError("Lmod does not end", where=init, remedy="try `module load` by hand") from fault
        if shell.returncode != 0:
            raise SetupError(f"Lmod does not start: {shell.stderr.strip()}", where=init, remedy="make setup")
        return [_load(name, Path(folder), number) for number, name in enumerate(names)]


def clean_environment() -> dict[str, str]:
    """The environment of a new login, without the variables that the user's shell added since.

    Lmod's cache is off, so that a module tree that has just been replaced is read.
    """
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {"PATH": _USUAL_PATH, "LANG": "C.UTF-8", "LMOD_IGNORE_CACHE": "yes", "LMOD_COLORIZE": "no", **kept}


def version(init: Path) -> str | None:
    """Lmod's version, None if it reports none."""
    script = 'source "$1" >/dev/null 2>&1; printf %s "${LMOD_VERSION:-}"'
    return output_of([*_bash(), "-c", script, "bash", str(init)], clean_environment(), check=False) or None


def _bash() -> tuple[str, ...]:
    program = shutil.which("bash", path=_USUAL_PATH) or shutil.which("bash")
    if program is None:
        raise SetupError("bash is missing; Lmod needs it", remedy="apt-get install bash")
    return program, "--noprofile", "--norc"


def _load(name: str, folder: Path, number: int) -> Loaded:
    errors, variables = folder / f"{number}.err", folder / f"{number}.env"
    message = errors.read_text(encoding="utf-8", errors="replace").strip() if errors.exists() else ""
    if not variables.exists():
        return Loaded(name, None, message or "module load failed without a message")
    entries = filter(None, variables.read_bytes().decode(errors="surrogateescape").split("\0"))
    environment = dict(entry.split("=", 1) for entry in entries if not entry.startswith(_SHELL_STATE))
    if name not in environment.get("LOADEDMODULES", "").split(":"):
        return Loaded(name, None, message or "Lmod reports that it is not loaded")
    return Loaded(name, environment, message)
