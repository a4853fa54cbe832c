"""Which nodes of a partition differ from the others in what they measure. Pure functions.

docs/how-to/node-sweeps.md explains the choices and gives the error rates.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from pagewise.analysis.noise import Bimodal, bimodal
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import CONFIDENCE
from pagewise.analysis.verdict import Comparison, judge_all

FEWEST_NODES = 4
# The assumed least uncertainty of a node's value, as a share.
_SHARPEST = 1e-3
# Qn's factors: for consistency with normal values, and for few of them (Croux and Rousseeuw, Computational
# Statistics 1, 1992).
_CONSISTENT = 2.2219
_FEW = {4: 0.512, 5: 0.844, 6: 0.611, 7: 0.857, 8: 0.669, 9: 0.872}


@dataclass(frozen=True, order=True)
class NodeQuantity:
    """What is compared across nodes: the time of a configuration of a kernel, or its time ratio."""

    kernel: str
    configuration: str
    kind: Literal["time", "time_ratio"]


@dataclass(frozen=True)
class NodeValue:
    """One quantity on one node: the median of its rounds (a time or a ratio of times) and its error.

    `error` is the standard error of the logarithm.
    """

    value: float
    error: float = 0.0


@dataclass(frozen=True)
class Away:
    """A quantity that differs from the other nodes' by the factor `factor`; `p` is corrected."""

    node: str
    quantity: NodeQuantity
    value: float
    usual: float
    factor: float
    score: float
    p: float


@dataclass(frozen=True)
class Population:
    """A quantity over all nodes: median, spread (a share), and two groups of nodes if there are two."""

    quantity: NodeQuantity
    nodes: int
    usual: float
    spread: float
    two: Bimodal | None


def measured(values: Sequence[float]) -> NodeValue:
    """Median of the rounds on a node, and the median's error from their spread (MAD)."""
    logs = np.log(np.asarray(values, dtype=float))
    center = float(np.median(logs))
    deviation = 1.4826 * float(np.median(np.abs(logs - center)))
    return NodeValue(math.exp(center), math.sqrt(math.pi / 2.0) * deviation / math.sqrt(len(logs)))


def spread_of(logs: NDArray[np.float64]) -> float:
    """Qn (Rousseeuw and Croux, JASA 88, 1993): the spread of normal values, robust against half of them.

    Of all distances between two values, it is the largest among the closest half of the values. It is as
    robust as the MAD and, with few nodes, much more precise.
    """
    # Every k-th of many in order: the number of distances is the square of the number of nodes.
    logs = np.sort(logs)[:: max(1, len(logs) // 1000)]
    count = len(logs)
    half = count // 2 + 1
    first, second = np.triu_indices(count, 1)
    distances = np.partition(np.abs(logs[first] - logs[second]), half * (half - 1) // 2 - 1)
    few = _FEW.get(count, count / (count + (1.4 if count % 2 else 3.8)))
    return _CONSISTENT * few * float(distances[half * (half - 1) // 2 - 1])


def chance(score: float, count: int) -> float:
    """The chance of such a score on a node of `count` normal ones.

    The probability that Qn is near 0 follows the power count // 2 (that many distances must be small at
    once), so scores have the tails of Student's t with that many degrees of freedom. The scale is simulated
    and conservative.
    """
    return float(2.0 * stdtr(count // 2, -abs(score) / _scale(count)))


def _scale(count: int) -> float:
    return {4: 0.54, 5: 0.66}.get(count, 1.0 - 2.0 / count)


def away(quantities: Mapping[NodeQuantity, Mapping[str, NodeValue]], at_least: float = 0.03) -> list[Away]:
    """What differs from the other nodes, the farthest first: quantities by name, each by node.

    All nodes and quantities are judged together: if all nodes are alike, the chance of any finding is 5 %.
    Differences of less than the share `at_least` are ignored, and quantities of fewer than FEWEST_NODES.
    """
    candidates: dict[tuple[str, NodeQuantity], Away] = {}
    comparisons: dict[tuple[str, NodeQuantity], Comparison] = {}
    for quantity, by_node in quantities.items():
        count = len(by_node)
        if count < FEWEST_NODES:
            continue
        logs = np.log([item.value for item in by_node.values()])
        usual, spread = float(np.median(logs)), max(spread_of(logs), _SHARPEST)
        errors = np.square([item.error for item in by_node.values()])
        # The spread includes the usual error; a node with a larger error must differ more.
        widths = np.sqrt(spread**2 + np.maximum(errors - np.median(errors), 0.0))
        half_interval = _scale(count) * float(stdtrit(count // 2, 0.5 + CONFIDENCE / 2))
        for node, log, width in zip(by_node, map(float, logs), map(float, widths), strict=True):
            apart, half = log - usual, width * half_interval
            p = chance(apart / width, count)
            ratio = Ratio(count, math.exp(apart), math.exp(apart - half), math.exp(apart + half), p)
            comparisons[node, quantity] = Comparison(ratio, at_least)
            candidates[node, quantity] = Away(
                node, quantity, math.exp(log), math.exp(usual), ratio.median, apart / width, p
            )
    outcomes = [
        replace(candidates[key], p=verdict.p or 0.0)
        for key, verdict in judge_all(comparisons).items()
        if verdict.reason is None
    ]
    return sorted(outcomes, key=lambda item: -abs(math.log(item.factor)))


def population(quantity: NodeQuantity, by_node: Mapping[str, NodeValue]) -> Population:
    """The median and spread of at least one node's values."""
    values = [item.value for item in by_node.values()]
    logs = np.log(values)
    spread = spread_of(logs) if len(values) >= FEWEST_NODES else float(np.ptp(logs))
    return Population(quantity, len(values), math.exp(float(np.median(logs))), spread, bimodal(values))
