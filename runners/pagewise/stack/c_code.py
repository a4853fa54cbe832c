"""Compiles C sources of pagewise on first use: once per source, compiler, options and machine."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import SetupError
from pagewise.core.files import is_private, make_private, temporary_folder, user_folder
from pagewise.stack.commands import run_to_end
from pagewise.stack.paths import project_root

_SECONDS = 60


@dataclass(frozen=True)
class Product:
    """A file to compile. message: its name in errors. kind: the name of its folder. suffix: of its name.

    options: the compiler's before the source. libraries: those after the source.
    """

    message: str
    kind: str
    options: Sequence[str]
    libraries: Sequence[str] = ("-ldl",)
    suffix: str = ""


def find_compiler() -> list[str] | None:
    """The C compiler: CC, else the first of cc, gcc, clang on PATH; None if all are missing."""
    named = shlex.split(os.environ.get("CC", ""))
    candidates = [named] if named else [["cc"], ["gcc"], ["clang"]]
    return next((words for words in candidates if shutil.which(words[0], path=os.environ.get("PATH"))), None)


def compile_code(source: Path, product: Product, compiler: Sequence[str]) -> Path:
    """The file that a source and its headers compile to; compiled if it is missing.

    A file that another user owns or can replace is not used. Raises SetupError with the compiler's errors.
    """
    key = "\0".join((*compiler, *product.options, *product.libraries, platform.machine())).encode()
    for file in (source, *sorted(source.parent.glob("*.h"))):
        key += file.read_bytes()
    name = f"pagewise-{source.stem}-{hashlib.sha256(key).hexdigest()[:16]}{product.suffix}"
    folder = None
    try:
        folder = _folder(product.kind)
        made = folder / name
        if _is_pagewise(made):
            return made
        with tempfile.TemporaryDirectory(dir=folder) as aside:
            fresh = Path(aside) / made.name
            command = [*compiler, *product.options, str(source), "-o", str(fresh), *product.libraries]
            done = run_to_end(command, seconds=_SECONDS)
            if done.returncode != 0:
                raise SetupError(
                    f"{product.message} does not compile:\n{done.stderr.strip()}",
                    where=source,
                    remedy="name another C compiler: CC=gcc",
                )
            fresh.chmod(0o755)
            fresh.replace(made)
    except (OSError, subprocess.TimeoutExpired) as fault:
        raise SetupError(
            f"{product.message} cannot be compiled: {fault}",
            where=folder,
            remedy="set XDG_CACHE_HOME to a folder of this user with free space, without spaces and colons",
        ) from fault
    return made


def _folder(kind: str) -> Path:
    """The first private folder: in the checkout's state, in the user's cache, or one for this process.

    Folders are omitted whose files cannot be preloaded. Raises OSError.
    """
    state, cache = project_root() / ".pagewise", user_folder("XDG_CACHE_HOME", ".cache")
    candidates = [state / kind] if state.is_dir() else []
    if cache is not None:
        candidates.append(cache / "pagewise" / kind)
    for folder in candidates:
        if can_be_preloaded(folder) and make_private(folder):
            # Also for programs that change their user, as servers do.
            folder.chmod(0o755)
            return folder.resolve()
    folder = temporary_folder()
    if not can_be_preloaded(folder):
        raise OSError(f"{folder}: the loader splits LD_PRELOAD at spaces and colons")
    return folder


def can_be_preloaded(path: Path) -> bool:
    """Whether LD_PRELOAD can name a file with this path or in this folder: the loader splits it."""
    return re.search("[ :]", str(path.resolve())) is None


def _is_pagewise(file: Path) -> bool:
    """Whether this is a compiled file of this user, which no other user can have changed."""
    if file.is_symlink() or not file.is_file():
        return False
    return file.stat().st_uid == os.geteuid() and is_private(file)
