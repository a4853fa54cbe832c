"""What single runs counted, and the runs of a round together. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from pagewise.core.record import Record
from pagewise.core.record_parts import PageFaults
from pagewise.stack.events import EventFile

TIME, FAULTS = "time", "page_faults"
POPULATE, POPULATE_FAULTS = "populate_time", "populate_page_faults"


@dataclass(frozen=True)
class Taken:
    """What one valid run gave.

    `seconds` and `counts`, by event name, are of one pass; `raw` are the counts of the run. `own` are times
    and page faults that the program tells of itself; `refused` says why events were not counted.
    """

    group: str
    round: int
    position: int
    passes: int
    seconds: float
    own: Mapping[str, float]
    counts: Mapping[str, float]
    raw: Mapping[str, float]
    refused: Mapping[str, str]


@dataclass(frozen=True)
class Joined:
    """The runs of a round as one set: `values` by quantity; `spread` of their cycles (a share)."""

    values: Mapping[str, float]
    spread: float | None


def rates(file: EventFile, counts: Mapping[str, float], seconds: float | None) -> dict[str, float]:
    """The metrics of one set of counts, those that can be had."""
    values = file.base_values(counts, seconds)
    found = {metric.name: metric.value(values) for metric in file.metrics}
    return {name: value for name, value in found.items() if value is not None}


def joined(file: EventFile, runs: Sequence[Taken]) -> Joined:
    """The runs of one round as one set.

    An event that several groups count is their mean. A rate is computed from one run where that counted all
    it needs, so that it is consistent in itself, else from the joined counts.
    """
    names = [name for name in file.events if any(name in run.counts for run in runs)]
    counts = {name: mean(run.counts[name] for run in runs if name in run.counts) for name in names}
    seconds = mean(run.seconds for run in runs)
    whole = rates(file, counts, seconds)
    alone: dict[str, list[float]] = {}
    for run in runs:
        for name, value in rates(file, run.counts, run.seconds).items():
            alone.setdefault(name, []).append(value)
    values = {TIME: seconds, **counts, **whole, **{name: mean(found) for name, found in alone.items()}}
    for name in (FAULTS, POPULATE, POPULATE_FAULTS):
        found = [run.own[name] for run in runs if name in run.own]
        if found:
            values[name] = mean(found)
    cycles = [run.counts[file.cycles] for run in runs if run.counts.get(file.cycles)]
    spread = max(cycles) / min(cycles) - 1.0 if len(cycles) > 1 else None
    return Joined(values, spread)


def taken(record: Record, file: EventFile, region: str | None) -> Taken | str:
    """What a valid record gives, or why it gives nothing."""
    passes = len(record.repetitions) * record.passes
    seconds, counts = sum(record.repetitions), record.counts
    refused = dict(record.counters_refused or {})
    if (unavailable := (record.counters or {}).get("unavailable")) is not None:
        refused = {"all": str(unavailable)} | refused
    own: dict[str, float] = {}
    if region is None:
        if record.seconds is not None and record.seconds.populate is not None:
            own[POPULATE] = record.seconds.populate
        faults = record.page_faults or PageFaults()
        if faults.compute is not None:
            own[FAULTS] = faults.compute / passes
        if faults.populate is not None:
            own[POPULATE_FAULTS] = faults.populate
    else:
        regions = record.regions or ()
        # By name: those that do not lie in another one, whose time and counts hold theirs.
        parts = [part for part in regions if part.path == region] or [
            part for part in regions if part.name == region and part.path.split("/").count(region) == 1
        ]
        if not parts:
            known = ", ".join(dict.fromkeys(part.path for part in regions)) or "none"
            return f"there is no region {region} in its records; there are: {known}"
        seconds = sum(part.seconds for part in parts)
        counts = _summed(part.counts or {} for part in parts) if unavailable is None else {}
    by_native = {event.native: event.name for event in file.events.values()}
    raw = {by_native[native]: float(n) for native, n in counts.items() if native in by_native}
    return Taken(
        group_of(record),
        record.round,
        0 if record.run is None else record.run.position,
        passes,
        seconds / passes,
        own,
        {name: n / passes for name, n in raw.items()},
        raw,
        refused,
    )


def group_of(record: Record) -> str:
    """The events that its run was to count."""
    return (record.run and record.run.group) or "?"


def _summed(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, n in part.items():
            total[name] = total.get(name, 0.0) + n
    return total
