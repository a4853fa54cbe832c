"""Learns what a module does by loading it: a real `module load` in a clean shell."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import SetupError
from pagewise.stack.setup import SetupFacts

_LOADER = Path(__file__).with_name("load_modules.bash")
_KEPT = ("HOME", "USER", "LOGNAME", "TMPDIR", "TERM")
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_USUAL_PLACES = ("/usr/share/lmod/lmod", "/usr/local/lmod/lmod", "/opt/lmod/lmod", "/opt/apps/lmod/lmod")
_SHELL_STATE = ("BASH_FUNC_", "_ModuleTable", "__LMOD", "SHLVL", "PWD", "OLDPWD", "_=")
_SECONDS_A_LOAD = 30


@dataclass(frozen=True)
class Loaded:
    """A module after loading: its environment, or None and what Lmod said instead."""

    name: str
    environment: dict[str, str] | None
    message: str


def find_init(facts: SetupFacts | None, environ: Mapping[str, str] = os.environ) -> Path:
    """Lmod's start-up file for bash: the set-up's, by LMOD_PKG, or in a usual place. Raises SetupError."""
    candidates = [Path((facts or SetupFacts()).lmod.init or "/nonexistent")]
    if package := environ.get("LMOD_PKG"):
        candidates.append(Path(package) / "init" / "bash")
    candidates += [Path(place) / "init" / "bash" for place in _USUAL_PLACES]
    for file in candidates:
        if file.is_file():
            return file
    raise SetupError(
        "Lmod is not here, and configurations are learnt by `module load`",
        where=", ".join(str(file.parent.parent) for file in candidates[1:]),
        remedy="apt-get install lmod (or: make setup), or set LMOD_PKG to its folder",
    )


def load_each(init: Path, tree: Path, names: Sequence[str]) -> list[Loaded]:
    """Loads each module by itself, from a clean environment, with this tree as the only one.

    Raises SetupError when Lmod itself does not work; a module that does not load is told in its `message`.
    """
    with tempfile.TemporaryDirectory(prefix="pagewise-modules-") as folder:
        command = [
            _bash(),
            "--noprofile",
            "--norc",
            str(_LOADER),
            str(init),
            str(tree.absolute()),
            folder,
            *names,
        ]
        try:
            shell = subprocess.run(
                command,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_SECONDS_A_LOAD * (len(names) + 1),
                check=False,
            )
        except subprocess.TimeoutExpired as fault:
            raise SetupError(
                "Lmod does not come to an end", where=init, remedy="try `module load` by hand"
            ) from fault
        if shell.returncode != 0:
            raise SetupError(f"Lmod does not start: {shell.stderr.strip()}", where=init, remedy="make setup")
        return [_loaded(name, Path(folder), number) for number, name in enumerate(names)]


def clean_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What a fresh login would have, and nothing that the user's shell added since.

    No cache of Lmod's is used, so that a tree that was just swapped in is seen at once.
    """
    kept = {name: environ[name] for name in _KEPT if name in environ}
    return {"PATH": _USUAL_PATH, "LANG": "C.UTF-8", "LMOD_IGNORE_CACHE": "yes", "LMOD_COLORIZE": "no", **kept}


def version(init: Path) -> str | None:
    """Lmod's version, or None when it does not say."""
    script = 'source "$1" >/dev/null 2>&1; printf %s "${LMOD_VERSION:-}"'
    answer = subprocess.run(
        [_bash(), "--noprofile", "--norc", "-c", script, "bash", str(init)],
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    return answer.stdout.strip() or None


def _bash() -> str:
    found = shutil.which("bash", path=_USUAL_PATH) or shutil.which("bash")
    if found is None:
        raise SetupError("bash is not here, and Lmod needs it", remedy="apt-get install bash")
    return found


def _loaded(name: str, folder: Path, number: int) -> Loaded:
    said = folder / f"{number}.err"
    message = said.read_text(encoding="utf-8", errors="replace").strip() if said.exists() else ""
    written = folder / f"{number}.env"
    if not written.exists():
        return Loaded(name, None, message or "module load failed and said nothing")
    pairs = (
        entry.split("=", 1)
        for entry in written.read_bytes().decode(errors="surrogateescape").split("\0")
        if entry
    )
    environment = {key: value for key, value in pairs if not f"{key}=".startswith(_SHELL_STATE)}
    if name not in environment.get("LOADEDMODULES", "").split(":"):
        return Loaded(name, None, message or "Lmod says that it is not loaded")
    return Loaded(name, environment, message)
