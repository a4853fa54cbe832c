"""The machine's tree of packages, NUMA nodes, caches and cores, as hwloc finds it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias
from xml.etree import ElementTree

from pagewise.core.errors import SetupError

_LSTOPO = ("lstopo-no-graphics", "--no-io", "--no-icaches", "--of", "xml")
_WORD_BITS = 32


@dataclass(frozen=True)
class Core:
    """A core by its hardware threads: the operating system's numbers of the CPUs, in order."""

    cpus: tuple[int, ...]


@dataclass(frozen=True)
class Domain:
    """What cores share: the machine, a package, a NUMA node, a die, a cache. `parts` are within it, in order.

    `holds_nodes`: there are several NUMA nodes in it.
    """

    parts: tuple[Domain | Core, ...]
    holds_nodes: bool = False


Part: TypeAlias = Domain | Core


@dataclass(frozen=True)
class Node:
    """A NUMA node: its number and the CPUs next to it; none next to memory that stands alone."""

    number: int
    cpus: frozenset[int]


@dataclass(frozen=True)
class Topology:
    """The tree and the NUMA nodes of a machine, as far as this process may use them (cgroups)."""

    machine: Domain
    nodes: tuple[Node, ...]

    def cores(self) -> list[Core]:
        """All cores, neighbours beside each other."""
        return list(cores_in(self.machine))

    def nodes_of(self, cpus: Iterable[int]) -> tuple[int, ...]:
        """The NUMA nodes that are next to some of these CPUs.

        Of several kinds of memory next to the same CPUs, that with the lowest number: there the kernel puts
        pages first; the others are high-bandwidth or slow memory.
        """
        wanted = set(cpus)
        first: dict[frozenset[int], int] = {}
        for node in self.nodes:
            if wanted & node.cpus:
                first.setdefault(node.cpus, node.number)
        return tuple(sorted(first.values()))


def cores_in(part: Part) -> Iterator[Core]:
    """The cores of a part of the machine, in order."""
    if isinstance(part, Core):
        yield part
    else:
        for one in part.parts:
            yield from cores_in(one)


@cache
def read_topology() -> Topology:
    """This machine's topology. Raises SetupError when hwloc is not here or tells nothing."""
    try:
        told = subprocess.run(_LSTOPO, capture_output=True, text=True, check=True, timeout=60).stdout
        return parse(told)
    except FileNotFoundError as fault:
        raise SetupError(
            f"{_LSTOPO[0]} is not here: runs are placed by what hwloc tells of the machine",
            where="PATH",
            remedy="apt-get install hwloc, dnf install hwloc; or module load hwloc, where the centre has it",
        ) from fault
    except (OSError, subprocess.SubprocessError, ElementTree.ParseError) as fault:
        said = getattr(fault, "stderr", None) or fault
        raise SetupError(
            f"hwloc does not tell the machine's topology: {said}",
            where=" ".join(_LSTOPO),
            remedy="run that command; HWLOC_XMLFILE and HWLOC_SYNTHETIC must not name what is no topology",
        ) from fault


def parse(xml: str) -> Topology:
    """Reads hwloc's XML. Raises ElementTree.ParseError."""
    root = ElementTree.fromstring(xml).find("object")
    if root is None:
        raise ElementTree.ParseError("no object in it")
    nodes = [
        Node(int(one.get("os_index", "0")), frozenset(bitmap(one.get("cpuset", ""))))
        for one in root.iter("object")
        if one.get("type") == "NUMANode"
    ]
    return Topology(_domain(root), tuple(sorted(nodes, key=lambda node: node.number)))


def bitmap(text: str) -> set[int]:
    """The numbers in hwloc's notation: words of 32 bits, the highest first, as `0x00000001,,0x0000ff00`."""
    found = set()
    for place, word in enumerate(reversed(text.split(","))):
        bits = int(word, 16) if word else 0
        found |= {place * _WORD_BITS + bit for bit in range(_WORD_BITS) if bits >> bit & 1}
    return found


def _domain(told: ElementTree.Element) -> Domain:
    parts = tuple(part for one in told.findall("object") if (part := _part(one)) is not None)
    return Domain(parts, sum(one.get("type") == "NUMANode" for one in told.iter("object")) > 1)


def _part(told: ElementTree.Element) -> Part | None:
    """A part with CPUs in it, None for what has none: memory, devices."""
    kind = told.get("type")
    if kind in ("Core", "PU"):
        # A core that hwloc knows no more of has its hardware threads alone.
        cpus = (one for one in told.iter("object") if one.get("type") == "PU")
        return Core(tuple(int(one.get("os_index", "0")) for one in cpus))
    found = _domain(told)
    return found if found.parts else None
