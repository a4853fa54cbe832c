"""The memory that is available to a run, and kernels scaled down to fit into it."""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

from pagewise.core.benchmark import Benchmark
from pagewise.core.errors import RefusedError
from pagewise.core.manifest import Scaled
from pagewise.core.units import bytes_text, parse_bytes
from pagewise.machine.groups import memory_left
from pagewise.machine.host import free_page_reporting, size

# Options that set the working set of a program.
SIZES = ("--working-set", "--memory")
# Measured over the kernels: 1.03 to 1.19 of the working set is resident; other processes need some, too.
MEMORY_PER_WORKING_SET = 1.3
# With less than this share of its size a kernel measures something else: other caches, another mesh.
_SMALLEST_SHARE = 0.25
_MADV_POPULATE_WRITE = 23  # Linux 5.14
# On a NUMA node: free memory, and files in memory that the kernel can drop.
_USABLE = ("MemFree", "Active(file)", "Inactive(file)")


def available(root: Path = Path("/")) -> int | None:
    """Bytes that new programs can use: the kernel's estimate, limited by the control groups.

    None if the kernel reports none. `root` stands for / (tests pass another).
    """
    estimate = size(root / "proc/meminfo", "MemAvailable")
    known = [] if estimate is None else [estimate]
    return min([*known, *memory_left(root)], default=None)


def available_on(nodes: Iterable[int], root: Path = Path("/")) -> int | None:
    """Bytes that programs bound to these NUMA nodes can use; None if a node does not report it."""
    total = 0
    for node in nodes:
        file = root / f"sys/devices/system/node/node{node}/meminfo"
        parts = [part for name in _USABLE if (part := size(file, name)) is not None]
        if not parts:
            return None
        total += sum(parts)
    return total


def request_back(count: int) -> None:
    """Touches `count` bytes of free memory, at most half of it, if the hypervisor takes back free memory.

    Huge pages that were free for 2 s are taken back, and their first touch takes 20 times as long (4 ms).
    Base pages come from smaller blocks, which are not. A comparison would depend on the pauses between runs.
    """
    room = available() or 0
    if free_page_reporting() and (count := min(count, room // 2)) > 0:
        with suppress(OSError), mmap.mmap(-1, count, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            memory.madvise(mmap.MADV_HUGEPAGE)
            memory.madvise(_MADV_POPULATE_WRITE)


def fit_kernel(kernel: Benchmark, room: int | None, copies: int = 1) -> tuple[Benchmark, Scaled | None]:
    """The kernel, scaled down to half or a quarter of its working set if it needs more than `room` bytes.

    copies: how many copies of the working set are in memory at once (a reserved pool is a second one). Raises
    RefusedError when not even a quarter fits.
    """
    asked = max((value for arguments in kernel.argument_lists for value in _sizes(arguments)), default=0)
    if room is None or asked * copies * MEMORY_PER_WORKING_SET <= room:
        return kernel, None
    share = 1.0
    while asked * share * copies * MEMORY_PER_WORKING_SET > room:
        share /= 2
    if share < _SMALLEST_SHARE:
        raise RefusedError(
            f"{kernel.name} works on {bytes_text(asked)}, and there is memory for "
            f"{bytes_text(room / copies / MEMORY_PER_WORKING_SET)}; even a quarter does not fit",
            where=f"{bytes_text(room)} available",
            remedy="end other programs, ask the batch system for more memory, or exclude it (--kernels)",
        )
    scaled = kernel.with_arguments(*(_scale(arguments, share) for arguments in kernel.argument_lists))
    return scaled, Scaled(kernel.name, asked, int(asked * share), room)


def _sizes(arguments: tuple[str, ...]) -> Iterator[int]:
    return (parse_bytes(value) for name, value in pairwise(arguments) if name in SIZES)


def _scale(arguments: tuple[str, ...], share: float) -> tuple[str, ...]:
    scaled = list(arguments)
    for place, name in enumerate(arguments[:-1]):
        if name in SIZES:
            scaled[place + 1] = f"{int(parse_bytes(arguments[place + 1]) * share) // 1024}KiB"
    return tuple(scaled)
