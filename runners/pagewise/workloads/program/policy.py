"""The page policies that need no rebuild: their parts (policies.h, which C programs include), and names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("policies.h")
DEFAULT = ("none", "thp", "malloc", "hugetlbfs", "text", "bss", "reuse", "reuse+malloc")
#: The policies with a module that applies them (production.py).
IN_MODULES = (
    *("none", "thp", "malloc", "hugetlbfs", "text", "bss", "shared"),
    *("reuse", "reuse+thp", "reuse+malloc", "advised", "hugetlbfs-data", "hugetlbfs-shared"),
)


@dataclass(frozen=True)
class Part:
    """A part of a page policy (columns: policies.h)."""

    size: str
    source: str
    targets: str
    meaning: str


#: In the order of a policy's name: a part that may have a size comes last.
PARTS: Mapping[str, Part] = {
    name: Part(*columns)
    for row in re.findall(r"^PART\((\".*\")\)$", FILE.read_text(encoding="utf-8"), re.MULTILINE)
    for name, *columns in [json.loads(f"[{row}]")]
}


def parts_of(policy: str) -> list[str]:
    """The parts of a policy by its name: `reuse` and `thp` of `reuse+thp:64k`."""
    return [part.partition(":")[0] for part in policy.split("+")]


def meaning(policy: str) -> str:
    """The meaning of each part."""
    return "; ".join(PARTS[part].meaning for part in parts_of(policy))


def module_of(policy: str) -> str | None:
    """The module that applies a policy to all programs of a job; None without one."""
    return f"pagewise-pages/{policy}" if policy in IN_MODULES else None
