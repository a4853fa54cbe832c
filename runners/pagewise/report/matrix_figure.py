"""The whole matrix as a heat map, for papers and slides."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from pagewise.analysis.analysis import KernelResult
from pagewise.report import words
from pagewise.report.figures import FAINT, FASTER, INK, PAPER, SHADE, SLOWER, STYLE, Picture
from pagewise.report.matrix import Cell, Matrix, matrix

# Inches of a cell, and of a character of the labels.
_WIDE, _HIGH, _CHARACTER = 0.62, 0.25, 0.075
# Colours end here, where black text can still be read on them.
_STRONGEST = 0.55
_SIGNS = {"faster": "▼", "slower": "▲", "inconclusive": "?"}


def matrix_picture(results: Sequence[KernelResult]) -> Picture | None:
    """The heat map; None with a single line, which the bars show better."""
    whole = matrix(results)
    if len(whole.lines) < 2:
        return None
    with mpl.rc_context(STYLE):
        figure = _drawn(whole)
    caption = (
        "Time ratio of each configuration to the baseline of its compiler, below 1 is faster: "
        "▼ faster, ▲ slower, ? inconclusive, × not ranked; framed is the best of a kernel and compiler."
    )
    told = [
        f"{line.kernel.kernel.title}, {line.compiler}, {name} {words.ratio_text(cell.row.time_ratio)} "
        f"({cell.row.verdict})"
        for line in whole.lines
        for name, cell in zip(whole.columns, line.cells, strict=True)
        if cell.row is not None and cell.row.time_ratio is not None
    ]
    return Picture("matrix", "matrix", "The whole matrix", figure, caption, f"Heat map. {'; '.join(told)}.")


def _drawn(whole: Matrix) -> Figure:
    names = [f"{line.kernel.kernel.title}  {line.compiler}" for line in whole.lines]
    left, above = 0.3 + _CHARACTER * max(map(len, names)), 0.75
    wide = left + _WIDE * len(whole.columns) + 0.2
    high = above + _HIGH * len(names) + 0.15
    figure = Figure(figsize=(wide, high))
    size = (wide - left - 0.2) / wide, (high - above - 0.15) / high
    axes = figure.add_axes((left / wide, 0.15 / high, *size))
    axes.set(xlim=(0, len(whole.columns)), ylim=(len(names), 0))
    for at, line in enumerate(whole.lines):
        for place, cell in enumerate(line.cells):
            _draw_cell(axes, place, at, cell)
    axes.set_yticks([at + 0.5 for at in range(len(names))], names)
    below = [name for _, those in whole.heads for name in those]
    axes.set_xticks([place + 0.5 for place in range(len(below))], below, fontsize=7)
    axes.xaxis.tick_top()
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    place = 0
    for policy, those in whole.heads:
        axes.annotate(
            policy,
            (place + 0.05, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 22),
            textcoords="offset points",
            fontweight="bold",
        )
        place += len(those)
    return figure


def _draw_cell(axes: Axes, place: int, at: int, cell: Cell) -> None:
    filled, text = _look(cell)
    ink = INK if cell.row is not None and cell.row.verdict != "inconclusive" else FAINT
    frame = {"edgecolor": INK, "linewidth": 1.4, "zorder": 2} if cell.is_best else {"edgecolor": PAPER}
    axes.add_patch(Rectangle((place + 0.03, at + 0.05), 0.94, 0.9, facecolor=filled, **frame))
    weight = "bold" if cell.is_best else "normal"
    centre: dict[str, Any] = {"ha": "center", "va": "center_baseline", "fontsize": 8, "zorder": 3}
    axes.text(place + 0.5, at + 0.5, text, color=ink, fontweight=weight, **centre)


def _look(cell: Cell) -> tuple[str, str]:
    """A cell's colour and text."""
    row = cell.row
    if row is None:
        return PAPER, "–"
    if row.invalid is not None:
        return PAPER, "×"
    if row.cell.is_baseline:
        return SHADE, "1"
    if row.time_ratio is None:
        return PAPER, "?"
    text = f"{_SIGNS[row.verdict]} {row.time_ratio.median:.2f}"
    if row.verdict == "inconclusive":
        return SHADE, text
    end = FASTER if row.verdict == "faster" else SLOWER
    shades = LinearSegmentedColormap.from_list("ratios", [to_rgb(PAPER), to_rgb(end)])
    strength = min(1.0, abs(math.log2(row.time_ratio.median)))
    return mpl.colors.to_hex(shades(0.1 + (_STRONGEST - 0.1) * strength)), text
