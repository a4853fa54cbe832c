"""Files of a result: written in one step, inside its folder, whatever links are there; private folders.

No other user can write to a private folder: it is for files that are executed, loaded or trusted later.
"""

from __future__ import annotations

import errno
import os
import pwd
import secrets
import stat
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path, PurePath

from pagewise.core.text import printable

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_ASIDE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_inside(folder: Path, name: str, content: str | bytes) -> Path:
    """Writes a file of a folder and returns its path; `name` is relative, and its folders are created.

    Text is written without control characters. A reader sees the old file or the new one. No link below the
    folder is followed: a link with the file's name is replaced, a link instead of a folder is an error.
    Raises OSError.
    """
    *folders, last = _parts(name)
    data = printable(content).encode() if isinstance(content, str) else content
    with _open(folder, folders) as inside:
        aside = f".{last}.{secrets.token_hex(4)}.new"
        descriptor = os.open(aside, _ASIDE, 0o666, dir_fd=inside)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            os.replace(aside, last, src_dir_fd=inside, dst_dir_fd=inside)
        except BaseException:
            with suppress(OSError):
                os.unlink(aside, dir_fd=inside)
            raise
    return folder / name


def _parts(name: str) -> Sequence[str]:
    path = PurePath(name)
    if path.is_absolute() or not path.parts or ".." in path.parts:
        raise OSError(errno.EINVAL, "not the name of a file inside the folder", name)
    return path.parts


@contextmanager
def _open(folder: Path, below: Iterable[str]) -> Iterator[int]:
    """Yields a descriptor of a folder below another."""
    descriptor = os.open(folder, _FOLDER)
    try:
        for name in below:
            with suppress(FileExistsError):
                os.mkdir(name, dir_fd=descriptor)
            deeper = os.open(name, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = deeper
        yield descriptor
    finally:
        os.close(descriptor)


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
