"""A report as a single HTML file without scripts or network access."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
    blocks_of,
    cell,
    interval_text,
    ratio_text,
)
from pagewise.report.render.figure import COLOUR_ROLES, describe, svgs

_TICKS = (0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
# The smallest and the largest extent of an axis on either side of 1.
_LEAST, _MOST = 1.08, 12.0
# Per cent of the axis between two ticks.
_ROOM = 13.0
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
    drawn = svgs(list(blocks_of(Figure, report.sections)))
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
        places = [place for place in range(len(row)) if not table.repeats_above(number, place)]
        base = any(cell(value).style == "baseline" for value in row)
        rows.append(("base" if base and not heat else "", [_cell(table, number, place) for place in places]))
    return rows


def _cell(table: Table, number: int, place: int) -> dict[str, object]:
    column, shown = table.columns[place], cell(table.rows[number][place])
    span = number + 1
    while column.merged and span < len(table.rows) and table.repeats_above(span, place):
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
    text = text.replace(">", f'><desc id="{name}">{Markup.escape(describe(figure))}</desc>', 1)
    return {"svg": Markup(text), "caption": figure.caption, "title": figure.title}


class Bar(NamedTuple):
    """A bar from `start` to `end`, with its interval from `low` to `high`."""

    start: float
    end: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Axis:
    """A logarithmic axis from `first` to `last`."""

    first: float
    last: float

    @classmethod
    def over(cls, ratios: Iterable[Ratio | None]) -> Axis:
        """The axis that contains all these ratios and 1."""
        known = [ratio for ratio in ratios if ratio is not None]
        ends = [end for ratio in known for end in (ratio.low or ratio.median, ratio.high or ratio.median)]
        low, high = min([*ends, 1 / _LEAST]), max([*ends, _LEAST])
        return cls(max(low / 1.02, 1 / _MOST), min(high * 1.02, _MOST))

    def place(self, ratio: float) -> float:
        """The position of a ratio in per cent of the axis; ratios beyond its ends are clipped."""
        share = math.log(ratio / self.first) / math.log(self.last / self.first)
        return round(100 * min(max(share, 0.0), 1.0), 1)

    def bar(self, ratio: Ratio) -> Bar:
        """A ratio's bar from 1, and its interval."""
        start, end = sorted((self.place(1.0), self.place(ratio.median)))
        if ratio.low is None or ratio.high is None:
            return Bar(start, end, None, None)
        return Bar(start, end, self.place(ratio.low), self.place(ratio.high))

    def band(self, floor: float | None) -> tuple[float, float] | None:
        """The noise floor's ends."""
        return None if floor is None else (self.place(1 / (1 + floor)), self.place(1 + floor))

    @property
    def ticks(self) -> Sequence[tuple[float, str]]:
        """Positions and texts, including 1, with enough room between them."""
        ticks = [(self.place(1.0), "1")]
        inside = [tick for tick in _TICKS if self.first <= tick <= self.last and tick != 1.0]
        for tick in sorted(inside, key=lambda tick: (len(f"{tick:g}"), abs(math.log(tick)))):
            place = self.place(tick)
            if all(abs(place - other) >= _ROOM for other, _ in ticks):
                ticks.append((place, f"{tick:g}"))
        return sorted(ticks)
