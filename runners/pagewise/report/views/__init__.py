"""One module per kind of result: from what `analysis` computed to a Report."""

from __future__ import annotations

from pagewise.core.result import Result
from pagewise.report.model import Report


def report_of(result: Result) -> Report:
    """The report of a result. Raises FormatError when its manifest has no valid event file."""
    if result.manifest.kind == "counters":
        from pagewise.report.views import counters

        return counters.view(result)
    if result.manifest.kind == "peers":
        from pagewise.report.views import peers

        return peers.view(result)
    if result.manifest.kind == "simulation":
        from pagewise.report.views import simulation

        return simulation.view(result)
    from pagewise.report.views import kernels

    return kernels.view(result)
