"""Page policies: the pages that each requests, in words and as a type."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pagewise.core.units import bytes_text

MemorySource = Literal["base pages", "transparent huge pages", "hugetlb pool"]
#: The least share of a kernel's memory on huge pages that counts as huge pages.
ENOUGH_COVERAGE = 0.99
_UNITS = {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


_MEMORY: Mapping[str, MemorySource] = {
    "none": "base pages",
    "thp": "transparent huge pages",
    "hugetlbfs": "hugetlb pool",
}


# The policies of builds: the entries of the file that kernels, recipes and modules read too.
_ENTRIES = json.loads(Path(__file__).with_name("policies.json").read_text(encoding="utf-8"))
_KINDS: Mapping[str, Mapping[str, str]] = {each["name"]: each for each in _ENTRIES}
#: The values of the variant `hugepages`, in the order of tables.
HUGEPAGES = tuple(_KINDS)
#: What a program needs for each.
COSTS = {name: kind["cost"] for name, kind in _KINDS.items()}


@dataclass(frozen=True)
class PagePolicy:
    """A page policy by its name: `thp`, `thp:64k`, `fjmpg-none`; for unmodified programs also `malloc`."""

    name: str

    @property
    def kind(self) -> str:
        """The policy without its size: `thp` of `thp:64k`."""
        return self.name.partition(":")[0]

    @property
    def size(self) -> int | None:
        """The page size in bytes that it names: 65536 for `thp:64k` or `thp:64K`, None for `thp`.

        Raises ValueError.
        """
        _, colon, size = self.name.partition(":")
        if not colon:
            return None
        match = re.fullmatch(r"([1-9]\d*)([kmgt])", size.lower())
        if match is None:
            raise ValueError(f"{self.name!r} is not a page size")
        return int(match[1]) * _UNITS[match[2]]

    @property
    def memory(self) -> MemorySource | None:
        """The source of its pages; None for a policy of unmodified programs only."""
        return _MEMORY[_KINDS[self.kind]["pages"]] if self.kind in _KINDS else None

    @property
    def is_base(self) -> bool:
        """Whether it refuses huge pages, so that a single one is wrong."""
        return self.memory == "base pages"

    @property
    def has_huge_pages(self) -> bool:
        """Whether it is known to be about huge pages; policies of unmodified programs need not be."""
        return self.memory not in (None, "base pages")

    @property
    def text(self) -> str:
        """In words: `transparent huge pages of 64 KiB`."""
        text = _KINDS[self.kind]["text"] if self.kind in _KINDS else self.kind
        return text if self.size is None else f"{text} of {bytes_text(self.size)}"


def normal_name(policy: str) -> str:
    """The policy as kernels write it: `hugetlbfs:2m` for `hugetlbfs:2M`; other texts unchanged."""
    named = PagePolicy(policy)
    try:
        return policy if named.size is None else f"{named.kind}:{size_name(named.size)}"
    except ValueError:
        return policy


def size_name(size: int) -> str:
    """A page size as in the names of policies: `64k`, `1g`."""
    unit = max((name for name in _UNITS if size % _UNITS[name] == 0), key=_UNITS.__getitem__, default="k")
    return f"{size // _UNITS[unit]}{unit}"
