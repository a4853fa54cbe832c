"""The state of a node's memory: free blocks, and what the kernel counts. Pure functions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from pagewise.core.fields import Count, Positive, Share

#: The states of the node that a comparison can ask for.
STATES = ("fresh", "aged")
#: What a process may use: all modes, transparent huge pages only for memory that it advises, none.
ProcessThp = Literal["allowed", "advised", "refused"]
#: Free blocks of 2^0, 2^1, ... base pages by zone, as `0/Normal`: NUMA node and name.
FreeBlocks = Mapping[str, tuple[Count, ...]]
# The events of /proc/vmstat that are recorded.
_COUNTERS = re.compile(r"^((?:compact|numa|thp)_\w+) (\d+)$", re.MULTILINE)
_WATERMARKS = re.compile(
    r"^Node (\d+), zone +(\w+)$|^ +(?P<name>min|boost) +(?P<pages>\d+)$|^ +protection: \((?P<levels>.*)\)$",
    re.MULTILINE,
)
_ZONE = re.compile(r"^Node (\d+), zone +(\w+)((?: +\d+)+) *$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class NodeState:
    """The state at a moment. `huge_order`: the order of a block of the THP size, None without THP."""

    free_blocks: FreeBlocks
    huge_order: int | None
    counters: Mapping[str, int]


@dataclass(frozen=True, kw_only=True)
class NodeChange:
    """The free memory before a run, and what the kernel counted during it, for all processes of the node.

    unusable_index: see `unusable_index`, for the THP size; None without THP or without free memory.
    counted: the events that occurred, by their names in /proc/vmstat, and the progress of khugepaged.
    """

    free_blocks: Annotated[FreeBlocks, "/proc/buddyinfo"]
    unusable_index: Share | None
    counted: Mapping[str, Count]


@dataclass(frozen=True, kw_only=True)
class HugePageSupply:
    """A prediction from the node's free memory: how many transparent huge pages programs would get now.

    obtainable: without compaction. usable_share: the share of free memory in blocks of the size, None without
    free memory. mode: the THP setting of the size. process: what PR_SET_THP_DISABLE leaves to this process
    and the programs that it starts. limit_bytes: what the kernel and the control groups leave to new
    programs, None if unknown.
    """

    page_bytes: Positive
    obtainable: Count
    usable_share: Share | None
    mode: str
    process: ProcessThp
    limit_bytes: Count | None


def parse_buddyinfo(text: str) -> dict[str, tuple[int, ...]]:
    """The free blocks in /proc/buddyinfo; empty if it has none."""
    return {f"{node}/{zone}": tuple(map(int, counts.split())) for node, zone, counts in _ZONE.findall(text)}


def parse_counters(text: str) -> dict[str, int]:
    """The events of memory compaction, NUMA and THP in /proc/vmstat."""
    return {name: int(count) for name, count in _COUNTERS.findall(text)}


def parse_reserves(text: str) -> dict[str, int]:
    """By zone, the base pages of /proc/zoneinfo that the kernel keeps from page faults of programs.

    Those are the minimum watermark, its boost after fragmentation, and what protects low zones.
    """
    reserves: dict[str, int] = {}
    zone = ""
    for match in _WATERMARKS.finditer(text):
        if match[1] is not None:
            zone = f"{match[1]}/{match[2]}"
            reserves[zone] = 0
        elif zone and match["name"] is not None:
            reserves[zone] += int(match["pages"])
        elif zone:
            reserves[zone] += max(map(int, match["levels"].split(",")))
    return reserves


def obtainable_blocks(free_blocks: FreeBlocks, reserves: Mapping[str, int], order: int) -> int:
    """How many blocks of this order page faults get without compaction.

    reserves: base pages by zone that stay free (see `parse_reserves`).
    """
    return sum(
        min(max(0, _pages(blocks) - reserves.get(zone, 0)), _pages(blocks, order)) >> order
        for zone, blocks in free_blocks.items()
    )


def unusable_index(free_blocks: FreeBlocks, order: int) -> float | None:
    """The share of free memory that lies in blocks smaller than this order; None if no memory is free.

    The kernel's "unusable free space index" of all zones together: 0 if all free memory could be allocated in
    blocks of this order, 1 if none. Source: M. Gorman, A. Whitcroft, "The what, the why and the where to of
    anti-fragmentation", OLS 2006, and mm/vmstat.c.
    """
    free = sum(_pages(blocks) for blocks in free_blocks.values())
    usable = sum(_pages(blocks, order) for blocks in free_blocks.values())
    return None if free == 0 else 1.0 - usable / free


def change(before: NodeState, after: NodeState) -> NodeChange:
    """What a record keeps of the states before and after a run."""
    order = before.huge_order
    unusable = None if order is None else unusable_index(before.free_blocks, order)
    counted = {name: count - before.counters.get(name, count) for name, count in after.counters.items()}
    return NodeChange(
        free_blocks=before.free_blocks,
        unusable_index=None if unusable is None else round(unusable, 6),
        counted={name: count for name, count in counted.items() if count > 0},
    )


def _pages(blocks: tuple[int, ...], smallest: int = 0) -> int:
    """The base pages in free blocks of at least this order."""
    return sum(count << order for order, count in enumerate(blocks) if order >= smallest)
