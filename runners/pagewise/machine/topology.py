"""The machine's tree of packages, NUMA nodes, caches and cores, as hwloc reports it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from xml.etree import ElementTree

from pagewise.core.environment import C_LOCALE
from pagewise.core.errors import SetupError

_LSTOPO = ("lstopo-no-graphics", "--no-io", "--no-icaches", "--of", "xml")


@dataclass(frozen=True)
class Core:
    """A core: its hardware threads by the operating system's CPU numbers, in order, and where it is.

    path: its place in the machine's tree: for each part that contains it (package, NUMA node, cache), from
    the outermost to the core itself, how late that part is chosen among its siblings. The first NUMA node is
    chosen first, and in it the last core, because the first core of a machine handles most interrupts.
    """

    cpus: tuple[int, ...]
    path: tuple[int, ...]


@dataclass(frozen=True)
class Node:
    """A NUMA node: its number and the CPUs next to it; no CPUs for memory without processors."""

    number: int
    cpus: frozenset[int]


@dataclass(frozen=True)
class Topology:
    """The cores in the machine's order and its NUMA nodes, as far as this process may use them (cgroups)."""

    cores: tuple[Core, ...]
    nodes: tuple[Node, ...]

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
    return Topology(tuple(_cores(root)), tuple(sorted(nodes, key=lambda node: node.number)))


def bitmap(text: str) -> set[int]:
    """The numbers in hwloc's notation: words of 32 bits, the highest first, as `0x00000001,,0x0000ff00`."""
    bits = int("".join(word.removeprefix("0x").zfill(8) for word in text.split(",")), 16)
    return {number for number in range(bits.bit_length()) if bits >> number & 1}


def _cores(element: ElementTree.Element, path: tuple[int, ...] = ()) -> Iterator[Core]:
    """The cores below an element of the tree, in order."""
    holds_nodes = len(_of_type("NUMANode", element)) > 1
    for number, child in enumerate(element.findall("object")):
        inner = (*path, number if holds_nodes else -number)
        # hwloc may report hardware threads without their core.
        if child.get("type") in ("Core", "PU"):
            yield Core(tuple(map(_number, _of_type("PU", child))), inner)
        else:
            yield from _cores(child, inner)


def _of_type(kind: str, element: ElementTree.Element) -> list[ElementTree.Element]:
    return [inner for inner in element.iter("object") if inner.get("type") == kind]


def _number(element: ElementTree.Element) -> int:
    return int(element.get("os_index", "0"))
