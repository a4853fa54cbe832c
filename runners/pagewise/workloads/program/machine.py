"""What page policies need to know of the machine, and transparent huge pages of one size for a run."""

from __future__ import annotations

import ctypes.util
import mmap
import os
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pagewise.core.errors import RefusedError
from pagewise.core.host import Host
from pagewise.machine.groups import pool_pages_left
from pagewise.machine.host import (
    MOUNT_PROC,
    THP,
    default_pool_size,
    read,
    shows_huge_pages,
    shows_processes,
    thp_size,
)
from pagewise.machine.settings.hugepages import PAGE_BYTES
from pagewise.machine.settings.kinds import Switch
from pagewise.machine.settings.session import kept
from pagewise.machine.settings.thp import supports_advised
from pagewise.stack.c_code import find_compiler
from pagewise.stack.elf import read_elf

# madvise(2), capabilities(7).
_COLLAPSE, _SYS_NICE = 25, 23
_FOLDER = Path("/") / THP
_HUGETLBFS_FILES = ("/usr/lib/libhugetlbfs.so", "/usr/lib64/libhugetlbfs.so")


@dataclass(frozen=True)
class Machine:
    """Page sizes in bytes, modes of transparent huge pages, free pages of pools, and tools.

    modes: by size in bytes, the mode in effect (`always`, `madvise`, `never`). free: free pages by page size.
    settable: whether the user asked to switch sizes for the runs. reserving: whether to reserve pools.
    compiler: whether there is a C compiler, for the preloaded library. hugetlbfs_library: libhugetlbfs' file.
    limits_to_advised: whether the kernel can give huge pages only to memory that a program advises.
    shmem: the mode of transparent huge pages of shared memory, None without such pages. allowed: by page
    size, the pages that control groups leave to this process, where they limit a pool. hidden: whether /sys
    does not show huge pages.
    collapses: why the memory of other processes cannot be moved onto huge pages, None if it can.
    """

    base: int
    pmd: int
    default_pool: int
    modes: Mapping[int, str]
    free: Mapping[int, int]
    settable: bool
    reserving: bool
    compiler: bool
    hugetlbfs_library: str | None
    elf_machine: int
    limits_to_advised: bool
    shmem: str | None = None
    collapses: str | None = None
    allowed: Mapping[int, int] = field(default_factory=dict)
    hidden: bool = False


def read_machine(host: Host, settable: bool, reserving: bool) -> Machine:
    """This machine, of which `host` has been read. Raises RefusedError without /proc."""
    if not shows_processes():
        raise RefusedError("/proc is missing, which shows the memory of programs", remedy=MOUNT_PROC)
    pmd = thp_size() or PAGE_BYTES
    modes: dict[int, str] = {}
    if host.thp is not None:
        for name, mode in host.thp.sizes.items():
            if mode is not None:
                modes[int(name[:-2]) * 1024] = host.thp.enabled if mode == "inherit" else mode
        modes.setdefault(pmd, host.thp.enabled)
    libraries = [file for file in _HUGETLBFS_FILES if Path(file).exists()]
    return Machine(
        base=host.base_page_size_bytes,
        pmd=pmd,
        default_pool=default_pool_size() or PAGE_BYTES,
        modes=modes,
        free={pool.page_bytes: pool.free for pool in host.pools},
        settable=settable,
        reserving=reserving,
        compiler=find_compiler() is not None,
        hugetlbfs_library=libraries[0] if libraries else ctypes.util.find_library("hugetlbfs"),
        elf_machine=read_elf(Path(sys.executable).resolve()).machine,
        limits_to_advised=supports_advised(),
        shmem=None if host.thp is None else host.thp.shared,
        collapses=_cannot_collapse(),
        allowed={
            pool.page_bytes: left
            for pool in host.pools
            if (left := pool_pages_left(pool.page_bytes)) is not None
        },
        hidden=not shows_huge_pages(),
    )


def _cannot_collapse() -> str | None:
    """Why this process cannot move the memory of others onto huge pages (process_madvise); None if it can."""
    with mmap.mmap(-1, mmap.PAGESIZE) as page:
        try:
            page.madvise(_COLLAPSE, 0, 0)
        except (OSError, ValueError):
            return "this kernel does not have MADV_COLLAPSE (Linux 6.1)"
    status = read(Path("/proc/self/status")) or ""
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    if capabilities is None or not int(capabilities[1], 16) >> _SYS_NICE & 1:
        return "only root, or a user with CAP_SYS_NICE, may move the memory of another process"
    return None


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
