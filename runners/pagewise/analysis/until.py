"""Whether a comparison has been measured well enough: by the width of its intervals alone.

Never by what they say: to stop as soon as something is significant finds differences where there are none
(Armitage, McPherson and Rowe, J. R. Stat. Soc. A 132, 1969).
"""

from __future__ import annotations

from collections.abc import Sequence

from pagewise.analysis.analysis import KernelResult


def widest(result: KernelResult) -> float | None:
    """The widest interval of a kernel's time ratios, as a share; None while one that can be had lacks it.

    The baseline's to itself (A/A) count as well, for they make the noise floor. A configuration that cannot
    be ranked, or is all alone, keeps nobody waiting: 0 where there is no ratio.
    """
    ratios = [row.time_ratio for group in result.groups for row in group.ranked if not row.cell.is_baseline]
    ratios += [one for group in result.groups for one in group.repeated]
    ratios += [one.time_ratio for one in result.versus]
    widths = [one.width for one in ratios if one is not None]
    if any(width is None for width in widths):
        return None
    return max((width for width in widths if width is not None), default=0.0)


def too_wide(results: Sequence[KernelResult], width: float) -> dict[str, float | None]:
    """The kernels whose widest interval is not narrower than `width`, with it."""
    found = {one.kernel.name: widest(one) for one in results}
    return {name: value for name, value in found.items() if value is None or value >= width}
