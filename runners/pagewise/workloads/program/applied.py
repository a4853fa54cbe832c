"""A page policy as it is applied to a program on a machine: its settings, and why it is unavailable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pagewise.core.node_state import ProcessThp
from pagewise.core.page_policy import size_name
from pagewise.core.record_parts import Failure
from pagewise.core.units import bytes_text
from pagewise.machine.host import MOUNT_SYS
from pagewise.stack.binary import Binary
from pagewise.stack.elf import NotElfError, read_elf
from pagewise.workloads.program.machine import Machine
from pagewise.workloads.program.policy import DEFAULT, Policy
from pagewise.workloads.program.table import PARTS, POOL_PARTS, Chosen, has_settings

# Actions of the preloaded library without which a policy may work.
_OF_MALLOC = ("advise-malloc", "pool-malloc")
# glibc 2.34 removed the hook by which libhugetlbfs served malloc; 2.35 brought the tunable.
_HOOK_REMOVED, _TUNABLE_ADDED = (2, 34), (2, 35)
_BY_ALWAYS = "have root set transparent huge pages to `always`, or measure the policy collapse as root"


@dataclass(frozen=True)
class PageRequest:
    """The pages that a run must be on. targets: for each part of the policy, the kinds of memory it is for.

    page: the page size asked for, without targets the base page's; huge: that of huge pages. enough: the
    minimum coverage over time. by_counter: whether a counter of the kernel verifies it, because smaps does
    not show this size (mTHP). thp: what the policy leaves to the program. of_pool: the targets whose pages
    are of a hugetlb pool.
    """

    policy: str
    targets: tuple[tuple[str, ...], ...]
    page: int
    huge: int
    enough: float
    by_counter: bool = False
    from_pool: bool = False
    thp: ProcessThp = "allowed"
    of_pool: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class AppliedPolicy:
    """A page policy with the program that is run under it, and the machine.

    programs: those that ran when the program was tried, if they are others (a script, a launcher).
    """

    policy: Policy
    binary: Binary
    machine: Machine
    programs: tuple[Binary, ...] = ()

    @property
    def page_size(self) -> int:
        """The size of its huge pages in bytes."""
        return self.pool_size if self.policy.from_pool else self.transparent_size

    @property
    def pool_size(self) -> int:
        """The size of pages that it takes from a hugetlb pool."""
        return self.policy.size or self.machine.default_pool

    @property
    def transparent_size(self) -> int:
        """The size of its transparent huge pages. A size in the name may be the pool's."""
        return self.machine.pmd if self.policy.from_pool else self.policy.size or self.machine.pmd

    @property
    def switched_size(self) -> int | None:
        """The size of transparent huge pages to switch on for its runs alone."""
        return self.policy.size if self.machine.settable and "thp" in self.policy.parts else None

    @property
    def advises(self) -> bool:
        """Whether only programs that ask get transparent huge pages, by the system or by the policy."""
        by_policy = self.policy.thp == "advised" or self.machine.settable
        return by_policy or self.machine.modes.get(self.page_size) != "always"

    @property
    def chosen(self) -> Chosen:
        """Its settings for this program."""
        conditions = ["advised"] if self.advises else []
        if any(program.allocator or program.beside for program in (self.binary, *self.programs)):
            conditions.append("replaced")
        return Chosen(self.policy.parts, self.policy.size, conditions)

    @property
    def is_watched(self) -> bool:
        """Whether its memory is moved onto huge pages from outside, while it runs."""
        return "collapse" in self.policy.parts

    def request(self, enough: float) -> PageRequest:
        """The pages that a run must be on, with this minimum coverage."""
        policy, machine = self.policy, self.machine
        if not policy.targets:
            return PageRequest(policy.name, (), machine.base, machine.pmd, 0.0, thp=policy.thp)
        size = self.page_size
        by_counter = "thp" in policy.parts and size != machine.pmd
        of_pool = tuple(PARTS[part].targets for part in policy.parts if PARTS[part].from_pool)
        return PageRequest(
            policy.name, policy.targets, size, size, enough, by_counter, policy.from_pool, policy.thp, of_pool
        )

    def to_dict(self) -> dict[str, Any]:
        """As the manifest has it."""
        return {
            "name": self.policy.name,
            "meaning": self.policy.meaning,
            "preloaded": self.chosen.actions,
            "advised": self.advises,
            "lack": None if self.unavailable is None else self.unavailable.message,
        }

    @cached_property
    def unavailable(self) -> Failure | None:
        """Why it cannot work for this program on this machine, and what to do; None when nothing is known.

        Of several programs, one that it works for suffices; else the reason is that of the first.
        """
        of_programs = [replace(self, binary=binary, programs=()) for binary in self.programs] or [self]
        reasons = [next(applied._obstacles(), None) for applied in of_programs]
        return None if None in reasons else reasons[0]

    def _obstacles(self) -> Iterator[Failure]:
        parts = set(self.policy.parts)
        yield from self._two_sizes(parts)
        yield from self._of_machine(parts)
        yield from self._of_program(parts)
        if self.policy.from_pool:
            yield from self._pool()

    def _two_sizes(self, parts: set[str]) -> Iterator[Failure]:
        """Transparent huge pages beside those of a pool with another size: a run is verified by one size."""
        transparent = {part for part in parts - POOL_PARTS if PARTS[part].targets}
        if self.policy.from_pool and transparent and self.pool_size != self.machine.pmd:
            sizes = bytes_text(self.machine.pmd), bytes_text(self.pool_size)
            yield _obstacle(
                f"transparent huge pages ({', '.join(sorted(transparent))}) have {sizes[0]}, and the pool "
                f"{sizes[1]}: a policy has one page size",
                f"name a pool with the other size (:{size_name(self.machine.pmd)}), or measure them apart",
            )

    def _of_machine(self, parts: set[str]) -> Iterator[Failure]:
        machine = self.machine
        if machine.hidden and (self.policy.targets or self.policy.thp == "advised"):
            yield _obstacle("/sys/kernel/mm is missing: the huge pages of this node are unknown", MOUNT_SYS)
        if parts & {"text", "bss", "thp", "malloc", "advised"}:
            yield from self._transparent_pages()
        if "shared" in parts:
            yield from self._shared_memory()
        if "collapse" in parts:
            if machine.collapses is not None:
                yield _obstacle(machine.collapses, "run pagewise as root on Linux 6.1 or newer, or use thp")
            yield from self._compiler()
        if "advised" in parts and not machine.limits_to_advised:
            yield _obstacle(
                "this kernel cannot limit transparent huge pages to memory that a program advises "
                "(PR_THP_DISABLE_EXCEPT_ADVISED)",
                "run it on Linux 6.18 or newer, or have root set transparent huge pages to `madvise`",
            )

    def _of_program(self, parts: set[str]) -> Iterator[Failure]:
        binary = self.binary
        if binary.secured and parts - {"none", "advised", "collapse"}:
            yield _obstacle(
                f"{binary.secured}: its loader drops LD_PRELOAD and GLIBC_TUNABLES, and its memory is hidden",
                "run it as its owner, or measure a copy without these rights",
            )
        if "libhugetlbfs" in parts:
            yield from self._libhugetlbfs()
        if of_malloc := parts & {"malloc", "hugetlbfs", "reuse"}:
            yield from self._malloc(of_malloc)
        if any(action not in _OF_MALLOC for action in self.chosen.actions):
            yield from self._preloading()
        pmd = self.machine.pmd
        if "bss" in parts and binary.elf.zeroed_bytes < pmd:
            yield _too_small("its zeroed static data (.bss) is", binary.elf.zeroed_bytes, pmd)
        if "hugetlbfs-data" in parts and binary.elf.static_bytes < self.page_size:
            yield _too_small("its static data (.data, .bss) is", binary.elf.static_bytes, self.page_size)
        if "text" in parts and (largest := largest_text(binary)) < pmd:
            yield _too_small("the largest machine code of it and its libraries is", largest, pmd)

    def _transparent_pages(self) -> Iterator[Failure]:
        modes, pmd = self.machine.modes, self.machine.pmd
        size = self.policy.size if "thp" in self.policy.parts and self.policy.size else pmd
        mode = modes.get(size)
        if mode is None:
            known = ", ".join(map(bytes_text, sorted(modes))) or "none"
            yield _obstacle(
                f"this kernel has no transparent huge pages of {bytes_text(size)}; its sizes: {known}"
            )
        if self.machine.settable:
            return
        if mode == "never":
            of_size = "" if size == pmd else f"/hugepages-{size // 1024}kB"
            yield _obstacle(
                f"transparent huge pages of {bytes_text(size)} are switched off on this machine (never)",
                "--set-thp-sizes, or as root: "
                f"echo madvise > /sys/kernel/mm/transparent_hugepage{of_size}/enabled",
            )
        if larger := [other for other, its_mode in modes.items() if other > size and its_mode != "never"]:
            yield _obstacle(
                f"pages of {bytes_text(max(larger))} are on too, and the kernel takes the largest that fits",
                "--set-thp-sizes switches the larger ones off during these runs",
            )

    def _shared_memory(self) -> Iterator[Failure]:
        mode = self.machine.shmem
        if mode is None or (mode in ("never", "deny") and not self.machine.settable):
            yield _obstacle(
                f"transparent huge pages of shared memory are switched off here ({mode or 'missing'})",
                "--set-thp-sizes, or as root: "
                "echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled; "
                "for files in /dev/shm: mount -o remount,huge=advise /dev/shm",
            )

    def _malloc(self, parts: set[str]) -> Iterator[Failure]:
        """Why the settings of its allocator do nothing."""
        binary, names = self.binary, ", ".join(sorted(parts))
        if binary.allocator is not None:
            own = binary.allocator.split(" ", maxsplit=1)[0]
            without = {part for part in parts if not has_settings(own, part)}
            if "reuse" in without:
                yield _obstacle(f"malloc is served by {binary.allocator}, which has no settings for reuse")
            elif without and not (self.machine.compiler and binary.can_preload(self.machine.elf_machine)):
                yield _obstacle(
                    f"malloc is served by {binary.allocator}, which has no settings for huge pages "
                    f"({names}), and nothing can be preloaded",
                    _BY_ALWAYS,
                )
            return
        if binary.c_library != "glibc":
            library = f" ({binary.c_library})" if binary.c_library else ""
            what = (
                "it is a Go program, which has its own allocator"
                if binary.go
                else "its malloc is not glibc's"
            )
            yield _obstacle(f"{what}{library}: glibc's tunables do nothing ({names})", _BY_ALWAYS)
        if parts & {"malloc", "hugetlbfs"} and not binary.tunable:
            yield _obstacle(
                f"its glibc{_version(binary)} does not have the tunable glibc.malloc.hugetlb, which "
                f"{'.'.join(map(str, _TUNABLE_ADDED))} added",
                f"run it on a newer system; or {_BY_ALWAYS}",
            )

    def _preloading(self) -> Iterator[Failure]:
        binary, machine, by_thp = self.binary, self.machine, "thp" in self.policy.parts
        if binary.static:
            other = "; glibc's tunable works: policy malloc" if binary.tunable and by_thp else ""
            yield _obstacle(
                "it is linked statically: no library can be preloaded that advises or moves its memory",
                f"link it dynamically, or {_BY_ALWAYS}{other}",
            )
        if binary.is_sanitized:
            yield _obstacle(
                "AddressSanitizer's library must be loaded before any other: nothing can be preloaded",
                "measure a build without AddressSanitizer",
            )
        if binary.c_library != "glibc":
            library = binary.c_library or "an unknown C library"
            yield _obstacle(f"it runs with {library}; the preloaded library needs glibc")
        if binary.elf.machine != machine.elf_machine or binary.elf.bits != 64:
            yield _obstacle("it is built for another architecture than pagewise: nothing can be preloaded")
        yield from self._compiler()
        if by_thp and not binary.allocator and not binary.tunable:
            yield _obstacle(
                "its glibc's malloc maps memory itself, and has no tunable for advice (2.35 added it)",
                _BY_ALWAYS,
            )

    def _compiler(self) -> Iterator[Failure]:
        if not self.machine.compiler:
            yield _obstacle(
                "there is no C compiler, and what starts or serves the program is compiled on first use",
                "apt-get install gcc, or name one: CC=...",
            )

    def _libhugetlbfs(self) -> Iterator[Failure]:
        binary = self.binary
        if binary.c_library != "glibc" or binary.static or binary.allocator:
            yield _obstacle("libhugetlbfs serves only the malloc of a dynamic program with glibc")
        if binary.version is None or binary.version >= _HOOK_REMOVED:
            yield _obstacle(
                "libhugetlbfs would silently do nothing: glibc 2.34 removed its hook into malloc "
                f"(here{_version(binary)})",
                "use hugetlbfs: glibc's own tunable",
            )
        if self.machine.hugetlbfs_library is None:
            yield _obstacle("libhugetlbfs is not installed", "apt-get install libhugetlbfs0")

    def _pool(self) -> Iterator[Failure]:
        size, free = self.page_size, self.machine.free
        if self.machine.allowed.get(size) == 0:
            yield _obstacle(
                f"the control groups of this process leave it no page of the hugetlb pool of "
                f"{bytes_text(size)} pages: programs would be killed by SIGBUS",
                "ask for such pages: the batch system or the container has set this limit (hugetlb.*.max)",
            )
        if size not in free:
            yield _obstacle(f"this kernel has no hugetlb pool of {bytes_text(size)} pages")
        elif free[size] == 0 and not self.machine.reserving:
            yield _obstacle(
                f"the hugetlb pool of {bytes_text(size)} pages is empty: glibc would silently use base pages",
                "--reserve-hugepages (root), or as root: "
                f"echo N > /sys/kernel/mm/hugepages/hugepages-{size // 1024}kB/nr_hugepages",
            )


def default_policies(binary: Binary, machine: Machine, *, starts_others: bool) -> tuple[str, ...]:
    """The policies that are measured by default: without code or static arrays smaller than a huge page.

    Where programs must ask for huge pages and nothing can be preloaded: also `collapse`, if permitted.
    starts_others: it is a script or a launcher, so that other programs have the memory.
    """
    if starts_others:
        return DEFAULT
    sizes = {"text": largest_text(binary), "bss": binary.elf.zeroed_bytes}
    names = tuple(name for name in DEFAULT if sizes.get(name, machine.pmd) >= machine.pmd)
    is_reached = machine.modes.get(machine.pmd) == "always" or binary.can_preload(machine.elf_machine)
    return names if is_reached or machine.collapses is not None else (*names, "collapse")


def largest_text(binary: Binary) -> int:
    """Bytes of the largest piece of machine code among the program and its libraries."""
    largest = binary.elf.text_bytes
    for name in binary.libraries:
        try:
            largest = max(largest, read_elf(Path(name)).text_bytes)
        except (NotElfError, OSError):
            continue
    return largest


def _too_small(what: str, size: int, page: int) -> Failure:
    return _obstacle(f"{what} {bytes_text(size)}: less than one page of {bytes_text(page)}")


def _obstacle(reason: str, remedy: str | None = None) -> Failure:
    return Failure(3, reason, remedy)


def _version(binary: Binary) -> str:
    return "" if binary.version is None else f" {binary.version[0]}.{binary.version[1]}"
