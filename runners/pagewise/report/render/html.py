"""A report as one HTML file that needs nothing else, no network and no scripts."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from pagewise.analysis.ratio import Ratio
from pagewise.report.model import (
    SIGNS,
    Cell,
    Column,
    Facts,
    Figure,
    Report,
    Section,
    Table,
    Text,
    cell,
    figures,
    interval_text,
    ratio_text,
)
from pagewise.report.render.colours import COLOUR_ROLES
from pagewise.report.render.figure import described, svgs
from pagewise.report.render.forest import Axis

# At this ratio or its inverse a heat map's colour is full.
_FULL, _STEPS = 1.6, 5
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
# What matplotlib gives every text, path and group: a browser has it anyway, ids would be there twice.
_NEEDLESS = re.compile(
    r' transform="rotate\(-0 [^"]*\)"|; stroke-linejoin: miter|; stroke-linecap: square|(?<=<g) id="[^"]*"'
)


def render(report: Report, files: Sequence[str] = ()) -> str:
    """The page. `files` lie beside it."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent.parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.tests |= {
        name: lambda block, kind=kind: isinstance(block, kind)
        for name, kind in (("section", Section), ("table", Table), ("text", Text), ("facts", Facts))
    }
    drawn = svgs([figure for figure in figures(report.sections) if figure.in_page])
    return environment.get_template("report.html.jinja").render(
        report=report,
        files=files,
        slug=slug,
        rows=_rows,
        axis_of=_axis,
        picture=lambda figure: _inline(figure, drawn[figure.name]),
    )


def slug(text: str) -> str:
    """A text as the anchor of a section."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"


def _axis(table: Table) -> Axis:
    return Axis.over(
        one.value for row in table.rows for one in map(cell, row) if isinstance(one.value, Ratio)
    )


def _rows(table: Table) -> list[tuple[str, list[dict[str, Any]]]]:
    """Each row's class and cells; cells that repeat the one above them are joined with it."""
    merged = sum(column.merged for column in table.columns)
    found = []
    for number, row in enumerate(table.rows):
        cells = [
            _cell(table, number, place, merged)
            for place in range(len(row))
            if not table.merged(number, place)
        ]
        base = any(isinstance(value, Cell) and value.style == "baseline" for value in row)
        heat = any(column.kind == "heat" for column in table.columns)
        found.append(("base" if base and not heat else "", cells))
    return found


def _cell(table: Table, number: int, place: int, merged: int) -> dict[str, Any]:
    column, shown = table.columns[place], cell(table.rows[number][place])
    span = number + 1
    while column.merged and span < len(table.rows) and table.merged(span, place):
        span += 1
    chart = table.chart and column.kind == "ratio"
    ratio = shown.value if isinstance(shown.value, Ratio) else None
    return {
        "head": "rowgroup" if column.merged else "row" if place == merged else "",
        "first": place == 0,
        "span": span - number,
        "chart": chart,
        "ratio": ratio,
        "kind": shown.style,
        "classes": " ".join(filter(None, (_alignment(column), _heat(column, shown), _colour(column, shown)))),
        "sign": SIGNS.get(shown.style, "") if column.kind in ("text", "heat") else "",
        "text": ratio_text(ratio) if chart and ratio else _text(column, shown),
        "interval": interval_text(ratio),
        "note": shown.note,
        "floor": shown.floor,
        "code": column.kind == "code" or shown.style == "code",
        "strong": shown.style == "strong",
        "spoken": shown.style + (", best" if shown.best else "") if column.kind == "heat" else "",
    }


def _text(column: Column, shown: Cell) -> str:
    return "✕" if shown.style == "excluded" and shown.value is None else column.text(shown)


def _colour(column: Column, shown: Cell) -> str:
    """The class of a style. The background of a heat map is coloured instead of its text."""
    return "" if column.kind == "heat" and shown.style != "inconclusive" else shown.style


def _alignment(column: Column) -> str:
    return "n" if column.right else "wrap" if column.wrap else ""


def _heat(column: Column, shown: Cell) -> str:
    """Colour by how much: 0 at no difference, 5 from 1.6 times as fast or slow on."""
    if column.kind != "heat":
        return ""
    best = "best " if shown.best else ""
    if shown.style not in ("faster", "slower") or not isinstance(shown.value, Ratio):
        return best + ("c" if shown.value is not None else "c blank")
    share = abs(math.log(shown.value.median)) / math.log(_FULL)
    return f"{best}c {shown.style[0]}{min(_STEPS, math.ceil(share * _STEPS))}"


def _inline(figure: Figure, text: str) -> Mapping[str, Any]:
    """The figure in the page's colours, with a description for those who cannot see it."""
    text = _NEEDLESS.sub("", text)
    # A tenth of a point is finer than any screen.
    text = _NUMBER.sub(lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), text)
    for ink, role in COLOUR_ROLES.items():
        text = text.replace(ink, f"var(--{role})")
    name = f"{slug(figure.name)}-description"
    text = text.replace("<svg ", f'<svg role="img" aria-labelledby="{name}" ', 1)
    text = text.replace(">", f'><desc id="{name}">{Markup.escape(described(figure))}</desc>', 1)
    return {"svg": Markup(text), "caption": figure.caption, "title": figure.title}
