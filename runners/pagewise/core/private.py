"""Folders that no other user can write to: for files that are executed, loaded or trusted later."""

from __future__ import annotations

import os
import pwd
import stat
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def is_private(path: Path) -> bool:
    """Whether only this user and root can change or replace a file or folder."""
    try:
        real = path.resolve(strict=True)
        return all(_is_safe(place, inside=place == real) for place in (real, *real.parents))
    except (OSError, RuntimeError):
        return False


def _is_safe(place: Path, *, inside: bool) -> bool:
    state = place.lstat()
    # In a folder such as /tmp others may add files, but cannot replace ours.
    is_sticky = not inside and bool(state.st_mode & stat.S_ISVTX)
    return state.st_uid in (os.geteuid(), 0) and (is_sticky or not state.st_mode & _OTHERS_WRITE)


def make_private(folder: Path) -> bool:
    """Creates a folder for this user, with its parents; returns whether it is private and writable."""
    try:
        for place in (*reversed(folder.parents), folder):
            if not place.is_dir():
                place.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return False
    return is_private(folder) and os.access(folder, os.W_OK)


def user_folder(variable: str, below_home: str, environ: Mapping[str, str] = os.environ) -> Path | None:
    """A base folder of the XDG specification: named by the variable, or below the home folder.

    Without HOME, the home folder is that of the password database; None for a user whom it does not list.
    """
    named, home = Path(environ.get(variable, "")), Path(environ.get("HOME", ""))
    if named.is_absolute():
        return named
    if not home.is_absolute():
        try:
            home = Path(pwd.getpwuid(os.geteuid()).pw_dir)
        except KeyError:
            return None
    return home / below_home


def temporary_folder() -> Path:
    """A private folder that is removed when this process ends. Raises OSError."""
    return Path(_temporary().name)


@cache
def _temporary() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="pagewise-private-")
