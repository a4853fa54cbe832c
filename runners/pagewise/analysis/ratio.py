"""A ratio of times with its confidence interval, or a difference of values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Ratio:
    """Ratios of times, paired by round: their `median`, and the confidence interval `low` to `high`.

    `trimmed` is the trimmed mean of the ratios (in log, see trimmed_mean), the centre of the interval; `p` is
    the probability of a ratio at least as far from 1 if there is no difference. With fewer than FEWEST_ROUNDS
    pairs there is no interval, and these four are None. Below 1 is faster. is_difference: it is a difference
    instead, of values that are not all above zero, and 0 is not a change.
    """

    pairs: int
    median: float
    low: float | None
    high: float | None
    p: float | None = None
    trimmed: float | None = None
    is_difference: bool = field(default=False, kw_only=True)

    @property
    def unchanged(self) -> float:
        """The value of no change."""
        return 0.0 if self.is_difference else 1.0

    @property
    def excludes_equality(self) -> bool:
        """Whether no change lies outside the interval."""
        ends = self.low, self.high
        return ends[0] is not None and ends[1] is not None and not ends[0] <= self.unchanged <= ends[1]

    def exceeds(self, floor: float) -> bool:
        """Whether the median lies outside a noise floor: a share, for a difference in its unit."""
        if self.is_difference:
            return abs(self.median) > floor
        return abs(math.log(self.median)) > math.log1p(floor)

    @property
    def width(self) -> float | None:
        """The width of the interval as a share of its low end; None without one."""
        return None if self.low is None or self.high is None else self.high / self.low - 1.0
