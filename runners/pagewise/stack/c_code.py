"""Compiles C sources of pagewise on first use: once for each source, compiler, options and machine."""

from __future__ import annotations

import hashlib
import os
import platform
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import SetupError
from pagewise.core.private import is_private, make_private, temporary_folder, user_folder
from pagewise.stack.paths import project_root

_SECONDS = 60


@dataclass(frozen=True)
class Product:
    """What is made of sources. what: in words, for errors. kind: the folder's name.

    options: of the compiler. libraries: after the source. suffix: of the file that is made.
    """

    what: str
    kind: str
    options: Sequence[str]
    libraries: Sequence[str] = ("-ldl",)
    suffix: str = ""


def find_compiler(environ: Mapping[str, str] = os.environ) -> list[str] | None:
    """The C compiler: CC, else the first of cc, gcc, clang on PATH; None where there is none."""
    named = shlex.split(environ.get("CC", ""))
    candidates = [named] if named else [["cc"], ["gcc"], ["clang"]]
    return next((one for one in candidates if shutil.which(one[0], path=environ.get("PATH"))), None)


def compiled(
    source: Path, product: Product, compiler: Sequence[str], environ: Mapping[str, str] = os.environ
) -> Path:
    """The file that is made of a source, and the headers beside it; compiled where it is not there yet.

    A file that another user owns or can replace is not used. Raises SetupError with what the compiler said.
    """
    key = "\0".join((*compiler, *product.options, *product.libraries, platform.machine())).encode()
    for file in (source, *sorted(source.parent.glob("*.h"))):
        key += file.read_bytes()
    name = f"pagewise-{source.stem}-{hashlib.sha256(key).hexdigest()[:16]}{product.suffix}"
    folder = None
    try:
        folder = _folder(product.kind, environ)
        made = folder / name
        if _is_ours(made):
            return made
        with tempfile.TemporaryDirectory(dir=folder) as aside:
            fresh = Path(aside) / made.name
            command = [*compiler, *product.options, str(source), "-o", str(fresh), *product.libraries]
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False
            )
            if done.returncode != 0:
                raise SetupError(
                    f"{product.what} does not compile:\n{done.stderr.strip()}",
                    where=source,
                    remedy="name another C compiler: CC=gcc",
                )
            fresh.chmod(0o755)
            fresh.replace(made)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise SetupError(
            f"{product.what} cannot be made: {fault}",
            where=folder,
            remedy="set XDG_CACHE_HOME to a folder of this user with free space",
        ) from fault
    return made


def _folder(kind: str, environ: Mapping[str, str]) -> Path:
    """In the checkout's state, else in the user's cache, else for this process: the first that is private.

    Raises OSError.
    """
    state, cache = project_root(environ) / ".pagewise", user_folder("XDG_CACHE_HOME", ".cache", environ)
    candidates = [state / kind] if state.is_dir() else []
    if cache is not None:
        candidates.append(cache / "pagewise" / kind)
    for folder in candidates:
        if make_private(folder):
            return folder.resolve()
    return temporary_folder()


def _is_ours(file: Path) -> bool:
    """Whether a compiled file is there that this user made and nobody else can have changed."""
    if file.is_symlink() or not file.is_file():
        return False
    return file.stat().st_uid == os.geteuid() and is_private(file)
