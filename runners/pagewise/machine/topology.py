"""The machine's tree of packages, NUMA nodes, caches and cores, as hwloc reports it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias
from xml.etree import ElementTree

from pagewise.core.environment import C_LOCALE
from pagewise.core.errors import SetupError

_LSTOPO = ("lstopo-no-graphics", "--no-io", "--no-icaches", "--of", "xml")
_WORD_BITS = 32


@dataclass(frozen=True)
class Core:
    """A core: its hardware threads by the operating system's CPU numbers, in order."""

    cpus: tuple[int, ...]


@dataclass(frozen=True)
class Domain:
    """What cores share: the machine, a package, a NUMA node, a die, a cache.

    parts: the domains and cores in it, in order. holds_nodes: whether it has several NUMA nodes.
    """

    parts: tuple[Domain | Core, ...]
    holds_nodes: bool = False


Part: TypeAlias = Domain | Core


@dataclass(frozen=True)
class Node:
    """A NUMA node: its number and the CPUs next to it; no CPUs for memory without processors."""

    number: int
    cpus: frozenset[int]


@dataclass(frozen=True)
class Topology:
    """The tree and the NUMA nodes of a machine, as far as this process may use them (cgroups)."""

    machine: Domain
    nodes: tuple[Node, ...]

    def cores(self) -> list[Core]:
        """All cores, in the order of the tree."""
        return list(cores_in(self.machine))

    def nodes_of(self, cpus: Iterable[int]) -> tuple[int, ...]:
        """The NUMA nodes that are next to some of these CPUs.

        If the same CPUs have several kinds of memory, the node with the lowest number: the kernel places
        pages there first. The others are high-bandwidth or slow memory.
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
        for inner in part.parts:
            yield from cores_in(inner)


@cache
def read_topology() -> Topology:
    """This machine's topology. Raises SetupError when hwloc is missing or reports none."""
    try:
        listed = subprocess.run(
            _LSTOPO, env={**os.environ, **C_LOCALE}, capture_output=True, text=True, check=True, timeout=60
        )
        return parse(listed.stdout)
    except FileNotFoundError as fault:
        raise SetupError(
            f"{_LSTOPO[0]} is missing; runs are placed by the topology that hwloc reports",
            where="PATH",
            remedy="apt-get install hwloc, dnf install hwloc; or module load hwloc",
        ) from fault
    except (OSError, subprocess.SubprocessError, ElementTree.ParseError) as fault:
        raise SetupError(
            f"hwloc reports no topology: {getattr(fault, 'stderr', None) or fault}",
            where=" ".join(_LSTOPO),
            remedy="run that command; HWLOC_XMLFILE and HWLOC_SYNTHETIC, if set, must name a topology",
        ) from fault


def parse(xml: str) -> Topology:
    """Parses hwloc's XML. Raises ElementTree.ParseError."""
    root = ElementTree.fromstring(xml).find("object")
    if root is None:
        raise ElementTree.ParseError("it has no object")
    nodes = [
        Node(_number(element), frozenset(bitmap(element.get("cpuset", ""))))
        for element in _of_type("NUMANode", root)
    ]
    return Topology(_domain(root), tuple(sorted(nodes, key=lambda node: node.number)))


def bitmap(text: str) -> set[int]:
    """The numbers in hwloc's notation: words of 32 bits, the highest first, as `0x00000001,,0x0000ff00`."""
    numbers = set()
    for place, word in enumerate(reversed(text.split(","))):
        bits = int(word, 16) if word else 0
        numbers |= {place * _WORD_BITS + bit for bit in range(_WORD_BITS) if bits >> bit & 1}
    return numbers


def _domain(element: ElementTree.Element) -> Domain:
    parts = tuple(part for child in element.findall("object") if (part := _part(child)) is not None)
    return Domain(parts, len(_of_type("NUMANode", element)) > 1)


def _part(element: ElementTree.Element) -> Part | None:
    """A part with CPUs, None for what has none: memory, devices."""
    # hwloc may report hardware threads without their core.
    if element.get("type") in ("Core", "PU"):
        return Core(tuple(map(_number, _of_type("PU", element))))
    domain = _domain(element)
    return domain if domain.parts else None


def _of_type(kind: str, element: ElementTree.Element) -> list[ElementTree.Element]:
    return [inner for inner in element.iter("object") if inner.get("type") == kind]


def _number(element: ElementTree.Element) -> int:
    return int(element.get("os_index", "0"))
