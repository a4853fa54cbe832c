"""Writes files of a result in one step, and only inside its folder, even if there are links."""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path, PurePath

from pagewise.core.text import printable

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
    with _opened(folder, folders) as inside:
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
def _opened(folder: Path, below: Iterable[str]) -> Iterator[int]:
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
