"""One module per kind of result: from what `analysis` computed to a Report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING

from pagewise.core.result import Result
from pagewise.report.model import Report, Table

if TYPE_CHECKING:
    from pagewise.analysis.analysis import Drafts

# Other kinds, kernels and the user's program, are comparisons.
_VIEWS = {"counters": "counters", "simulation": "simulation"}


def verdicts_of(result: Result, drafts: Drafts | None = None) -> tuple[str, Table] | None:
    """Headline and table of what an unfinished comparison shows so far; None for other kinds of result.

    drafts: as in `analyse`.
    """
    from pagewise.report.views import kernels

    return None if result.manifest.kind in _VIEWS else kernels.verdicts(result, drafts)


def report_of(result: Result) -> Report:
    """The report of a result. Raises FormatError when its manifest has no valid event file."""
    # It imports numpy, without which `list` works.
    from pagewise.analysis.rows import judgement

    name = _VIEWS.get(result.manifest.kind, "kernels")
    view: Callable[[Result], Report] = import_module(f"{__name__}.{name}").view
    report = view(result)
    return report if report.analysis is not None else replace(report, analysis=judgement(result, ()))
