"""Types of fields that several documents have, with their limits; lists of CPUs in the kernel's notation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Literal

from pagewise.core.structure import Form, Limits

_MOMENT = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}"


_MOST_CPUS = 1 << 16


def _check_moment(text: str) -> None:
    """Raises ValueError unless it exists."""
    datetime.fromisoformat(text[:19])


def check_distinct(values: tuple[str, ...]) -> None:
    """Raises ValueError for a value that occurs twice."""
    if len(set(values)) < len(values):
        raise ValueError("a value occurs twice")


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


Count = Annotated[int, Limits(0, 10**18)]
Positive = Annotated[int, Limits(1, 10**18)]
Amount = Annotated[float, Limits(0, 1e30)]
FiniteNumber = Annotated[float, Limits(-1e30, 1e30)]
Share = Annotated[float, Limits(0, 1)]
Seconds = Annotated[float, Limits(0, 1e9)]
PositiveSeconds = Annotated[float, Limits(most=1e9, above=0)]
Threads = Annotated[int, Limits(1, 65536)]
RankCount = Annotated[int, Limits(1, 4096), "MPI ranks, each of `threads` threads; absent: no launcher"]
CpuNumber = Annotated[int, Limits(0, 65535)]
NodeOfThread = Annotated[int, Limits(-1, 65535)]
ExitCode = Annotated[int, Limits(-(2**31), 2**31 - 1)]
#: A text that is not empty.
OptionalText = str | None
Natural = Annotated[int, Limits(0)]
SomeText = Annotated[str, Limits(1)]
SomeTexts = Annotated[tuple[SomeText, ...], Limits(1)]
PolicyName = Annotated[str, Form(r"[^:]*(:[1-9][0-9]{0,11}[kmgtKMGT])?"), "a name, and a page size: thp:64k"]
Utc = Annotated[str, Form(rf"{_MOMENT}(\.[0-9]{{1,9}})?Z"), _check_moment]
#: Without fractions of a second.
Moment = Annotated[str, Form(f"{_MOMENT}Z"), _check_moment]
CpuList = Annotated[str, Limits(most=10000), cpu_list]
Sha256 = Annotated[str, Form("[0-9a-f]{64}")]
Builder = Annotated[str, Form("spack|cmake|own")]
Loop = Annotated[str, Form("explicit|compiler"), "how timed loops are written; absent: explicit"]
OnOff = Annotated[str, Form("on|off")]
Better = Literal["higher", "lower"]
