"""The memory of a process by kind of mapping, as the kernel accounts for it (smaps)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pagewise.stack.binary import NotElfError, read_elf

KINDS = ("heap", "anonymous", "bss", "data", "stack", "text", "file", "shared")
_LINE = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) ([r-][w-][x-][ps]) ([0-9a-f]+) [0-9a-f]+:[0-9a-f]+ \d+ *(.*)$"
    r"|^(Rss|Pss|AnonHugePages|ShmemPmdMapped|FilePmdMapped|Shared_Hugetlb|Private_Hugetlb|KernelPageSize):"
    r" +(\d+) kB$|^VmFlags:(.*)$",
    re.MULTILINE,
)
_TRANSPARENT = ("AnonHugePages", "ShmemPmdMapped", "FilePmdMapped")
_SHARED = ("/dev/shm/", "/dev/hugepages/", "/SYSV", "/memfd:", "/dev/zero", "[anon_shmem")
_OF_POOL = "/anon_hugepage"
_OF_KERNEL = ("[vdso", "[vvar", "[vsyscall", "[uprobes", "[vectors", "[sigpage")
_STATUS = re.compile(r"^(VmHWM|VmRSS|VmPTE|THP_enabled):\s+(\d+)", re.MULTILINE)
Zeroed = Callable[[str], tuple[int, int] | None]


@dataclass(frozen=True)
class Mapped:
    """A mapping: addresses, rights, name, its sizes in bytes by their names in smaps, the kernel's flags.

    Pages that processes share count in part for each (PSS), so that sums over processes are right.
    """

    start: int
    end: int
    rights: str
    offset: int
    name: str
    sizes: Mapping[str, int]
    flags: tuple[str, ...] = ()

    def usage(self, page: int) -> Usage:
        """Its bytes. page: the page size asked for.

        Rss and Pss do not contain pages of a hugetlb pool. Bytes that could be on pages of this size are
        those in memory, minus what may be before the first and after the last aligned address.
        """
        resident, shared_pool = self.sizes["Rss"], self.sizes.get("Shared_Hugetlb", 0)
        own = self.sizes.get("Pss", resident)
        # The share of this process in the pages that it has.
        share = own / resident if resident else 1.0
        transparent = sum(self.sizes.get(name, 0) for name in _TRANSPARENT)
        pool = shared_pool + self.sizes.get("Private_Hugetlb", 0)
        room = max(0, (self.end & -page) - ((self.start + page - 1) & -page))
        outside = self.end - self.start - room
        eligible = max(transparent + pool, min(resident + pool - outside, room), 0)
        huge = round(transparent * share)
        unasked = 0 if "hg" in self.flags else huge
        return Usage(own + pool, huge + pool, round(eligible * share), unasked, pool, shared_pool)


@dataclass(frozen=True)
class Usage:
    """Bytes of a kind of memory: in memory, on huge pages, and those that could be on such pages.

    huge: on pages of PMD size, or of a hugetlb pool. unasked: on transparent huge pages that nobody asked for
    by MADV_HUGEPAGE. pool: of those on huge pages, those of a hugetlb pool. shared_pool: of these, what other
    processes have, too: each of them counts all.
    """

    resident: int = 0
    huge: int = 0
    eligible: int = 0
    unasked: int = 0
    pool: int = 0
    shared_pool: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.resident + other.resident,
            self.huge + other.huge,
            self.eligible + other.eligible,
            self.unasked + other.unasked,
            self.pool + other.pool,
            self.shared_pool + other.shared_pool,
        )

    def shared_by(self, processes: int) -> Usage:
        """The sum over this many processes, with pages of a pool that all of them share counted once."""
        more = self.shared_pool - self.shared_pool // max(processes, 1)
        resident, huge, eligible = (size - more for size in (self.resident, self.huge, self.eligible))
        return replace(self, resident=resident, huge=huge, eligible=max(eligible, 0), pool=self.pool - more)

    @property
    def coverage(self) -> float:
        """The share of the bytes in memory that is on huge pages."""
        return self.huge / self.resident if self.resident else 0.0


@dataclass(frozen=True, kw_only=True)
class Account:
    """The kernel's own account of a process, in bytes: the most it had in memory so far, page tables, RSS.

    `high_water` and `resident` do not contain pages of a hugetlb pool. refuses_thp: whether it may not have
    transparent huge pages, because it or a process that started it called prctl(PR_SET_THP_DISABLE).
    """

    high_water: int = 0
    page_tables: int = 0
    resident: int = 0
    refuses_thp: bool = False


def parse_status(text: str) -> Account:
    """The account in /proc/PID/status."""
    values = {line[1]: int(line[2]) for line in _STATUS.finditer(text)}
    high, tables, resident = (values.get(name, 0) * 1024 for name in ("VmHWM", "VmPTE", "VmRSS"))
    refuses = values.get("THP_enabled", 1) == 0
    return Account(high_water=high, page_tables=tables, resident=resident, refuses_thp=refuses)


def parse(text: str) -> list[Mapped]:
    """The mappings of smaps, without incomplete ones (the process is ending) and lines of another format."""
    mappings: list[tuple[re.Match[str], dict[str, int], list[str]]] = []
    for line in _LINE.finditer(text):
        if line[1] is not None:
            mappings.append((line, {}, []))
        elif mappings and line[6] is not None:
            mappings[-1][1][line[6]] = int(line[7]) * 1024
        elif mappings:
            mappings[-1][2].extend(line[8].split())
    return [
        Mapped(int(head[1], 16), int(head[2], 16), head[3], int(head[4], 16), head[5], sizes, tuple(flags))
        for head, sizes, flags in mappings
        if "Rss" in sizes
    ]


def parse_rollup(text: str) -> Usage | None:
    """The sums of smaps_rollup, None if they are missing."""
    sizes = {line[6]: int(line[7]) * 1024 for line in _LINE.finditer(text) if line[6] is not None}
    if "Rss" not in sizes:
        return None
    return replace(Mapped(0, 0, "", 0, "", sizes).usage(1), eligible=0, unasked=0)


def by_kind(mappings: Iterable[Mapped], page: int, zeroed: Zeroed | None = None) -> dict[str, Usage]:
    """The sums by kind. page: the page size asked for. zeroed: where a file's .bss is (see `zeroed_of`)."""
    return add_usages({kind: mapping.usage(page)} for mapping, kind in kinds(mappings, zeroed or zeroed_of))


def add_usages(parts: Iterable[Mapping[str, Usage]]) -> dict[str, Usage]:
    """The sums by kind of several."""
    sums: dict[str, Usage] = {}
    for part in parts:
        for kind, usage in part.items():
            sums[kind] = sums.get(kind, Usage()) + usage
    return sums


def kinds(mappings: Iterable[Mapped], zeroed: Zeroed) -> list[tuple[Mapped, str]]:
    """Each mapping with its kind, except those of the kernel (vdso).

    .bss has no name in smaps: it is unnamed memory where the program file's headers say that its .bss is, or,
    if they cannot be read, unnamed memory directly after the file's last mapping. Static data on pages of the
    hugetlb pool (hugetlbfs-data) lies directly after a mapping of its file.
    """
    with_kinds = []
    lowest: dict[str, int] = {}
    # Of the mapping before: its end, its file, and its kind.
    before: tuple[int, str, str] = (0, "", "")
    for mapping in mappings:
        name = mapping.name
        if name.startswith("/") and not name.startswith(_OF_POOL):
            lowest.setdefault(name, mapping.start)
        kind = _kind(mapping)
        if (kind == "anonymous" and not name and _is_zeroed(mapping, lowest, zeroed, before)) or (
            name.startswith(_OF_POOL) and before[0] == mapping.start and before[2] in ("data", "file", "bss")
        ):
            kind = "bss"
        if kind is not None:
            with_kinds.append((mapping, kind))
        if kind == "bss":
            before = (mapping.end, before[1], kind)
        elif name:
            before = (mapping.end, name, kind or "")
    return with_kinds


@cache
def zeroed_of(name: str) -> tuple[int, int] | None:
    """Start and end of a program file's .bss from where the file is loaded; None if it cannot be read."""
    try:
        return read_elf(Path(name)).zeroed or (0, 0)
    except NotElfError:
        return 0, 0
    except OSError:
        return None


def _kind(mapping: Mapped) -> str | None:  # noqa: PLR0911 a list of cases
    name = mapping.name
    if name.startswith(_OF_KERNEL):
        return None
    if name.startswith("[heap"):
        return "heap"
    if name.startswith("[stack"):
        return "stack"
    if name.startswith(_SHARED) or (mapping.rights[3] == "s" and _is_anonymous(name)):
        return "shared"
    # The page cache of a file system that is none of shared memory.
    if mapping.rights[3] == "s":
        return "file"
    # The heap of SBCL, into which it compiles, is executable.
    if "x" in mapping.rights and not ("w" in mapping.rights and _is_anonymous(name)):
        return "text"
    if _is_anonymous(name):
        return "anonymous"
    return "data" if "w" in mapping.rights else "file"


def _is_anonymous(name: str) -> bool:
    return not name or name.startswith(("[anon", _OF_POOL))


def _is_zeroed(
    mapping: Mapped, lowest: Mapping[str, int], zeroed: Zeroed, before: tuple[int, str, str]
) -> bool:
    """Whether unnamed memory is the .bss of the file mapped before it, whose lowest address is known."""
    end, name, kind = before
    if end != mapping.start or name not in lowest:
        return False
    place = zeroed(name)
    if place is None:
        return kind in ("data", "bss")
    # The kernel maps whole base pages, of 4 to 64 KiB.
    first = lowest[name] + place[0] - mapping.sizes.get("KernelPageSize", os.sysconf("SC_PAGESIZE"))
    return first <= mapping.start < lowest[name] + place[1]
