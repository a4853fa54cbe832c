"""Ratios as bars with intervals on one logarithmic axis, for a table's column: geometry in per cent."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pagewise.analysis.ratio import Ratio

_TICKS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
# The smallest and the largest extent of an axis on either side of 1.
_LEAST, _MOST = 1.08, 12.0
# Per cent of the axis between two ticks.
_ROOM = 13.0


@dataclass(frozen=True)
class Bar:
    """A bar from `start` to `end`, with its interval from `low` to `high`."""

    start: float
    end: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from `first` to `last`."""

    first: float
    last: float

    @classmethod
    def over(cls, ratios: Iterable[Ratio | None]) -> Axis:
        """The axis that contains all these ratios and 1."""
        known = [ratio for ratio in ratios if ratio is not None]
        ends = [end for ratio in known for end in (ratio.low or ratio.median, ratio.high or ratio.median)]
        low, high = min([*ends, 1 / _LEAST]), max([*ends, _LEAST])
        return cls(max(low / 1.02, 1 / _MOST), min(high * 1.02, _MOST))

    def place(self, ratio: float) -> float:
        """The position of a ratio in per cent of the axis; ratios beyond its ends are clipped."""
        share = math.log(ratio / self.first) / math.log(self.last / self.first)
        return round(100 * min(max(share, 0.0), 1.0), 1)

    def bar(self, ratio: Ratio) -> Bar:
        """A ratio's bar from 1, and its interval."""
        start, end = sorted((self.place(1.0), self.place(ratio.median)))
        if ratio.low is None or ratio.high is None:
            return Bar(start, end, None, None)
        return Bar(start, end, self.place(ratio.low), self.place(ratio.high))

    def band(self, floor: float | None) -> tuple[float, float] | None:
        """The noise floor's ends."""
        return None if floor is None else (self.place(1 / (1 + floor)), self.place(1 + floor))

    @property
    def ticks(self) -> Sequence[tuple[float, str]]:
        """Positions and texts, including 1, with enough room between them."""
        ticks = [(self.place(1.0), "1")]
        inside = [tick for tick in _TICKS if self.first <= tick <= self.last and tick != 1.0]
        for tick in sorted(inside, key=lambda tick: (len(f"{tick:g}"), abs(math.log(tick)))):
            place = self.place(tick)
            if all(abs(place - other) >= _ROOM for other, _ in ticks):
                ticks.append((place, f"{tick:g}"))
        return sorted(ticks)
