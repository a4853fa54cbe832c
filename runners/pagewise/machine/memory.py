"""The memory that is available to a run, and kernels scaled down to fit into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from pagewise.core.errors import RefusedError
from pagewise.core.kernel import Kernel
from pagewise.core.manifest import Scaled
from pagewise.core.units import bytes_text, parse_bytes
from pagewise.machine.host import read, size

# Options that set the working set of a program.
SIZES = ("--working-set", "--memory")
# Measured over the kernels: 1.03 to 1.19 of the working set is resident; other processes need some, too.
_MEMORY_PER_WORKING_SET = 1.3
# With less than this share of its size a kernel measures something else: other caches, another mesh.
_SMALLEST_SHARE = 0.25
# On a NUMA node: free memory, and files in memory that the kernel can drop.
_USABLE = ("MemFree", "Active(file)", "Inactive(file)")
# By controller (version 2 of control groups has none): folder, files of limit and use, and the field of
# memory.stat that says how much of the use the kernel can drop.
_GROUPS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": (
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}


def available(root: Path = Path("/")) -> int | None:
    """Bytes that new programs can use: the kernel's estimate, limited by the control groups.

    None if the kernel reports none. `root` stands for / (tests pass another).
    """
    estimate = size(root / "proc/meminfo", "MemAvailable")
    known = [] if estimate is None else [estimate]
    return min([*known, *_left_in_groups(root)], default=None)


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


def fitted(kernel: Kernel, room: int | None, copies: int = 1) -> tuple[Kernel, Scaled | None]:
    """The kernel, scaled down to half or a quarter of its working set if it needs more than `room` bytes.

    copies: how many copies of the working set are in memory at once (a reserved pool is a second one). Raises
    RefusedError when not even a quarter fits.
    """
    argument_lists = [kernel.arguments, *(sweep.arguments for sweep in kernel.sweeps)]
    asked = max((value for arguments in argument_lists for value in _sizes(arguments)), default=0)
    if room is None or asked * copies * _MEMORY_PER_WORKING_SET <= room:
        return kernel, None
    share = 1.0
    while asked * share * copies * _MEMORY_PER_WORKING_SET > room:
        share /= 2
    if share < _SMALLEST_SHARE:
        raise RefusedError(
            f"{kernel.name} works on {bytes_text(asked)}, and there is memory for "
            f"{bytes_text(room / copies / _MEMORY_PER_WORKING_SET)}; even a quarter does not fit",
            where=f"{bytes_text(room)} available",
            remedy="end other programs, ask the batch system for more memory, or exclude it (--kernels)",
        )
    data = {**kernel.data, "compare": _scaled(kernel.data["compare"], share)}
    if "sweeps" in data:
        data["sweeps"] = [_scaled(sweep, share) for sweep in data["sweeps"]]
    return Kernel.from_dict(data, kernel.name), Scaled(kernel.name, asked, int(asked * share), room)


def _sizes(arguments: tuple[str, ...]) -> Iterator[int]:
    return (parse_bytes(value) for name, value in pairwise(arguments) if name in SIZES)


def _scaled(part: Mapping[str, Any], share: float) -> dict[str, Any]:
    arguments = list(part["arguments"])
    for place, name in enumerate(arguments[:-1]):
        if name in SIZES:
            arguments[place + 1] = f"{int(parse_bytes(arguments[place + 1]) * share) // 1024}KiB"
    return {**part, "arguments": arguments}


def _left_in_groups(root: Path) -> Iterator[int]:
    """The bytes left in each control group of this process, and in the groups above it."""
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        controller = next((name for name in controllers.split(",") if name in _GROUPS), None)
        if controller is None:
            continue
        base, limit_file, used_file, droppable = _GROUPS[controller]
        group = root / base / path.lstrip("/")
        for folder in (group, *group.parents):
            limit, used = read(folder / limit_file), read(folder / used_file)
            if limit is not None and used is not None and limit.isdigit():
                lines = (read(folder / "memory.stat") or "").splitlines()
                counts = dict(line.split(" ", 1) for line in lines)
                yield max(0, int(limit) - int(used) + int(counts.get(droppable, 0)))
            if folder == root / base:
                break
