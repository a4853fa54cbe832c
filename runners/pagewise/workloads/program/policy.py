"""The page policies that need no rebuild: their parts (policies.h, which C programs include), and names."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("policies.h")


def _rows(kind: str) -> list[list[str]]:
    """The columns of the rows of a kind."""
    rows = re.findall(rf"^{kind}\((\".*\")\)$", FILE.read_text(encoding="utf-8"), re.MULTILINE)
    return [json.loads(f"[{row}]") for row in rows]


_OFFERS = _rows("OFFER")
#: The policies that are compared when the user names none.
DEFAULT = tuple(name for name, is_default, _ in _OFFERS if is_default)
#: The policies with a module that applies them (production.py).
IN_MODULES = tuple(name for name, _, has_module in _OFFERS if has_module)


@dataclass(frozen=True)
class PolicyRow:
    """A part of a page policy (columns: policies.h)."""

    size: str
    source: str
    targets: str
    meaning: str


#: In the order of a policy's name: a part that may have a size comes last.
PARTS: Mapping[str, PolicyRow] = {name: PolicyRow(*columns) for name, *columns in _rows("PART")}


def meaning(policy: str) -> str:
    """The meaning of each part, as of `reuse` and `thp` in `reuse+thp:64k`."""
    return "; ".join(PARTS[part.partition(":")[0]].meaning for part in policy.split("+"))


def module_of(policy: str) -> str | None:
    """The module that applies a policy to all programs of a job; None without one."""
    return f"pagewise-pages/{policy}" if policy in IN_MODULES else None
