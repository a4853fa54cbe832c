"""Correction for multiple comparisons."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.stats import false_discovery_control


def corrected(ps: Sequence[float]) -> list[float]:
    """The p of each comparison among all of them, after Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995).

    Of the differences with p of at most 0.05, at most 5 % are false on average. Where nothing differs, the
    chance of any is 5 %. To hold that chance also where much differs (Holm, Scand. J. Stat. 6, 1979) costs up
    to half of the true differences (docs/statistics.md).
    """
    return [float(p) for p in false_discovery_control(ps, method="bh")] if ps else []
