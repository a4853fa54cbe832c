"""The control groups of this process: their limits, which of these were reached, and groups to freeze."""

from __future__ import annotations

import itertools
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from pagewise.core.page_policy import size_name
from pagewise.core.units import bytes_text
from pagewise.machine.host import number, read

#: A limit: the resource (`memory`, `hugetlb.2MB`), and the folder of the control group.
Place = tuple[str, Path]
# By controller: where its hierarchy is. In version 2 one hierarchy has all controllers.
_UNIFIED = ("sys/fs/cgroup/unified", "sys/fs/cgroup")
# By version: the files of memory, and the field of memory.stat with what the kernel can drop.
_MEMORY = {
    2: ("memory.max", "memory.current", "inactive_file"),
    1: ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}
_POOL = {2: ("max", "current"), 1: ("limit_in_bytes", "usage_in_bytes")}
# Version 1 has no word for `no limit`, but the largest number of whole pages.
_NO_LIMIT = 1 << 60
_FROZEN_GROUP, _numbers = "pagewise-", itertools.count()
# Freezing takes 0.05 to 0.3 ms; the kernel notifies of it at most every 10 ms.
_POLL_SECONDS = 0.00005


@dataclass(frozen=True)
class Reached:
    """How often the limits of the control groups were reached, and how many processes were killed."""

    limits: Mapping[Place, int]
    killed: int

    def cause(self, before: Reached) -> str | None:
        """Why a program that failed since `before` was killed or had no pages; None: no limit explains it."""
        if self.killed > before.killed:
            return (
                self._limit(before, "memory") or "the kernel killed a process, because the node had no memory"
            )
        return self._limit(before, "hugetlb")

    def _limit(self, before: Reached, resource: str) -> str | None:
        """The limit that was reached since, of the innermost group."""
        for (name, group), count in self.limits.items():
            if name.startswith(resource) and count > before.limits.get((name, group), 0):
                files = (group / f"{name}{part}" for part in (".max", ".rsvd.max", ".limit_in_bytes"))
                size = min((size for file in files if (size := number(file)) is not None), default=0)
                return f"the control group {group} limits {name} to {bytes_text(size)}, which was reached"
        return None


@dataclass(frozen=True)
class Freezer:
    """A control group of version 2 whose processes can be frozen: they and others notice nothing of it."""

    folder: Path

    def add(self, pid: int) -> None:
        """Moves a process into the group; what it starts from then on is in it, too. Raises OSError."""
        (self.folder / "cgroup.procs").write_text(str(pid), encoding="ascii")

    def freeze(self) -> None:
        """Freezes all processes, and waits until they are."""
        self._freeze("1")
        events = self.folder / "cgroup.events"
        while (state := _fields(events)).get("frozen") == 0 and state.get("populated") == 1:
            time.sleep(_POLL_SECONDS)

    def thaw(self) -> None:
        """Lets all processes continue."""
        self._freeze("0")

    def _freeze(self, text: str) -> None:
        (self.folder / "cgroup.freeze").write_text(text, encoding="ascii")

    def remove(self) -> None:
        """Moves what is left of its processes to the group above, and removes the group."""
        with suppress(OSError):
            self.thaw()
            for pid in (self.folder / "cgroup.procs").read_text(encoding="ascii").split():
                Freezer(self.folder.parent).add(int(pid))
            self.folder.rmdir()


@contextmanager
def freezing(root: Path = Path("/")) -> Iterator[Freezer | None]:
    """A new group of this process in the block; None where it may not make one.

    Groups of sessions that were killed are removed.
    """
    own = next((folder for folder, version in _groups("freezer", root) if version == 2), None)
    if own is None or not (root / "proc/self/cgroup").exists():
        yield None
        return
    for old in own.glob(f"{_FROZEN_GROUP}*"):
        with suppress(OSError):
            if not (root / "proc" / old.name.split("-")[1]).exists():
                old.rmdir()
    freezer = Freezer(own / f"{_FROZEN_GROUP}{os.getpid()}-{next(_numbers)}")
    try:
        freezer.folder.mkdir()
    except OSError:
        yield None
        return
    try:
        yield freezer if (freezer.folder / "cgroup.freeze").exists() else None
    finally:
        freezer.remove()


def can_freeze() -> bool:
    """Whether this process may freeze others."""
    with freezing() as freezer:
        return freezer is not None


def memory_left(root: Path = Path("/")) -> Iterator[int]:
    """The bytes left in each control group of this process with a limit of memory."""
    for folder, version in _groups("memory", root):
        limit_file, used_file, droppable = _MEMORY[version]
        limit, used = number(folder / limit_file), number(folder / used_file)
        if limit is not None and used is not None:
            yield max(0, limit - used + _fields(folder / "memory.stat").get(droppable, 0))


def pool_pages_left(page_bytes: int, root: Path = Path("/")) -> int | None:
    """How many more pages of a hugetlb pool the control groups leave to this process; None: no limit."""
    name, left = f"hugetlb.{size_name(page_bytes).upper()}B", []
    for folder, version in _groups("hugetlb", root):
        for limit_file, used_file in (
            tuple(f"{part}.{ending}" for ending in _POOL[version]) for part in (name, f"{name}.rsvd")
        ):
            limit, used = number(folder / limit_file), number(folder / used_file)
            if limit is not None and used is not None and limit < _NO_LIMIT:
                left.append(max(0, limit - used) // page_bytes)
    return min(left, default=None)


def read_reached(root: Path = Path("/")) -> Reached:
    """What the kernel has counted so far."""
    limits: dict[Place, int] = {}
    killed = 0
    for folder, version in _groups("memory", root):
        of_group = _fields(folder / ("memory.events" if version == 2 else "memory.oom_control"))
        # A limit is reached often while the kernel can drop files from memory: only the end of that counts.
        count = of_group.get("oom") if version == 2 else number(folder / "memory.failcnt")
        limits["memory", folder] = count or 0
        killed = max(killed, of_group.get("oom_kill", 0))
    for folder, version in _groups("hugetlb", root):
        for file in sorted(folder.glob("hugetlb.*.events" if version == 2 else "hugetlb.*.failcnt")):
            count = _fields(file).get("max") if version == 2 else number(file)
            limits[file.stem, folder] = count or 0
    return Reached(limits, killed)


def _groups(controller: str, root: Path) -> Iterator[tuple[Path, int]]:
    """The control groups of this process with a controller, the innermost first, and the version of each."""
    for line in (read(root / "proc/self/cgroup") or "").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers and controller not in controllers.split(","):
            continue
        bases = (f"sys/fs/cgroup/{controller}",) if controllers else _UNIFIED
        base = next((root / name for name in bases if (root / name).is_dir()), root / bases[-1])
        group = base / path.lstrip("/")
        for folder in (group, *group.parents):
            yield folder, 1 if controllers else 2
            if folder == base:
                break


def _fields(file: Path) -> dict[str, int]:
    """The numbers in a file with lines `name number`."""
    return {
        name: int(number) for name, number in re.findall(r"^(\w+) (\d+)$", read(file) or "", re.MULTILINE)
    }
