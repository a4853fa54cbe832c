"""Figures as SVG for the report, and as SVG and PNG files."""

from __future__ import annotations

import io
import math
import os
import signal
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import (
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    MultipleLocator,
    NullFormatter,
    NullLocator,
)

from pagewise.core.units import bytes_text, number_text
from pagewise.report.model import Figure

# The page replaces these colours by CSS variables of the same role, for its light and dark schemes.
INK, FAINT, PAPER, SHADE = "#1c2430", "#59636f", "#fdfefd", "#e1e5eb"
# All at least 4.5 : 1 on PAPER; blue and purple also differ in lightness from the grey of base pages for
# colour-blind readers, and every line is labelled.
_POLICY_COLOURS = {"none": "#6b7480", "thp": "#0072b2", "hugetlbfs": "#a23e8c"}
_MORE_COLOURS = ("#946300", "#5b4bb5", "#4a7a1e")
COLOUR_ROLES = {
    **{INK: "ink", FAINT: "faint", PAPER: "paper", SHADE: "shade"},
    **{colour: policy for policy, colour in _POLICY_COLOURS.items()},
    **{colour: f"more-{number}" for number, colour in enumerate(_MORE_COLOURS, start=1)},
}
#: Line styles by prefetch, stores and loop.
DASHES: dict[tuple[str, str, str], Any] = {
    ("hardware", "regular", "explicit"): "-",
    ("software", "regular", "explicit"): (0, (5, 2)),
    ("block", "regular", "explicit"): (0, (1, 1.5)),
    ("hardware", "nontemporal", "explicit"): (0, (6, 2, 1.2, 2)),
    ("hardware", "zfill", "explicit"): (0, (9, 2)),
    ("hardware", "regular", "compiler"): (0, (3, 1.2, 1, 1.2)),
    ("compiler", "regular", "compiler"): (0, (7, 2, 1, 2, 1, 2)),
}
# Ignore a matplotlibrc in the working folder, which may be a result of somebody else.
mpl.rcdefaults()
# `Any`, because matplotlib's type lists every name of a setting.
STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": FAINT,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 8,
    "legend.frameon": False,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",
    # Names with two dollar signs are not formulas.
    "text.parse_math": False,
}
# Width in inches of a single panel, and of panels side by side; of the room for the axis and for the labels.
_WIDE, _NARROW, _LEFT, _RIGHT = 6.0, 3.95, 0.72, 2.3
# The most powers of two on an axis, and the most points with a marker.
_MOST_TICKS, _FEW_POINTS = 9, 16
# An axis of ratios below this is logarithmic.
_DECADE = 0.1


def svgs(figures: Sequence[Figure]) -> dict[str, str]:
    """Each figure as an SVG element by its name, drawn by one process per CPU."""
    processes = min(len(figures), len(os.sched_getaffinity(0)))
    if processes < 2:
        return {figure.name: svg(figure) for figure in figures}
    # matplotlib is loaded and this process has one thread: a fork starts at once.
    with ProcessPoolExecutor(processes, get_context("fork"), initializer=_ignore_interrupts) as pool:
        try:
            return dict(zip([figure.name for figure in figures], pool.map(svg, figures), strict=True))
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def svg(figure: Figure) -> str:
    """A figure as an SVG element without XML prolog; the same figure gives the same text."""
    buffer = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": figure.name}):
        metadata = dict.fromkeys(("Date", "Creator", "Type", "Format"))
        drawing(figure).savefig(buffer, format="svg", metadata=metadata)
    text = buffer.getvalue()
    return text[text.index("<svg") :]


def png(figure: Figure) -> bytes:
    """A figure as PNG."""
    buffer = io.BytesIO()
    with mpl.rc_context(STYLE):
        drawing(figure).savefig(buffer, format="png", dpi=150)
    return buffer.getvalue()


def describe(figure: Figure) -> str:
    """The text alternative of a figure."""
    ends = [
        f"{compiler} {line.label}: {y:.3g} at {swept_text(x, figure.in_bytes)}"
        for compiler, lines in figure.panels
        for line in lines
        for x, y in (line.points[0], line.points[-1])
    ]
    return f"{figure.title}. {'; '.join(ends)}."


def colour(policy: str) -> str:
    """The colour of a page policy, a key of COLOUR_ROLES."""
    if policy in _POLICY_COLOURS:
        return _POLICY_COLOURS[policy]
    return _MORE_COLOURS[sum(policy.encode()) % len(_MORE_COLOURS)]


def _ignore_interrupts() -> None:
    """Ctrl-C reaches all processes of the terminal; only the process that waits for them handles it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _panels(count: int, height: float) -> tuple[Drawing, list[Axes]]:
    """Panels side by side, placed by inches: matplotlib's layouts draw everything twice to find the room."""
    width = _WIDE if count == 1 else _NARROW
    above, below = 0.38, 0.52
    across, high = (_LEFT + width + _RIGHT) * count, above + height + below
    figure = Drawing(figsize=(across, high))
    places = [(_LEFT + number * across / count) / across for number in range(count)]
    return figure, [figure.add_axes((place, below / high, width / across, height / high)) for place in places]


def drawing(data: Figure) -> Drawing:
    """A figure as matplotlib draws it, in the settings of STYLE."""
    longest = max(len(lines) for _, lines in data.panels)
    figure, panels = _panels(len(data.panels), max(2.6, 0.4 + 0.19 * longest))
    values = [y for _, lines in data.panels for line in lines for _, y in line.points if y > 0]
    # A linear axis would flatten the small values.
    logarithmic = bool(values) and max(values) / min(values) > 5
    words = _words(data)
    for axes, (compiler, lines) in zip(panels, data.panels, strict=True):
        _prepare(axes, data, words)
        if logarithmic:
            axes.set_yscale("log")
            axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick_text(value)))
            axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axes.yaxis.set_minor_formatter(NullFormatter())
        # In the order of the right ends, in which the labels stand next to them.
        for line in sorted(lines, key=lambda line: -line.points[-1][1]):
            axes.plot(
                [float(words.index(swept_text(x)) if words else x) for x, _ in line.points],
                [y for _, y in line.points],
                marker="o" if len(line.points) <= _FEW_POINTS else None,
                markersize=3.5,
                color=colour(line.policy),
                linewidth=1.6,
                linestyle=DASHES.get(line.pattern, "-"),
                label=line.label,
            )
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), handlelength=4)
        axes.tick_params(axis="x", labelsize=8)
        axes.grid(axis="y", color=SHADE, linewidth=0.8)
        axes.set_axisbelow(True)
        axes.set_title(compiler, loc="left")
        axes.set_xlabel(data.x)
    panels[0].set_ylabel(data.y)
    limits = [end for axes in panels for end in axes.get_ylim()]
    for axes in panels:
        axes.set_ylim(min(limits) if logarithmic else 0, max(limits))
        _mark(axes, data.marks)
    return figure


def swept_text(x: float | str, in_bytes: bool = False) -> str:
    """A swept value: `256 KiB`, `16`, `fp32`."""
    if isinstance(x, str):
        return x
    return bytes_text(x) if in_bytes else f"{x:g}"


def _words(data: Figure) -> list[str]:
    """The swept values in order if some are words; empty if all are numbers."""
    values = [x for _, lines in data.panels for line in lines for x, _ in line.points]
    return list(dict.fromkeys(map(swept_text, values))) if any(isinstance(x, str) for x in values) else []


def _prepare(axes: Axes, data: Figure, words: Sequence[str]) -> None:
    """The x axis: words side by side, bytes and powers of two by their logarithm."""
    if words:
        axes.set_xticks(range(len(words)), words)
        axes.set_xlim(-0.3, len(words) - 0.7)
        return
    numbers = [float(x) for _, lines in data.panels for line in lines for x, _ in line.points]
    low, high = min(numbers), max(numbers)
    powers = all(x > 0 and math.frexp(x)[0] == 0.5 for x in numbers) and len(set(numbers)) > 2
    if low > 0 and (data.in_bytes or powers):
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_locator(LogLocator(2, numticks=_MOST_TICKS))
        axes.xaxis.set_minor_locator(NullLocator())
    elif data.in_bytes:
        axes.xaxis.set_major_locator(MultipleLocator(2.0 ** math.ceil(math.log2(max(high - low, 6.0) / 6))))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 4, 5, 8, 10]))
    text = bytes_text if data.in_bytes else _tick_text
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def _mark(axes: Axes, marks: Sequence[tuple[str, float]]) -> None:
    """Vertical lines with labels, such as cache sizes."""
    low, high = axes.get_xlim()
    for label, place in marks:
        if low < place < high:
            axes.axvline(place, color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0.5)
            where: Any = {"xy": (place, 1.0), "xycoords": ("data", "axes fraction"), "xytext": (3, -2)}
            axes.annotate(label, **where, textcoords="offset points", fontsize=8, va="top", color=FAINT)


def _tick_text(value: float) -> str:
    return number_text(value).replace(".00", "").replace(".0", "") if value >= 1e6 else f"{value:g}"
