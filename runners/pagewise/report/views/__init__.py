"""One module per kind of result: from what `analysis` computed to a Report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module

from pagewise.core.result import Result
from pagewise.report.model import Report


def report_of(result: Result) -> Report:
    """The report of a result. Raises FormatError when its manifest has no valid event file."""
    # It imports numpy, without which `list` works.
    from pagewise.analysis.rows import judgement

    # Other kinds, kernels and the user's program, are comparisons.
    kind = result.manifest.kind
    name = kind if kind in ("counters", "simulation") else "kernels"
    view: Callable[[Result], Report] = import_module(f"{__name__}.{name}").view
    report = view(result)
    return report if report.analysis is not None else replace(report, analysis=judgement(result, ()))
