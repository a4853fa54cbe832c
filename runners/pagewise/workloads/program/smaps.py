"""Reads what the kernel tells of a process's memory, by kind of mapping. Pure but for ELF headers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pagewise.stack.elf import NotElfError, read_elf

KINDS = ("heap", "anonymous", "bss", "data", "stack", "text", "file", "shared")
_LINE = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) ([r-][w-][x-][ps]) ([0-9a-f]+) [0-9a-f]+:[0-9a-f]+ \d+ *(.*)$"
    r"|^(Rss|AnonHugePages|ShmemPmdMapped|FilePmdMapped|Shared_Hugetlb|Private_Hugetlb|KernelPageSize):"
    r" +(\d+) kB$",
    re.MULTILINE,
)
_HUGE = ("AnonHugePages", "ShmemPmdMapped", "FilePmdMapped", "Shared_Hugetlb", "Private_Hugetlb")
_POOL = ("Shared_Hugetlb", "Private_Hugetlb")
_SHARED = ("/dev/shm/", "/SYSV", "/memfd:", "/dev/zero", "[anon_shmem")
_KERNELS_OWN = ("[vdso", "[vvar", "[vsyscall", "[uprobes", "[vectors", "[sigpage")
Zeroed = Callable[[str], tuple[int, int] | None]


@dataclass(frozen=True)
class Mapped:
    """A mapping: addresses, rights, name, and its sizes in bytes by the kernel's words."""

    start: int
    end: int
    rights: str
    offset: int
    name: str
    sizes: Mapping[str, int]

    @property
    def resident(self) -> int:
        """Bytes that are in memory. Those of a pool are not in Rss."""
        return sum(self.sizes.get(name, 0) for name in ("Rss", *_POOL))

    @property
    def huge(self) -> int:
        """Bytes on pages of the size of a PMD, or of a pool."""
        return sum(self.sizes.get(name, 0) for name in _HUGE)

    def eligible(self, page: int) -> int:
        """Bytes that could lie on pages of this size.

        That is what is in memory, less what may lie before the first and behind the last aligned place.
        """
        room = max(0, (self.end & -page) - ((self.start + page - 1) & -page))
        outside = self.end - self.start - room
        return max(self.huge, min(self.resident - outside, room), 0)


@dataclass(frozen=True)
class Usage:
    """Bytes of one kind of memory: in memory, on huge pages, and what could be on such pages."""

    resident: int = 0
    huge: int = 0
    eligible: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.resident + other.resident, self.huge + other.huge, self.eligible + other.eligible)

    @property
    def coverage(self) -> float:
        """The share of what is in memory that lies on huge pages."""
        return self.huge / self.resident if self.resident else 0.0


def parse(text: str) -> list[Mapped]:
    """The mappings of smaps. One that is cut short (the process is ending) and foreign lines are left out."""
    found: list[Mapped] = []
    head: re.Match[str] | None = None
    sizes: dict[str, int] = {}
    for line in _LINE.finditer(text):
        if line[6] is not None:
            sizes[line[6]] = int(line[7]) * 1024
            continue
        if head is not None and "Rss" in sizes:
            found.append(_mapped(head, sizes))
        head, sizes = line, {}
    if head is not None and "Rss" in sizes:
        found.append(_mapped(head, sizes))
    return found


def parse_rollup(text: str) -> Usage | None:
    """The sums of smaps_rollup, None where they are not told."""
    sizes = {line[6]: int(line[7]) * 1024 for line in _LINE.finditer(text) if line[6] is not None}
    if "Rss" not in sizes:
        return None
    whole = Mapped(0, 0, "", 0, "", sizes)
    return Usage(whole.resident, whole.huge, 0)


def by_kind(mappings: Iterable[Mapped], page: int, zeroed: Zeroed | None = None) -> dict[str, Usage]:
    """The sums by kind; `page` is the size of page that is hoped for, `zeroed` tells a file's .bss."""
    sums: dict[str, Usage] = {}
    for one, kind in kinds(mappings, zeroed or zeroed_of):
        sums[kind] = sums.get(kind, Usage()) + Usage(one.resident, one.huge, one.eligible(page))
    return sums


def kinds(mappings: Iterable[Mapped], zeroed: Zeroed) -> list[tuple[Mapped, str]]:
    """Each mapping with its kind; the kernel's own (vdso) are left out.

    .bss has no name in smaps: it is unnamed memory where the program file's headers say that its .bss is, or,
    where they cannot be read, unnamed memory right after the file's last mapping.
    """
    found = []
    lowest: dict[str, int] = {}
    known: dict[str, tuple[int, int] | None] = {}
    before: tuple[int, str, str] = (0, "", "")
    for one in mappings:
        if one.name.startswith("/") and one.name not in lowest:
            lowest[one.name] = one.start
            known[one.name] = zeroed(one.name)
        kind = _kind(one)
        if kind == "anonymous" and _is_zeroed(one, lowest, known, before):
            kind = "bss"
        if kind is not None:
            found.append((one, kind))
        if one.name or kind == "bss":
            before = (one.end, one.name or before[1], kind or "")
    return found


@cache
def zeroed_of(name: str) -> tuple[int, int] | None:
    """Where a program file's .bss lies, relative to where the file is loaded; None if it cannot be read."""
    try:
        return read_elf(Path(name)).zeroed or (0, 0)
    except NotElfError:
        return 0, 0
    except OSError:
        return None


def _mapped(head: re.Match[str], sizes: Mapping[str, int]) -> Mapped:
    return Mapped(int(head[1], 16), int(head[2], 16), head[3], int(head[4], 16), head[5], sizes)


def _kind(one: Mapped) -> str | None:  # noqa: PLR0911 a list of cases
    name = one.name
    if name.startswith(_KERNELS_OWN):
        return None
    if name.startswith("[heap"):
        return "heap"
    if name.startswith("[stack"):
        return "stack"
    if one.rights[3] == "s" or name.startswith(_SHARED):
        return "shared"
    if "x" in one.rights:
        return "text"
    if not name or name.startswith(("[anon", "/anon_hugepage")):
        return "anonymous"
    return "data" if "w" in one.rights else "file"


def _is_zeroed(
    one: Mapped,
    lowest: Mapping[str, int],
    known: Mapping[str, tuple[int, int] | None],
    before: tuple[int, str, str],
) -> bool:
    if one.name or not lowest:
        return False
    end, name, kind = before
    if end != one.start or not name:
        return False
    told = known.get(name)
    if told is not None:
        return lowest[name] + told[0] - 4096 <= one.start < lowest[name] + told[1]
    return kind in ("data", "bss")
