"""Transparent huge pages of one size for a run alone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pagewise.errors import RefusedError
from pagewise.settings import kept
from pagewise.thp import Switch

_FOLDER = Path("sys/kernel/mm/transparent_hugepage")


@contextmanager
def only_size(size: int | None, root: Path = Path("/")) -> Iterator[None]:
    """Has pages of this size given to who asks, and none of a larger one, while the block lasts (root).

    Does nothing without a size. Raises RefusedError.
    """
    if size is None:
        yield
        return
    if root == Path("/") and os.geteuid() != 0:
        raise RefusedError(
            "only root may switch transparent huge pages",
            where="--set-thp-sizes",
            remedy="run it as root, or leave it out: sizes that are on need it not",
        )
    switches = {
        int(folder.name[10:-2]) * 1024: Switch(folder / "enabled")
        for folder in (root / _FOLDER).glob("hugepages-*kB")
        if (folder / "enabled").exists()
    }
    changed = [switch for one, switch in sorted(switches.items()) if one >= size]
    with kept(changed):
        for one, switch in sorted(switches.items()):
            if one >= size:
                switch.put("madvise" if one == size else "never")
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
