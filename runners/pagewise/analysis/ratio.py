"""A ratio of times with its confidence interval."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """Ratios of times, paired by round: their `median`, and the confidence interval `low` to `high`.

    `trimmed` is the trimmed mean of the ratios (in log, see trimmed_mean), the centre of the interval; `p` is
    the probability of a ratio at least as far from 1 if there is no difference. With fewer than FEWEST_ROUNDS
    pairs there is no interval, and the last four are None. Below 1 is faster.
    """

    pairs: int
    median: float
    low: float | None
    high: float | None
    p: float | None = None
    trimmed: float | None = None

    @property
    def excludes_one(self) -> bool:
        """Whether 1 lies outside the interval."""
        return self.low is not None and self.high is not None and (self.high < 1.0 or self.low > 1.0)

    @property
    def width(self) -> float | None:
        """The width of the interval as a share of its low end; None without one."""
        return None if self.low is None or self.high is None else self.high / self.low - 1.0
