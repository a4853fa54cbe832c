"""What single runs counted, and the runs of a round together. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median

from pagewise.analysis.series import by_cell, valid_records
from pagewise.core.events import EventFile
from pagewise.core.record import Record
from pagewise.core.record_parts import PageFaults
from pagewise.core.structure import unstructured

#: Benchmark, and the key of the cell.
Key = tuple[str, str, str | None, str | None, str | None]
TIME, FAULTS = "time", "page_faults"
#: Only where a region is counted: the time inside and outside of it.
WHOLE_TIME = "whole_time"
POPULATE, POPULATE_FAULTS = "populate_time", "populate_page_faults"


@dataclass(frozen=True)
class CountedRun:
    """The counts of one valid run.

    `seconds` and `counts`, by event name, are per pass; `raw` are the counts of the whole run. `reported` are
    times and page faults that the program itself reports; `refused` is why events were not counted.
    `imbalance` is the most of a thread : the mean of the threads, by the name of that quantity.
    """

    group: str
    round: int
    position: int
    passes: int
    seconds: float
    reported: Mapping[str, float]
    counts: Mapping[str, float]
    raw: Mapping[str, float]
    refused: Mapping[str, str]
    imbalance: Mapping[str, float]


@dataclass(frozen=True)
class CountedRound:
    """The runs of a round together: `values` by quantity; `spread` of their cycles (a share)."""

    values: Mapping[str, float]
    spread: float | None


def imbalance_of(event: str) -> str:
    """The name of the quantity that is the load imbalance of an event."""
    return f"{event}_imbalance"


def rates(file: EventFile, counts: Mapping[str, float], seconds: float | None) -> dict[str, float]:
    """The metrics that one set of counts provides."""
    values = file.base_values(counts, seconds)
    metrics = {metric.name: metric.value(values) for metric in file.metrics}
    return {name: value for name, value in metrics.items() if value is not None}


def counted_round(file: EventFile, runs: Sequence[CountedRun]) -> CountedRound:
    """The runs of one round together.

    The count of an event in several groups is their mean. A rate comes from the runs that counted all of its
    events, so that it is consistent in itself, else from the counts of all runs.
    """
    seconds = mean(run.seconds for run in runs)
    counts = _means([run.counts for run in runs])
    values = {
        TIME: seconds,
        **{name: counts[name] for name in file.events if name in counts},
        **rates(file, counts, seconds),
        **_means([rates(file, run.counts, run.seconds) for run in runs]),
        **_means([run.reported for run in runs]),
        **_means([run.imbalance for run in runs]),
    }
    cycles = [run.counts[file.cycles] for run in runs if run.counts.get(file.cycles)]
    return CountedRound(values, max(cycles) / min(cycles) - 1.0 if len(cycles) > 1 else None)


def counted_run(record: Record, file: EventFile, region: str | None) -> CountedRun | str:
    """The counts of a valid record, or why it has none."""
    passes = len(record.repetitions) * record.passes
    seconds, counts = sum(record.repetitions), record.counts
    refused = dict(record.counters_refused or {})
    if (unavailable := (record.counters or {}).get("unavailable")) is not None:
        refused = {"all": str(unavailable)} | refused
    regions = record.regions or ()
    if region is None:
        reported = _reported(record, passes)
        # Of the whole computation, the outermost region.
        parts = [part for part in regions if part.counts == record.counters][:1]
    else:
        # Regions of this name inside another one of this name are part of its time and counts.
        parts = [part for part in regions if part.path == region] or [
            part for part in regions if part.name == region and part.path.split("/").count(region) == 1
        ]
        if not parts:
            known = ", ".join(dict.fromkeys(part.path for part in regions)) or "none"
            return f"there is no region {region} in its records; there are: {known}"
        reported = {WHOLE_TIME: seconds / passes}
        seconds, counts = sum(part.seconds for part in parts), {}
        for part in parts if unavailable is None else ():
            for name, n in (part.counts or {}).items():
                counts[name] = counts.get(name, 0.0) + n
    by_native = file.by_native
    raw = {by_native[native]: float(n) for native, n in counts.items() if native in by_native}
    # Several paths may have their most on several threads.
    uneven = (parts[0].imbalance or {}) if len(parts) == 1 else {}
    return CountedRun(
        group_of(record),
        record.round,
        0 if record.run is None else record.run.position,
        passes,
        seconds / passes,
        reported,
        {name: n / passes for name, n in raw.items()},
        raw,
        refused,
        {imbalance_of(by_native[native]): n for native, n in uneven.items() if native in by_native},
    )


def group_of(record: Record) -> str:
    """The group of events that its run was to count."""
    return (record.run and record.run.group) or "?"


def counts_by_cell(
    records: Iterable[Record],
) -> dict[Key, dict[str, float]]:
    """Medians over the valid runs of a comparison, by kernel and key of the cell.

    Counters are per pass, page faults those of a whole run.
    """
    values: dict[Key, dict[str, list[float]]] = {}
    for (kernel, key, series), runs in by_cell(records).items():
        for record in valid_records(runs) if series in ("compare", "aa") else ():
            lists = values.setdefault((kernel, *key), {})
            passes = len(record.repetitions) * record.passes
            for name, count in record.counts.items():
                lists.setdefault(name, []).append(count / passes)
            for name, count in unstructured(record.page_faults or PageFaults()).items():
                lists.setdefault(f"page faults: {name.replace('_', ', ')}", []).append(count)
    return {key: {name: median(counts) for name, counts in lists.items()} for key, lists in values.items()}


def _reported(record: Record, passes: int) -> dict[str, float]:
    faults = record.page_faults or PageFaults()
    values = {
        POPULATE: None if record.seconds is None else record.seconds.populate,
        FAULTS: None if faults.compute is None else faults.compute / passes,
        POPULATE_FAULTS: faults.populate,
    }
    return {name: value for name, value in values.items() if value is not None}


def _means(several: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The mean of each name over those that have it."""
    names = dict.fromkeys(name for values in several for name in values)
    return {name: mean(values[name] for values in several if name in values) for name in names}
