"""From a result to the rows of the store: what was measured, and how the analysis judges it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pagewise.analysis.analysis import Group, analyse_result
from pagewise.analysis.result import Excluding, excluding, nothing_excluded
from pagewise.analysis.rows import Row
from pagewise.analysis.series import run_seconds
from pagewise.analysis.validity import Code, exclusion
from pagewise.core.plan import CellKey, key_of
from pagewise.core.record import Record, read_records
from pagewise.store.columns import TableRow, columns, row_of
from pagewise.store.sources import CELL, Source

_MOST_FAULTS = 20
# The columns of `records` that are fields of a record.
_RECORD = columns(
    {
        "": "program=kernel started status options passes_per_repetition metrics counters_source regions "
        "modelled",
        "failure": "message remedy",
        "configuration": "compiler compiler_version compiler_options built_hugepages=hugepages prefetch "
        "stores loop openmp papi",
        "sizes": "elements element_bytes arrays working_set_bytes array_spacing_bytes",
        "seconds": "repetitions populate_seconds=populate",
        "traffic": "bytes_stream bytes_hardware flops",
        "validation": "validation_passed=passed validation_error=error",
        "pages": "page_size_requested_bytes page_size_observed_bytes huge_coverage",
        "page_faults": "populate_faults=populate compute_faults=compute",
        "counters": "counters_unavailable=unavailable",
        "placement": "threads placement_cpus=cpus numa_nodes migrated",
        "host": "hostname cpu kernel_release=kernel",
        "run": "module run_pages=pages run_placement=placement run_options=options hash builder series "
        "swept=sweep round position event_group=group exit_code log wall_seconds",
        "run.bound": "placement_name=name ranks",
        "run.bound.had": "memory_policy=memory",
    }
)
# The columns of `cells` that are fields of a row of the analysis.
_ROW = columns(
    {
        "": "excluded=code excluded_reason=invalid runs rounds seconds p_corrected=p reason",
        "time_ratio": "time_ratio=median low high pairs",
    }
)


def analysed(source: Source) -> Source:
    """The result with its records, and verdicts on its cells. Raises RefusedError for unreadable records."""
    records, skipped = (
        ([], []) if source.file is None else read_records(source.file, checked=_is_whole(source))
    )
    faults = [*source.faults, *map(str, skipped[:_MOST_FAULTS])]
    if len(skipped) > _MOST_FAULTS:
        faults.append(f"and {len(skipped) - _MOST_FAULTS} more lines")
    judged = _judged(source, records)
    cells = [
        cell | judged.get((cell["kernel"], tuple(cell[name] for name in CELL)), {}) for cell in source.cells
    ]
    codes = {key: row["excluded"] for key, row in judged.items()}
    excluded = nothing_excluded if source.read is None else excluding(source.read)
    rows = [{**_record(record), "excluded": _code(record, excluded, codes)} for record in records]
    return replace(source, cells=cells, records=rows, faults=faults, read=None)


def _is_whole(source: Source) -> bool:
    """Whether its manifest names exactly the records that are there."""
    return source.read is not None and source.read.manifest.state != "running"


def _judged(source: Source, records: Sequence[Record]) -> dict[tuple[str, CellKey], TableRow]:
    """The columns of a comparison's cells that come from its analysis; none for other results."""
    if source.read is None or source.about["kind"] not in ("kernels", "program", "programs"):
        return {}
    return {
        (result.kernel.name, row.cell.key): _cell(row, group)
        for result in analyse_result(replace(source.read, records=list(records)))
        for group in result.groups
        for row in group.rows
    }


def _cell(row: Row, group: Group) -> TableRow:
    is_compared, base = row.time_ratio is not None, group.baseline
    return {
        **row_of(row, _ROW),
        "baseline_seconds": base.seconds if is_compared and base is not None else None,
        "noise_floor": group.floor,
        "verdict": row.verdict if is_compared else None,
    }


def _code(
    record: Record, excluded: Excluding, codes: Mapping[tuple[str, CellKey], Code | None]
) -> Code | None:
    """Why a run must not be ranked: its own fault, or that of its module or of its configuration."""
    fault, run = exclusion(record), record.run
    if fault is None and run is not None:
        fault = excluded(run.module)
        if fault is None and run.series in ("compare", "aa"):
            return codes.get((record.of_kernel, key_of(run)))
    return None if fault is None else fault.code


def _record(record: Record) -> TableRow:
    return row_of(record, _RECORD) | {
        "kernel": record.of_kernel,
        "hugepages": (record.run and record.run.pages) or record.configuration.hugepages,
        "seconds": run_seconds(record) if record.repetitions else None,
        "counters": record.counts or None,
    }
