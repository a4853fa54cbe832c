"""Counts of the simulator: by page policy, by region, and by function."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pagewise.core.errors import FormatError, PagewiseError, SelectionError
from pagewise.core.record import Record, read_records
from pagewise.core.record_parts import Simulated
from pagewise.core.result import RECORDS, differs_from_checksum
from pagewise.core.structure import unstructured
from pagewise.report.model import Block, Column, Report, Section, Table, Text, data_table
from pagewise.workloads.simulation import figures
from pagewise.workloads.simulation.geometry import find_geometry
from pagewise.workloads.simulation.run import AS_IT_IS

Records = Mapping[str, Record]
_ASSUMPTIONS = {
    "base": "all addresses lie on base pages",
    "huge": "all addresses lie on huge pages",
    "fjmpg": "heap, stack and the program's static data lie on huge pages, all else on base pages",
}
_RATIOS = ("L1D_TLB_REFILL", "L2D_TLB_REFILL", "PAGE_WALKS", "L1D_CACHE_REFILL", "L2D_CACHE_REFILL")
_FUNCTIONS = ("ACCESSES", "L1D_TLB_REFILL", "PAGE_WALKS", "L1D_CACHE_REFILL")
#: How many functions are shown by default.
FUNCTIONS = 5
_FIELDS = ("kernel", "geometry", "policy", "region", "count", "modelled")


def view(
    folder: Path,
    name: str,
    geometry: str,
    records: Records,
    missing: Mapping[str, PagewiseError],
    *,
    functions: int,
) -> Report:
    """The report; `functions` is how many of those that miss the TLB are shown, `geometry` a name."""
    title = _title(geometry)
    notes = {policy: _notes(figures.simulation(record)) for policy, record in records.items()}
    headline = f"{name}, simulated on {title}; nothing was measured."
    return Report(
        f"pagewise simulate: {name}",
        headline,
        (Section("Simulated counts", tuple(_blocks(records, functions))),),
        (),
        (("Geometry", title), ("Policies", ", ".join(records))),
        tuple(f"{policy}: {note}" for policy, several in notes.items() for note in several),
        (Text("every number comes from the TLB and cache simulator, none was measured.", "Simulated"),),
        {"simulation.csv": data_table(_FIELDS, list(_rows(records)))},
        {
            "schema": "pagewise.modelled/1",
            "folder": folder,
            "program": name,
            "geometry": geometry,
            "policies": [
                {"policy": policy, "modelled": unstructured(record.modelled), "notes": notes[policy]}
                for policy, record in records.items()
            ],
            "missing": [
                {"policy": policy, "reason": fault.what, "remedy": fault.remedy}
                for policy, fault in missing.items()
            ],
        },
    )


def read(folder: Path) -> Report:
    """The report of a folder of `pagewise simulate`, from its records. Raises FormatError."""
    records: dict[str, Record] = {}
    altered = differs_from_checksum(folder)
    for record in read_records(folder / RECORDS)[0]:
        if record.modelled is not None:
            pages = record.modelled.pages
            asked = AS_IT_IS if record.pages is None else record.pages.policy
            records[pages if pages in _ASSUMPTIONS else asked] = record
    if altered is not None or not records:
        raise FormatError(
            altered or "this folder holds no result: neither a manifest.json nor simulated records",
            where=folder,
            remedy="name a results/<utc>-<name>; pagewise results list lists them",
        )
    first = next(iter(records.values()))
    name, geometry = first.kernel, figures.simulation(first).geometry
    return view(folder, name, geometry, records, {}, functions=FUNCTIONS)


def _title(geometry: str) -> str:
    """The title of a geometry; its name where it is a file of the user's."""
    try:
        return find_geometry(geometry).title
    except SelectionError:
        return geometry


def _rows(records: Records) -> Iterator[dict[str, Any]]:
    """A row for each policy, region and count."""
    for policy, record in records.items():
        simulated = figures.simulation(record)
        for region, counts in (
            ("", simulated.counts),
            *((part.name, part.counts) for part in simulated.regions),
        ):
            for name, value in counts.items():
                fields = (record.kernel, simulated.geometry, policy, region, name, value)
                yield dict(zip(_FIELDS, fields, strict=True))


def _blocks(records: Records, functions: int) -> Iterator[Block]:
    policies, several = list(records), list(records.values())
    per = " per pass" if figures.simulation(several[0]).passes else ""
    columns = (
        Column("quantity"),
        *(Column(policy, kind="count") for policy in policies),
        *(Column(f"{policy} : {policies[0]}", kind="quotient") for policy in policies[1:]),
    )
    rows = tuple((row.name, *row.values, *row.ratios) for row in figures.rows_of(several))
    yield Table(f"Counts{per} and rates", columns, rows)
    regions = figures.regions_of(several)
    if len(regions) > 1:
        for place, policy in enumerate(policies[1:]):
            yield _by_region(several, regions, place, f"{policy} : {policies[0]}")
    if functions > 0:
        names = (Column("function", wrap=True), *(Column(name, kind="count") for name in _FUNCTIONS))
        found = (figures.simulation(several[0]).functions or ())[:functions]
        rows = tuple((one["function"], *(one.get(name) for name in _FUNCTIONS)) for one in found)
        yield Table(f"Functions with the most TLB misses, {policies[0]}", names, rows)


def _by_region(records: Sequence[Record], regions: Sequence[str], place: int, title: str) -> Table:
    rows = []
    for region in regions:
        ratios = {row.name: row.ratios[place] for row in figures.rows_of(records, region)}
        rows.append((region, *map(ratios.get, _RATIOS)))
    columns = (Column("region"), *(Column(name, kind="quotient") for name in _RATIOS))
    return Table(f"Ratios by region, {title}", columns, tuple(rows))


def _notes(simulated: Simulated) -> list[str]:
    notes = []
    if simulated.pages in _ASSUMPTIONS:
        notes.append("assumed, not observed: " + _ASSUMPTIONS[simulated.pages])
    if simulated.whole:
        notes.append("the program marks no regions: it is simulated from its start to its end")
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
