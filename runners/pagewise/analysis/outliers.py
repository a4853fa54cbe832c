"""Values that lie far from the others: shown, and kept."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Iglewicz and Hoaglin, How to Detect and Handle Outliers (ASQC Basic References in Quality Control 16, 1993):
# values farther out than this are outliers; the constants make both scores those of normal values.
FAR = 3.5
_FROM_MEDIAN_DEVIATION = 0.6745
_FROM_MEAN_DEVIATION = 1.253314


def modified_z(values: Sequence[float]) -> NDArray[np.float64]:
    """0.6745 (x - median) / MAD of each value.

    Where more than half of the values are alike the MAD is 0, and the mean deviation from the median takes
    its place; 0 where all are alike.
    """
    told = np.asarray(values, dtype=float)
    away = told - np.median(told)
    spread = float(np.median(np.abs(away))) / _FROM_MEDIAN_DEVIATION
    if spread == 0.0:
        spread = float(np.mean(np.abs(away))) * _FROM_MEAN_DEVIATION
    return away / spread if spread > 0.0 else np.zeros_like(told)


def outliers(values: Sequence[float]) -> list[int]:
    """The places of the outliers among at least 5 values, in order."""
    if len(values) < 5:
        return []
    return [int(place) for place in np.flatnonzero(np.abs(modified_z(values)) > FAR)]
