"""A table of ratios as a heat map."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle

from pagewise.analysis.ratio import Ratio
from pagewise.report.model import Cell, Table, cell
from pagewise.report.render.colours import FAINT, FASTER, INK, PAPER, SHADE, SLOWER

# Inches of a cell, and of a character of a label. Colours end where black text can still be read on them.
_WIDTH, _HEIGHT, _CHARACTER, _STRONGEST = 0.62, 0.25, 0.075, 0.55


def heat_map(table: Table) -> Drawing:
    """The map: a cell for each value in a column of kind `heat`."""
    heads = [(place, column) for place, column in enumerate(table.columns) if column.kind == "heat"]
    names = [_row_name(table, number) for number in range(len(table.rows))]
    left, above = 0.3 + _CHARACTER * max(map(len, names)), 0.75
    wide, high = left + _WIDTH * len(heads) + 0.2, above + _HEIGHT * len(names) + 0.15
    figure = Drawing(figsize=(wide, high))
    size = (wide - left - 0.2) / wide, (high - above - 0.15) / high
    axes = figure.add_axes((left / wide, 0.15 / high, *size))
    axes.set(xlim=(0, len(heads)), ylim=(len(names), 0))
    for number, row in enumerate(table.rows):
        for across, (place, column) in enumerate(heads):
            _heat_cell(axes, across, number, cell(row[place]), cell(row[place]).signed(column))
    axes.set_yticks([number + 0.5 for number in range(len(names))], names)
    axes.set_xticks([at + 0.5 for at in range(len(heads))], [column.head for _, column in heads], fontsize=7)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    before = ""
    for across, (_, column) in enumerate(heads):
        if column.above != before:
            axes.annotate(
                column.above,
                (across + 0.05, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 22),
                textcoords="offset points",
                fontsize=8,
                fontweight="bold",
            )
            before = column.above
    return figure


def _row_name(table: Table, number: int) -> str:
    names = (
        column.text(value)
        for column, value in zip(table.columns, table.rows[number], strict=True)
        if column.kind != "heat"
    )
    return "  ".join(names)


def heat_cells(table: Table) -> Iterator[tuple[str, str, Cell]]:
    """Each cell with the names of its row and column."""
    for number, row in enumerate(table.rows):
        for column, value in zip(table.columns, row, strict=True):
            if column.kind == "heat":
                yield _row_name(table, number), f"{column.above} {column.head}", cell(value)


def _heat_cell(axes: Axes, across: int, down: int, shown: Cell, text: str) -> None:
    decided = shown.style in ("faster", "slower")
    frame: Mapping[str, Any] = (
        {"edgecolor": INK, "linewidth": 1.4, "zorder": 2} if shown.best else {"edgecolor": PAPER}
    )
    axes.add_patch(Rectangle((across + 0.03, down + 0.05), 0.94, 0.9, facecolor=_filled(shown), **frame))
    axes.text(
        across + 0.5,
        down + 0.5,
        text,
        color=INK if decided or shown.style == "baseline" else FAINT,
        fontweight="bold" if shown.best else "normal",
        ha="center",
        va="center_baseline",
        fontsize=8,
        zorder=3,
    )


def _filled(shown: Cell) -> str:
    if shown.style in ("faster", "slower") and isinstance(shown.value, Ratio):
        end = FASTER if shown.style == "faster" else SLOWER
        shades = LinearSegmentedColormap.from_list("ratios", [to_rgb(PAPER), to_rgb(end)])
        strength = min(1.0, abs(math.log2(shown.value.median)))
        return to_hex(shades(0.1 + (_STRONGEST - 0.1) * strength))
    return SHADE if shown.style in ("baseline", "inconclusive") else PAPER
