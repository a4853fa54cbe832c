"""From a result to the rows of the store: what was measured, and what the analysis says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagewise.analysis.analysis import analyse_result
from pagewise.analysis.result import excluding
from pagewise.analysis.rows import Row
from pagewise.analysis.series import run_seconds
from pagewise.analysis.validity import Code, exclusion
from pagewise.core.plan import CellKey, key_of
from pagewise.core.record import Record, read_records
from pagewise.core.record_parts import PageFaults
from pagewise.core.structure import unstructured
from pagewise.store.sources import Source

_MOST_FAULTS = 20
# The columns of `records` that are fields of a record.
_FIELDS: Mapping[str, str] = {
    "program": "kernel",
    "started": "started",
    "status": "status",
    "message": "failure.message",
    "remedy": "failure.remedy",
    "compiler": "configuration.compiler",
    "compiler_version": "configuration.compiler_version",
    "compiler_options": "configuration.compiler_options",
    "built_hugepages": "configuration.hugepages",
    "prefetch": "configuration.prefetch",
    "stores": "configuration.stores",
    "openmp": "configuration.openmp",
    "papi": "configuration.papi",
    "options": "options",
    "elements": "sizes.elements",
    "element_bytes": "sizes.element_bytes",
    "arrays": "sizes.arrays",
    "working_set_bytes": "sizes.working_set_bytes",
    "array_spacing_bytes": "sizes.array_spacing_bytes",
    "repetitions": "seconds.repetitions",
    "passes_per_repetition": "passes_per_repetition",
    "populate_seconds": "seconds.populate",
    "wall_seconds": "run.wall_seconds",
    "bytes_stream": "traffic.bytes_stream",
    "bytes_hardware": "traffic.bytes_hardware",
    "flops": "traffic.flops",
    "metrics": "metrics",
    "validation_passed": "validation.passed",
    "validation_error": "validation.error",
    "page_size_requested_bytes": "pages.page_size_requested_bytes",
    "page_size_observed_bytes": "pages.page_size_observed_bytes",
    "huge_coverage": "pages.huge_coverage",
    "counters_unavailable": "counters.unavailable",
    "counters_source": "counters_source",
    "regions": "regions",
    "modelled": "modelled",
    "threads": "placement.threads",
    "placement_cpus": "placement.cpus",
    "placement_name": "run.bound.name",
    "memory_policy": "run.bound.had.memory",
    "numa_nodes": "placement.numa_nodes",
    "hostname": "host.hostname",
    "cpu": "host.cpu",
    "kernel_release": "host.kernel",
    "module": "run.module",
    "run_pages": "run.pages",
    "run_placement": "run.placement",
    "hash": "run.hash",
    "builder": "run.builder",
    "series": "run.series",
    "swept": "run.sweep",
    "round": "run.round",
    "position": "run.position",
    "event_group": "run.group",
    "exit_code": "run.exit_code",
    "log": "run.log",
}
_PATHS = {name: tuple(path.split(".")) for name, path in _FIELDS.items()}


@dataclass(frozen=True)
class Rows:
    """The rows of a result by table; `faults` are what of it could not be read."""

    source: Source
    cells: list[dict[str, Any]]
    records: list[dict[str, Any]]
    faults: list[str]

    @property
    def result(self) -> dict[str, Any]:
        """The row of `results`."""
        return {**self.source.row(), "faults": self.faults, "partial": bool(self.faults)}


def rows_of(source: Source) -> Rows:
    """Reads and analyses a result. Raises RefusedError when its records cannot be read."""
    records, skipped = (
        ([], []) if source.records is None else read_records(source.records, checked=_is_whole(source))
    )
    faults = [*source.faults, *map(str, skipped[:_MOST_FAULTS])]
    if len(skipped) > _MOST_FAULTS:
        faults.append(f"and {len(skipped) - _MOST_FAULTS} more lines")
    judged = _judged(source, records)
    cells = [
        {
            **cell,
            "result": source.result,
            **judged.get((cell["kernel"], (cell["module"], cell["run_pages"], cell["run_placement"])), {}),
        }
        for cell in source.cells
    ]
    codes = {key: columns["excluded"] for key, columns in judged.items()}
    rows = [
        {**_record(record), "result": source.result, "excluded": _excluded(source, record, codes)}
        for record in records
    ]
    return Rows(source, cells, rows, faults)


def _is_whole(source: Source) -> bool:
    """Whether its manifest names exactly the records that are there."""
    manifest = {} if source.read is None else source.read.manifest
    return manifest.get("records") is not None and manifest["state"] != "running"


def _judged(source: Source, records: Sequence[Record]) -> dict[tuple[str, CellKey], dict[str, Any]]:
    """By kernel and cell, what the analysis makes of a comparison; nothing of other results."""
    if source.read is None or source.about["kind"] not in ("kernels", "program"):
        return {}
    judged = {}
    for one in analyse_result(replace(source.read, records=list(records))):
        for group in one.groups:
            base = None if group.baseline is None else group.baseline.seconds
            for row in (*group.ranked, *group.unranked):
                judged[one.kernel.name, row.cell.key] = _verdict(row, base, group.floor)
    return judged


def _verdict(row: Row, baseline_seconds: float | None, floor: float | None) -> dict[str, Any]:
    ratio = row.time_ratio
    return {
        "excluded": row.code,
        "excluded_reason": row.invalid,
        "runs": row.runs,
        "rounds": row.rounds,
        "seconds": row.seconds,
        "baseline_seconds": baseline_seconds if ratio is not None else None,
        "time_ratio": None if ratio is None else ratio.median,
        "low": None if ratio is None else ratio.low,
        "high": None if ratio is None else ratio.high,
        "pairs": None if ratio is None else ratio.pairs,
        "noise_floor": floor,
        "p_corrected": row.p,
        "verdict": row.verdict if ratio is not None else None,
        "reason": row.reason,
    }


def _excluded(
    source: Source, record: Record, codes: Mapping[tuple[str, CellKey], Code | None]
) -> Code | None:
    """Why a run must not be ranked: a fault of its own, of its module, or of its whole configuration."""
    found, run = exclusion(record), record.run
    if found is not None or run is None:
        return None if found is None else found.code
    module = excluding(source.read)(run.module) if source.read is not None else None
    if module is not None:
        return module.code
    if run.series not in ("compare", "aa"):
        return None
    return codes.get((record.of_kernel, key_of(run)))


def _record(record: Record) -> dict[str, Any]:
    faults = record.page_faults or PageFaults()
    row = {name: _field(record, path) for name, path in _PATHS.items()}
    return row | {
        "kernel": record.of_kernel,
        "hugepages": (record.run and record.run.pages) or record.configuration.hugepages,
        "seconds": run_seconds(record) if row["repetitions"] else None,
        "counters": record.counts or None,
        "populate_faults": faults.populate,
        "compute_faults": faults.compute,
    }


def _field(record: Record, path: Sequence[str]) -> Any:
    value: Any = record
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return unstructured(value)
