"""Reserves 2 MiB pages while a comparison lasts, when the user asks by name; puts the pool back."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pagewise.errors import Interrupted, RefusedError
from pagewise.host import numa_nodes, read
from pagewise.units import bytes_text, parse_bytes

PAGE_BYTES = 2 * 1024 * 1024
_POOL = "hugepages/hugepages-2048kB"
# Where a kernel names no size (a sweep up to its own largest): the largest sweep of the kernels here is below
# this.
DEFAULT_WORKING_SET = 512 * 1024 * 1024
# Each array is rounded up to whole pages and may be offset by a part of one.
MARGIN_PAGES = 16


@dataclass(frozen=True)
class Pool:
    """One pool of 2 MiB pages: a NUMA node's, or the machine's where the kernel has no nodes."""

    folder: Path

    def total(self) -> int:
        """Pages in the pool, free or not."""
        return self._number("nr_hugepages")

    def free(self) -> int:
        """Pages that nobody uses."""
        return self._number("free_hugepages")

    def resize(self, pages: int) -> None:
        """Asks for this many pages; the kernel may grant fewer. Raises RefusedError."""
        file = self.folder / "nr_hugepages"
        try:
            file.write_text(f"{pages}\n", encoding="ascii")
        except OSError as fault:
            raise RefusedError(
                f"the page pool cannot be changed: {fault.strerror}",
                where=file,
                remedy=f"run as root, or have root do it once: echo {pages} > {file}",
            ) from fault

    def _number(self, name: str) -> int:
        text = read(self.folder / name)
        if text is None or not text.isdigit():
            raise RefusedError(
                "this kernel offers no pool of 2 MiB pages",
                where=self.folder / name,
                remedy="a kernel with CONFIG_HUGETLBFS, or leave --reserve-hugepages out",
            )
        return int(text)


@dataclass(frozen=True)
class Reservation:
    """What was done to the pools: pages before, asked on top of the free ones, and in the pools now."""

    before: int
    needed: int
    now: int


def pages_needed(argument_lists: Iterable[Sequence[str]]) -> int:
    """Pages for the largest working set among the kernels' arguments, with a margin."""
    largest = 0
    for arguments in argument_lists:
        sizes = [parse_bytes(value) for value in _working_sets(arguments)]
        largest = max([largest, *(sizes or [DEFAULT_WORKING_SET])])
    return -(-largest // PAGE_BYTES) + MARGIN_PAGES


def pools_of(cpus: Iterable[int], root: Path = Path("/")) -> list[Pool]:
    """The pools that processes on these CPUs take pages from first: those of their NUMA nodes."""
    wanted = set(cpus)
    folders = [
        root / "sys/devices/system/node" / f"node{node['node']}" / _POOL
        for node in numa_nodes(root)
        if wanted & set(node["cpus"])
    ]
    there = [Pool(folder) for folder in folders if folder.is_dir()]
    return there or [Pool(root / "sys/kernel/mm" / _POOL)]


@contextmanager
def reserved(pools: Sequence[Pool], pages: int, root: Path = Path("/")) -> Iterator[Reservation]:
    """Has at least `pages` free pages in each pool while the block lasts; the pools are as before at its end.

    Raises RefusedError when this is not root, or when the kernel grants too few even after it compacted the
    memory. An exception or a signal turned into one ends the block like any other end.
    """
    if root == Path("/") and os.geteuid() != 0:
        raise RefusedError(
            "only root may reserve huge pages",
            where="--reserve-hugepages",
            remedy="run it as root; or leave it out, and have root do: "
            f"echo {pages} > {pools[0].folder}/nr_hugepages",
        )
    before = [pool.total() for pool in pools]
    try:
        for pool in pools:
            _grow(pool, pages, root)
        yield Reservation(sum(before), pages * len(pools), sum(pool.total() for pool in pools))
    finally:
        try:
            _put_back(pools, before)
        except Interrupted:
            # The one signal that is turned into an exception (see signals.py) came just now: begin again.
            _put_back(pools, before)
            raise


def _grow(pool: Pool, pages: int, root: Path) -> None:
    wanted = pool.total() + max(0, pages - pool.free())
    pool.resize(wanted)
    if pool.free() < pages:
        _compact(root)
        pool.resize(wanted)
    if pool.free() < pages:
        raise RefusedError(
            f"the kernel granted {pool.free()} of {pages} free pages of 2 MiB "
            f"({bytes_text(pages * PAGE_BYTES)}): memory is short or fragmented",
            where=pool.folder,
            remedy="end other programs, then: sync; echo 3 > /proc/sys/vm/drop_caches; "
            "echo 1 > /proc/sys/vm/compact_memory; or reserve at boot: hugepages=" + str(pages),
        )


def _put_back(pools: Sequence[Pool], totals: Sequence[int]) -> None:
    for pool, total in zip(pools, totals, strict=True):
        pool.resize(total)


def _compact(root: Path) -> None:
    """Has the kernel join free memory into larger pieces; where it may not be asked, the pool stays short."""
    try:
        (root / "proc/sys/vm/compact_memory").write_text("1\n", encoding="ascii")
    except OSError:
        return


def _working_sets(arguments: Sequence[str]) -> Iterator[str]:
    """The working sets that are named, those of `--sweep working-set=64MiB,1GiB` too."""
    for name, value in _pairs(arguments):
        if name == "--working-set":
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
