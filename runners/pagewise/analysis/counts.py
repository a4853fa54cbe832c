"""What was counted in the runs of a comparison, a pass. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import median

from pagewise.analysis.validity import invalid_reason
from pagewise.core.plan import key_of
from pagewise.core.record import Record
from pagewise.core.record_parts import PageFaults
from pagewise.core.structure import unstructured

# Kernel, and the key of the cell.
Key = tuple[str, str, str | None, str | None]


def counts_by_cell(records: Iterable[Record]) -> dict[Key, dict[str, float]]:
    """Medians over the valid runs of each cell: counters a pass, page faults of the whole run."""
    found: dict[Key, dict[str, list[float]]] = {}
    for record in records:
        run = record.run
        if run is None or run.series not in ("compare", "aa") or invalid_reason(record) is not None:
            continue
        values = found.setdefault((record.of_kernel, *key_of(run)), {})
        passes = len(record.repetitions) * record.passes
        for name, count in record.counts.items():
            values.setdefault(name, []).append(count / passes)
        for name, count in unstructured(record.page_faults or PageFaults()).items():
            values.setdefault(f"page faults: {name.replace('_', ', ')}", []).append(count)
    return {key: {name: median(counts) for name, counts in values.items()} for key, values in found.items()}
