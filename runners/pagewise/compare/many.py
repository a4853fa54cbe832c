"""Correction for many comparisons."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def corrected(ps: Sequence[float]) -> list[float]:
    """The p of each comparison among all of them, after Benjamini and Hochberg (J. R. Stat. Soc. B 57, 1995).

    Taking those of at most 0.05 as differences, at most 5 % of them are false on average; and where nothing
    differs at all, the chance of any is 5 %. To hold that chance also where much differs (Holm, Scand. J.
    Stat. 6, 1979) costs up to half of the true differences (docs/statistics.md).
    """
    if not ps:
        return []
    told = np.asarray(ps, dtype=float)
    order = np.argsort(told)
    scaled = told[order] * len(told) / np.arange(1, len(told) + 1)
    scaled = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    found = np.empty_like(scaled)
    found[order] = scaled
    return [float(value) for value in found]
