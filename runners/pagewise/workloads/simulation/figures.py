"""What simulated counts say: rates, and ratios between page policies. Pure functions over records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pagewise.core.manifest_parts import Simulated
from pagewise.core.record import Record
from pagewise.core.structure import from_data

#: Rates: name, what is counted, by what it is divided.
RATES = (
    ("L1-DTLB miss rate", "L1D_TLB_REFILL", "INSTRUCTIONS"),
    ("L2-DTLB miss rate", "L2D_TLB_REFILL", "INSTRUCTIONS"),
    ("L1-DTLB misses per look-up", "L1D_TLB_REFILL", "L1D_CACHE"),
    ("page walks per look-up", "PAGE_WALKS", "L1D_CACHE"),
    ("L1D cache miss rate", "L1D_CACHE_REFILL", "INSTRUCTIONS"),
    ("L2 cache miss rate", "L2D_CACHE_REFILL", "INSTRUCTIONS"),
    ("share of look-ups on huge pages", "HUGE_PAGE_LOOKUPS", "L1D_CACHE"),
)
# The fields of a program's record that are neither timed nor counted.
_KEPT = (
    *("kernel", "started", "status", "failure", "configuration", "options", "sizes"),
    *("passes_per_repetition", "validation", "pages", "placement", "host", "run"),
)


@dataclass(frozen=True)
class FigureRow:
    """A count or rate of all policies, and its ratios to the first."""

    name: str
    values: tuple[float | None, ...]

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Each policy but the first, divided by the first; None where the first is zero or unknown."""
        first = self.values[0]
        return tuple(None if not first or value is None else value / first for value in self.values[1:])


def simulated_record(record: Record, simulated: Mapping[str, object], tool: str | None) -> Record:
    """The program's record with the simulator's figures instead of everything that was timed or counted."""
    passes = record.passes * len(record.repetitions) if record.passes_per_repetition else None
    figures = from_data(Simulated, {**simulated, "tool": tool, "passes": passes}, ignored="null")
    return Record(**{name: getattr(record, name) for name in _KEPT}, simulated=figures)


def simulation(record: Record) -> Simulated:
    """The simulator's figures of a record. Raises ValueError for one without."""
    if record.simulated is None:
        raise ValueError("this record holds nothing simulated")
    return record.simulated


def rows_of(records: Sequence[Record], region: str | None = None) -> list[FigureRow]:
    """Counts per pass and rates of one program under several policies, of all regions or of one.

    Counts are divided by the passes over a kernel's working set; those of other programs are totals.
    """
    counts = [counts_per_pass(record, region) for record in records]
    names = [name for name in counts[0] if all(name in of for of in counts)]
    rows = [FigureRow(name, tuple(of[name] for of in counts)) for name in names]
    rows += [
        FigureRow(name, tuple(of[above] / of[below] if of[below] else None for of in counts))
        for name, above, below in RATES
        if above in names and below in names
    ]
    return rows


def regions_of(records: Sequence[Record]) -> list[str]:
    """The regions that all of the records have, in their order."""
    first, *others = [[part.name for part in simulation(record).regions] for record in records]
    return [name for name in dict.fromkeys(first) if all(name in names for names in others)]


def counts_per_pass(record: Record, region: str | None = None) -> dict[str, float]:
    """The counts of all regions or of one, per pass over a kernel's working set; of other programs totals."""
    simulated = simulation(record)
    counts = simulated.counts
    if region is not None:
        counts = next(part.counts for part in simulated.regions if part.name == region)
    return {name: count / (simulated.passes or 1) for name, count in counts.items()}
