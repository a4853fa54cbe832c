"""Reserves huge pages during a comparison, if the user requests it, and restores the pools."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.core.manifest import Reservation
from pagewise.core.page_policy import size_name
from pagewise.core.units import bytes_text, parse_bytes
from pagewise.machine.host import default_pool_size
from pagewise.machine.memory import SIZES
from pagewise.machine.settings.journal import Journal
from pagewise.machine.settings.kinds import Pool
from pagewise.machine.settings.session import keep_journal

# Of pages up to this size the kernel must grant as many as are requested; larger ones are scarce.
PAGE_BYTES = 2 * 1024 * 1024
# For a program without an option for its size, such as ember with its parameters.
DEFAULT_WORKING_SET = 512 * 1024 * 1024
# Each array is rounded up to whole pages and may be offset by part of a page: this many pages of 2 MiB.
MARGIN_PAGES = 16
# Larger pages are scarce: enough for four small arrays. Most kernels have fewer, and report a shortage.
_LARGE_MARGIN_PAGES = 3


def margin_pages(page_bytes: int) -> int:
    """The pages in addition to those of the working set."""
    if page_bytes > PAGE_BYTES:
        return _LARGE_MARGIN_PAGES
    return MARGIN_PAGES * PAGE_BYTES // page_bytes


def pages_needed(argument_lists: Iterable[Sequence[str]], page_bytes: int) -> int:
    """The number of pages for the largest working set among the kernels' arguments, with a margin."""
    sizes = (list(map(parse_bytes, _working_sets(arguments))) for arguments in argument_lists)
    largest = max((max(each, default=DEFAULT_WORKING_SET) for each in sizes), default=0)
    return -(-largest // page_bytes) + margin_pages(page_bytes)


def pools_of(nodes: Iterable[int], root: Path = Path("/"), page_bytes: int | None = None) -> list[Pool]:
    """The pools of these NUMA nodes, or the machine's pool if the kernel has none by node.

    page_bytes: of which pages (default: those of the default pool).
    """
    page_bytes = page_bytes or default_pool_size(root) or PAGE_BYTES
    name = f"hugepages/hugepages-{page_bytes // 1024}kB"
    folders = [root / "sys/devices/system/node" / f"node{node}" / name for node in sorted(set(nodes))]
    return [Pool(folder) for folder in folders if folder.is_dir()] or [Pool(root / "sys/kernel/mm" / name)]


@contextmanager
def reserve_pages(pools: Sequence[Pool], pages: int, root: Path = Path("/")) -> Iterator[Reservation]:
    """Keeps at least `pages` free pages in each pool during the block, and then restores the pools.

    Raises RefusedError for users other than root, or when the kernel grants too few pages of up to 2 MiB even
    after it compacted the memory; of larger pages it may grant fewer. However the process ends, the pools are
    restored.
    """
    if root == Path("/") and os.geteuid() != 0:
        raise RefusedError(
            "only root may reserve huge pages",
            where="--prepare-pages",
            remedy="run it as root; or omit it, and ask root to run: "
            f"echo {pages} > {pools[0].folder}/nr_hugepages",
        )
    with keep_journal(root) as journal:
        before = sum(pool.total() for pool in pools)
        for pool in pools:
            _grow(pool, pages, root, journal)
        now = sum(pool.total() for pool in pools)
        yield Reservation(pools[0].page_bytes, before, pages * len(pools), now)


def _grow(pool: Pool, pages: int, root: Path, journal: Journal) -> None:
    total = str(pool.total() + max(0, pages - pool.free()))
    journal.change(pool, total)
    if pool.free() < pages:
        # The kernel joins free memory into larger pieces. Without this right, the pool stays too small.
        with suppress(OSError):
            (root / "proc/sys/vm/compact_memory").write_text("1\n", encoding="ascii")
        journal.change(pool, total)
    if pool.free() < pages and pool.page_bytes <= PAGE_BYTES:
        raise RefusedError(
            f"the kernel granted {pool.free()} of {pages} free pages of {bytes_text(pool.page_bytes)} "
            f"({bytes_text(pages * pool.page_bytes)}): memory is short or fragmented",
            where=pool.folder,
            remedy="end other programs, then: sync; echo 3 > /proc/sys/vm/drop_caches; "
            "echo 1 > /proc/sys/vm/compact_memory; or reserve at boot: "
            f"hugepagesz={size_name(pool.page_bytes).upper()} hugepages={pages}",
        )


def _working_sets(arguments: Sequence[str]) -> Iterator[str]:
    """The sizes that arguments set, including those of `--sweep working-set=64MiB,1GiB`."""
    for name, value in _options(arguments):
        if name in SIZES:
            yield value
        elif name == "--sweep" and value.startswith("working-set="):
            yield from filter(None, value.removeprefix("working-set=").split(","))


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The options with values, as `--name value` or `--name=value`."""
    for number, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if equals:
            yield name, value
        elif number + 1 < len(arguments):
            yield name, arguments[number + 1]
