"""Forecast of the time that huge pages save, from simulated misses and their measured costs. Pure functions.

docs/explanation/origins.md: what it assumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import mul

from pagewise.core.manifest_parts import Forecast, Origin, Simulated
from pagewise.workloads.simulation.geometry import Costs

#: Shares of the measured cost of an access that a program waits for, least and most, by pattern.
EXPOSED = {"dependent": (0.5, 1.0), "independent": (0.5, 1.2), "adjacent": (0.0, 1.0)}
# Shares of the cost of page faults: they fetch lines that a later access would fetch otherwise, but a program
# evicts those that they need.
_FAULTS = (0.7, 1.3)
#: Smaller savings are reported as nothing to gain.
LEAST_GAIN = 0.01
#: Linux puts neither on huge pages by policy thp.
ON_BASE_PAGES = ("file", "stack")


def with_forecast(simulated: Simulated, costs: Costs, native_seconds: Sequence[float]) -> Simulated:
    """The figures with the savings of huge pages, in all and by origin."""
    origins = tuple(
        replace(origin, saved_seconds=_saved_seconds(origin, costs)) for origin in simulated.origins or ()
    )
    saved = tuple(map(sum, zip((0.0, 0.0), *(origin.saved_seconds or () for origin in origins), strict=True)))
    seconds = min(native_seconds)
    ratios = tuple(max(0.0, 1.0 - each / seconds) for each in reversed(saved))
    return replace(simulated, origins=origins, forecast=Forecast(tuple(native_seconds), saved, ratios))


def _saved_seconds(origin: Origin, costs: Costs) -> tuple[float, float]:
    """The least and the most that an origin saves on huge pages."""
    if origin.kind in ON_BASE_PAGES:
        return 0.0, 0.0
    savings: list[Sequence[float]] = []
    for pattern, exposed in EXPOSED.items():
        cost = (getattr(each, f"{pattern}_ns") for each in costs.translations)
        saved = sum(map(mul, origin.distant[pattern], cost))
        savings.append([saved * share for share in exposed])
    faults = origin.page_faults * costs.base_fault_ns
    faults -= origin.counts["PAGE_FAULTS_ON_HUGE"] * costs.huge_fault_ns
    savings.append(sorted(faults * share for share in _FAULTS))
    least, most = (sum(each) * 1e-9 for each in zip(*savings, strict=True))
    return least, most


def share_saved(origin: Origin, forecast: Forecast) -> tuple[float, float] | None:
    """The least and most that an origin saves, as shares of the native time."""
    if origin.saved_seconds is None:
        return None
    seconds = min(forecast.native_seconds)
    least, most = origin.saved_seconds
    return least / seconds, most / seconds
