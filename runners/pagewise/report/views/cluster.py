"""A comparison on many nodes: nodes that differ from the others, in time, validity or settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from pagewise.analysis.nodes import FEWEST_NODES, NodeDifference, NodeQuantity, Outlier, Population
from pagewise.cluster.findings import Findings
from pagewise.core.units import count_text, percent_text, seconds_text
from pagewise.report.documents import ClusterReport, NodeRow, OutlierRow, QuantityRow
from pagewise.report.model import Column, Report, Section, Table, Text, Value, output_of

_COLUMNS = (
    Column("kernel", merged=True, get="quantity.kernel"),
    Column("configuration", merged=True, get="quantity.configuration"),
    Column("quantity", get=lambda row: "time per pass" if row.quantity.kind == "time" else "time ratio"),
    Column("nodes", kind="integer"),
    Column("median", get=lambda row: _value_text(row.quantity, row.usual)),
    Column("spread", kind="percent", get=lambda row: math.expm1(row.spread)),
)
_FIELDS = (
    *("node", "state", "kernel", "configuration", "kind"),
    *("value", "error", "usual", "factor", "p", "is_outlier"),
)
# Words for a factor above 1, a factor below 1, and the quantities.
_WORDS = {"time": ("slower", "faster", "times"), "time_ratio": ("higher", "lower", "time ratios")}


def view(findings: Findings) -> Report:
    """The report; comparisons may still be running."""
    headline = _headline(findings)
    every = Table.of("Median and spread over the nodes", _COLUMNS, findings.populations)
    manifests = [node.attempt.manifest for node in findings.nodes]
    began = min((manifest.created for manifest in manifests), default="")
    ended = max((manifest.finished or "now" for manifest in manifests), default="")
    return Report(
        f"pagewise cluster nodes: {findings.folder.name}",
        headline,
        (*_sections(findings), *every.section("All nodes")),
        (("Measured", f"{began} to {ended}"),),
        (),
        "cluster",
        {"nodes.csv": Table.of("", map(Column, _FIELDS), _rows(findings))},
        _output(findings, headline),
        bool(findings.missing or findings.unreadable),
    )


def _headline(findings: Findings) -> str:
    planned, complete = len(findings.nodes), sum(node.is_complete for node in findings.nodes)
    text = f"{complete} of {count_text(planned, 'node')} complete"
    if findings.missing:
        text += f", incomplete: {', '.join(node.name for node in findings.missing)}"
    if findings.suspects:
        text += f"; different from the others: {', '.join(findings.suspects)}"
    elif complete >= FEWEST_NODES:
        text += "; no node differs from the others"
    elif planned > 1:
        text += f"; fewer than {FEWEST_NODES} nodes were measured, too few to compare them"
    return text + "."


def _sections(findings: Findings) -> Iterator[Section]:
    lists: list[tuple[str, Iterable[tuple[str, str]]]] = [
        ("Incomplete", [(f"{node.name} ({node.state})", node.why or "") for node in findings.missing]),
        (
            "Complete after another attempt",
            [(node.name, node.why) for node in findings.nodes if node.is_complete and node.why],
        ),
        ("Not readable", findings.unreadable.items()),
        ("Nodes that differ from the others", list(_outliers(findings))),
        (
            "Excluded on few nodes",
            [(each.node, f"{each.kernel} {each.configuration}: {each.reason}") for each in findings.invalid],
        ),
        ("Settings that differ", [(each.fact, _difference(each)) for each in findings.differences]),
        ("Bimodal over the nodes", list(_bimodal(findings.populations))),
    ]
    for title, lines in lists:
        if texts := tuple(Text(text, f"{name}:") for name, text in lines):
            yield Section(title, texts)


def _bimodal(populations: Iterable[Population]) -> Iterator[tuple[str, str]]:
    for population in populations:
        if (two := population.two) is not None:
            quantity, share = population.quantity, percent_text(two.slow_share)
            name = f"{quantity.kernel} {quantity.configuration} ({quantity.kind})"
            yield name, f"{share} of the nodes take {two.apart:.3g} times as long"


def _outliers(findings: Findings) -> Iterator[tuple[str, str]]:
    """`n3`: `slower in 5 of 6 times, most in triad ...: 2.1 ms where others have 1.7 ms (p 0.0002)`."""
    for node in findings.nodes:
        texts = []
        for kind, (above, below, noun) in _WORDS.items():
            outliers = [o for o in findings.outliers if (o.node, o.quantity.kind) == (node.name, kind)]
            values = [by_node for quantity, by_node in findings.quantities.items() if quantity.kind == kind]
            total = sum(node.name in by_node for by_node in values)
            for word, is_above in ((above, True), (below, False)):
                if deviating := [each for each in outliers if (each.factor > 1) == is_above]:
                    texts.append(f"{word} in {len(deviating)} of {total} {noun}, {_most(deviating[0])}")
        if texts:
            yield node.name, "; ".join(texts)


def _most(outlier: Outlier) -> str:
    where = f"{outlier.quantity.kernel} {outlier.quantity.configuration}"
    value, usual = (_value_text(outlier.quantity, each) for each in (outlier.value, outlier.usual))
    return f"most in {where}: {value} where others have {usual} (p {outlier.p:.1g})"


def _value_text(quantity: NodeQuantity, value: float) -> str:
    return seconds_text(value) if quantity.kind == "time" else f"{value:.3f}"


def _difference(difference: NodeDifference) -> str:
    others = "; ".join(f"{value} on {', '.join(nodes)}" for value, nodes in difference.others.items())
    return others + (f"; {difference.usual} on all others" if difference.usual is not None else "")


def _rows(findings: Findings) -> Iterator[dict[str, Value]]:
    """A row per node and quantity; only name and state for a node without quantities."""
    outliers = {(each.node, each.quantity): each for each in findings.outliers}
    usual = {population.quantity: population.usual for population in findings.populations}
    for node in findings.nodes:
        row: dict[str, Value] = {"node": node.name, "state": node.state}
        quantities = [each for each in sorted(findings.quantities) if node.name in findings.quantities[each]]
        if not quantities:
            yield row
        for quantity in quantities:
            measured = findings.quantities[quantity][node.name]
            differing = outliers.get((node.name, quantity))
            yield {
                **row,
                **asdict(quantity),
                **asdict(measured),
                "usual": usual[quantity],
                "factor": measured.value / usual[quantity],
                "p": None if differing is None else differing.p,
                "is_outlier": differing is not None,
            }


def _output(findings: Findings, headline: str) -> ClusterReport:
    """What --json prints."""
    return ClusterReport(
        schema="pagewise.cluster-report/1",
        folder=str(findings.folder),
        verdict=headline,
        nodes=tuple(output_of(NodeRow, node) for node in findings.nodes),
        outliers=tuple(output_of(OutlierRow, outlier) for outlier in findings.outliers),
        invalid=findings.invalid,
        differences=findings.differences,
        quantities=tuple(output_of(QuantityRow, population) for population in findings.populations),
        unreadable=findings.unreadable,
    )
