"""Transparent huge pages of one size for a run alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.machine.settings.kinds import Switch
from pagewise.machine.settings.session import kept

_FOLDER = Path("sys/kernel/mm/transparent_hugepage")


@contextmanager
def only_size(size: int | None, root: Path = Path("/")) -> Iterator[None]:
    """Programs that ask are given pages of this size and none of a larger one while the block lasts (root).

    Does nothing without a size. Raises RefusedError.
    """
    if size is None:
        yield
        return
    if root == Path("/") and os.geteuid() != 0:
        raise RefusedError(
            "only root may switch transparent huge pages",
            where="--set-thp-sizes",
            remedy="run it as root, or leave it out: sizes that are on do not need it",
        )
    switches = {
        int(folder.name[10:-2]) * 1024: Switch(folder / "enabled")
        for folder in (root / _FOLDER).glob("hugepages-*kB")
        if (folder / "enabled").exists()
    }
    with kept(root) as journal:
        for of_size, switch in sorted(switches.items()):
            if of_size >= size:
                journal.change(switch, "madvise" if of_size == size else "never")
        yield


def gauge(size: int, root: Path = Path("/")) -> Path:
    """Where the kernel tells how many pages of this size are in use."""
    return root / _FOLDER / f"hugepages-{size // 1024}kB" / "stats" / "nr_anon"


def pmd_bytes(root: Path = Path("/")) -> int:
    """The size of the pages that smaps calls AnonHugePages."""
    try:
        return int((root / _FOLDER / "hpage_pmd_size").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return 2 << 20
