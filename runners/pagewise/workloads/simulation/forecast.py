"""Forecast of the time that huge pages save, from simulated misses and their measured costs. Pure functions.

docs/explanation/origins.md: what it assumes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pagewise.core.manifest_parts import Forecast, Origin, Simulated
from pagewise.workloads.simulation.geometry import Geometry

# Shares of the cost of a miss that a program waits for, least and most. Out-of-order execution overlaps
# misses of independent accesses; a chase waits for each.
_EXPOSED = (0.2, 1.0)
# Of a miss on the page next to the last one of the same instruction: it is prefetched.
_EXPOSED_FOLLOWING = (0.0, 0.3)
# Shares of the cost of page faults: they fetch lines that a later access would fetch otherwise.
_FAULTS = (0.7, 1.0)
#: Smaller savings are reported as nothing to gain.
LEAST_GAIN = 0.01
# Linux puts neither on huge pages by policy thp.
_ON_BASE_PAGES = ("file", "stack")


def with_forecast(simulated: Simulated, geometry: Geometry, native_seconds: Sequence[float]) -> Simulated:
    """The figures with the savings of huge pages, in all and by origin; unchanged if costs are unknown."""
    base, huge = geometry.miss_costs("base"), geometry.miss_costs("huge")
    origins = simulated.origins
    if base is None or huge is None or origins is None or "PAGE_WALKS_ON_HUGE" not in simulated.counts:
        return simulated
    faults = (geometry.pages.base_fault_ns or 0.0, geometry.pages.huge_fault_ns or 0.0)
    if None in (geometry.pages.base_fault_ns, geometry.pages.huge_fault_ns):
        faults = (0.0, 0.0)
    forecast = tuple(
        replace(origin, saved_seconds=_saved_seconds(origin, base, huge, faults)) for origin in origins
    )
    saved = tuple(map(sum, zip(*(origin.saved_seconds or (0.0, 0.0) for origin in forecast), strict=True)))
    seconds = min(native_seconds)
    ratios = tuple(max(0.0, 1.0 - each / seconds) for each in reversed(saved))
    return replace(simulated, origins=forecast, forecast=Forecast(tuple(native_seconds), saved, ratios))


def _saved_seconds(
    origin: Origin, base: tuple[float, float], huge: tuple[float, float], faults: tuple[float, float]
) -> tuple[float, float]:
    """The least and the most that an origin saves on huge pages. The costs are nanoseconds."""
    if origin.kind in _ON_BASE_PAGES:
        return 0.0, 0.0
    counts, savings = origin.counts, [0.0, 0.0]
    for name, before, after in zip(("L1D_TLB_REFILL", "PAGE_WALKS"), base, huge, strict=True):
        saved = counts[name] * before - counts[f"{name}_ON_HUGE"] * after
        following = counts[f"{name}_FOLLOWING"] / counts[name] if counts[name] else 0.0
        exposed = (
            (1.0 - following) * alone + following * next_to
            for alone, next_to in zip(_EXPOSED, _EXPOSED_FOLLOWING, strict=True)
        )
        _add(savings, sorted(saved * share for share in exposed))
    saved = origin.page_faults * faults[0] - counts["PAGE_FAULTS_ON_HUGE"] * faults[1]
    _add(savings, sorted(saved * share for share in _FAULTS))
    return savings[0] * 1e-9, savings[1] * 1e-9


def _add(savings: list[float], more: Sequence[float]) -> None:
    for i, each in enumerate(more):
        savings[i] += each


def share_saved(origin: Origin, forecast: Forecast) -> tuple[float, float] | None:
    """The least and most that an origin saves, as shares of the native time."""
    if origin.saved_seconds is None:
        return None
    seconds = min(forecast.native_seconds)
    least, most = origin.saved_seconds
    return least / seconds, most / seconds
