"""The curves of a kernel: a metric over the working set or another option."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.curves import Curve
from pagewise.core.kernel import Sweep
from pagewise.core.units import count_text
from pagewise.report.model import Block, Column, Figure, Kind, Line, Lines, Section, Table
from pagewise.report.views.wording import label


def sweeps(result: KernelResult, manifest: Mapping[str, Any]) -> Iterator[Block]:
    """Each sweep as a figure, and its values as a table."""
    for sweep, curves in result.by_sweep:
        yield _figure(result, sweep, curves, manifest)
        title = f"{result.kernel.title}: values over {sweep.label}"
        yield Section(title, (_table(result, sweep, curves),), only="page", folded=True)


def _figure(
    result: KernelResult, sweep: Sweep, curves: Sequence[Curve], manifest: Mapping[str, Any]
) -> Figure:
    kernel = result.kernel
    lines = [
        (
            curve.cell.compiler,
            Line(
                label(kernel, curve.cell.measured),
                curve.cell.measured.hugepages,
                (curve.cell.measured.prefetch, curve.cell.measured.stores),
                curve.points,
            ),
        )
        for curve in curves
    ]
    panels = tuple(
        (compiler, tuple(line for name, line in lines if name == compiler))
        for compiler in dict.fromkeys(name for name, _ in lines)
    )
    marks = _caches(manifest) if sweep.of_working_set else ()
    return Figure(
        f"{kernel.name}-sweep-{sweep.name}",
        f"{kernel.title}: {sweep.y.title} over {sweep.label}",
        _caption(result, sweep),
        Lines(panels, sweep.label, sweep.y.title, sweep.in_bytes, marks),
    )


def _caption(result: KernelResult, sweep: Sweep) -> str:
    direction = "higher is better" if sweep.y.better == "higher" else "lower is better"
    caption = (
        f"{result.kernel.title}: {sweep.y.title} over {sweep.label}, {direction}. Colour is the page policy, "
        "line style prefetch and stores"
    )
    caption += "; vertical lines are this CPU's cache sizes." if sweep.of_working_set else "."
    excluded = sum(curve.left_out for curve in result.curves if curve.sweep == sweep)
    return caption + (f" Excluded: {count_text(excluded, 'point')}." if excluded else "")


def _caches(manifest: Mapping[str, Any]) -> tuple[tuple[str, float], ...]:
    """Where the caches of the cores in use end."""
    return tuple(
        (f"L{cache['level']}", float(cache["bytes"] * -(-manifest["threads"] // cache["shared_by"])))
        for cache in manifest["host"]["caches"]
    )


def _table(result: KernelResult, sweep: Sweep, curves: Sequence[Curve]) -> Table:
    """A row for each swept value, a column for each configuration."""
    values = list(dict.fromkeys(x for curve in curves for x, _ in curve.points))
    if not any(isinstance(x, str) for x in values):
        values.sort()
    by_value = [dict(curve.points) for curve in curves]
    heads = tuple(
        Column(
            f"{curve.cell.compiler} {label(result.kernel, curve.cell.measured)}",
            label(result.kernel, curve.cell.measured),
            kind="number",
            unit=curve.cell.compiler,
        )
        for curve in curves
    )
    kind: Kind = "bytes" if sweep.in_bytes else "swept"
    rows = tuple((x, *(at.get(x) for at in by_value)) for x in values)
    return Table(f"{sweep.y.title} over {sweep.label}", (Column(sweep.label, kind=kind), *heads), rows)
