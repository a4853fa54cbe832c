"""The model's figures as tables on a terminal and as CSV."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagewise.core.errors import PagewiseError, RefusedError
from pagewise.core.files import table_text, write_inside
from pagewise.core.units import number_text
from pagewise.workloads.simulation import figures
from pagewise.workloads.simulation.figures import Row
from pagewise.workloads.simulation.geometry import Geometry

Records = Mapping[str, Mapping[str, Any]]
_ASSUMPTIONS = {
    "base": "all addresses lie on base pages",
    "huge": "all addresses lie on huge pages",
    "fjmpg": "heap, stack and the program's static data lie on huge pages, all else on base pages",
}
_RATIOS = ("L1D_TLB_REFILL", "L2D_TLB_REFILL", "PAGE_WALKS", "L1D_CACHE_REFILL", "L2D_CACHE_REFILL")


def print_records(console: Console, name: str, geometry: Geometry, records: Records, functions: int) -> None:
    """Prints counts, rates and ratios by policy, the ratios of each region, and who misses the TLB."""
    policies, given = list(records), list(records.values())
    per = " a pass" if "passes" in given[0]["modelled"] else ""
    console.print()
    console.print(Text(f"{name}: modelled on {geometry.title}", style="bold cyan"))
    table = _table(f"counts{per} and rates")
    table.add_column("")
    _columns(table, policies)
    for row in figures.rows_of(given):
        table.add_row(row.name, *_cells(row))
    console.print(table)
    regions = figures.regions_of(given)
    if len(regions) > 1 and len(policies) > 1:
        _print_regions(console, policies, given, regions)
    if functions > 0:
        _print_functions(console, policies[0], given[0], functions)
    for policy, record in records.items():
        for note in _notes(record["modelled"]):
            console.print(Text(f"note: {policy}: {note}", style="yellow"), soft_wrap=True)


def to_dict(
    folder: Path, name: str, geometry: Geometry, records: Records, missing: Mapping[str, PagewiseError]
) -> dict[str, Any]:
    """Schema pagewise.modelled/1: what was modelled of each policy, and why others could not be had."""
    return {
        "schema": "pagewise.modelled/1",
        "folder": str(folder),
        "program": name,
        "geometry": geometry.name,
        "policies": [
            {"policy": policy, "modelled": record["modelled"], "notes": _notes(record["modelled"])}
            for policy, record in records.items()
        ],
        "missing": [
            {"policy": policy, "reason": fault.what, "remedy": fault.remedy}
            for policy, fault in missing.items()
        ],
    }


def write_csv(folder: Path, records: Records) -> Path:
    """Writes model.csv: a line for each policy, region and count. Raises RefusedError."""
    rows = []
    for policy, record in records.items():
        modelled = record["modelled"]
        parts = [("", modelled["counts"]), *((r["name"], r["counts"]) for r in modelled["regions"])]
        for region, counts in parts:
            for name, value in counts.items():
                rows.append((record["kernel"], modelled["geometry"], policy, region, name, value))
    names = ("kernel", "geometry", "policy", "region", "count", "modelled")
    try:
        return write_inside(folder, "model.csv", table_text(names, rows))
    except OSError as fault:
        raise RefusedError(
            f"the figures cannot be written: {fault.strerror}",
            where=folder,
            remedy="free some space, or name another folder: --output DIR",
        ) from fault


def _print_regions(
    console: Console, policies: Sequence[str], given: Sequence[Mapping[str, Any]], regions: Sequence[str]
) -> None:
    for i, policy in enumerate(policies[1:]):
        table = _table(f"ratios by region, {policy} : {policies[0]}")
        table.add_column("region")
        for name in _RATIOS:
            table.add_column(name, justify="right")
        for region in regions:
            rows = {row.name: row for row in figures.rows_of(given, region)}
            cells = [_number(rows[name].ratios[i]) if name in rows else "-" for name in _RATIOS]
            table.add_row(region, *cells)
        console.print(table)


def _print_functions(console: Console, policy: str, record: Mapping[str, Any], most: int) -> None:
    table = _table(f"functions with the most TLB misses, {policy}")
    for name in ("function", "ACCESSES", "L1D_TLB_REFILL", "PAGE_WALKS", "L1D_CACHE_REFILL"):
        table.add_column(name, justify="left" if name == "function" else "right", overflow="fold")
    for one in record["modelled"]["functions"][:most]:
        table.add_row(
            *(str(value) if key == "function" else number_text(value) for key, value in one.items())
        )
    console.print(table)


def _notes(modelled: Mapping[str, Any]) -> list[str]:
    notes = []
    if modelled["pages"] in _ASSUMPTIONS:
        notes.append("assumed, not observed: " + _ASSUMPTIONS[modelled["pages"]])
    if modelled["whole"]:
        notes.append("the program marks no regions: it is modelled from its start to its end")
    if modelled["open_regions"]:
        notes.append("the program ended inside a region, of which nothing is counted")
    if others := modelled["accesses_of_other_threads"]:
        notes.append(f"{others} accesses of other threads were left out: one thread is modelled")
    if modelled["unclear_extents"]:
        notes.append(
            f"{modelled['unclear_extents']} times 2 MiB lie in mappings that are on huge pages in part; this "
            "kernel does not say which, and they were taken as base pages (Linux 6.7 does)"
        )
    return notes


def _table(title: str) -> Table:
    return Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))


def _columns(table: Table, policies: Sequence[str]) -> None:
    for policy in policies:
        table.add_column(policy, justify="right")
    for policy in policies[1:]:
        table.add_column(f"{policy} : {policies[0]}", justify="right")


def _cells(row: Row) -> list[str]:
    return [_number(value) for value in (*row.values, *row.ratios)]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    if value != 0 and abs(value) < 0.01:
        return f"{value:.2e}"
    return f"{value:.0f}" if value == int(value) and value < 1e6 else number_text(value)
