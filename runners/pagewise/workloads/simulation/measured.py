"""The origins of a program's memory, measured: huge pages on some of them at a time (`where --measure`).

docs/explanation/origins.md describes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pagewise.analysis.rows import Row
from pagewise.core.manifest_parts import SAMPLES, Origin, Simulated
from pagewise.workloads.program.prepare import ORIGINS, SELECTED
from pagewise.workloads.simulation.forecast import LEAST_GAIN

#: The most origins that are measured one by one.
_MOST = 4
#: A set suffices with this share of the most time that huge pages save.
_ENOUGH = 0.9
#: The value of the variable for all origins.
ALL = "-"


def worth_measuring(simulated: Simulated, selectable: Sequence[Origin]) -> list[int]:
    """The numbers (from 1) of origins whose huge pages may save 1 % of the time, most first.

    Without a forecast, those with 1 % of the samples or of the page walks.
    """
    whole = simulated.counts.get(SAMPLES) or sum(origin.weight for origin in simulated.origins or ()) or 1
    forecast = simulated.forecast
    share = {
        number: origin.weight / whole
        if forecast is None or origin.saved_seconds is None
        else origin.saved_seconds[1] / min(forecast.native_seconds)
        for number, origin in enumerate(selectable, start=1)
    }
    ranked = sorted(share, key=share.__getitem__, reverse=True)
    return [number for number in ranked if share[number] >= LEAST_GAIN][:_MOST]


def sets_of(numbers: Sequence[int]) -> list[str]:
    """Each origin alone, and the first two, three and so on together, as values of the variable."""
    several = [numbers[:count] for count in range(2, len(numbers) + 1)]
    return [*map(str, numbers), *("+".join(map(str, each)) for each in several)]


@dataclass(frozen=True)
class SelectedOrigins:
    """Origins by number that together have most of the gain; time_ratio: of these, full: the best of all."""

    numbers: tuple[int, ...]
    time_ratio: float
    full: float


def smallest(rows: Iterable[Row], selectable: Sequence[Origin]) -> SelectedOrigins | None:
    """The measured set with the least memory that has 90 % of the gain; None: no set, or no gain.

    rows: of a comparison of the policies none, thp and where.
    """
    ratios: dict[tuple[int, ...], float] = {}
    best = 1.0
    for row in rows:
        if row.time is None or row.time.ratio is None or row.time.verdict != "faster":
            continue
        ratio = row.time.ratio.median
        best = min(best, ratio)
        if row.cell.measured.hugepages == SELECTED:
            ratios[_numbers(row.cell.settings.environment, len(selectable))] = ratio
    enough = [each for each, ratio in ratios.items() if 1.0 - ratio >= _ENOUGH * (1.0 - best)]
    if not enough:
        return None
    least = min(enough, key=lambda each: sum(selectable[number - 1].bytes for number in each))
    return SelectedOrigins(least, ratios[least], best)


def _numbers(environment: Mapping[str, str], count: int) -> tuple[int, ...]:
    value = environment.get(ORIGINS, ALL)
    return tuple(range(1, count + 1)) if value == ALL else tuple(map(int, value.split("+")))
