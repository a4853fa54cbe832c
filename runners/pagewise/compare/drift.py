"""Whether values go up or down over the rounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

SURE = 0.01
FEWEST = 7
# A smaller change over all rounds is not worth a word.
_WORTH = 0.01


@dataclass(frozen=True)
class Drift:
    """A trend in positive values over rounds: `first` and `last` on the line of middle slope, and its p."""

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


def mann_kendall(values: np.ndarray) -> float:
    """p of a trend in the values (two-sided), by Mann and Kendall's S with its normal approximation.

    With correction for continuity and ties (Mann, Econometrica 13, 1945; Kendall, Rank Correlation Methods,
    1975).
    """
    count = len(values)
    later, earlier = np.tril_indices(count, -1)
    score = float(np.sign(values[later] - values[earlier]).sum())
    ties = np.unique(values, return_counts=True)[1]
    variance = (
        count * (count - 1) * (2 * count + 5) - float((ties * (ties - 1) * (2 * ties + 5)).sum())
    ) / 18.0
    if variance <= 0.0 or score == 0.0:
        return 1.0
    return 2.0 * float(ndtr(-(abs(score) - 1.0) / math.sqrt(variance)))


def drift(values: Mapping[int, float]) -> Drift | None:
    """The trend of positive values by round, None where there is none to speak of or fewer than 7 rounds.

    The line is that of Theil and Sen, in log: median of all slopes (Sen, JASA 63, 1968).
    """
    if len(values) < FEWEST:
        return None
    rounds = np.array(sorted(values), dtype=float)
    logs = np.log([values[int(number)] for number in rounds])
    p = mann_kendall(logs)
    if p > SURE:
        return None
    later, earlier = np.tril_indices(len(rounds), -1)
    slope = float(np.median((logs[later] - logs[earlier]) / (rounds[later] - rounds[earlier])))
    offset = float(np.median(logs - slope * rounds))
    found = Drift(math.exp(offset + slope * rounds[0]), math.exp(offset + slope * rounds[-1]), p)
    return found if abs(found.change) >= _WORTH else None
