"""Reads the state of this node's memory."""

from __future__ import annotations

import os
from pathlib import Path

from pagewise.core.host import Thp
from pagewise.core.node_state import (
    HugePageSupply,
    NodeState,
    ProcessThp,
    obtainable_blocks,
    parse_buddyinfo,
    parse_counters,
    parse_reserves,
    unusable_index,
)
from pagewise.machine.host import khugepaged_settings, read, thp_size
from pagewise.machine.memory import available
from pagewise.machine.settings.thp import process_thp

# What khugepaged counts; its other files are settings.
_PROGRESS = ("pages_collapsed", "full_scans")


def read_state(root: Path = Path("/")) -> NodeState:
    """The state of the node's memory now. `root` stands for / (tests pass another)."""
    settings = khugepaged_settings(root) or {}
    progress = {f"khugepaged_{name}": settings[name] for name in _PROGRESS if name in settings}
    return NodeState(
        free_blocks=parse_buddyinfo(read(root / "proc/buddyinfo") or ""),
        huge_order=huge_order(root),
        counters={**parse_counters(read(root / "proc/vmstat") or ""), **progress},
    )


def huge_order(root: Path = Path("/")) -> int | None:
    """The order of a block of the THP size: 9 for 2 MiB of base pages of 4 KiB; None without THP."""
    size = thp_size(root)
    return (size // os.sysconf("SC_PAGESIZE")).bit_length() - 1 if size else None


def predict(
    thp: Thp | None, process: ProcessThp | None = None, root: Path = Path("/")
) -> HugePageSupply | None:
    """How many huge pages of the THP size programs would get now; None without THP.

    thp: the node's settings. process: what this process may use (default: what the kernel reports).
    """
    order = huge_order(root)
    if thp is None or order is None:
        return None
    page = os.sysconf("SC_PAGESIZE") << order
    # Since Linux 6.8 each size has a setting, which decides unless it is `inherit`.
    of_size = thp.sizes.get(f"{page // 1024}kB")
    mode = of_size if of_size not in (None, "inherit") else thp.enabled
    process = process or process_thp()
    free, limit = parse_buddyinfo(read(root / "proc/buddyinfo") or ""), available(root)
    reserves = parse_reserves(read(root / "proc/zoneinfo") or "")
    obtainable = 0 if mode == "never" or process == "refused" else obtainable_blocks(free, reserves, order)
    unusable = unusable_index(free, order)
    return HugePageSupply(
        page_bytes=page,
        obtainable=obtainable if limit is None else min(obtainable, limit // page),
        usable_share=None if unusable is None else round(1.0 - unusable, 6),
        mode=mode,
        process=process,
        limit_bytes=limit,
    )


def unit_of_process(root: Path = Path("/")) -> str | None:
    """The systemd unit that this process belongs to, by its control group: `slurmd.service`."""
    parts = (
        part for line in (read(root / "proc/self/cgroup") or "").splitlines() for part in line.split("/")
    )
    return next((part for part in parts if part.endswith((".service", ".scope"))), None)
