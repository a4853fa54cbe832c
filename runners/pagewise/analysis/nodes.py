"""Which nodes of a partition measure otherwise than the others. Pure functions.

docs/node-sweeps.md explains the choices and gives the error rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from pagewise.analysis.bimodality import Bimodal, bimodal
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import CONFIDENCE
from pagewise.analysis.verdict import Comparison, judge

FEWEST_NODES = 4
# A node is never known better than this share, however alike others are.
_SHARPEST = 1e-3
# Qn's factors: consistent for normal values, and for few of them (Croux and Rousseeuw, Computational
# Statistics 1, 1992).
_CONSISTENT = 2.2219
_FEW = {4: 0.512, 5: 0.844, 6: 0.611, 7: 0.857, 8: 0.669, 9: 0.872}


@dataclass(frozen=True, order=True)
class Quantity:
    """What is compared across nodes: the time of a configuration of a kernel, or its time ratio."""

    kernel: str
    configuration: str
    kind: Literal["time", "time_ratio"]


@dataclass(frozen=True)
class Measured:
    """One quantity on one node: the middle of its rounds (a time or a ratio of times) and its error.

    `error` is the standard error of the logarithm.
    """

    value: float
    error: float = 0.0


@dataclass(frozen=True)
class Away:
    """A quantity of a node that lies away from the other nodes' by the factor `factor`; `p` is corrected."""

    node: str
    quantity: Quantity
    value: float
    usual: float
    factor: float
    score: float
    p: float


@dataclass(frozen=True)
class Population:
    """A quantity over all nodes: middle, spread (a share), and two groups of nodes where there are two."""

    quantity: Quantity
    nodes: int
    usual: float
    spread: float
    two: Bimodal | None


def measured(values: Sequence[float]) -> Measured:
    """Median of the rounds on a node, and the median's error from their spread (MAD)."""
    logs = np.log(np.asarray(values, dtype=float))
    middle = float(np.median(logs))
    deviation = 1.4826 * float(np.median(np.abs(logs - middle)))
    return Measured(math.exp(middle), math.sqrt(math.pi / 2.0) * deviation / math.sqrt(len(logs)))


def spread_of(logs: NDArray[np.float64]) -> float:
    """Qn (Rousseeuw and Croux, JASA 88, 1993): the spread of normal values, whatever half of them does.

    Of all distances between two values the one at the place of the closest half's. It is as robust as the
    MAD, and with few nodes surer by far.
    """
    # Every k-th of many in order: distances are as many as the square of the nodes.
    logs = np.sort(logs)[:: max(1, len(logs) // 1000)]
    count = len(logs)
    half = count // 2 + 1
    first, second = np.triu_indices(count, 1)
    distances = np.partition(np.abs(logs[first] - logs[second]), half * (half - 1) // 2 - 1)
    few = _FEW.get(count, count / (count + (1.4 if count % 2 else 3.8)))
    return _CONSISTENT * few * float(distances[half * (half - 1) // 2 - 1])


def chance(score: float, count: int) -> float:
    """The chance of such a score on a node of `count` normal ones.

    Qn comes near 0 by chance with the power count // 2 (so many distances must be small at once), so scores
    have the tails of Student's t of that many degrees of freedom. The scale is simulated, on the safe side.
    """
    return float(2.0 * stdtr(count // 2, -abs(score) / _scale(count)))


def _half_interval(count: int) -> float:
    """The score whose chance is 5 %: half the width of a node's interval."""
    return _scale(count) * float(stdtrit(count // 2, 0.5 + CONFIDENCE / 2))


def _scale(count: int) -> float:
    return {4: 0.54, 5: 0.66}.get(count, 1.0 - 2.0 / count)


def away(quantities: Mapping[Quantity, Mapping[str, Measured]], at_least: float = 0.03) -> list[Away]:
    """What lies away, the farthest first: quantities by name, each by node.

    All nodes and quantities are judged together: where all nodes are alike the chance of any finding is 5 %.
    Differences of less than the share `at_least` are ignored, and quantities of fewer than FEWEST_NODES.
    """
    deviations: list[tuple[str, Quantity, float, float, float]] = []
    comparisons = []
    for quantity, by_node in quantities.items():
        count = len(by_node)
        if count < FEWEST_NODES:
            continue
        logs = np.log([one.value for one in by_node.values()])
        usual, spread = float(np.median(logs)), max(spread_of(logs), _SHARPEST)
        errors = np.square([one.error for one in by_node.values()])
        # The spread holds the usual error; a node that is measured worse than usual must lie farther out.
        widths = np.sqrt(spread**2 + np.maximum(errors - np.median(errors), 0.0))
        for node, log, width in zip(by_node, map(float, logs), map(float, widths), strict=True):
            apart, half = log - usual, width * _half_interval(count)
            p = chance(apart / width, count)
            ratio = Ratio(count, math.exp(apart), math.exp(apart - half), math.exp(apart + half), p)
            comparisons.append(Comparison(ratio, at_least))
            deviations.append((node, quantity, log, usual, apart / width))
    found = [
        Away(node, quantity, math.exp(log), math.exp(usual), math.exp(log - usual), score, verdict.p or 0.0)
        for (node, quantity, log, usual, score), verdict in zip(deviations, judge(comparisons), strict=True)
        if verdict.reason is None
    ]
    return sorted(found, key=lambda one: -abs(math.log(one.factor)))


def population(quantity: Quantity, by_node: Mapping[str, Measured]) -> Population:
    """The middle and spread of at least one node's values."""
    values = [one.value for one in by_node.values()]
    logs = np.log(values)
    spread = spread_of(logs) if len(values) >= FEWEST_NODES else float(np.ptp(logs))
    return Population(quantity, len(values), math.exp(float(np.median(logs))), spread, bimodal(values))
