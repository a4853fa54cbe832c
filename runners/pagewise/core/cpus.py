"""Lists of CPUs and nodes in the kernel's notation."""

from __future__ import annotations

import re
from collections.abc import Iterable

_MOST_CPUS = 1 << 16


def cpu_list(text: str) -> list[int]:
    """Parses the kernel's list notation: `0-2,7` is 0, 1, 2, 7; the order is kept.

    Raises ValueError for anything else, for a number that is listed twice, and for a number beyond all CPUs.
    """
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        match = re.fullmatch(r"([0-9]{1,6})(?:-([0-9]{1,6}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (0, -1)
        if not first <= last < _MOST_CPUS or not set(range(first, last + 1)).isdisjoint(numbers):
            raise ValueError(f"{text[:40]!r} is not a list of CPUs")
        numbers += range(first, last + 1)
    return numbers


def list_text(numbers: Iterable[int]) -> str:
    """Numbers in the kernel's list notation: 0, 1, 2, 7 is `0-2,7`."""
    ends: list[list[int]] = []
    for number in sorted(numbers):
        if ends and number == ends[-1][1] + 1:
            ends[-1][1] = number
        else:
            ends.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ends)
