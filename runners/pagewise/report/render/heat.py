"""A table of ratios as a heat map."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex, to_rgb
from matplotlib.figure import Figure as Drawing
from matplotlib.patches import Rectangle

from pagewise.analysis.ratio import Ratio
from pagewise.report.model import Cell, Column, Table
from pagewise.report.render.colours import FAINT, FASTER, INK, PAPER, SHADE, SLOWER

# Cell size and label character width in inches; the darkest shade on which black text is legible.
_WIDTH, _HEIGHT, _CHARACTER, _STRONGEST = 0.62, 0.25, 0.075, 0.55


def heat_map(table: Table) -> Drawing:
    """The map: a cell for each value in a column of kind `heat`."""
    heads = [column for column in table.columns if column.kind == "heat"]
    names = [_row_name(row) for row in table.shown_rows(merging=False)]
    left, above = 0.3 + _CHARACTER * max(map(len, names)), 0.75
    wide, high = left + _WIDTH * len(heads) + 0.2, above + _HEIGHT * len(names) + 0.15
    figure = Drawing(figsize=(wide, high))
    size = (wide - left - 0.2) / wide, (high - above - 0.15) / high
    axes = figure.add_axes((left / wide, 0.15 / high, *size))
    axes.set(xlim=(0, len(heads)), ylim=(len(names), 0))
    for down, row in enumerate(table.shown_rows(merging=False)):
        for across, (column, shown) in enumerate(pair for pair in row if pair[0].kind == "heat"):
            _heat_cell(axes, (across, down), shown, shown.signed(column))
    axes.set_yticks([number + 0.5 for number in range(len(names))], names)
    axes.set_xticks([at + 0.5 for at in range(len(heads))], [column.head for column in heads], fontsize=7)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    style: Any = {"xycoords": ("data", "axes fraction"), "fontsize": 8, "fontweight": "bold"}
    for across, column in enumerate(heads):
        if across == 0 or column.above != heads[across - 1].above:
            place = (across + 0.05, 1.0)
            axes.annotate(column.above, place, xytext=(0, 22), textcoords="offset points", **style)
    return figure


def _row_name(row: Sequence[tuple[Column, Cell]]) -> str:
    return "  ".join(column.text(shown) for column, shown in row if column.kind != "heat")


def heat_cells(table: Table) -> Iterator[tuple[str, str, Cell]]:
    """Each cell with the names of its row and column."""
    for row in table.shown_rows(merging=False):
        for column, shown in row:
            if column.kind == "heat":
                yield _row_name(row), f"{column.above} {column.head}", shown


def _heat_cell(axes: Axes, place: tuple[int, int], shown: Cell, text: str) -> None:
    across, down = place
    dark = shown.style in ("faster", "slower", "baseline")
    frame: Mapping[str, Any] = (
        {"edgecolor": INK, "linewidth": 1.4, "zorder": 2} if shown.best else {"edgecolor": PAPER}
    )
    axes.add_patch(Rectangle((across + 0.03, down + 0.05), 0.94, 0.9, facecolor=_filled(shown), **frame))
    style: Any = {"color": INK if dark else FAINT, "fontweight": "bold" if shown.best else "normal"}
    centred: Any = {"ha": "center", "va": "center_baseline", "fontsize": 8, "zorder": 3}
    axes.text(across + 0.5, down + 0.5, text, **style, **centred)


def _filled(shown: Cell) -> str:
    if shown.style in ("faster", "slower") and isinstance(shown.value, Ratio):
        end = FASTER if shown.style == "faster" else SLOWER
        shades = LinearSegmentedColormap.from_list("ratios", [to_rgb(PAPER), to_rgb(end)])
        strength = min(1.0, abs(math.log2(shown.value.median)))
        return to_hex(shades(0.1 + (_STRONGEST - 0.1) * strength))
    return SHADE if shown.style in ("baseline", "inconclusive") else PAPER
