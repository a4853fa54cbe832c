"""Transparent huge pages of one size for a run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.machine.host import THP
from pagewise.machine.settings.kinds import Switch
from pagewise.machine.settings.session import kept

_FOLDER = Path("/") / THP


def pages_in_use(size: int) -> Path:
    """The file in which the kernel counts the transparent huge pages of this size that are in use."""
    return _FOLDER / f"hugepages-{size // 1024}kB" / "stats" / "nr_anon"


@contextmanager
def only_size(size: int | None) -> Iterator[None]:
    """Programs that ask get transparent huge pages of this size and no larger one in the block (root).

    Does nothing without a size. Raises RefusedError.
    """
    if size is None:
        yield
        return
    if os.geteuid() != 0:
        raise RefusedError(
            "only root may switch transparent huge pages",
            where="--set-thp-sizes",
            remedy="run it as root, or omit it: sizes that are switched on do not need it",
        )
    switches = {
        int(folder.name[10:-2]) * 1024: Switch(folder / "enabled")
        for folder in _FOLDER.glob("hugepages-*kB")
        if (folder / "enabled").exists()
    }
    with kept() as journal:
        for of_size, switch in sorted(switches.items()):
            if of_size >= size:
                journal.change(switch, "madvise" if of_size == size else "never")
        yield
