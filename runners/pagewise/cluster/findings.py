"""What a comparison on many nodes finds: nodes that are missing, deviate or have other settings."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.analysis.analysis import KernelResult, analyse_result
from pagewise.analysis.node_differences import NodeDifference, differences, host_facts
from pagewise.analysis.nodes import Away, NodeQuantity, NodeValue, Population, away, measured, population
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.series import by_cell, run_seconds, valid_records
from pagewise.analysis.statistics import FEWEST_ROUNDS
from pagewise.cluster.campaign import Campaign, NodeOutcome, configuration_name, outcomes
from pagewise.core.errors import PagewiseError
from pagewise.core.record import Record
from pagewise.core.result import Result

_NORMAL_95 = 1.96


@dataclass(frozen=True)
class Invalid:
    """A configuration that is excluded on a node, and on fewer than half of all."""

    node: str
    kernel: str
    configuration: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """The findings on all nodes: `quantities` by node, and the outcome of each of the `nodes`."""

    folder: Path
    campaign: Campaign
    nodes: tuple[NodeOutcome, ...]
    quantities: Mapping[NodeQuantity, Mapping[str, NodeValue]]
    populations: tuple[Population, ...]
    away: tuple[Away, ...]
    invalid: tuple[Invalid, ...]
    differences: tuple[NodeDifference, ...]
    unreadable: Mapping[str, str]

    @property
    def missing(self) -> list[NodeOutcome]:
        """The nodes without a complete comparison."""
        return [node for node in self.nodes if not node.is_complete]

    @property
    def suspects(self) -> list[str]:
        """The nodes that deviate or exclude what others rank, in order."""
        names = {item.node for item in self.away} | {item.node for item in self.invalid}
        return [node.name for node in self.nodes if node.name in names]


def find(folder: Path, campaign: Campaign, at_least: float) -> Findings:
    """Reads the results of all nodes and compares them. An unreadable result is reported, not raised."""
    nodes = outcomes(folder, campaign)
    results: dict[str, Result] = {}
    unreadable: dict[str, str] = {}
    for node in nodes:
        if node.attempt is not None:
            try:
                results[node.name] = node.attempt.read()
            except PagewiseError as fault:
                unreadable[node.name] = fault.what
    kernels = {name: analyse_result(result) for name, result in results.items()}
    by_quantity: dict[NodeQuantity, dict[str, NodeValue]] = {}
    for name, result in results.items():
        for quantity, value in quantities(kernels[name], result.records).items():
            by_quantity.setdefault(quantity, {})[name] = value
    facts = {name: host_facts(result.manifest.host) for name, result in results.items()}
    return Findings(
        folder,
        campaign,
        tuple(nodes),
        by_quantity,
        tuple(population(quantity, by_node) for quantity, by_node in sorted(by_quantity.items())),
        tuple(away(by_quantity, at_least)),
        tuple(_invalid(kernels)),
        tuple(differences(facts)),
        unreadable,
    )


def quantities(kernels: Sequence[KernelResult], records: Sequence[Record]) -> dict[NodeQuantity, NodeValue]:
    """The times of all configurations that may be ranked, of at least 3 runs, and their ratios."""
    records_of, values = by_cell(records), dict[NodeQuantity, NodeValue]()
    for result in kernels:
        for row in result.ranked:
            runs = [
                records_of.get((result.kernel.name, row.cell.key, name), []) for name in ("compare", "aa")
            ]
            seconds = [run_seconds(record) for series in runs for record in valid_records(series)]
            if len(seconds) >= FEWEST_ROUNDS:
                name = configuration_name(row)
                values[NodeQuantity(result.kernel.name, name, "time")] = measured(seconds)
                if row.time_ratio is not None:
                    values[NodeQuantity(result.kernel.name, name, "time_ratio")] = _of_ratio(row.time_ratio)
    return values


def _of_ratio(ratio: Ratio) -> NodeValue:
    if ratio.low is None or ratio.high is None:
        return NodeValue(ratio.median)
    return NodeValue(ratio.median, math.log(ratio.high / ratio.low) / (2.0 * _NORMAL_95))


def _invalid(kernels: Mapping[str, Sequence[KernelResult]]) -> list[Invalid]:
    reasons: dict[tuple[str, str], dict[str, str]] = {}
    for node, results in kernels.items():
        for result in results:
            # Configurations without any run are reported as missing on the node.
            for row in (row for group in result.groups for row in group.unranked if row.runs):
                reasons.setdefault((result.kernel.name, configuration_name(row)), {})[node] = (
                    row.invalid or "invalid"
                )
    return [
        Invalid(node, *key, reason)
        for key, by_node in sorted(reasons.items())
        if 2 * len(by_node) < len(kernels)
        for node, reason in by_node.items()
    ]
