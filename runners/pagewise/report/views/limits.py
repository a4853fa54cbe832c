"""Curves over the working set with the measured limits of each level of the memory hierarchy."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pagewise.analysis.analysis import KernelResult, analyse_result
from pagewise.analysis.curves import Curve
from pagewise.analysis.limits import (
    Limiting,
    MeasuredLimit,
    every_working_set_curve,
    levels_of,
    limits_of,
    working_set_curves,
)
from pagewise.core.manifest import Manifest
from pagewise.core.result import Result
from pagewise.report.layouts.definition import CurveFigure, names
from pagewise.report.model import Column, Figure, LimitLine, Line, Lines, Section, Table, Text, Value
from pagewise.report.views.kernel import caches
from pagewise.report.views.wording import label

_MISSING = "no kernel of the figure was swept over the working set (omit --no-sweep)"
_COLUMNS = (
    Column("level", get="level.name"),
    Column("limit", unit="GB/s", kind="number", get="value"),
    Column("kernel", get="kernel"),
    Column("with write-allocate", unit="GB/s", kind="number", get="with_write_allocate"),
    Column("reached", unit="GB/s", kind="number", get="reached"),
    Column("share", unit="of the limit", kind="percent", get="share"),
)


@dataclass(frozen=True)
class Curved:
    """A figure of a kernel, with its limits; with them it is of one placement."""

    figure: Figure
    part: str
    limits: Sequence[MeasuredLimit]


def figures(shown: CurveFigure, layout: str, results: Sequence[Result]) -> Iterator[Curved]:
    """A figure for each result and kernel with curves over the working set, and for each placement."""
    for number, result in enumerate(results, start=1):
        kernels = analyse_result(result)
        for of_kernel in (each for each in kernels if names(shown.programs, each.kernel)):
            if shown.compares:
                if shown.differ(curves := every_working_set_curve(of_kernel)):
                    part = f"result {number}" * (len(results) > 1)
                    yield Curved(_figure(shown, layout, part, _lines(of_kernel, curves, ())), part, ())
                continue
            for place in dict.fromkeys(curve.cell.placement for curve in of_kernel.curves):
                if working_set_curves(of_kernel, place):
                    part = ", ".join(filter(None, (f"result {number}" * (len(results) > 1), place or "")))
                    found = _limits(shown, result.manifest, kernels, of_kernel, place)
                    data = _lines(of_kernel, working_set_curves(of_kernel, place), found)
                    yield Curved(_figure(shown, layout, part, data), part, found)


def missing(shown: CurveFigure) -> str:
    """Why there is no such figure."""
    if not shown.compares:
        return _MISSING
    return f"{_MISSING} in several of: {', '.join(shown.compares)}"


def _limits(
    shown: CurveFigure,
    manifest: Manifest,
    kernels: Sequence[KernelResult],
    of_kernel: KernelResult,
    placement: str | None,
) -> list[MeasuredLimit]:
    limiting = [
        Limiting(each.kernel.name, working_set_curves(each, placement), each.kernel.data.get("traffic"))
        for each in kernels
        if names(shown.limits, each.kernel)
    ]
    places = {place.name: place for place in manifest.placements}
    place = manifest.placement if placement is None else places[placement]
    levels = levels_of(caches(manifest, place.threads * (place.ranks or 1)))
    curves = working_set_curves(of_kernel, placement)
    return list(limits_of(levels, curves, limiting, of_kernel.kernel.data.get("traffic")))


def _figure(shown: CurveFigure, layout: str, part: str, data: Lines) -> Figure:
    words = re.findall(r"[a-z0-9]+", f"{layout} {shown.name} {part}".lower())
    title = f"{shown.name}. {shown.caption}" + (f" ({part})" if part else "")
    return Figure("-".join(words), title, f"{title}.", data)


def _lines(result: KernelResult, curves: Sequence[Curve], limits: Sequence[MeasuredLimit]) -> Lines:
    panels: dict[str, list[Line]] = {}
    places = {curve.cell.placement for curve in curves}
    for curve in curves:
        measured = curve.cell.measured
        pattern = (measured.prefetch, measured.stores, measured.loop)
        text = label(result.kernel, measured if len(places) > 1 else replace(measured, placement=""))
        line = Line(text, measured.hugepages, pattern, curve.points)
        panels.setdefault(curve.cell.compiler, []).append(line)
    sweep = curves[0].sweep
    ends = [x for curve in curves for x, _ in curve.points if isinstance(x, float)]
    return Lines(
        tuple((compiler, tuple(lines)) for compiler, lines in panels.items()),
        sweep.label,
        sweep.y.title,
        sweep.in_bytes,
        tuple((limit.level.name, limit.level.high) for limit in limits if limit.level.high < math.inf),
        tuple(
            LimitLine(text, value, max(limit.level.low, min(ends)), min(limit.level.high, max(ends)), plain)
            for limit in limits
            for text, value, plain in _of_limit(limit)
        ),
    )


def _of_limit(limit: MeasuredLimit) -> Iterator[tuple[str, float, bool]]:
    yield limit.level.name, limit.value, True
    if limit.with_write_allocate is not None:
        yield f"{limit.level.name}, write-allocate", limit.with_write_allocate, False


def section(curved: Curved) -> Section:
    """The figure, and its limits as a table."""
    if not curved.limits:
        return Section(curved.figure.title, (curved.figure,))
    text = (
        "Limits are the highest bandwidths that the kernels in the table reached in a level, in this "
        "comparison; lines that stores load first count. With write-allocate: what is left for the triad."
    )
    table = Table.of("Measured limits", _COLUMNS, curved.limits)
    return Section(curved.figure.title, (curved.figure, table, Text(text, style="dim")))


def rows(curved: Curved) -> Iterator[dict[str, Value]]:
    """A row for each limit, for JSON."""
    for limit in curved.limits:
        ends = {"from_bytes": limit.level.measured_from, "to_bytes": min(limit.level.high, 2.0**63)}
        for kind, value in (("plain", limit.value), ("with write-allocate", limit.with_write_allocate)):
            if value is not None:
                yield {
                    "figure": curved.figure.name,
                    "part": curved.part,
                    "level": limit.level.name,
                    "kind": kind,
                    "value": value,
                    "kernel": limit.kernel,
                    **ends,
                }
