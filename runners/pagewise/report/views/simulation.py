"""Counts of the simulator: by page policy, by region, and by function."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from pagewise.analysis.validity import excluding, exclusion
from pagewise.core.manifest_parts import (
    SAMPLES,
    Forecast,
    Origin,
    Sampled,
    Simulated,
    SimulationPart,
    without_arguments,
)
from pagewise.core.record import Record
from pagewise.core.result import Result
from pagewise.core.structure import to_data
from pagewise.report.documents import MissingPolicy, SimulatedPolicy, SimulationDocument
from pagewise.report.model import Block, Column, Report, Section, Table, Values
from pagewise.report.views import session
from pagewise.workloads.simulation import figures
from pagewise.workloads.simulation.forecast import LEAST_GAIN, ON_BASE_PAGES, share_saved
from pagewise.workloads.simulation.origins import sum_of
from pagewise.workloads.simulation.selection import SELECTION, selection_text

Records = Mapping[str, Record]
_ASSUMPTIONS = {
    "base": "all addresses lie on base pages",
    "huge": "all addresses lie on huge pages",
    "fjmpg": "heap, stack and the program's static data lie on huge pages, all else on base pages",
}
_RATIOS = ("L1D_TLB_REFILL", "L2D_TLB_REFILL", "PAGE_WALKS", "L1D_CACHE_REFILL", "L2D_CACHE_REFILL")
_FUNCTIONS = ("ACCESSES", "L1D_TLB_REFILL", "PAGE_WALKS", "L1D_CACHE_REFILL")
_FIELDS = ("kernel", "geometry", "policy", "region", "count", "simulated")
_ORIGIN_FIELDS = (
    *("policy", "kind", "origin", "place", "caller", "identity", "bytes", "allocations", "begin", "end"),
    *("page_faults", "tlb_misses", "page_walks"),
    *("tlb_misses_on_huge", "page_walks_on_huge", "page_faults_on_huge"),
    *("saved_seconds_least", "saved_seconds_most", "samples"),
)
_MISSES, _WALKS = "L1D_TLB_REFILL", "PAGE_WALKS"
_MISSES_OF_ORIGINS = tuple(f"{count}{suffix}" for suffix in ("", "_ON_HUGE") for count in (_MISSES, _WALKS))
_ON_HUGE = f"{_WALKS}_ON_HUGE"
#: Origins with less of the TLB misses and of the page walks are summed in the table.
_LEAST_SHARE = 0.001
#: Fewer samples get a note of how uncertain their shares are.
_FEW_SAMPLES = 1000
# The end of processes, which give their memory back, is not sampled either.
_MOST_UNSEEN = 0.1
_UNAVAILABLE = "pages_unavailable"


def view(result: Result) -> Report:
    """The report of a simulation. Unavailable pages are a fault only if they affect all policies."""
    (subject,) = result.subjects
    about = result.manifest.simulation
    assert about is not None
    name, geometry = subject.benchmark.name, about.geometry or {"name": "none", "title": ""}
    records, missing = by_policy(result)
    notes = {policy: _notes(figures.simulation(record)) for policy, record in records.items()}
    title, blocks = "Simulated counts", _blocks
    if about.origins is not None:
        title, blocks = "Origins of the memory that misses the TLB", _origin_tables
    if about.geometry is None:
        title = "Time by the origin of the memory"
    sections = [Section(title, tuple(blocks(records, about)))] if records else []
    files = {"simulation.csv": Table("", tuple(map(Column, _FIELDS)), tuple(_rows(records)))}
    facts = (("Geometry", geometry["title"]), ("Policies", ", ".join(records)), ("Emulator", about.tool))
    texts: dict[str, str] = {}
    if about.origins is not None:
        files["origins.csv"] = Table("", tuple(map(Column, _ORIGIN_FIELDS)), tuple(_origin_rows(records)))
        first = next(iter(records.values()), None)
        listed = [] if first is None else _listed_origins(figures.simulation(first), about.origins)
        texts = {SELECTION: selection_text(listed)}
    return Report(
        f"pagewise {'simulate' if about.origins is None else 'where'}: {name}",
        _summary(name, geometry["title"], list(records.values())),
        (*sections, *session.sections(result)),
        tuple((label, text) for label, text in facts if text),
        (
            *(f"{policy}: {note}" for policy, several in notes.items() for note in several),
            *(
                ": ".join(filter(None, (f"{why.policy} is omitted", why.reason, why.remedy)))
                for why in missing
            ),
            *session.notes(result),
        ),
        "simulation",
        files,
        SimulationDocument(
            "pagewise.simulated/1",
            str(result.folder),
            result.manifest.state,
            name,
            geometry["name"],
            tuple(
                SimulatedPolicy(policy, to_data(record.simulated), tuple(notes[policy]))
                for policy, record in records.items()
            ),
            tuple(missing),
        ),
        not records or any(why.code != _UNAVAILABLE for why in missing),
        texts=texts,
    )


def _summary(name: str, machine: str, records: Sequence[Record]) -> str:
    if not records:
        return f"{name} has no valid counts under any page policy."
    simulated = figures.simulation(records[0])
    if simulated.sampled is not None:
        return _summary_of_samples(name, simulated)
    text = f"{name}, simulated on {machine}"
    if simulated.forecast is None:
        return f"{text}; nothing was measured."
    low, high = simulated.forecast.time_ratio
    if low > 1.0 - LEAST_GAIN and high < 1.0 + LEAST_GAIN:
        return (
            f"{text}. Forecast: nothing to gain with thp (less than {LEAST_GAIN:.0%} of the time); measure "
            "anyway."
        )
    most = max(simulated.origins or (), key=lambda origin: sum(origin.saved_seconds or (0.0,)))
    share = _range(low, high, 2, "-")
    return f"{text}. Forecast: thp: {share} of the time, mostly {most.site}."


def _summary_of_samples(name: str, simulated: Simulated) -> str:
    whole = simulated.counts[SAMPLES]
    reachable = [origin for origin in simulated.origins or () if origin.kind not in ON_BASE_PAGES]
    share = sum(origin.weight for origin in reachable) / whole
    text = f"{name}, {whole} samples of its time"
    if share < LEAST_GAIN:
        return f"{text}: nothing to gain with thp (less than {LEAST_GAIN:.0%} at memory that it reaches)."
    most = max(reachable, key=lambda origin: origin.weight)
    return f"{text}: {share:.0%} at memory that thp reaches, mostly {most.site}. It saves at most that."


def _saving(origin: Origin, forecast: Forecast | None) -> str | None:
    shares = None if forecast is None else share_saved(origin, forecast)
    return None if shares is None else f"{_range(100 * shares[0], 100 * shares[1], 1, ' to ')} %"


def _range(low: float, high: float, decimals: int, between: str) -> str:
    """Both, rounded, or one if they are equal then; 0 has no sign."""
    texts = [f"{round(value, decimals) + 0.0:.{decimals}f}" for value in (low, high)]
    return between.join(dict.fromkeys(texts))


def by_policy(result: Result) -> tuple[Records, list[MissingPolicy]]:
    """The valid records by policy in the order of the plan, and why other policies are missing."""
    by_module = {record.run.module: record for record in result.records if record.run is not None}
    records: dict[str, Record] = {}
    missing = []
    excluded = excluding(result)
    for cell in result.subjects[0].cells:
        policy = cell.measured.module
        record = by_module.get(policy)
        why = excluded(policy) or (exclusion(record) if record is not None else None)
        if record is not None and why is None:
            records[policy] = record
        elif why is not None:
            remedy = record.failure.remedy if record is not None and record.failure is not None else None
            missing.append(MissingPolicy(policy, why.code, why.reason, remedy))
        else:
            missing.append(MissingPolicy(policy, "not_measured", "it was not simulated", None))
    return records, missing


def _rows(records: Records) -> Iterator[Values]:
    """A row for each policy, region and count."""
    for policy, record in records.items():
        simulated = figures.simulation(record)
        regions = {"": simulated.counts, **{part.name: part.counts for part in simulated.regions}}
        for region, counts in regions.items():
            for name, value in counts.items():
                yield (record.kernel, simulated.geometry, policy, region, name, value)


def _origin_rows(records: Records) -> Iterator[Values]:
    """A row for each policy and origin."""
    for policy, record in records.items():
        for origin in figures.simulation(record).origins or ():
            yield (
                *(policy, origin.kind, origin.name, origin.place, origin.caller, " ".join(origin.identity)),
                *(origin.bytes, origin.allocations, origin.begin, origin.end, origin.page_faults),
                *(origin.counts.get(name) for name in (*_MISSES_OF_ORIGINS, "PAGE_FAULTS_ON_HUGE")),
                *(origin.saved_seconds or (None, None)),
                origin.counts.get(SAMPLES),
            )


def _origin_tables(records: Records, about: SimulationPart) -> Iterator[Block]:
    columns = (
        *(Column("origin", wrap=True), Column("place", wrap=True), Column("called from", wrap=True)),
        *(Column("kind"), Column("size", kind="bytes"), Column("lifetime", kind="percent", optional=True)),
    )
    of_misses = (
        *(Column("page faults", kind="count"), Column("TLB misses", kind="percent", optional=True)),
        *(Column("page walks", kind="percent"), Column("on huge pages", kind="percent")),
        Column("forecast saving"),
    )
    of_samples = (Column("samples", kind="count", optional=True), Column("time", kind="percent"))
    for policy, record in records.items():
        simulated = figures.simulation(record)
        origins, whole = simulated.origins or (), simulated.instructions or 1
        shown = _listed_origins(simulated, about.origins or 0)
        rest = [origin for origin in origins if origin not in shown]
        rows = [
            (
                *(without_arguments(origin.name), origin.place, without_arguments(origin.caller or "")),
                *(origin.kind, origin.bytes),
                (origin.end - origin.begin) / whole,
                *(_samples(origin, simulated) if simulated.sampled else _misses(origin, simulated)),
            )
            for origin in (*shown, *([sum_of(rest)] if rest else []))
        ]
        ranked = f"Origins by {'time' if simulated.sampled else 'page walks'}"
        figured = of_samples if simulated.sampled else of_misses
        named = "" if len(records) == 1 else f", {policy}"
        yield Table(ranked + named, (*columns, *figured), tuple(rows))


def _misses(origin: Origin, simulated: Simulated) -> Values:
    misses, walks = _sums(simulated.origins or ())
    return (
        origin.page_faults,
        origin.counts[_MISSES] / misses,
        origin.weight / walks,
        origin.counts[_ON_HUGE] / walks if _ON_HUGE in origin.counts else None,
        _saving(origin, simulated.forecast),
    )


def _samples(origin: Origin, simulated: Simulated) -> Values:
    return origin.weight, origin.weight / simulated.counts[SAMPLES]


def _sums(origins: Sequence[Origin]) -> tuple[int, int]:
    """The TLB misses, and the page walks or samples, of all origins, at least 1."""
    misses = sum(origin.counts.get(_MISSES, 0) for origin in origins)
    return misses or 1, sum(origin.weight for origin in origins) or 1


def listed_origins(result: Result) -> tuple[Simulated, list[Origin]]:
    """The simulated figures of a result of `where`, and the origins that it lists. Raises ValueError."""
    about = result.manifest.simulation
    records, _ = by_policy(result)
    if about is None or about.origins is None or not records:
        raise ValueError("this result has no origins")
    simulated = figures.simulation(next(iter(records.values())))
    return simulated, _listed_origins(simulated, about.origins)


def _listed_origins(simulated: Simulated, most: int) -> list[Origin]:
    """The origins that are listed one by one, at most as many as given."""
    origins = simulated.origins or ()
    misses, weights = _sums(origins)
    return [
        origin
        for origin in origins[:most]
        if origin.counts.get(_MISSES, 0) >= _LEAST_SHARE * misses or origin.weight >= _LEAST_SHARE * weights
    ]


def _blocks(records: Records, about: SimulationPart) -> Iterator[Block]:
    (base, *others), several = records, list(records.values())
    simulated = figures.simulation(several[0])
    columns = (
        Column("quantity"),
        *(Column(policy, kind="count") for policy in records),
        *(Column(f"{policy} : {base}", kind="quotient") for policy in others),
    )
    rows = tuple((row.name, *row.values, *row.ratios) for row in figures.rows_of(several))
    yield Table(f"Counts{' per pass' if simulated.passes else ''} and rates", columns, rows)
    regions = figures.regions_of(several)
    if len(regions) > 1:
        by_region = {
            region: {row.name: row.ratios for row in figures.rows_of(several, region)} for region in regions
        }
        columns = (Column("region"), *(Column(name, kind="quotient") for name in _RATIOS))
        for place, policy in enumerate(others):
            rows = tuple(
                (region, *(ratios[name][place] if name in ratios else None for name in _RATIOS))
                for region, ratios in by_region.items()
            )
            yield Table(f"Ratios by region, {policy} : {base}", columns, rows)
    if about.functions > 0:
        columns = (Column("function", wrap=True), *(Column(name, kind="count") for name in _FUNCTIONS))
        most = (simulated.functions or ())[: about.functions]
        rows = tuple((function["function"], *map(function.get, _FUNCTIONS)) for function in most)
        yield Table(f"Functions with the most TLB misses, {base}", columns, rows)


def _notes_of_samples(sampled: Sampled, whole: int) -> list[str]:
    in_kernel, no_operand = sampled.in_kernel / whole, sampled.no_operand / whole
    notes = [f"of the time, {in_kernel:.1%} was in system calls, and {no_operand:.1%} at no known address"]
    if whole < _FEW_SAMPLES:
        notes.append(
            f"{whole} samples are few: shares are off by up to {1 / math.sqrt(whole):.0%} (95 % interval); "
            "let it compute longer"
        )
    if sampled.unseen > _MOST_UNSEEN:
        notes.append(
            f"{sampled.unseen:.0%} of the CPU time was of processes that cannot be sampled, such as static "
            "programs"
        )
    if sampled.processes > 1:
        notes.append(f"the origins of {sampled.processes} processes are summed")
    if sampled.lost:
        notes.append(f"{sampled.lost} samples were lost: the program ran long without allocating memory")
    return notes


def _notes(simulated: Simulated) -> list[str]:
    if simulated.sampled is not None:
        return _notes_of_samples(simulated.sampled, simulated.counts[SAMPLES])
    notes = []
    if simulated.pages in _ASSUMPTIONS:
        notes.append("assumed, not observed: " + _ASSUMPTIONS[simulated.pages])
    if simulated.whole:
        notes.append("the program marks no regions: it is simulated from its start to its end")
    if simulated.origins is not None and simulated.forecast is None:
        notes.append(
            "no forecast: the geometry has no costs of misses (miss_ns) of both page sizes, or the program "
            "does not run on this node; --geometry node measures them"
        )
    if simulated.sites is False:
        notes.append(
            "allocation sites are unknown, because this program takes no preloaded library (it is static, "
            "not of glibc, or of another machine): heap and mappings are listed instead"
        )
    if simulated.child_processes:
        notes.append(f"child processes that were not simulated: {simulated.child_processes}")
    if simulated.open_regions:
        notes.append("the program ended inside a region, which is not counted")
    if others := simulated.accesses_of_other_threads:
        notes.append(f"{others} accesses of other threads were excluded: one thread is simulated")
    if simulated.unclear_extents:
        notes.append(
            f"{simulated.unclear_extents} times 2 MiB lie in mappings that are partly on huge pages; this "
            "kernel does not report which parts, and they were taken as base pages (Linux 6.7 reports it)"
        )
    return notes
