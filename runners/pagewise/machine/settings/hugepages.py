"""Reserves huge pages while a comparison lasts, when the user asks by name, and restores the pool."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.core.units import bytes_text, parse_bytes
from pagewise.machine.settings.journal import Journal
from pagewise.machine.settings.kinds import Pool
from pagewise.machine.settings.session import kept

PAGE_BYTES = 2 * 1024 * 1024
# Where a kernel names no size (a sweep up to its own largest): the largest sweep of the kernels here is below
# this.
DEFAULT_WORKING_SET = 512 * 1024 * 1024
# Each array is rounded up to whole pages and may be offset by a part of one.
MARGIN_PAGES = 16
# Of larger pages few can be had: enough for four small arrays. Most kernels have fewer, so a shortage is left
# to them to tell.
_LARGE_MARGIN_PAGES = 3


@dataclass(frozen=True)
class Reservation:
    """What was done to the pools: pages before, asked on top of the free ones, and in the pools now."""

    page_bytes: int
    before: int
    needed: int
    now: int


def pages_needed(argument_lists: Iterable[Sequence[str]], page_bytes: int = PAGE_BYTES) -> int:
    """Pages for the largest working set among the kernels' arguments, with a margin."""
    largest = 0
    for arguments in argument_lists:
        sizes = [parse_bytes(value) for value in _working_sets(arguments)]
        largest = max([largest, *(sizes or [DEFAULT_WORKING_SET])])
    return -(-largest // page_bytes) + (MARGIN_PAGES if page_bytes <= PAGE_BYTES else _LARGE_MARGIN_PAGES)


def pools_of(nodes: Iterable[int], root: Path = Path("/"), page_bytes: int = PAGE_BYTES) -> list[Pool]:
    """The pools of these NUMA nodes; where the kernel has none by node, the one of the machine."""
    name = f"hugepages/hugepages-{page_bytes // 1024}kB"
    folders = [root / "sys/devices/system/node" / f"node{node}" / name for node in sorted(set(nodes))]
    there = [Pool(folder) for folder in folders if folder.is_dir()]
    return there or [Pool(root / "sys/kernel/mm" / name)]


@contextmanager
def reserved(pools: Sequence[Pool], pages: int, root: Path = Path("/")) -> Iterator[Reservation]:
    """At least `pages` free pages in each pool while the block lasts; at its end the pools are as before.

    Raises RefusedError when this is not root, or when the kernel grants too few pages of 2 MiB even after it
    compacted the memory; of larger ones it may be fewer than asked. Whatever ends the process, the pools are
    restored.
    """
    if root == Path("/") and os.geteuid() != 0:
        raise RefusedError(
            "only root may reserve huge pages",
            where="--reserve-hugepages",
            remedy="run it as root; or leave it out, and have root do: "
            f"echo {pages} > {pools[0].folder}/nr_hugepages",
        )
    with kept(root) as journal:
        before = sum(pool.total() for pool in pools)
        for pool in pools:
            _grow(pool, pages, root, journal)
        now = sum(pool.total() for pool in pools)
        yield Reservation(pools[0].page_bytes, before, pages * len(pools), now)


def _grow(pool: Pool, pages: int, root: Path, journal: Journal) -> None:
    wanted = str(pool.total() + max(0, pages - pool.free()))
    journal.change(pool, wanted)
    if pool.free() < pages:
        _compact(root)
        journal.change(pool, wanted)
    if pool.free() < pages and pool.page_bytes <= PAGE_BYTES:
        raise RefusedError(
            f"the kernel granted {pool.free()} of {pages} free pages of {bytes_text(pool.page_bytes)} "
            f"({bytes_text(pages * pool.page_bytes)}): memory is short or fragmented",
            where=pool.folder,
            remedy="end other programs, then: sync; echo 3 > /proc/sys/vm/drop_caches; "
            "echo 1 > /proc/sys/vm/compact_memory; or reserve at boot: hugepages=" + str(pages),
        )


def _compact(root: Path) -> None:
    """Has the kernel join free memory into larger pieces; where it may not be asked, the pool stays short."""
    try:
        (root / "proc/sys/vm/compact_memory").write_text("1\n", encoding="ascii")
    except OSError:
        return


def _working_sets(arguments: Sequence[str]) -> Iterator[str]:
    """The working sets that are named, a mini-app's memory, those of `--sweep working-set=64MiB,1GiB` too."""
    for name, value in _pairs(arguments):
        if name in ("--working-set", "--memory"):
            yield value
        elif name == "--sweep" and value.startswith("working-set="):
            yield from filter(None, value.removeprefix("working-set=").split(","))


def _pairs(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Option and value, written as `--name value` or `--name=value`."""
    for number, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if equals:
            yield name, value
        elif number + 1 < len(arguments):
            yield name, arguments[number + 1]
