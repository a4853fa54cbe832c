"""The pictures: a metric over the working set or another option, and time ratios as bars with intervals."""

from __future__ import annotations

import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import (
    FixedLocator,
    FuncFormatter,
    LogLocator,
    MaxNLocator,
    MultipleLocator,
    NullFormatter,
    NullLocator,
)

from pagewise.analysis.analysis import Curve, Group, KernelResult, Row, X, words_of
from pagewise.core.files import write_inside
from pagewise.core.kernel import Kernel, Sweep
from pagewise.core.units import bytes_text, count_text, number_text, percent_text
from pagewise.report import words

# The report replaces these colours by CSS variables of the same role, so that pictures follow light and dark.
INK, FAINT, PAPER, SHADE = "#1c2430", "#59636f", "#fdfefd", "#e1e5eb"
FASTER, SLOWER = "#00704f", "#a8320a"
# All at least 4.5 : 1 on PAPER; blue and purple also differ in lightness from the grey of base pages for
# people who see few colours, and every line carries its name.
_POLICY_COLOURS = {"none": "#6b7480", "thp": "#0072b2", "hugetlbfs": "#a23e8c"}
_MORE_COLOURS = ("#946300", "#5b4bb5", "#4a7a1e")
COLOUR_ROLES = {
    INK: "ink",
    FAINT: "faint",
    PAPER: "paper",
    SHADE: "shade",
    "#6b7480": "none",
    "#0072b2": "thp",
    "#a23e8c": "hugetlbfs",
    "#946300": "more-1",
    "#5b4bb5": "more-2",
    "#4a7a1e": "more-3",
    FASTER: "faster",
    SLOWER: "slower",
}
_DASHES: dict[tuple[str, str], Any] = {
    ("hardware", "regular"): "-",
    ("software", "regular"): (0, (5, 2)),
    ("block", "regular"): (0, (1, 1.5)),
    ("compiler", "regular"): (0, (7, 2, 1, 2, 1, 2)),
    ("hardware", "nontemporal"): (0, (6, 2, 1.2, 2)),
}
# A file matplotlibrc of the working folder, which may be a result's from elsewhere, decides nothing.
mpl.rcdefaults()
FIGURES = "figures"
# `Any`, because the types of matplotlib list every name.
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
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "figure.facecolor": PAPER,
    "axes.facecolor": PAPER,
    "savefig.facecolor": PAPER,
    "svg.fonttype": "none",
    # A name with two dollar signs is no formula.
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Drawn:
    """A picture that was drawn, as a report takes it; see Picture."""

    kind: str
    stem: str
    name: str
    caption: str
    alternative: str
    svg: str


@dataclass
class Picture:
    """A figure with its kind (`sweep`, `ratios`, ...), its file's stem, a name, the caption, and a text.

    `alternative` is the text that stands for it where it cannot be seen.
    """

    kind: str
    stem: str
    name: str
    figure: Figure
    caption: str
    alternative: str

    @cached_property
    def svg(self) -> str:
        """The picture as an SVG element, without XML prolog. Same figure, same text."""
        buffer = io.StringIO()
        with mpl.rc_context({**STYLE, "svg.hashsalt": self.stem}):
            self.figure.savefig(
                buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Type", "Format"))
            )
        text = buffer.getvalue()
        return text[text.index("<svg") :]

    def png(self) -> bytes:
        """The picture as PNG."""
        buffer = io.BytesIO()
        with mpl.rc_context(STYLE):
            self.figure.savefig(buffer, format="png", dpi=150)
        return buffer.getvalue()

    def written(self, folder: Path) -> Drawn:
        """Writes SVG and PNG into the figures of a result's folder. Raises OSError."""
        write_inside(folder, f"{FIGURES}/{self.stem}.svg", self.svg)
        write_inside(folder, f"{FIGURES}/{self.stem}.png", self.png())
        return Drawn(self.kind, self.stem, self.name, self.caption, self.alternative, self.svg)


def pictures(results: Sequence[KernelResult], manifest: Mapping[str, Any]) -> dict[str, list[Picture]]:
    """The pictures of each kernel by name: its sweeps and its ratios, as far as there are any."""
    with mpl.rc_context(STYLE):
        made = {result.kernel.name: [*_sweeps(result, manifest), _ratios(result)] for result in results}
    return {name: [picture for picture in found if picture is not None] for name, found in made.items()}


# Inches of a panel that stands alone, and of one that has a neighbour.
_WIDE, _NARROW = 6.0, 3.95
# Up to here each power of two gets a tick.
_MANY_OCTAVES = 7
# Up to here points are marked: it is not the line between them that was measured.
_FEW_POINTS = 16


@dataclass(frozen=True)
class Panel:
    """Inches of a panel: its axes and the room beside them for labels."""

    left: float
    width: float
    right: float
    height: float


def side_by_side(count: int, panel: Panel) -> tuple[Figure, list[Axes]]:
    """Panels side by side, placed by inches: matplotlib's own layouts draw all twice to find room."""
    above, below = 0.38, 0.52
    across, high = panel.left + panel.width + panel.right, above + panel.height + below
    figure = Figure(figsize=(across * count, high))
    return figure, [
        figure.add_axes(
            (
                (number * across + panel.left) / (across * count),
                below / high,
                panel.width / (across * count),
                panel.height / high,
            )
        )
        for number in range(count)
    ]


def _sweeps(result: KernelResult, manifest: Mapping[str, Any]) -> list[Picture]:
    return [_sweep(result, sweep, curves, manifest) for sweep, curves in result.by_sweep]


def _sweep(
    result: KernelResult, sweep: Sweep, curves: Sequence[Curve], manifest: Mapping[str, Any]
) -> Picture:
    compilers = list(dict.fromkeys(curve.cell.compiler for curve in curves))
    longest = max(sum(1 for curve in curves if curve.cell.compiler == name) for name in compilers)
    scale = _Scale.of(sweep, curves)
    shape = Panel(
        left=0.72,
        width=_WIDE if len(compilers) == 1 else _NARROW,
        right=1.75,
        height=max(2.6, 0.4 + 0.19 * longest),
    )
    figure, panels = side_by_side(len(compilers), shape)
    logarithmic = _spans_decades(curves)
    for axes, compiler in zip(panels, compilers, strict=True):
        drawn = [curve for curve in curves if curve.cell.compiler == compiler]
        _draw_curves(axes, result.kernel, drawn, logarithmic, scale)
        axes.set_title(compiler, loc="left")
        axes.set_xlabel(sweep.label)
    panels[0].set_ylabel(sweep.y.title)
    limits = [end for axes in panels for end in axes.get_ylim()]
    for axes in panels:
        axes.set_ylim(min(limits) if logarithmic else 0, max(limits))
        if sweep.of_working_set:
            _mark_caches(axes, manifest)
        _label_ends(axes)
    return Picture(
        "sweep",
        f"{result.kernel.name}-sweep-{sweep.name}",
        f"{result.kernel.title}: {sweep.y.title} over {sweep.label}",
        figure,
        _sweep_caption(result, sweep),
        _sweep_words(result.kernel, sweep, curves),
    )


def _sweep_caption(result: KernelResult, sweep: Sweep) -> str:
    direction = "higher is better" if sweep.y.better == "higher" else "lower is better"
    caption = (
        f"{result.kernel.title}: {sweep.y.title} over {sweep.label}, {direction}. Colour is the page policy, "
        "line style prefetch and stores"
    )
    caption += "; vertical lines are this CPU's cache sizes." if sweep.of_working_set else "."
    left_out = sum(curve.left_out for curve in result.curves if curve.sweep == sweep)
    return caption + (f" Not valid, and left out: {count_text(left_out, 'point')}." if left_out else "")


@dataclass(frozen=True)
class _Scale:
    """How swept values lie on the x axis: words side by side, bytes and powers of two by their logarithm."""

    words: tuple[str, ...]
    logarithmic: bool
    in_bytes: bool

    @classmethod
    def of(cls, sweep: Sweep, curves: Sequence[Curve]) -> _Scale:
        """The scale that suits all these curves."""
        values = [x for curve in curves for x, _ in curve.points]
        if any(isinstance(x, str) for x in values):
            return cls(tuple(dict.fromkeys(words_of(x) for x in values)), False, False)
        numbers = [x for x in values if not isinstance(x, str)]
        powers = all(x > 0 and math.frexp(x)[0] == 0.5 for x in numbers) and len(set(numbers)) > 2
        logarithmic = min(numbers) > 0 and (sweep.in_bytes or powers)
        return cls((), logarithmic, sweep.in_bytes)

    def place(self, x: X) -> float:
        """Where a value lies."""
        return float(self.words.index(words_of(x))) if self.words else float(x)

    def prepare(self, axes: Axes, low: float, high: float) -> None:
        """Sets the axis up for values from low to high."""
        if self.words:
            axes.set_xticks(range(len(self.words)), self.words)
            axes.set_xlim(-0.3, len(self.words) - 0.7)
            return
        if self.logarithmic:
            axes.set_xscale("log", base=2)
            first, last = math.ceil(math.log2(low)), math.floor(math.log2(high))
            step = 1 if last - first <= _MANY_OCTAVES else 2 if last - first <= 2 * _MANY_OCTAVES else 3
            axes.xaxis.set_major_locator(FixedLocator([2.0**power for power in range(first, last + 1, step)]))
            axes.xaxis.set_minor_locator(NullLocator())
        elif self.in_bytes:
            spacing = 2.0 ** math.ceil(math.log2(max(high - low, 6.0) / 6))
            axes.xaxis.set_major_locator(MultipleLocator(spacing))
        else:
            axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True, steps=[1, 2, 4, 5, 8, 10]))
        text = bytes_text if self.in_bytes else _tick_text
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(value)))


def _draw_curves(
    axes: Axes, kernel: Kernel, curves: Sequence[Curve], logarithmic: bool, scale: _Scale
) -> None:
    places = [scale.place(x) for curve in curves for x, _ in curve.points]
    scale.prepare(axes, min(places), max(places))
    if logarithmic:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick_text(value)))
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_formatter(NullFormatter())
    for curve in curves:
        measured = curve.cell.measured
        axes.plot(
            [scale.place(x) for x, _ in curve.points],
            [y for _, y in curve.points],
            marker="o" if len(curve.points) <= _FEW_POINTS else None,
            markersize=3.5,
            color=colour(measured.hugepages),
            linewidth=1.6,
            linestyle=_DASHES.get((measured.prefetch, measured.stores), "-"),
            label=words.label(kernel, measured),
        )
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(axis="y", color=SHADE, linewidth=0.8)
    axes.set_axisbelow(True)


def _mark_caches(axes: Axes, manifest: Mapping[str, Any]) -> None:
    """Vertical lines where the caches of the cores in use end."""
    low, high = axes.get_xlim()
    for cache in manifest["host"]["caches"]:
        size = cache["bytes"] * -(-manifest["threads"] // cache["shared_by"])
        if low < size < high:
            axes.axvline(size, color=FAINT, linewidth=0.8, linestyle=(0, (2, 3)), zorder=0.5)
            axes.annotate(
                f"L{cache['level']}",
                (size, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(3, -2),
                textcoords="offset points",
                va="top",
                fontsize=8,
                color=FAINT,
            )


def _label_ends(axes: Axes) -> None:
    """Writes each line's label at its right end; labels that would overlap are pushed apart."""
    to_axes = axes.transData + axes.transAxes.inverted()
    height = axes.get_window_extent().height * 72 / axes.figure.dpi
    gap = 10.5 / max(height, 1.0)
    lines = [line for line in axes.get_lines() if not str(line.get_label()).startswith("_")]
    ends = [(line, np.asarray(line.get_xydata(), dtype=float)[-1]) for line in lines]
    ends.sort(key=lambda pair: float(to_axes.transform(pair[1])[1]))
    heights = [float(to_axes.transform(end)[1]) for _, end in ends]
    for place, (line, end) in zip(_spread(heights, gap), ends, strict=True):
        axes.annotate(
            str(line.get_label()),
            (float(end[0]), float(end[1])),
            xytext=(1.06, place),
            textcoords="axes fraction",
            va="center",
            fontsize=8,
            color=line.get_color(),
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": line.get_color(),
                "linewidth": 0.6,
                "alpha": 0.6,
                "shrinkA": 1,
                "shrinkB": 1,
                "relpos": (0, 0.5),
            },
        )


def _spread(places: Sequence[float], gap: float) -> list[float]:
    """Moves sorted places until neighbours are a gap apart, centred on where they belong."""
    clusters: list[list[float]] = []
    for place in places:
        clusters.append([place])
        while len(clusters) > 1 and _start(clusters[-1], gap) < _start(clusters[-2], gap) + gap * len(
            clusters[-2]
        ):
            last = clusters.pop()
            clusters[-1] += last
    return [_start(cluster, gap) + gap * number for cluster in clusters for number in range(len(cluster))]


def _start(cluster: Sequence[float], gap: float) -> float:
    room = gap * (len(cluster) - 1)
    return max(0.0, min(sum(cluster) / len(cluster) - room / 2, 1.0 - room))


def _ratios(result: KernelResult) -> Picture | None:
    groups = [group for group in result.groups if any(row.time_ratio for row in group.ranked)]
    if not groups:
        return None
    longest = max(sum(1 for row in group.ranked if row.time_ratio) for group in groups)
    names = [words.label(result.kernel, row.cell.measured) for group in groups for row in group.ranked]
    left = 0.25 + 0.075 * max(len(name) for name in names)
    figure, panels = side_by_side(
        len(groups),
        Panel(left, width=_WIDE if len(groups) == 1 else _NARROW, right=0.3, height=0.24 * longest + 0.12),
    )
    for axes, group in zip(panels, groups, strict=True):
        _draw_ratios(axes, result.kernel, group)
    ends = [end for axes in panels for end in axes.get_xlim()]
    low, high = min(*ends, 0.95), max(*ends, 1.05)
    for axes in panels:
        # Room at the right for the numbers beside the bars.
        axes.set_xlim(low, high + 0.16 * (high - low))
    caption = (
        f"{result.kernel.title}: time ratio to the baseline of the same compiler, with its 95 % interval; "
        "left of 1 is faster. The shaded band is the noise floor: within it nothing can be told."
    )
    return Picture(
        "ratios",
        f"{result.kernel.name}-ratios",
        f"{result.kernel.title}: time ratios",
        figure,
        caption,
        _ratio_words(result.kernel, groups),
    )


def _draw_ratios(axes: Axes, kernel: Kernel, group: Group) -> None:
    rows = [row for row in group.ranked if row.time_ratio is not None]
    if group.floor is not None:
        axes.axvspan(1 / (1 + group.floor), 1 + group.floor, color=SHADE, zorder=0)
    for place, row in enumerate(rows):
        _draw_bar(axes, place, row)
    axes.axvline(1.0, color=INK, linewidth=1.0)
    axes.set_yticks(range(len(rows)), [words.label(kernel, row.cell.measured) for row in rows])
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    floor = "" if group.floor is None else f", noise floor {percent_text(group.floor)}"
    axes.set_title(group.compiler + floor, loc="left")
    axes.set_xlabel("time ratio (below 1: faster)")


def _draw_bar(axes: Axes, place: int, row: Row) -> None:
    ratio = row.time_ratio
    if ratio is None:
        return
    filled = colour(row.cell.measured.hugepages)
    told = row.verdict != "inconclusive"
    axes.barh(
        place, ratio.median - 1, left=1, height=0.62, color=filled, alpha=1.0 if told else 0.35, linewidth=0
    )
    low, high = ratio.low or ratio.median, ratio.high or ratio.median
    axes.plot([low, high], [place, place], color=INK, linewidth=1.2, solid_capstyle="butt")
    for end in (low, high):
        axes.plot([end, end], [place - 0.18, place + 0.18], color=INK, linewidth=1.2)
    text = f"{ratio.median:.3f}" + ("" if told else " ?")
    axes.annotate(
        text, (max(high, 1.0), place), xytext=(5, 0), textcoords="offset points", va="center", fontsize=8
    )


def _sweep_words(kernel: Kernel, sweep: Sweep, curves: Sequence[Curve]) -> str:
    parts = []
    for curve in curves:
        ends = [
            f"{y:.3g} {sweep.y.unit} at {words.swept_text(sweep, x)}"
            for x, y in (curve.points[0], curve.points[-1])
        ]
        parts.append(f"{curve.cell.compiler} {words.label(kernel, curve.cell.measured)}: {', '.join(ends)}")
    return "Line chart. " + "; ".join(parts) + "."


def _ratio_words(kernel: Kernel, groups: Sequence[Group]) -> str:
    parts = []
    for group in groups:
        for row in (row for row in group.ranked if row.time_ratio is not None):
            name = f"{group.compiler} {words.label(kernel, row.cell.measured)}"
            parts.append(f"{name} {words.ratio_text(row.time_ratio)} ({row.verdict})")
    return "Bar chart of time ratios. " + "; ".join(parts) + "."


def _spans_decades(curves: Sequence[Curve]) -> bool:
    """Whether the values differ so much that a linear axis would flatten the small ones."""
    values = [value for curve in curves for _, value in curve.points if value > 0]
    return bool(values) and max(values) / min(values) > 5


def _tick_text(value: float) -> str:
    return number_text(value).replace(".00", "").replace(".0", "") if value >= 1e6 else f"{value:g}"


def colour(policy: str) -> str:
    """The colour of a page policy, a key of COLOUR_ROLES."""
    if policy in _POLICY_COLOURS:
        return _POLICY_COLOURS[policy]
    return _MORE_COLOURS[sum(policy.encode()) % len(_MORE_COLOURS)]
