"""Compiles the libraries that are preloaded into programs: once for each source, compiler and machine."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pagewise.errors import SetupError
from pagewise.paths import project_root

_HERE = Path(__file__).parent
_OPTIONS = ("-std=c11", "-O2", "-fPIC", "-shared")
_SECONDS = 60


@dataclass(frozen=True)
class Libraries:
    """The compiled ones. remap: asks for huge pages. snapshot: tells memory at the end of untimed runs."""

    remap: Path
    snapshot: Path


def find_compiler(environ: Mapping[str, str] = os.environ) -> list[str] | None:
    """The C compiler: CC, else the first of cc, gcc, clang on PATH; None where there is none."""
    named = shlex.split(environ.get("CC", ""))
    candidates = [named] if named else [["cc"], ["gcc"], ["clang"]]
    return next((one for one in candidates if shutil.which(one[0], path=environ.get("PATH"))), None)


def compiled(compiler: list[str], environ: Mapping[str, str] = os.environ) -> Libraries:
    """Compiles what is not there yet. Raises SetupError with what the compiler said."""
    folder = _folder(environ)
    return Libraries(
        _compiled(_HERE / "remap.c", compiler, folder), _compiled(_HERE / "snapshot.c", compiler, folder)
    )


def _folder(environ: Mapping[str, str]) -> Path:
    """In the checkout's state where there is one, else in the user's cache."""
    state = project_root(environ) / ".pagewise"
    if state.is_dir() and os.access(state, os.W_OK):
        return state / "preload"
    cache = environ.get("XDG_CACHE_HOME") or str(Path(environ.get("HOME", tempfile.gettempdir())) / ".cache")
    return Path(cache) / "pagewise" / "preload"


def _compiled(source: Path, compiler: list[str], folder: Path) -> Path:
    key = "\0".join((*compiler, *_OPTIONS, platform.machine())).encode() + source.read_bytes()
    made = folder / f"pagewise-{source.stem}-{hashlib.sha256(key).hexdigest()[:16]}.so"
    if made.exists():
        return made
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as aside:
            fresh = Path(aside) / made.name
            command = [*compiler, *_OPTIONS, str(source), "-o", str(fresh), "-ldl"]
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
            )
            if done.returncode != 0:
                raise SetupError(
                    f"the library to be preloaded does not compile:\n{done.stderr.strip()}",
                    where=source,
                    remedy="name another C compiler: CC=gcc",
                )
            fresh.chmod(0o755)
            fresh.replace(made)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise SetupError(
            f"the library to be preloaded cannot be made: {fault}",
            where=folder,
            remedy="let this user write there, or set XDG_CACHE_HOME to another folder",
        ) from fault
    return made
