"""What the model's counts say: rates, ratios between page policies. Pure functions over records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagewise.core.record import Record

#: The record's fields that an emulated program must not be believed in.
_MEASURED = ("seconds", "metrics", "counters", "counters_source", "regions", "traffic", "page_faults")
#: Rates: name, what is counted, by what it is divided.
RATES = (
    ("L1-DTLB miss rate", "L1D_TLB_REFILL", "INSTRUCTIONS"),
    ("L2-DTLB miss rate", "L2D_TLB_REFILL", "INSTRUCTIONS"),
    ("L1-DTLB misses a look-up", "L1D_TLB_REFILL", "L1D_CACHE"),
    ("page walks a look-up", "PAGE_WALKS", "L1D_CACHE"),
    ("L1D cache miss rate", "L1D_CACHE_REFILL", "INSTRUCTIONS"),
    ("L2 cache miss rate", "L2D_CACHE_REFILL", "INSTRUCTIONS"),
    ("share of look-ups on huge pages", "HUGE_PAGE_LOOKUPS", "L1D_CACHE"),
)


@dataclass(frozen=True)
class Row:
    """A count or rate of all policies, and its ratios to the first."""

    name: str
    values: tuple[float | None, ...]

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Each policy but the first: the first; None where there is nothing to divide by."""
        first = self.values[0]
        return tuple(None if not first or value is None else value / first for value in self.values[1:])


def modelled_record(record: Mapping[str, Any], modelled: Mapping[str, Any], tool: str) -> Record:
    """The program's record with the model's figures in place of all that was timed or counted."""
    kept = {key: value for key, value in record.items() if key not in _MEASURED}
    told = {key: value for key, value in modelled.items() if key not in ("geometry", "unseen_instructions")}
    passes = _passes(record)
    return {
        **kept,
        "modelled": {
            "geometry": modelled["geometry"],
            "tool": tool,
            **({} if passes is None else {"passes": passes}),
            **told,
        },
    }


def scale(record: Mapping[str, Any]) -> int:
    """By what counts are divided: the passes over a kernel's working set; 1 where it makes none."""
    return int(record["modelled"].get("passes", 1))


def rows_of(records: Sequence[Mapping[str, Any]], region: str | None = None) -> list[Row]:
    """Counts a pass and rates of the same program under several policies, of all regions or of one."""
    counts = [_counts(record, region) for record in records]
    names = list(counts[0])
    rows = [
        Row(name, tuple(one[name] / scale(record) for one, record in zip(counts, records, strict=True)))
        for name in names
    ]
    rows += [
        Row(name, tuple(one[above] / one[below] if one[below] else None for one in counts))
        for name, above, below in RATES
        if above in names
    ]
    return rows


def regions_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """The regions that all of the records have, in their order."""
    sets = [{one["name"] for one in record["modelled"]["regions"]} for record in records]
    first = records[0]["modelled"]["regions"]
    return [one["name"] for one in first if all(one["name"] in names for names in sets)]


def _counts(record: Mapping[str, Any], region: str | None) -> dict[str, int]:
    modelled = record["modelled"]
    if region is None:
        return dict(modelled["counts"])
    return next(dict(one["counts"]) for one in modelled["regions"] if one["name"] == region)


def _passes(record: Mapping[str, Any]) -> int | None:
    if "passes_per_repetition" not in record:
        return None
    return int(record["passes_per_repetition"]) * len(record["seconds"]["repetitions"])
