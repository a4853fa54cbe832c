"""Reads the state of this node's memory."""

from __future__ import annotations

import os
from pathlib import Path

from pagewise.core.node_state import NodeState, parse_buddyinfo, parse_counters
from pagewise.machine.host import THP, khugepaged, read

# What khugepaged counts; its other files are settings.
_PROGRESS = ("pages_collapsed", "full_scans")


def read_state(root: Path = Path("/")) -> NodeState:
    """The state of the node's memory now. `root` stands for / (tests pass another)."""
    settings = khugepaged(root) or {}
    progress = {f"khugepaged_{name}": settings[name] for name in _PROGRESS if name in settings}
    return NodeState(
        free_blocks=parse_buddyinfo(read(root / "proc/buddyinfo") or ""),
        huge_order=huge_order(root),
        counters={**parse_counters(read(root / "proc/vmstat") or ""), **progress},
    )


def huge_order(root: Path = Path("/")) -> int | None:
    """The order of a block of the THP size: 9 for 2 MiB of base pages of 4 KiB; None without THP."""
    size = read(root / THP / "hpage_pmd_size") or ""
    return (int(size) // os.sysconf("SC_PAGESIZE")).bit_length() - 1 if size.isdigit() else None
