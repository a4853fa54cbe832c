"""What a comparison on many nodes tells: who is missing, who measures otherwise, who is set otherwise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.analysis.analysis import KernelResult, analyse_result
from pagewise.analysis.node_differences import Difference, differences, host_facts
from pagewise.analysis.nodes import Away, Measured, Population, Quantity, away, measured, population
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.series import run_seconds
from pagewise.analysis.statistics import FEWEST_ROUNDS
from pagewise.analysis.validity import invalid_reason
from pagewise.cluster.campaign import NodeOutcome, outcomes
from pagewise.core.errors import FormatError
from pagewise.core.host import Host
from pagewise.core.plan import key_of
from pagewise.core.record import Record
from pagewise.core.result import Result
from pagewise.core.structure import structured

_NORMAL_95 = 1.96


@dataclass(frozen=True)
class Invalid:
    """A configuration that is invalid on a node, and on fewer than half of the others."""

    node: str
    kernel: str
    configuration: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """All that was found. `measured` has the quantities by node; `nodes` what became of each."""

    folder: Path
    told: Mapping[str, Any]
    nodes: tuple[NodeOutcome, ...]
    quantities: Mapping[Quantity, Mapping[str, Measured]]
    populations: tuple[Population, ...]
    away: tuple[Away, ...]
    invalid: tuple[Invalid, ...]
    differences: tuple[Difference, ...]
    unreadable: Mapping[str, str]

    @property
    def missing(self) -> list[NodeOutcome]:
        """The nodes without a complete comparison."""
        return [node for node in self.nodes if not node.is_complete]

    @property
    def suspects(self) -> list[str]:
        """The nodes that measure otherwise or have something invalid alone, in order."""
        found = {one.node for one in self.away} | {one.node for one in self.invalid}
        return [node.name for node in self.nodes if node.name in found]


def find(folder: Path, told: Mapping[str, Any], at_least: float) -> Findings:
    """Reads the results of all nodes and compares them. A node's bad result is told, not raised."""
    found = outcomes(folder, told)
    results: dict[str, Result] = {}
    unreadable: dict[str, str] = {}
    for node in found:
        if node.attempt is not None:
            try:
                results[node.name] = node.attempt.read()
            except FormatError as fault:
                unreadable[node.name] = fault.what
    kernels = {name: analyse_result(one) for name, one in results.items()}
    by_quantity: dict[Quantity, dict[str, Measured]] = {}
    for name, result in results.items():
        for quantity, value in quantities(kernels[name], result.records).items():
            by_quantity.setdefault(quantity, {})[name] = value
    facts = {name: host_facts(structured(Host, result.manifest["host"])) for name, result in results.items()}
    return Findings(
        folder,
        told,
        tuple(found),
        by_quantity,
        tuple(population(quantity, by_node) for quantity, by_node in sorted(by_quantity.items())),
        tuple(away(by_quantity, at_least)),
        tuple(_invalid(kernels)),
        tuple(differences(facts)),
        unreadable,
    )


def quantities(kernels: Sequence[KernelResult], records: Sequence[Record]) -> dict[Quantity, Measured]:
    """The times of all configurations that may be ranked, of 3 runs at least, and their ratios."""
    seconds: dict[tuple[str, str, str | None, str | None], list[float]] = {}
    for record in records:
        run = record.run
        if run is not None and run.series in ("compare", "aa") and invalid_reason(record) is None:
            key = (record.of_kernel, *key_of(run))
            seconds.setdefault(key, []).append(run_seconds(record))
    found: dict[Quantity, Measured] = {}
    for one in kernels:
        for row in (row for group in one.groups for row in group.ranked):
            name = f"{row.cell.compiler}/{row.cell.measured.label}"
            key = (one.kernel.name, *row.cell.key)
            mine = seconds[key]
            if len(mine) < FEWEST_ROUNDS:
                continue
            found[Quantity(one.kernel.name, name, "time")] = measured(mine)
            if row.time_ratio is not None:
                found[Quantity(one.kernel.name, name, "time_ratio")] = _of_ratio(row.time_ratio)
    return found


def _of_ratio(ratio: Ratio) -> Measured:
    if ratio.low is None or ratio.high is None:
        return Measured(ratio.median)
    return Measured(ratio.median, math.log(ratio.high / ratio.low) / (2.0 * _NORMAL_95))


def _invalid(kernels: Mapping[str, Sequence[KernelResult]]) -> list[Invalid]:
    reasons: dict[tuple[str, str], dict[str, str]] = {}
    for node, results in kernels.items():
        for one in results:
            # What was not measured at all is told of the node.
            for row in (row for group in one.groups for row in group.unranked if row.runs):
                key = (one.kernel.name, f"{row.cell.compiler}/{row.cell.measured.label}")
                reasons.setdefault(key, {})[node] = row.invalid or "invalid"
    return [
        Invalid(node, *key, reason)
        for key, by_node in sorted(reasons.items())
        if 2 * len(by_node) < len(kernels)
        for node, reason in by_node.items()
    ]
