"""A comparison on many nodes: nodes that differ from the others, in time, validity or settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict

from pagewise.analysis.node_differences import Difference
from pagewise.analysis.nodes import FEWEST_NODES, Away, Population, Quantity
from pagewise.cluster.findings import Findings
from pagewise.cluster.schedulers import fold
from pagewise.core.units import count_text, percent_text, seconds_text
from pagewise.report.model import Column, Getter, Report, Section, Table, Text, Value

_COLUMNS = (
    Column("kernel", merged=True, get="quantity.kernel"),
    Column("configuration", merged=True, get="quantity.configuration"),
    Column("quantity", get=lambda one: "time per pass" if one.quantity.kind == "time" else "time ratio"),
    Column("nodes", kind="integer"),
    Column("median", get=lambda one: _value_text(one.quantity, one.usual)),
    Column("spread", kind="percent", get=lambda one: math.expm1(one.spread)),
)
_FIELDS = (
    *("node", "state", "kernel", "configuration", "kind", "value", "error", "usual", "factor", "p", "away"),
)
_NODE: Mapping[str, Getter] = {
    **{name: name for name in ("name", "state", "why", "attempts", "job")},
    "result": "attempt.folder",
}
_QUANTITY: Mapping[str, Getter] = {name: f"quantity.{name}" for name in ("kernel", "configuration", "kind")}
_AWAY: Mapping[str, Getter] = {
    **_QUANTITY,
    **{name: name for name in ("node", "value", "usual", "factor", "score", "p")},
}
_POPULATION: Mapping[str, Getter] = {**_QUANTITY, **{name: name for name in ("nodes", "usual", "spread")}}
# What a factor above and below 1 is called.
_WORDS = {"time": ("slower", "faster", "times"), "time_ratio": ("higher", "lower", "time ratios")}
_READING = (
    Text("how much the nodes differ among each other, as a share of the median.", "Spread"),
    Text(
        "a node beyond the spread of the others, after correction for all quantities and nodes.",
        "Different",
    ),
)


def view(found: Findings) -> Report:
    """The report, also of a comparison that still runs."""
    about = found.campaign
    headline = _headline(found)
    return Report(
        f"pagewise cluster: {about.name} on {about.system}:{about.partition}",
        headline,
        (*_sections(found), *_all(found)),
        (),
        (
            ("Command", " ".join(about.command)),
            ("Measured", f"{about.created} to {about.finished or 'now'}"),
        ),
        (),
        _READING,
        {"nodes.csv": Table.of_records(list(_rows(found)), _FIELDS)},
        _data(found, headline),
        bool(found.missing),
    )


def _headline(found: Findings) -> str:
    asked, complete = len(found.nodes), sum(node.is_complete for node in found.nodes)
    text = f"{complete} of {count_text(asked, 'node')} complete"
    if found.missing:
        text += f", incomplete: {fold([node.name for node in found.missing])}"
    if found.suspects:
        text += f"; different from the others: {fold(found.suspects)}"
    elif len(found.nodes) - len(found.missing) >= FEWEST_NODES:
        text += "; no node differs from the others"
    elif asked > 1:
        text += f"; fewer than {FEWEST_NODES} nodes were measured, too few to compare them"
    return text + "."


def _sections(found: Findings) -> Iterator[Section]:
    lists: list[tuple[str, Iterable[tuple[str, str]]]] = [
        ("Missing", [(f"{node.name} ({node.state})", node.why or "") for node in found.missing]),
        (
            "Complete after another attempt",
            [(node.name, node.why) for node in found.nodes if node.is_complete and node.why],
        ),
        ("Not readable", found.unreadable.items()),
        ("Nodes that differ from the others", list(_away(found))),
        (
            "Excluded on few nodes",
            [(one.node, f"{one.kernel} {one.configuration}: {one.reason}") for one in found.invalid],
        ),
        ("Settings that differ", [(one.fact, _difference(one)) for one in found.differences]),
        ("Bimodal over the nodes", list(_bimodal(found.populations))),
    ]
    for title, lines in lists:
        if texts := tuple(Text(text, f"{name}:") for name, text in lines):
            yield Section(title, texts)


def _bimodal(populations: Iterable[Population]) -> Iterator[tuple[str, str]]:
    for one in populations:
        if one.two is not None:
            name = f"{one.quantity.kernel} {one.quantity.configuration} ({one.quantity.kind})"
            share = percent_text(one.two.slow_share)
            yield name, f"{share} of the nodes take {one.two.apart:.3g} times as long"


def _away(found: Findings) -> Iterator[tuple[str, str]]:
    """`n3`: `slower in 5 of 6 times, most in triad ...: 2.1 ms where others take 1.7 ms (p 0.0002)`."""
    for node in found.nodes:
        texts = []
        for kind, (above, below, noun) in _WORDS.items():
            mine = [one for one in found.away if one.node == node.name and one.quantity.kind == kind]
            total = sum(node.name in by_node for one, by_node in found.quantities.items() if one.kind == kind)
            for word, chosen in (
                (above, [one for one in mine if one.factor > 1]),
                (below, [one for one in mine if one.factor < 1]),
            ):
                if chosen:
                    texts.append(f"{word} in {len(chosen)} of {total} {noun}, {_most(chosen[0])}")
        if texts:
            yield node.name, "; ".join(texts)


def _most(one: Away) -> str:
    where = f"{one.quantity.kernel} {one.quantity.configuration}"
    value, usual = _value_text(one.quantity, one.value), _value_text(one.quantity, one.usual)
    return f"most in {where}: {value} where others have {usual} (p {one.p:.1g})"


def _value_text(quantity: Quantity, value: float) -> str:
    return seconds_text(value) if quantity.kind == "time" else f"{value:.3f}"


def _difference(one: Difference) -> str:
    others = "; ".join(f"{value} on {fold(list(nodes))}" for value, nodes in one.others.items())
    return others + (f"; {one.usual} on all others" if one.usual is not None else "")


def _all(found: Findings) -> Iterator[Section]:
    if found.populations:
        table = Table.of("Median and spread over the nodes", _COLUMNS, found.populations)
        yield Section("All nodes", (table,))


def _rows(found: Findings) -> Iterator[dict[str, Value]]:
    """A row per node and quantity; of a node without any, its name and state alone."""
    away = {(one.node, one.quantity): one for one in found.away}
    usual = {one.quantity: one.usual for one in found.populations}
    for node in found.nodes:
        row: dict[str, Value] = {"node": node.name, "state": node.state}
        quantities = [one for one in sorted(found.quantities) if node.name in found.quantities[one]]
        if not quantities:
            yield row
        for quantity in quantities:
            measured, differing = found.quantities[quantity][node.name], away.get((node.name, quantity))
            yield {
                **row,
                **asdict(quantity),
                **asdict(measured),
                "usual": usual[quantity],
                "factor": measured.value / usual[quantity],
                "p": None if differing is None else differing.p,
                "away": differing is not None,
            }


def _data(found: Findings, headline: str) -> dict[str, object]:
    """Schema pagewise.cluster-report/1."""
    return {
        "schema": "pagewise.cluster-report/1",
        "folder": found.folder,
        "verdict": headline,
        "nodes": Table.of_fields(_NODE, found.nodes),
        "away": Table.of_fields(_AWAY, found.away),
        "invalid": found.invalid,
        "differences": found.differences,
        "quantities": Table.of_fields(_POPULATION, found.populations),
        "unreadable": found.unreadable,
    }
