"""A comparison on many nodes: nodes that differ from the others, in time, validity or settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from pagewise.analysis.node_differences import Difference
from pagewise.analysis.nodes import FEWEST_NODES, Away, Population
from pagewise.cluster.findings import Findings
from pagewise.cluster.schedulers import fold
from pagewise.core.units import count_text, percent_text, seconds_text
from pagewise.report.model import Column, Report, Section, Table, Text, Value, data_table

_FIELDS = (
    *("node", "state", "kernel", "configuration", "kind", "value", "error", "usual", "factor", "p", "away"),
)
_COLUMNS = (
    Column("kernel", merged=True),
    Column("configuration", merged=True),
    Column("quantity"),
    Column("nodes", kind="integer"),
    Column("median"),
    Column("spread", kind="percent"),
)
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
        {"nodes.csv": data_table(_FIELDS, list(_rows(found)))},
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
    text = seconds_text if one.quantity.kind == "time" else "{:.3f}".format
    where = f"{one.quantity.kernel} {one.quantity.configuration}"
    return f"most in {where}: {text(one.value)} where others have {text(one.usual)} (p {one.p:.1g})"


def _difference(one: Difference) -> str:
    others = "; ".join(f"{value} on {fold(list(nodes))}" for value, nodes in one.others.items())
    return others + (f"; {one.usual} on all others" if one.usual is not None else "")


def _all(found: Findings) -> Iterator[Section]:
    rows = tuple(
        (
            *(one.quantity.kernel, one.quantity.configuration),
            *("time per pass" if one.quantity.kind == "time" else "time ratio", one.nodes),
            seconds_text(one.usual) if one.quantity.kind == "time" else f"{one.usual:.3f}",
            math.expm1(one.spread),
        )
        for one in found.populations
    )
    if rows:
        yield Section("All nodes", (Table("Median and spread over the nodes", _COLUMNS, rows),))


def _rows(found: Findings) -> Iterator[dict[str, Value]]:
    away = {(one.node, one.quantity): one for one in found.away}
    usual = {one.quantity: one.usual for one in found.populations}
    for node in found.nodes:
        mine = [
            (one, by_node[node.name])
            for one, by_node in sorted(found.quantities.items())
            if node.name in by_node
        ]
        if not mine:
            yield {"node": node.name, "state": node.state}
        for quantity, measured in mine:
            one = away.get((node.name, quantity))
            yield {
                "node": node.name,
                "state": node.state,
                **asdict(quantity),
                "value": measured.value,
                "error": measured.error,
                "usual": usual[quantity],
                "factor": measured.value / usual[quantity],
                "p": None if one is None else one.p,
                "away": one is not None,
            }


def _data(found: Findings, headline: str) -> dict[str, object]:
    """Schema pagewise.cluster-report/1."""
    away = [asdict(one) for one in found.away]
    return {
        "schema": "pagewise.cluster-report/1",
        "folder": found.folder,
        "verdict": headline,
        "nodes": [
            {
                "name": node.name,
                "state": node.state,
                "why": node.why,
                "attempts": node.attempts,
                "job": node.job,
                "result": None if node.attempt is None else node.attempt.folder,
            }
            for node in found.nodes
        ],
        "away": [{**one.pop("quantity"), **one} for one in away],
        "invalid": found.invalid,
        "differences": found.differences,
        "quantities": [
            {**asdict(one.quantity), "nodes": one.nodes, "usual": one.usual, "spread": one.spread}
            for one in found.populations
        ],
        "unreadable": found.unreadable,
    }
