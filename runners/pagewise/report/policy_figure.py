"""The studies' figure: with : without huge pages, each quantity by compiler and page policy."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, NullFormatter

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.policies import Compared
from pagewise.report.figures import FAINT, INK, SHADE, STYLE, Panel, Picture, colour, side_by_side
from pagewise.report.policies import ratio_with_interval

# A figure whose smallest ratio is above this has a linear axis.
_DECADE = 0.1


def policy_picture(result: KernelResult) -> Picture | None:
    """A panel a compiler, a line a quantity and policy; None without such ratios."""
    found = [one for one in result.by_policy if one.reference is None]
    if not found:
        return None
    compilers = list(dict.fromkeys(one.compiler for one in found))
    longest = max(sum(1 for one in found if one.compiler == name) for name in compilers)
    left = 0.3 + 0.075 * max(len(_name(one)) for one in found)
    with mpl.rc_context(STYLE):
        figure, axes = side_by_side(
            len(compilers),
            Panel(left, width=6.0 if len(compilers) == 1 else 3.2, right=1.1, height=0.24 * longest + 0.12),
        )
        for panel, compiler in zip(axes, compilers, strict=True):
            _draw(panel, [one for one in found if one.compiler == compiler])
            panel.set_title(compiler, loc="left")
        low = min(one.ratio.low or one.ratio.median for one in found)
        high = max(one.ratio.high or one.ratio.median for one in found)
        for panel in axes:
            if low < _DECADE:
                panel.set_xscale("log")
                panel.set_xlim(0.7 * low, 1.4 * max(high, 1.0))
            else:
                panel.set_xlim(min(low, 0.95) - 0.03, max(high, 1.05) + 0.03)
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            panel.xaxis.set_minor_formatter(NullFormatter())
    title = result.kernel.title
    caption = (
        f"{title}: ratios with : without huge pages of the same compiler, with their 95 % intervals, as in "
        "the FLASH-on-A64FX study (PEARC 2023, figure 1)."
    )
    told = [f"{one.compiler} {_name(one)} {ratio_with_interval(one.ratio)}" for one in found]
    stem = f"{result.kernel.name}-policies"
    return Picture("policies", stem, title, figure, caption, f"Dot plot. {'; '.join(told)}.")


def _name(one: Compared) -> str:
    return f"{one.quantity}, {one.policy}"


def _draw(axes: Axes, found: Sequence[Compared]) -> None:
    axes.axvline(1.0, color=INK, linewidth=1.0)
    for place, one in enumerate(found):
        ratio, filled = one.ratio, colour(one.policy)
        ends = [ratio.low or ratio.median, ratio.high or ratio.median]
        axes.plot([1.0, ratio.median], [place, place], color=SHADE, linewidth=4, zorder=0.5)
        axes.plot(ends, [place, place], color=filled, linewidth=1.6)
        axes.plot([ratio.median], [place], "o", color=filled, markersize=5)
        text = ratio_with_interval(ratio).split()[0]
        axes.annotate(
            text,
            (1.0, place),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_yticks(range(len(found)), [_name(one) for one in found])
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)
    axes.grid(axis="x", color=FAINT, linewidth=0.3)
    axes.set_xlabel("ratio with : without huge pages")
