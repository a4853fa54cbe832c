"""How much memory there is for a run, and kernels made to fit into it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from pagewise.core.errors import RefusedError
from pagewise.core.kernel import Kernel
from pagewise.core.units import bytes_text, parse_bytes
from pagewise.machine.host import read

# Options that say how much a program works on.
SIZES = ("--working-set", "--memory")
# Measured over the kernels: 1.03 to 1.19 of the working set is resident; what else runs needs some, too.
_NEED = 1.3
# With less than this part of its size a kernel measures something else: other caches, another mesh.
_LEAST = 0.25
# By version of control groups: where they are, limit, use, and what of the use is given back on demand.
_GROUPS = {
    "": ("sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    "memory": (
        "sys/fs/cgroup/memory",
        "memory.limit_in_bytes",
        "memory.usage_in_bytes",
        "total_inactive_file",
    ),
}


@dataclass(frozen=True)
class Scaled:
    """A kernel that was made smaller, and why."""

    kernel: str
    asked_bytes: int
    taken_bytes: int
    available_bytes: int


def available(root: Path = Path("/")) -> int | None:
    """Bytes that new programs can have: the kernel's estimate, and no more than the control groups allow.

    None where the kernel does not tell. `root` stands for / (tests give another).
    """
    told = re.search(r"^MemAvailable:\s+(\d+) kB", read(root / "proc/meminfo") or "", re.MULTILINE)
    known = [int(told[1]) * 1024] if told else []
    return min([*known, *_groups(root)], default=None)


def available_on(nodes: Iterable[int], root: Path = Path("/")) -> int | None:
    """Bytes that programs bound to these NUMA nodes can have: free memory, and files that need not stay.

    None where a node does not tell. `root` stands for / (tests give another).
    """
    total = 0
    for node in nodes:
        told = read(root / f"sys/devices/system/node/node{node}/meminfo") or ""
        parts = re.findall(r"^Node \d+ (?:MemFree|(?:Ina|A)ctive\(file\)):\s+(\d+) kB", told, re.MULTILINE)
        if not parts:
            return None
        total += 1024 * sum(map(int, parts))
    return total


def fitted(kernel: Kernel, room: int | None, copies: int = 1) -> tuple[Kernel, Scaled | None]:
    """The kernel with half or a quarter of its working set where that alone fits into `room` bytes.

    copies: how often the working set lies in memory at once (a reserved pool holds it besides). Raises
    RefusedError when not even a quarter fits.
    """
    every = [kernel.arguments, *(sweep.arguments for sweep in kernel.sweeps)]
    asked = max((size for arguments in every for size in _sizes(arguments)), default=0)
    if room is None or asked * copies * _NEED <= room:
        return kernel, None
    share = 1.0
    while asked * share * copies * _NEED > room:
        share /= 2
    if share < _LEAST:
        raise RefusedError(
            f"{kernel.name} works on {bytes_text(asked)}, and there is memory for "
            f"{bytes_text(room / copies / _NEED)}; even a quarter does not fit",
            where=f"{bytes_text(room)} available",
            remedy="end other programs, ask the batch system for more memory, or leave it out (--kernels)",
        )
    data = {**kernel.data, "compare": _scaled(kernel.data["compare"], share)}
    if "sweeps" in data:
        data["sweeps"] = [_scaled(sweep, share) for sweep in data["sweeps"]]
    return Kernel.from_dict(data, kernel.name), Scaled(kernel.name, asked, int(asked * share), room)


def scaled_text(told: Mapping[str, Any]) -> str:
    """What was made smaller, in a sentence."""
    return (
        f"{told['kernel']} works on {bytes_text(told['taken_bytes'])} in place of "
        f"{bytes_text(told['asked_bytes'])}, for {bytes_text(told['available_bytes'])} of memory are "
        "available: do not compare its times with those of the full size."
    )


def _sizes(arguments: tuple[str, ...]) -> Iterator[int]:
    for name, value in pairwise(arguments):
        if name in SIZES:
            yield parse_bytes(value)


def _scaled(part: Mapping[str, Any], share: float) -> dict[str, Any]:
    arguments = list(part["arguments"])
    for place, name in enumerate(arguments[:-1]):
        if name in SIZES:
            arguments[place + 1] = f"{int(parse_bytes(arguments[place + 1]) * share) // 1024}KiB"
    return {**part, "arguments": arguments}


def _groups(root: Path) -> Iterator[int]:
    """What each control group that this process is in has left, those above it too."""
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        name = next((one for one in controllers.split(",") if one in _GROUPS), None)
        if name is None:
            continue
        base, limit, used, given_back = _GROUPS[name]
        folder = root / base / path.lstrip("/")
        for one in (folder, *folder.parents):
            most, now = read(one / limit), read(one / used)
            if most is not None and now is not None and most.isdigit():
                free = re.search(rf"^{given_back} (\d+)", read(one / "memory.stat") or "", re.MULTILINE)
                yield max(0, int(most) - int(now) + (int(free[1]) if free else 0))
            if one == root / base:
                break
