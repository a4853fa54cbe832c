"""The judgement of a result as rows for SQL: verdicts of configurations, runs that are excluded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from pagewise.analysis.rows import Group, KernelResult, Row
from pagewise.analysis.validity import Excluding, excluding, exclusion
from pagewise.core.plan import CellKey, Subject
from pagewise.core.record import Record
from pagewise.core.structure import unstructured

if TYPE_CHECKING:
    from pagewise.core.result import Result

#: The file beside the records, and its schema.
ANALYSIS, SCHEMA = "analysis.json", "pagewise.analysis/1"
#: A row of a table, for SQL and for JSON.
TableRow: TypeAlias = dict[str, Any]
_BUILD = (
    *("package", "compiler", "hugepages", "prefetch", "stores", "loop", "library", "runtime"),
    *("simd", "sector", "flags", "target", "hash"),
)


def judgement(result: Result, kernels: Sequence[KernelResult]) -> Mapping[str, object]:
    """What analysis.json has of a result; `kernels`: its analysis if it is a comparison."""
    verdicts = {
        (of_kernel.kernel.name, row.cell.key): _verdict(row, group)
        for of_kernel in kernels
        for group in of_kernel.groups
        for row in group.rows
    }
    return {
        "schema": SCHEMA,
        "records": unstructured(result.manifest.records),
        "cells": list(cell_rows(result.subjects, verdicts)),
        "excluded": list(excluded_rows(result.records, excluding(result))),
    }


def cell_rows(
    subjects: Iterable[Subject], verdicts: Mapping[tuple[str, CellKey], TableRow]
) -> Iterator[TableRow]:
    """A row for each kernel and distinct configuration, with its verdict if there is one."""
    for subject in subjects:
        for cell in subject.cells:
            yield {
                "kernel": subject.kernel.name,
                "kernel_group": subject.kernel.group,
                "module": cell.measured.module,
                "run_pages": cell.pages,
                "run_placement": cell.placement,
                "run_options": cell.options,
                # Configurations have an empty text instead of None.
                **{name: getattr(cell.measured, name) or None for name in _BUILD},
                "is_baseline": cell.is_baseline,
                "stands_for": len(cell.stands_for),
                **verdicts.get((subject.kernel.name, cell.key), {}),
            }


def _verdict(row: Row, group: Group) -> TableRow:
    ratio, base = row.time_ratio, group.baseline
    return {
        "excluded": row.code,
        "excluded_reason": row.invalid,
        "runs": row.runs,
        "rounds": row.rounds,
        "seconds": row.seconds,
        "baseline_seconds": base.seconds if ratio is not None and base is not None else None,
        **{name: getattr(ratio, name, None) for name in ("low", "high", "pairs")},
        "time_ratio": ratio and ratio.median,
        "noise_floor": group.floor,
        "p_corrected": row.time and row.time.p,
        "verdict": row.verdict if ratio is not None else None,
        "reason": row.reason,
    }


def excluded_rows(records: Iterable[Record], excluded: Excluding) -> Iterator[TableRow]:
    """The runs that must not be ranked because of a fault, theirs or that of the module."""
    for record in records:
        run = record.run
        fault = exclusion(record)
        if fault is None and run is not None:
            fault = excluded(run.module)
        if fault is not None:
            yield {
                "program": record.kernel,
                "started": record.started,
                "elements": record.sizes and record.sizes.elements,
                **{name: getattr(run, name, None) for name in ("module", "series", "round", "position")},
                "event_group": run and run.group,
                "code": fault.code,
                "reason": fault.reason,
            }
