"""The page policies that need no rebuild: what each does to a run, and why it cannot be had."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagewise.core.errors import SelectionError
from pagewise.core.host import Host
from pagewise.core.page_policy import policy_kind, policy_size, size_name
from pagewise.core.suggestions import choose_of
from pagewise.core.units import bytes_text
from pagewise.stack.binary import Binary

# The order in which parts of a policy are named: one that may have a size comes last.
PARTS = ("none", "reuse", "text", "bss", "thp", "glibc", "libhugetlbfs", "hugetlbfs")
MEANINGS = {
    "none": "base pages: huge pages refused (prctl PR_SET_THP_DISABLE), no tunables",
    "reuse": "freed memory is kept and used again (glibc's trim_threshold, mmap_max, top_pad)",
    "text": "machine code copied onto huge pages (preloaded library)",
    "bss": "zeroed static arrays on transparent huge pages (preloaded library)",
    "thp": "transparent huge pages for all private memory, as given by the system (always) or by advice",
    "glibc": "transparent huge pages for malloc alone (glibc.malloc.hugetlb=1)",
    "libhugetlbfs": "malloc on the reserved pool by libhugetlbfs (glibc before 2.34)",
    "hugetlbfs": "malloc on the reserved pool (glibc.malloc.hugetlb=2)",
}
DEFAULT = ("none", "thp", "glibc", "hugetlbfs", "text", "bss", "reuse", "reuse+glibc")
_SIZED = ("thp", "hugetlbfs")
_PAGES = ("thp", "glibc", "libhugetlbfs", "hugetlbfs")
_MALLOC = ("heap", "anonymous")
_TARGETS = {
    "text": ("text",),
    "bss": ("bss",),
    "thp": (*_MALLOC, "bss"),
    "glibc": _MALLOC,
    "libhugetlbfs": _MALLOC,
    "hugetlbfs": _MALLOC,
}
# In glibc 2.34 the hook was taken out by which libhugetlbfs served malloc; 2.35 brought the tunable.
_HOOK_GONE, _TUNABLE_CAME = (2, 34), (2, 35)
_KEEP_ALL = str((1 << 63) - 1)
_TOP_PAD = str(16 << 20)
_OUR_TUNABLES = tuple(
    f"glibc.malloc.{name}" for name in ("hugetlb", "trim_threshold", "mmap_threshold", "mmap_max", "top_pad")
)
# What of the environment would be a page policy of its own.
_OTHERS = (
    "HUGETLB_MORECORE",
    "HUGETLB_ELFMAP",
    "HUGETLB_SHM",
    "MALLOC_TRIM_THRESHOLD_",
    "MALLOC_TOP_PAD_",
    "MALLOC_MMAP_THRESHOLD_",
    "MALLOC_MMAP_MAX_",
)


@dataclass(frozen=True)
class Policy:
    """A page policy: its parts in order (`reuse`, `thp`), and the page size that it names, in bytes."""

    parts: tuple[str, ...]
    size: int | None

    @property
    def name(self) -> str:
        """As it is written: `reuse+thp:64k`."""
        return "+".join(self.parts) + ("" if self.size is None else f":{size_name(self.size)}")

    @property
    def refuses_huge_pages(self) -> bool:
        """Whether huge pages are kept away: nothing in it is for them."""
        return not any(part in _TARGETS for part in self.parts)

    @property
    def from_pool(self) -> bool:
        """Whether it takes pages of a reserved pool."""
        return "hugetlbfs" in self.parts or "libhugetlbfs" in self.parts

    @property
    def meaning(self) -> str:
        """In words, a part each."""
        return "; ".join(MEANINGS[part] for part in self.parts)


@dataclass(frozen=True)
class PageRequest:
    """What a run is to prove. targets: for each part the kinds of memory it is for; none: no huge page.

    page: the size asked for, or the base page's; huge: that of huge pages. enough: the least coverage over
    time. watched: whether counters of the kernel are the proof (multi-size THP shows nowhere else).
    """

    policy: str
    targets: tuple[tuple[str, ...], ...]
    page: int
    huge: int
    enough: float
    watched: bool


@dataclass(frozen=True)
class Lack:
    """Why a policy cannot be had, and what to do."""

    reason: str
    remedy: str | None = None


@dataclass(frozen=True)
class Machine:
    """What policies need to know of the machine: sizes in bytes, modes of transparent huge pages, free pages.

    modes: by size in bytes, what is in effect (`always`, `madvise`, `never`). free: free pages by page size.
    settable: whether sizes are switched for the run, since the user asked for it. reserving: likewise pools.
    compiler: whether there is a C compiler, for the preloaded library. hugetlbfs_library: libhugetlbfs' file.
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

    @classmethod
    def from_host(cls, host: Host, **told: Any) -> Machine:
        """From the host's facts (host.read_host) and the rest."""
        thp = host.thp
        modes: dict[int, str] = {}
        if thp is not None:
            for name, mode in thp.sizes.items():
                if mode is not None:
                    modes[int(name[:-2]) * 1024] = thp.enabled if mode == "inherit" else mode
            modes.setdefault(told["pmd"], thp.enabled)
        free = {pool.page_bytes: pool.free for pool in host.pools}
        return cls(base=host.base_page_size_bytes, modes=modes, free=free, **told)


def parse_policy(text: str) -> Policy:
    """Reads `thp`, `hugetlbfs:1g`, `reuse+glibc`. Raises SelectionError."""
    parts: list[str] = []
    size = None
    for word in text.split("+"):
        kind = policy_kind(word)
        if kind not in PARTS:
            raise SelectionError(
                f"there is no page policy {word!r}",
                where="--policies",
                remedy=f"{choose_of(kind, PARTS)}; joined as in reuse+thp, with a size as in hugetlbfs:1g",
            )
        try:
            found = policy_size(word)
        except ValueError as fault:
            raise SelectionError(
                f"{word!r} names no page size", where="--policies", remedy="write it like thp:64k"
            ) from fault
        if found is not None and kind not in _SIZED:
            raise SelectionError(
                f"{kind} has no size of its own",
                where=f"--policies {text}",
                remedy=f"write {kind}; sizes have: {', '.join(_SIZED)}",
            )
        size = found if found is not None else size
        parts.append(kind)
    clash = _clash(parts)
    if clash:
        raise SelectionError(clash, where=f"--policies {text}", remedy="measure them one after the other")
    return Policy(tuple(part for part in PARTS if part in parts), size)


def _clash(parts: Sequence[str]) -> str | None:
    pages = [part for part in parts if part in _PAGES]
    if len(set(parts)) < len(parts):
        return "a part of this policy is named twice"
    if "none" in parts and len(parts) > 1:
        return "none refuses huge pages: it stands alone"
    if len(pages) > 1:
        return f"malloc cannot be served by {' and '.join(pages)} at once"
    return None


def request(policy: Policy, machine: Machine, enough: float) -> PageRequest:
    """What a run under this policy has to prove."""
    targets = tuple(_TARGETS[part] for part in policy.parts if part in _TARGETS)
    if not targets:
        return PageRequest(policy.name, (), machine.base, machine.pmd, 0.0, False)
    huge = page_size(policy, machine)
    watched = "thp" in policy.parts and huge != machine.pmd
    return PageRequest(policy.name, targets, huge, huge, enough, watched)


def page_size(policy: Policy, machine: Machine) -> int:
    """The page size in bytes that it is about."""
    if policy.size is not None:
        return policy.size
    return machine.default_pool if policy.from_pool else machine.pmd


def settings(policy: Policy, machine: Machine, inherited: Mapping[str, str]) -> dict[str, str | None]:
    """What a run's environment has instead of the inherited one; None: not there. Preloads come apart."""
    tunables = _without_ours(inherited.get("GLIBC_TUNABLES", ""))
    if "reuse" in policy.parts:
        tunables += [
            f"glibc.malloc.trim_threshold={_KEEP_ALL}",
            "glibc.malloc.mmap_max=0",
            f"glibc.malloc.top_pad={_TOP_PAD}",
        ]
    if "glibc" in policy.parts or ("thp" in policy.parts and advises(policy, machine)):
        tunables.append("glibc.malloc.hugetlb=1")
    if "hugetlbfs" in policy.parts:
        tunables.append(f"glibc.malloc.hugetlb={policy.size or 2}")
    changed: dict[str, str | None] = {name: None for name in _OTHERS if name in inherited}
    if tunables or "GLIBC_TUNABLES" in inherited:
        changed["GLIBC_TUNABLES"] = ":".join(tunables) or None
    if "libhugetlbfs" in policy.parts:
        changed["HUGETLB_MORECORE"] = "yes"
    return changed


def removed(inherited: Mapping[str, str]) -> dict[str, str]:
    """What of the caller's environment is a page policy, and never reaches the program."""
    found = {name: inherited[name] for name in _OTHERS if name in inherited}
    kept, tunables = _without_ours(text := inherited.get("GLIBC_TUNABLES", "")), text.split(":")
    ours = [one for one in tunables if one and one not in kept]
    return found | ({"GLIBC_TUNABLES": ":".join(ours)} if ours else {})


def advises(policy: Policy, machine: Machine) -> bool:
    """Whether transparent huge pages must be asked for: where the system does not give them to everybody."""
    return machine.settable or machine.modes.get(page_size(policy, machine)) != "always"


def preloaded_actions(policy: Policy, machine: Machine, binary: Binary) -> list[str]:
    """What the preloaded library has to do (remap.c)."""
    actions: list[str] = [part for part in ("text", "bss") if part in policy.parts]
    if "thp" in policy.parts and advises(policy, machine):
        actions += ["advise"]
        if "bss" not in actions:
            actions.append("bss")
    return actions


def lack(policy: Policy, binary: Binary, machine: Machine) -> Lack | None:
    """Why the policy cannot work for this program on this machine; None when nothing speaks against it."""
    return next((found for found in _lacks(policy, binary, machine) if found is not None), None)


def _lacks(policy: Policy, binary: Binary, machine: Machine) -> Iterator[Lack | None]:
    parts = set(policy.parts)
    if parts & {"text", "bss", "thp", "glibc"}:
        yield _transparent(policy, machine)
    by_tunable = parts & {"glibc", "hugetlbfs", "reuse"}
    if binary.secured and parts - {"none"}:
        yield Lack(
            f"{binary.secured}: its loader drops LD_PRELOAD and GLIBC_TUNABLES, and its memory is hidden",
            "run it as its owner, or measure a copy without these rights",
        )
    if "libhugetlbfs" in parts:
        yield _by_libhugetlbfs(binary, machine)
    if by_tunable:
        yield _by_tunable(binary, ", ".join(sorted(by_tunable)), parts)
    if preloaded_actions(policy, machine, binary):
        yield _by_preload(binary, machine, parts)
    if "bss" in parts:
        yield _static_data(binary, machine)
    if "text" in parts:
        yield _text(binary, machine)
    if policy.from_pool:
        yield _pool(policy, machine)


def _transparent(policy: Policy, machine: Machine) -> Lack | None:
    size = policy.size if "thp" in policy.parts and policy.size else machine.pmd
    mode = machine.modes.get(size)
    folder = "/sys/kernel/mm/transparent_hugepage"
    if mode is None:
        known = ", ".join(bytes_text(one) for one in sorted(machine.modes)) or "none"
        return Lack(f"this kernel has no transparent huge pages of {bytes_text(size)}; it has: {known}")
    if machine.settable:
        return None
    if mode == "never":
        file = f"{folder}/hugepages-{size // 1024}kB/enabled"
        if size == machine.pmd:
            file = f"{folder}/enabled"
        return Lack(
            f"transparent huge pages of {bytes_text(size)} are switched off on this machine (never)",
            f"--set-thp-sizes, or as root: echo madvise > {file}",
        )
    larger = [one for one, other in machine.modes.items() if one > size and other != "never"]
    if larger:
        return Lack(
            f"pages of {bytes_text(max(larger))} are on too, and the kernel takes the largest that fits",
            "--set-thp-sizes switches the larger ones off during these runs",
        )
    return None


def _by_tunable(binary: Binary, names: str, parts: set[str]) -> Lack | None:
    if binary.allocator:
        own = {"jemalloc": "MALLOC_CONF=thp:always", "mimalloc": "MIMALLOC_ALLOW_LARGE_OS_PAGES=1"}
        hint = own.get(binary.allocator.split(" ", maxsplit=1)[0])
        remedy = "the policy thp reaches what it maps" + (f"; its own setting: {hint}" if hint else "")
        return Lack(f"malloc is served by {binary.allocator}: glibc's tunables do nothing ({names})", remedy)
    if binary.c_library != "glibc":
        what = (
            "it is a Go program, with an allocator of its own" if binary.go else "its malloc is not glibc's"
        )
        library = f" ({binary.c_library})" if binary.c_library else ""
        return Lack(f"{what}{library}: glibc's tunables do nothing ({names})")
    if parts & {"glibc", "hugetlbfs"} and not binary.tunable:
        number = "" if binary.version is None else f" {binary.version[0]}.{binary.version[1]}"
        came = ".".join(map(str, _TUNABLE_CAME))
        return Lack(
            f"its glibc{number} has no tunable glibc.malloc.hugetlb: that came with {came}",
            "run it on a newer system, or in mode `always`",
        )
    return None


def _by_preload(binary: Binary, machine: Machine, parts: set[str]) -> Lack | None:
    if binary.static:
        other = "; glibc's tunable works: policy glibc" if binary.tunable and "thp" in parts else ""
        return Lack(
            "it is linked statically: no library can be preloaded that advises or moves its memory",
            "link it dynamically, or have root set transparent huge pages to `always`" + other,
        )
    if binary.c_library != "glibc":
        return Lack(
            f"it runs with {binary.c_library or 'an unknown C library'}; the preloaded library is glibc's"
        )
    if binary.elf.machine != machine.elf_machine or binary.elf.bits != 64:
        return Lack("it is of another architecture than this program: nothing can be preloaded")
    if not machine.compiler:
        return Lack(
            "there is no C compiler, and the preloaded library is compiled on first use",
            "apt-get install gcc, or name one: CC=...",
        )
    if "thp" in parts and not binary.allocator and not binary.tunable:
        return Lack(
            "its glibc's malloc maps memory by itself, and has no tunable for advice (that came with 2.35)",
            "have root set transparent huge pages to `always`",
        )
    return None


def _static_data(binary: Binary, machine: Machine) -> Lack | None:
    if binary.elf.zeroed_bytes >= machine.pmd:
        return None
    return Lack(
        f"its zeroed static data (.bss) is {bytes_text(binary.elf.zeroed_bytes)}: less than one page of "
        f"{bytes_text(machine.pmd)}"
    )


def _text(binary: Binary, machine: Machine) -> Lack | None:
    if largest_text(binary) >= machine.pmd:
        return None
    return Lack(
        f"neither it nor a library of it has machine code of {bytes_text(machine.pmd)}: "
        f"the largest is {bytes_text(largest_text(binary))}"
    )


def default_policies(binary: Binary, machine: Machine) -> tuple[str, ...]:
    """Those that are measured when none is named: no code or static arrays that are too small for a page."""
    small = {"text": largest_text(binary), "bss": binary.elf.zeroed_bytes}
    return tuple(name for name in DEFAULT if small.get(name, machine.pmd) >= machine.pmd)


def largest_text(binary: Binary) -> int:
    """Bytes of the largest piece of machine code among the program and its libraries."""
    from pathlib import Path

    from pagewise.stack.elf import NotElfError, read_elf

    largest = binary.elf.text_bytes
    for name in binary.libraries:
        try:
            largest = max(largest, read_elf(Path(name)).text_bytes)
        except (NotElfError, OSError):
            continue
    return largest


def _by_libhugetlbfs(binary: Binary, machine: Machine) -> Lack | None:
    if binary.c_library != "glibc" or binary.static or binary.allocator:
        return Lack("libhugetlbfs serves the malloc of a dynamic program with glibc alone")
    if binary.version is None or binary.version >= _HOOK_GONE:
        number = "" if binary.version is None else f" {binary.version[0]}.{binary.version[1]}"
        return Lack(
            "libhugetlbfs would silently do nothing: its hook into malloc is gone since glibc 2.34 "
            f"(here{number})",
            "take hugetlbfs: glibc's own tunable",
        )
    if machine.hugetlbfs_library is None:
        return Lack("libhugetlbfs is not installed", "apt-get install libhugetlbfs0")
    return None


def _pool(policy: Policy, machine: Machine) -> Lack | None:
    size = page_size(policy, machine)
    if size not in machine.free:
        return Lack(f"this kernel has no pool of {bytes_text(size)} pages")
    if machine.free[size] == 0 and not machine.reserving:
        file = f"/sys/kernel/mm/hugepages/hugepages-{size // 1024}kB/nr_hugepages"
        return Lack(
            f"the pool of {bytes_text(size)} pages is empty, and glibc takes base pages then without a word",
            f"--reserve-hugepages (root), or as root: echo N > {file}",
        )
    return None


def _without_ours(tunables: str) -> list[str]:
    """The user's own tunables, less those that are page policies."""
    return [one for one in tunables.split(":") if one and one.partition("=")[0] not in _OUR_TUNABLES]
