"""What a comparison on many nodes found: on the terminal, as Markdown, CSV and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagewise.analysis.nodes import FEWEST_NODES, Away, Population, Quantity
from pagewise.cluster.findings import Findings
from pagewise.cluster.schedulers import fold
from pagewise.core.errors import RefusedError
from pagewise.core.files import table_text, write_inside
from pagewise.core.units import count_text, percent_text, seconds_text
from pagewise.report.render.markdown import escaped

REPORT, TABLE = "report.md", "nodes.csv"
_COLUMNS = (
    "node",
    "state",
    "kernel",
    "configuration",
    "kind",
    "value",
    "error",
    "usual",
    "factor",
    "p",
    "away",
)


def show(console: Console, found: Findings) -> None:
    """Prints the verdict, then what is missing, away, invalid and set otherwise, then all quantities."""
    console.print(Text(verdict(found), "bold"), soft_wrap=True)
    for title, lines in _sections(found):
        console.print(Text(f"\n{title}", "bold"))
        for line in lines:
            console.print(f"  {line}", highlight=False, soft_wrap=True)
    if found.populations:
        console.print()
        console.print(_table(found))


def verdict(found: Findings) -> str:
    """The whole in a sentence."""
    asked, complete = len(found.nodes), sum(node.is_complete for node in found.nodes)
    told = f"{complete} of {count_text(asked, 'node')} complete"
    if found.missing:
        told += f", {fold([node.name for node in found.missing])} not"
    if found.suspects:
        told += f"; unlike the others: {fold(found.suspects)}"
    elif len(found.nodes) - len(found.missing) >= FEWEST_NODES:
        told += "; no node measures unlike the others"
    elif asked > 1:
        told += f"; fewer than {FEWEST_NODES} nodes measured: none can be told from the others"
    return told + "."


def write_files(found: Findings) -> Path:
    """Writes report.md and nodes.csv into the folder; the report's path. Raises RefusedError."""
    try:
        write_inside(found.folder, REPORT, markdown(found))
        table = ([row.get(name) for name in _COLUMNS] for row in _rows(found))
        write_inside(found.folder, TABLE, table_text(_COLUMNS, table))
    except OSError as fault:
        raise RefusedError(f"the report cannot be written: {fault.strerror}", where=found.folder) from fault
    return found.folder / REPORT


def markdown(found: Findings) -> str:
    """The report as Markdown."""
    told = found.told
    parts = [
        f"# {escaped(told['name'])}: {escaped(told['system'])}:{escaped(told['partition'])}",
        f"**{escaped(verdict(found))}**",
        f"{escaped(' '.join(told['command']))}, {told['created']} to {told['finished'] or 'now'}",
    ]
    for title, lines in _sections(found):
        parts += [f"## {title}", "\n".join(f"- {escaped(line)}" for line in lines)]
    if found.populations:
        head = "| kernel | configuration | what | nodes | middle | spread |\n|---|---|---|--:|--:|--:|"
        rows = "\n".join("| " + " | ".join(map(escaped, _cells(one))) + " |" for one in found.populations)
        parts += ["## All nodes", f"{head}\n{rows}"]
    return "\n\n".join(parts) + "\n"


def as_json(found: Findings) -> dict[str, Any]:
    """The findings as one object."""
    return {
        "schema": "pagewise.cluster-report/1",
        "folder": str(found.folder),
        "verdict": verdict(found),
        "nodes": [
            {
                "name": node.name,
                "state": node.state,
                "why": node.why,
                "attempts": node.attempts,
                "job": node.job,
                "result": None if node.attempt is None else str(node.attempt.folder),
            }
            for node in found.nodes
        ],
        "away": [_flat(one) for one in found.away],
        "invalid": [asdict(one) for one in found.invalid],
        "differences": [
            {
                "fact": one.fact,
                "usual": one.usual,
                "others": {value: list(of) for value, of in one.others.items()},
            }
            for one in found.differences
        ],
        "quantities": [
            {**asdict(one.quantity), "nodes": one.nodes, "usual": one.usual, "spread": one.spread}
            for one in found.populations
        ],
        "unreadable": dict(found.unreadable),
    }


def _sections(found: Findings) -> Iterator[tuple[str, list[str]]]:
    if found.missing:
        yield "Missing", [f"{node.name} ({node.state}): {node.why}" for node in found.missing]
    again = [node for node in found.nodes if node.is_complete and node.why]
    if again:
        yield "Complete after another attempt", [f"{node.name}: {node.why}" for node in again]
    if found.unreadable:
        yield "Not readable", [f"{name}: {what}" for name, what in found.unreadable.items()]
    if found.away:
        yield "Nodes that measure unlike the others", [_node_text(found, name) for name in _away_nodes(found)]
    if found.invalid:
        yield (
            "Invalid on few nodes",
            [f"{one.node}: {one.kernel} {one.configuration}: {one.reason}" for one in found.invalid],
        )
    if found.differences:
        yield "Settings that differ", [_difference_text(one) for one in found.differences]
    double = [
        f"{one.quantity.kernel} {one.quantity.configuration} ({one.quantity.kind}): "
        f"{percent_text(one.two.slow_share)} of the nodes take {one.two.apart:.3g} times as long"
        for one in found.populations
        if one.two is not None
    ]
    if double:
        yield "Two kinds of nodes", double


def _away_nodes(found: Findings) -> list[str]:
    return [node.name for node in found.nodes if any(one.node == node.name for one in found.away)]


def _node_text(found: Findings, name: str) -> str:
    """`n3: slower in 5 of 6 times, by up to 24 %: triad gcc-12.2.0/none/hardware-regular (p 0.0002)`."""
    told = []
    for kind, words in (("time", ("slower", "faster")), ("time_ratio", ("higher", "lower"))):
        mine = [one for one in found.away if one.node == name and one.quantity.kind == kind]
        for word, chosen in zip(
            words,
            ([one for one in mine if one.factor > 1], [one for one in mine if one.factor < 1]),
            strict=True,
        ):
            if chosen:
                total = sum(name in by_node for one, by_node in found.quantities.items() if one.kind == kind)
                noun = "times" if kind == "time" else "time ratios"
                told.append(f"{word} in {len(chosen)} of {total} {noun}, {_worst(chosen[0])}")
    return f"{name}: " + "; ".join(told)


def _worst(one: Away) -> str:
    where = f"{one.quantity.kernel} {one.quantity.configuration}"
    if one.quantity.kind == "time":
        size = f"{seconds_text(one.value)} where others take {seconds_text(one.usual)}"
    else:
        size = f"{one.value:.3f} where others have {one.usual:.3f}"
    return f"most in {where}: {size} (p {one.p:.1g})"


def _difference_text(one: Any) -> str:
    others = "; ".join(f"{value} on {fold(nodes)}" for value, nodes in one.others.items())
    return f"{one.fact}: {others}" + (f"; {one.usual} on all others" if one.usual is not None else "")


def _table(found: Findings) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in ("kernel", "configuration", "what"):
        table.add_column(name)
    for name in ("nodes", "middle", "spread"):
        table.add_column(name, justify="right")
    for one in found.populations:
        table.add_row(*_cells(one))
    return table


def _cells(one: Population) -> list[str]:
    value = seconds_text(one.usual) if one.quantity.kind == "time" else f"{one.usual:.3f}"
    what = "time a pass" if one.quantity.kind == "time" else "time ratio"
    spread = percent_text(math.expm1(one.spread))
    return [one.quantity.kernel, one.quantity.configuration, what, str(one.nodes), value, spread]


def _rows(found: Findings) -> Iterator[dict[str, object]]:
    told: Mapping[tuple[str, Quantity], Away] = {(one.node, one.quantity): one for one in found.away}
    usual = {one.quantity: one.usual for one in found.populations}
    for node in found.nodes:
        mine = [
            (one, by_node[node.name])
            for one, by_node in sorted(found.quantities.items())
            if node.name in by_node
        ]
        if not mine:
            yield {"node": node.name, "state": node.state}
        for quantity, value in mine:
            one = told.get((node.name, quantity))
            yield {
                "node": node.name,
                "state": node.state,
                **asdict(quantity),
                "value": value.value,
                "error": value.error,
                "usual": usual[quantity],
                "factor": value.value / usual[quantity],
                "p": None if one is None else one.p,
                "away": one is not None,
            }


def _flat(one: Away) -> dict[str, Any]:
    told = asdict(one)
    return {**told.pop("quantity"), **told}
