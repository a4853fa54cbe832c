"""Which nodes of a partition differ from the others in what they measure, and in settings. Pure functions.

docs/how-to/cluster.md explains the choices and gives the error rates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from pagewise.analysis.comparison import Judged, judge
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.statistics import CONFIDENCE, Bimodal, bimodal
from pagewise.core.host import Host
from pagewise.core.units import bytes_text

FEWEST_NODES = 4
# The assumed least uncertainty of a node's value, as a share.
_SHARPEST = 1e-3
# Qn's factors: for consistency with normal values, and for few of them (Croux and Rousseeuw, Computational
# Statistics 1, 1992).
_CONSISTENT = 2.2219
# Nodes of one kind differ in how much memory the kernel and the firmware reserve.
_ALIKE = 0.02
UNKNOWN = "unknown"
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


@dataclass(frozen=True, kw_only=True)
class Outlier(Judged):
    """A quantity of a node: its `value`, and its `ratio` to the `usual` one of the other nodes."""

    node: str
    quantity: NodeQuantity
    value: float
    usual: float
    score: float

    @property
    def factor(self) -> float:
        """value / usual."""
        return self.value / self.usual


@dataclass(frozen=True)
class Population:
    """A quantity over all nodes: median, spread (a share), and two groups of nodes if there are two."""

    quantity: NodeQuantity
    nodes: int
    usual: float
    spread: float
    two: Bimodal | None


def node_value(values: Sequence[float]) -> NodeValue:
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


def find_outliers(
    quantities: Mapping[NodeQuantity, Mapping[str, NodeValue]], at_least: float = 0.03
) -> list[Outlier]:
    """What differs from the other nodes, the farthest first: quantities by name, each by node.

    All nodes and quantities are judged together: if all nodes are alike, the chance of any finding is 5 %.
    Differences of less than the share `at_least` are ignored, and quantities of fewer than FEWEST_NODES.
    """
    candidates = []
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
            candidates.append(
                Outlier(
                    node=node,
                    quantity=quantity,
                    value=math.exp(log),
                    usual=math.exp(usual),
                    score=apart / width,
                    ratio=Ratio(count, math.exp(apart), math.exp(apart - half), math.exp(apart + half), p),
                    floor=at_least,
                )
            )
    outcomes = [item for item in judge(candidates) if item.reason is None]
    return sorted(outcomes, key=lambda item: -abs(math.log(item.factor)))


def population(quantity: NodeQuantity, by_node: Mapping[str, NodeValue]) -> Population:
    """The median and spread of at least one node's values."""
    values = [item.value for item in by_node.values()]
    logs = np.log(values)
    spread = spread_of(logs) if len(values) >= FEWEST_NODES else float(np.ptp(logs))
    return Population(quantity, len(values), math.exp(float(np.median(logs))), spread, bimodal(values))


@dataclass(frozen=True)
class NodeDifference:
    """A fact that differs between nodes: the `usual` value, and the nodes with other values by value.

    `usual` is None if no value is that of more than half of the nodes.
    """

    fact: str
    usual: str | None
    others: Mapping[str, tuple[str, ...]]


def host_facts(host: Host) -> dict[str, str | float]:
    """The facts of a host and its settings by name: text, and bytes of memory as a number."""
    thp = host.thp
    facts = {
        "CPU": host.cpu,
        "architecture": host.architecture,
        "microcode": host.microcode,
        "kernel": host.kernel,
        "CPUs online": host.cpus,
        "SMT": _switch(host.smt),
        "NUMA nodes": len(host.numa_nodes),
        "memory": None if host.memory_bytes is None else float(host.memory_bytes),
        "base page size": bytes_text(host.base_page_size_bytes),
        "governor": ", ".join(host.governors) if host.governors else None,
        "scaling driver": ", ".join(host.scaling_drivers) if host.scaling_drivers else None,
        "boost": _switch(host.boost),
        "THP": thp.enabled if thp else None,
        "THP defrag": thp.defrag if thp else None,
        "THP of shared memory": thp.shared if thp else None,
        "THP for this process": _switch(host.thp_allowed),
        "virtual machine": host.virtual_machine,
        "container": _switch(host.container),
        "counters (PMU)": _switch(host.pmu),
        "perf_event_paranoid": host.perf_event_paranoid,
        **{f"THP of {size}": mode for size, mode in (thp.sizes if thp else {}).items()},
        **{f"pool of {bytes_text(pool.page_bytes)}": pool.total for pool in host.pools},
        **{
            f"L{cache.level} cache": f"{bytes_text(cache.bytes)}, shared by {cache.shared_by} CPUs"
            for cache in host.caches
        },
    }
    return {
        name: UNKNOWN if value is None else value if isinstance(value, float) else str(value)
        for name, value in facts.items()
    }


def differences(nodes: Mapping[str, Mapping[str, str | float]]) -> list[NodeDifference]:
    """The facts in which nodes differ, those of the fewest nodes first; unreported ones are `unknown`."""
    items = []
    for fact in dict.fromkeys(name for facts in nodes.values() for name in facts):
        by_node = _texts({node: facts.get(fact, UNKNOWN) for node, facts in nodes.items()})
        counts = Counter(by_node.values()).most_common()
        if len(counts) == 1:
            continue
        usual = counts[0][0] if 2 * counts[0][1] > len(by_node) else None
        others = {
            value: tuple(node for node, text in by_node.items() if text == value)
            for value, _ in counts
            if value != usual
        }
        items.append(NodeDifference(fact, usual, others))
    return sorted(items, key=lambda item: sum(map(len, item.others.values())))


def _texts(by_node: Mapping[str, str | float]) -> dict[str, str]:
    """The values as text; numbers near the median become the median."""
    numbers = [value for value in by_node.values() if isinstance(value, float)]
    center = median(numbers) if numbers else 0.0

    def text(value: str | float) -> str:
        if isinstance(value, str):
            return value
        return bytes_text(center if abs(value - center) <= _ALIKE * center else value)

    return {node: text(value) for node, value in by_node.items()}


def _switch(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"
