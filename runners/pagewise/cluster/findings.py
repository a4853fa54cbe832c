"""What comparisons on many nodes find: nodes that are incomplete, deviate or have other settings."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pagewise.analysis.analysis import analyse_result
from pagewise.analysis.nodes import (
    NodeDifference,
    NodeQuantity,
    NodeValue,
    Outlier,
    Population,
    differences,
    find_outliers,
    host_facts,
    node_value,
    population,
)
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import KernelResult, Row
from pagewise.analysis.series import by_cell, run_seconds, valid_records
from pagewise.analysis.statistics import FEWEST_ROUNDS
from pagewise.core.errors import PagewiseError, SelectionError
from pagewise.core.manifest import Manifest
from pagewise.core.record import Record
from pagewise.core.result import MANIFEST, RECORDS, Result, check_unaltered, read_manifest, read_result

_NORMAL_95 = 1.96
_COMPARISONS = ("kernels", "programs")


@dataclass(frozen=True)
class Attempt:
    """A comparison on a node: its folder and manifest, whose `state` is `running` if it was killed."""

    folder: Path
    manifest: Manifest

    @property
    def is_complete(self) -> bool:
        """Whether it came to its end."""
        return self.manifest.state == "complete"

    @property
    def text(self) -> str:
        """`20261121T120211Z-default: interrupted after 2 of 5 rounds`."""
        about = self.manifest
        state = "killed or still running" if about.state == "running" else about.state
        return f"{self.folder.name}: {state} after {about.rounds_done} of {about.rounds} rounds"


@dataclass(frozen=True)
class NodeOutcome:
    """The comparisons on a node: `attempt` is the one that counts, `why` reports the incomplete ones."""

    name: str
    attempt: Attempt
    attempts: int
    why: str | None

    @property
    def is_complete(self) -> bool:
        """Whether a comparison was completed here."""
        return self.attempt.is_complete

    @property
    def state(self) -> str:
        """`complete`, `partial` or `missing`: without any record."""
        if self.is_complete:
            return "complete"
        file = self.attempt.folder / RECORDS
        return "partial" if file.exists() and file.stat().st_size > 0 else "missing"


@dataclass(frozen=True)
class Invalid:
    """A configuration that is excluded on a node, and on fewer than half of all."""

    node: str
    kernel: str
    configuration: str
    reason: str


@dataclass(frozen=True)
class Findings:
    """The findings on all nodes: `quantities` by node, and the outcome of each of the `nodes`.

    unreadable: the reason by node, or by folder if its node is not known.
    """

    folder: Path
    nodes: tuple[NodeOutcome, ...]
    quantities: Mapping[NodeQuantity, Mapping[str, NodeValue]]
    populations: tuple[Population, ...]
    outliers: tuple[Outlier, ...]
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
        names = {item.node for item in self.outliers} | {item.node for item in self.invalid}
        return [node.name for node in self.nodes if node.name in names]


def find(folders: Sequence[Path], at_least: float) -> Findings:
    """Compares the nodes whose results are at or below the folders; an unreadable result is reported.

    Raises SelectionError if there is no comparison.
    """
    attempts, unreadable = _read_attempts(folders)
    nodes = [_outcome(name, attempts[name]) for name in sorted(attempts, key=_by_number)]
    if not nodes and not unreadable:
        raise SelectionError(
            "there is no result of a comparison at or below this folder",
            where=", ".join(map(str, folders)),
            remedy="name the folder of the nodes' results; `pagewise results list` lists results",
        )
    results: dict[str, Result] = {}
    for node in nodes:
        try:
            results[node.name] = check_unaltered(read_result(node.attempt.folder))
        except PagewiseError as fault:
            unreadable[node.name] = fault.message
    kernels = {name: analyse_result(result) for name, result in results.items()}
    by_quantity: dict[NodeQuantity, dict[str, NodeValue]] = {}
    for name, result in results.items():
        for quantity, value in quantities(kernels[name], result.records).items():
            by_quantity.setdefault(quantity, {})[name] = value
    facts = {name: host_facts(result.manifest.host) for name, result in results.items()}
    return Findings(
        folders[0],
        tuple(nodes),
        by_quantity,
        tuple(population(quantity, by_node) for quantity, by_node in sorted(by_quantity.items())),
        tuple(find_outliers(by_quantity, at_least)),
        tuple(_invalid(kernels)),
        tuple(differences(facts)),
        unreadable,
    )


def _read_attempts(folders: Iterable[Path]) -> tuple[dict[str, list[Attempt]], dict[str, str]]:
    """The comparisons at or below the folders by host name, oldest first; unreadable folders by reason."""
    attempts: dict[str, list[Attempt]] = {}
    unreadable: dict[str, str] = {}
    for folder in sorted({file.parent.resolve() for top in folders for file in top.rglob(MANIFEST)}):
        try:
            attempt = Attempt(folder, read_manifest(folder))
        except PagewiseError as fault:
            unreadable[str(folder)] = fault.message
            continue
        if attempt.manifest.kind in _COMPARISONS:
            attempts.setdefault(attempt.manifest.host.hostname, []).append(attempt)
    for started in attempts.values():
        started.sort(key=lambda attempt: (attempt.manifest.created, attempt.folder.name))
    return attempts, unreadable


def _by_number(name: str) -> list[tuple[str, int]]:
    """A key for sorting: n2 comes before n10."""
    return [(text, int(number or 0)) for text, number in re.findall(r"(\D*)(\d*)", name)]


def _outcome(name: str, started: Sequence[Attempt]) -> NodeOutcome:
    """The newest complete attempt counts, else the one with the most rounds."""
    complete = [attempt for attempt in started if attempt.is_complete]
    counts = complete[-1] if complete else max(started, key=lambda attempt: attempt.manifest.rounds_done)
    why = "; ".join(attempt.text for attempt in started if not attempt.is_complete)
    return NodeOutcome(name, counts, len(started), why or None)


def configuration_name(row: Row) -> str:
    """The name of a row's configuration on all nodes: `compiler/configuration`."""
    return f"{row.cell.compiler}/{row.cell.measured.label}"


def quantities(kernels: Sequence[KernelResult], records: Sequence[Record]) -> dict[NodeQuantity, NodeValue]:
    """The times of all configurations that may be ranked, of at least 3 runs, and their ratios."""
    records_of, values = by_cell(records), dict[NodeQuantity, NodeValue]()
    for result in kernels:
        for row in result.ranked:
            runs = [
                records_of.get((result.benchmark.name, row.cell.key, name), []) for name in ("compare", "aa")
            ]
            seconds = [run_seconds(record) for series in runs for record in valid_records(series)]
            if len(seconds) >= FEWEST_ROUNDS:
                name = configuration_name(row)
                values[NodeQuantity(result.benchmark.name, name, "time")] = node_value(seconds)
                if row.time_ratio is not None:
                    values[NodeQuantity(result.benchmark.name, name, "time_ratio")] = _of_ratio(
                        row.time_ratio
                    )
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
                reasons.setdefault((result.benchmark.name, configuration_name(row)), {})[node] = (
                    row.invalid or "invalid"
                )
    return [
        Invalid(node, *key, reason)
        for key, by_node in sorted(reasons.items())
        if 2 * len(by_node) < len(kernels)
        for node, reason in by_node.items()
    ]
