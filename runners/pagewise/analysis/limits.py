"""The highest bandwidth that was measured in each level of the memory hierarchy. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.curves import Curve

#: Working sets of this many times the last cache are in memory.
_BEYOND = 4
#: Working sets of this many times a cache are no longer in it.
_OUTSIDE = 2


@dataclass(frozen=True)
class Level:
    """A level of the memory hierarchy: working sets above `low` and up to `high` bytes are in it.

    measured_from: the smallest that counts for its bandwidth, which the level before no longer serves.
    """

    name: str
    low: float
    high: float
    measured_from: float

    def values(self, curves: Iterable[Curve]) -> list[float]:
        """The values of curves over the working set in this level."""
        points = (point for curve in curves for point in curve.points)
        return [y for x, y in points if isinstance(x, float) and self.measured_from <= x <= self.high]


@dataclass(frozen=True)
class MeasuredLimit:
    """The highest bandwidth in a level, by which kernel, and the highest that the compared curves reach.

    with_write_allocate: the limit for a kernel whose stores load their cache lines first, None in the first
    level, where no store misses. share: what the compared curves reach of their limit, with write-allocate
    where their stores do that.
    """

    level: Level
    value: float
    kernel: str
    with_write_allocate: float | None
    reached: float | None
    share: float | None


@dataclass(frozen=True)
class Limiting:
    """A kernel whose bandwidth may be a limit: its curves over the working set, and its traffic."""

    kernel: str
    curves: Sequence[Curve]
    traffic: Mapping[str, Any] | None

    def highest(self, level: Level, *, write_allocate: bool) -> float | None:
        """Its highest bandwidth in a level, with the lines that its regular stores load there first."""
        return _highest(level, self.curves, write_allocate_share(self.traffic) if write_allocate else None)


def levels_of(caches: Sequence[tuple[str, float]]) -> list[Level]:
    """The levels of caches by name and size in bytes, the smallest first, and memory."""
    levels, low = [], 0.0
    for name, size in caches:
        levels.append(Level(name, low, size, low if _OUTSIDE * low >= size else _OUTSIDE * low))
        low = size
    return [*levels, Level("memory", low, math.inf, _BEYOND * low)]


def limits_of(
    levels: Iterable[Level],
    compared: Sequence[Curve],
    limiting: Sequence[Limiting],
    traffic: Mapping[str, Any] | None,
) -> Iterator[MeasuredLimit]:
    """The limits of the levels in which a limiting kernel was measured.

    compared: the curves below the limits; traffic: that of their kernel, see kernel.yaml.
    """
    for place, level in enumerate(levels):
        highest = [
            (value, each.kernel)
            for each in limiting
            if (value := each.highest(level, write_allocate=place > 0)) is not None
        ]
        if highest:
            value, name = max(highest)
            share = write_allocate_share(traffic) if place else None
            used = _highest(level, compared, share)
            yield MeasuredLimit(
                level,
                value,
                name,
                None if share is None else share * value,
                max(level.values(compared), default=None),
                None if used is None else used / value,
            )


def _highest(level: Level, curves: Sequence[Curve], share: float | None) -> float | None:
    """The highest bandwidth in a level, with the lines that regular stores load first.

    share: see write_allocate_share; None: stores load none.
    """
    return max(
        (
            value / (share if share is not None and curve.cell.measured.stores == "regular" else 1.0)
            for curve in curves
            for value in level.values([curve])
        ),
        default=None,
    )


def write_allocate_share(traffic: Mapping[str, Any] | None) -> float | None:
    """The share of moved bytes that the source names: 4/5 for three loads and a store that loads its line."""
    if traffic is None or not traffic["write_allocate"]:
        return None
    named = traffic["loads"] + traffic["stores"]
    share: float = named / (named + traffic["write_allocate"])
    return share


def every_working_set_curve(result: KernelResult) -> list[Curve]:
    """The curves of a kernel over the working set."""
    return [curve for sweep, curves in result.by_sweep if sweep.of_working_set for curve in curves]


def working_set_curves(result: KernelResult, placement: str | None) -> list[Curve]:
    """The curves of a kernel over the working set in a placement."""
    return [curve for curve in every_working_set_curve(result) if curve.cell.placement == placement]
