"""A report as a single HTML file without scripts or network access."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import jinja2
from markupsafe import Markup

from pagewise.analysis.ratio import Ratio
from pagewise.report.model import (
    SIGNS,
    Column,
    Facts,
    Figure,
    Report,
    Section,
    Table,
    TableCell,
    Text,
    cell,
    figures,
    interval_text,
    ratio_text,
)
from pagewise.report.render.figure import COLOUR_ROLES, described, svgs
from pagewise.report.render.forest import Axis

# A heat map's colour is full at this ratio and its inverse.
_FULL, _STEPS = 1.6, 5
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
# Defaults of browsers that matplotlib writes anyway, and ids that would not be unique in the page.
_NEEDLESS = re.compile(
    r' transform="rotate\(-0 [^"]*\)"|; stroke-linejoin: miter|; stroke-linecap: square|(?<=<g) id="[^"]*"'
)


def render(report: Report, files: Sequence[str] = ()) -> str:
    """The page. `files` are in the same folder."""
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
    drawn = svgs(list(figures(report.sections)))
    return environment.get_template("report.html.jinja").render(
        report=report,
        files=files,
        slug=slug,
        rows=_rows,
        axis_of=_axis,
        picture=lambda figure: _inline(figure, drawn[figure.name]),
    )


def slug(text: str) -> str:
    """The anchor of a section with this title."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "section"


def _axis(table: Table) -> Axis:
    values = [cell(value).value for row in table.rows for value in row]
    return Axis.over(value for value in values if isinstance(value, Ratio))


def _rows(table: Table) -> list[tuple[str, list[dict[str, object]]]]:
    """Each row's class and cells; a cell that repeats the cell above is joined with it."""
    heat = any(column.kind == "heat" for column in table.columns)
    rows = []
    for number, row in enumerate(table.rows):
        places = [place for place in range(len(row)) if not table.merged(number, place)]
        base = any(cell(value).style == "baseline" for value in row)
        rows.append(("base" if base and not heat else "", [_cell(table, number, place) for place in places]))
    return rows


def _cell(table: Table, number: int, place: int) -> dict[str, object]:
    column, shown = table.columns[place], cell(table.rows[number][place])
    span = number + 1
    while column.merged and span < len(table.rows) and table.merged(span, place):
        span += 1
    first_plain = sum(each.merged for each in table.columns)
    chart, heat = table.chart and column.kind == "ratio", column.kind == "heat"
    ratio = shown.value if isinstance(shown.value, Ratio) else None
    return {
        "cell": shown,
        "head": "rowgroup" if column.merged else "row" if place == first_plain else "",
        "first": place == 0,
        "span": span - number,
        "chart": chart,
        "ratio": ratio,
        "classes": " ".join(filter(None, _classes(column, shown))),
        "sign": SIGNS.get(shown.style, "") if column.kind in ("text", "heat") else "",
        "text": ratio_text(ratio) if chart and ratio else _text(column, shown),
        "interval": interval_text(ratio),
        "code": column.kind == "code" or shown.style == "code",
        "spoken": shown.style + (", best" if shown.best else "") if heat else "",
    }


def _text(column: Column, shown: TableCell) -> str:
    return "✕" if shown.style == "excluded" and shown.value is None else column.text(shown)


def _classes(column: Column, shown: TableCell) -> Iterator[str]:
    """Alignment and style. A heat map colours the background: 0 at no difference, 5 from a factor of 1.6."""
    yield "n" if column.right else "wrap" if column.wrap else ""
    if column.kind != "heat":
        yield shown.style
        return
    yield "best" if shown.best else ""
    yield "c" if shown.value is not None else "c blank"
    if shown.style in ("faster", "slower") and isinstance(shown.value, Ratio):
        share = abs(math.log(shown.value.median)) / math.log(_FULL)
        yield f"{shown.style[0]}{min(_STEPS, math.ceil(share * _STEPS))}"
    elif shown.style == "inconclusive":
        yield shown.style


def _inline(figure: Figure, text: str) -> Mapping[str, object]:
    """The figure in the page's colours, with its text alternative."""
    text = _NEEDLESS.sub("", text)
    # A tenth of a point is finer than any screen.
    text = _NUMBER.sub(lambda match: f"{float(match[0]):.1f}".removesuffix(".0"), text)
    for ink, role in COLOUR_ROLES.items():
        text = text.replace(ink, f"var(--{role})")
    name = f"{slug(figure.name)}-description"
    text = text.replace("<svg ", f'<svg role="img" aria-labelledby="{name}" ', 1)
    text = text.replace(">", f'><desc id="{name}">{Markup.escape(described(figure))}</desc>', 1)
    return {"svg": Markup(text), "caption": figure.caption, "title": figure.title}
