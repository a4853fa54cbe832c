"""Results of comparisons with known times in several placements, for tests of tables by axes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import a_manifest, record_data
from pagewise.core.benchmark import Benchmark, Metric
from pagewise.core.configuration import Configuration, RunSettings
from pagewise.core.fields import Better
from pagewise.core.manifest import PlannedPlacement
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import Cell, Subject
from pagewise.core.structure import to_data
from stage import write_result

ROUNDS = 5
SCATTER = (1.0, 1.01, 0.99, 1.004, 0.996)
BYTES, TRAFFIC = 32000.0, {"loads": 3, "stores": 1, "write_allocate": 1, "flops": 2, "element_bytes": 8}
# A kernel, configuration and placement with its time, and metrics of a program.
Value = Callable[[Benchmark, Configuration, str], tuple[float, Mapping[str, float]]]


def place(name: str, threads: int, *, ranks: int | None = None, cores: int, policy: str = "first-touch"):
    count = threads * (ranks or 1)
    return PlannedPlacement(name, threads, tuple(range(count)), "default", {}, ranks, "close", cores, policy)


def program(name: str, title: str, *metrics: tuple[str, str, Better]) -> Benchmark:
    return Benchmark(
        name=name,
        group="program",
        title=title,
        summary="",
        executable=title,
        unit="run",
        sensitive_to=("compiler", "hugepages"),
        metrics=tuple(Metric(field, field, unit, better) for field, unit, better in metrics),
    )


def result(
    folder: Path,
    subjects: Sequence[Subject],
    places: Sequence[PlannedPlacement],
    value: Value,
    further: Sequence[Mapping[str, Any]] = (),
) -> Path:
    """A result of ROUNDS rounds in which each configuration scatters by 1 %."""
    records = list(further)
    kind = "programs" if subjects[0].benchmark.unit == "run" else "kernels"
    for one in subjects:
        for shift, cell in enumerate(one.cells):
            seconds, metrics = value(one.benchmark, cell.measured, cell.placement or places[0].name)
            for number in range(1, ROUNDS + 1):
                for series in ("compare", *(("aa",) if cell.is_baseline else ())):
                    scatter = SCATTER[(number + shift + (series == "aa")) % ROUNDS]
                    made = record_data(
                        cell.measured,
                        seconds * scatter,
                        number=number,
                        series=series,
                        kernel=one.benchmark.name,
                    )
                    if metrics:
                        made["metrics"] = {name: x * scatter for name, x in metrics.items()}
                    if one.benchmark.unit == "run":
                        del made["traffic"]
                        kind_of_pages = PagePolicy(cell.measured.hugepages).kind
                        made["configuration"]["hugepages"] = made["pages"]["policy"] = kind_of_pages
                    run = {"placement": cell.placement} if cell.placement else {}
                    run |= {"options": cell.options} if cell.options else {}
                    records.append({**made, "run": {**made["run"], **run}})
    configurations = {cell.measured.module: cell.measured for one in subjects for cell in plain(one)}
    manifest = a_manifest(
        kind=kind,
        configurations=tuple(configurations.values()),
        subjects=tuple(one.planned_subject() for one in subjects),
        placements=tuple(places),
    )
    data = to_data(manifest)
    if kind == "programs":
        lists: dict[str, list[str]] = {"policies": [], "metrics": [], "checks": []}
        data["programs"] = {
            one.benchmark.name: {"command": ["a"], "path": "/a", "sha256": "0" * 64, **lists}
            for one in subjects
        }
    return write_result(folder, data, records)


def plain(one: Subject) -> list[Cell]:
    """Its cells as the manifest has their configurations: without what only runs have."""
    return [
        replace(cell, measured=replace(cell.measured, placement="", settings=RunSettings()))
        for cell in one.cells
    ]
