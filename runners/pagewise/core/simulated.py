"""What a record has of a simulation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

from pagewise.core.fields import Count, Positive
from pagewise.core.structure import Form


def _check_function(counts: Mapping[str, int | str]) -> None:
    """Raises ValueError unless it has the name of a function, and counts."""
    if [name for name, count in counts.items() if isinstance(count, str)] != ["function"]:
        raise ValueError("counts are numbers, and `function` is the name")


@dataclass(frozen=True)
class SimulatedRegion:
    """The simulated counts of a region."""

    name: str
    calls: Count
    counts: Mapping[str, Count]


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """Counts of the TLB and cache simulator; a record with these holds nothing measured."""

    geometry: str
    tool: str
    pages: Annotated[str, Form("observed|base|huge|fjmpg"), "all but `observed` are assumed"]
    observed_by: Annotated[str, Form("pagemap|smaps")] | None = None
    unclear_extents: Count | None = None
    whole: Annotated[bool, "from start to end, because the program marks no regions"]
    open_regions: Count | None = None
    accesses_of_other_threads: Count | None = None
    passes: Annotated[Positive, "over the working set, that the counts are of"] | None = None
    counts: Mapping[str, Count]
    regions: tuple[SimulatedRegion, ...]
    functions: tuple[Annotated[Mapping[str, Count | str], _check_function], ...] | None = None
