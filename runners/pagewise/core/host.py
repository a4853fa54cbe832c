"""A node and its settings, as manifests record them; None for facts that the machine does not report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pagewise.core.fields import Count, Positive
from pagewise.core.structure import OPEN


@dataclass(frozen=True)
class NumaNode:
    """A NUMA node with its CPUs and its memory in bytes."""

    node: Count
    cpus: tuple[Count, ...]
    memory_bytes: Count | None


@dataclass(frozen=True)
class Cache:
    """A data or unified cache: its level, size and how many CPUs share it."""

    level: Count
    bytes: Count
    shared_by: Count


@dataclass(frozen=True)
class Thp:
    """The settings of transparent huge pages: of all sizes together, by size (`64kB`), of shared memory."""

    enabled: str
    defrag: str | None
    sizes: Mapping[str, str | None]
    shared: Annotated[str | None, "null: unknown"] = None


@dataclass(frozen=True)
class PoolState:
    """The hugetlb pool of a page size: its pages, and those that are free."""

    page_bytes: Positive
    total: Count
    free: Count


@dataclass(frozen=True)
class Host:
    """A node: processor, memory, caches, and the settings that change what is measured.

    khugepaged: its settings, and its progress since the node started, by their names in its folder.
    free_page_reporting: whether the hypervisor takes back freed memory. boost: whether clocks above the
    nominal one are allowed.
    """

    hostname: str
    cpu: str | None
    architecture: str
    microcode: str | None
    kernel: str
    base_page_size_bytes: Count
    memory_bytes: Count | None
    cpus: Count
    smt: bool | None
    numa_nodes: tuple[Annotated[NumaNode, OPEN], ...]
    caches: tuple[Annotated[Cache, OPEN], ...]
    thp: Annotated[Thp, OPEN] | None
    thp_allowed: bool | None
    pools: tuple[Annotated[PoolState, OPEN], ...]
    governors: tuple[str, ...] | None
    virtual_machine: str | None
    container: bool
    pmu: bool
    perf_event_paranoid: int | None
    khugepaged: Mapping[str, int] | None = None
    free_page_reporting: bool | None = None
    scaling_drivers: tuple[str, ...] | None = None
    boost: bool | None = None
