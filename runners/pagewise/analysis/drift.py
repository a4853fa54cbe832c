"""Whether values go up or down over the rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.stats import kendalltau, theilslopes

SURE = 0.01
FEWEST = 7
# A smaller change over all rounds is not reported.
_WORTH = 0.01


@dataclass(frozen=True)
class Drift:
    """A trend in positive values over rounds: `first` and `last` on the fitted line, and its p."""

    first: float
    last: float
    p: float

    @property
    def change(self) -> float:
        """last / first - 1."""
        return self.last / self.first - 1.0

    @property
    def crosses_one(self) -> bool:
        """Whether the line begins on one side of 1 and ends on the other."""
        return (self.first - 1.0) * (self.last - 1.0) < 0.0


def drift(values: Mapping[int, float]) -> Drift | None:
    """The trend of positive values by round, None where there is none to report or fewer than 7 rounds.

    Its p is that of Kendall's tau between round and value (Mann, Econometrica 13, 1945; Kendall, Rank
    Correlation Methods, 1975): exact without ties, else the normal approximation. The line is that of Theil
    and Sen, in log: median of all slopes (Sen, JASA 63, 1968).
    """
    if len(values) < FEWEST:
        return None
    rounds = np.array(sorted(values), dtype=float)
    logs = np.log([values[int(number)] for number in rounds])
    p = float(kendalltau(rounds, logs).pvalue)
    # Where all values are equal there is no tau: its p is not a number.
    if not p <= SURE:
        return None
    line = theilslopes(logs, rounds, method="joint")
    first, last = (math.exp(line.intercept + line.slope * rounds[end]) for end in (0, -1))
    trend = Drift(first, last, p)
    return trend if abs(trend.change) >= _WORTH else None
