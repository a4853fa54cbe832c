"""Results whose records hold the studies' own counts or simulated ones, for tests of published layouts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from builders import a_manifest, configuration, kernel, record_data
from pagewise.core.configuration import Configuration
from pagewise.core.kernel import Kernel
from pagewise.core.manifest import CountersPart, Manifest, PlannedCell, PlannedSubject, SimulationPart
from pagewise.core.plan import subject, varied
from pagewise.core.record import Record
from pagewise.core.result import read_result
from pagewise.core.structure import structured, unstructured
from pagewise.report.views.layout import view
from pagewise.stack.events import EventFile
from pagewise.workloads.counters.published import Published, read_published
from pagewise.workloads.simulation.figures import simulated_record
from pagewise.workloads.simulation.geometry import find_geometry
from stage import CHASE, EVENTS, write_result
from test_published import DATA

A64FX = EventFile.from_file(EVENTS / "a64fx.yaml")
SECONDS_OUTSIDE = 10.0
#: Configurations by the columns of the published counts.
COLUMNS = [
    configuration(compiler, (hugepages, "hardware", "regular"))
    for compiler in ("gcc-12.2.0", "fj-4.10.0")
    for hugepages in ("hugetlbfs", "none")
]


def repeating(test: str, region: str, name: str = "blast", **more: Any) -> Kernel:
    """A kernel of another package and title than those of the studies' tests in this project."""
    return kernel({**CHASE, "name": name, "published_test": test, "published_region": region, **more})


def planned(
    kernels: Sequence[Kernel],
    configurations: Sequence[Configuration],
    options: Mapping[str, Sequence[str]] | None = None,
) -> dict[str, Any]:
    """The parts of a manifest about what was planned."""
    subjects = varied(
        [subject(one, configurations, "none/hardware-regular") for one in kernels], options or {}
    )
    return {"configurations": tuple(configurations), "subjects": tuple(one.planned() for one in subjects)}


def written(folder: Path, manifest: Manifest, records: Iterable[Mapping[str, Any]]) -> Path:
    folder.mkdir()
    lines = "".join(json.dumps(one) + "\n" for one in records)
    return write_result(folder, unstructured(manifest), lines.encode())


def counted_run(
    one: Kernel, column: Configuration, group: str, counts: Mapping[str, float], options: str | None = None
) -> dict[str, Any]:
    """A run whose region has these counts; the whole program has twice as many, and takes longer."""
    seconds = counts["CPU_CYCLES"] / 1.8e9
    native = {A64FX.events[name].native: n for name, n in counts.items()}
    times = dict.fromkeys(("seconds", "seconds_mean_of_threads", "seconds_exclusive"), seconds)
    region = {"name": one.published_region, "path": one.published_region, "calls": 1, "threads": 1, **times}
    made = record_data(column, seconds + SECONDS_OUTSIDE, kernel=one.name, series="counters")
    made |= {
        "counters": {name: 2 * n for name, n in native.items()},
        "regions": [{**region, "counts": native}],
    }
    run = {"kernel": one.name, "group": group, **({"options": options} if options else {})}
    return {**made, "run": {**made["run"], **run}}


def counters(
    folder: Path,
    tests: Sequence[tuple[str, str]] = (("EOS", "eos"), ("3-d Hydro", "hydro")),
    schemes: Sequence[str] = (),
) -> Path:
    """A result of counting in which each configuration counted what the paper's table has of it.

    With schemes, each configuration was counted with each of them.
    """
    options = {"scheme": list(schemes)} if schemes else {}
    kernels = [
        repeating(test, region, region, **({"options": options} if options else {})) for test, region in tests
    ]
    groups = [group for group in A64FX.groups if group.name != "errata"]
    records = [
        counted_run(one, column, group.name, counts, options)
        for options in ([f"scheme={scheme}" for scheme in schemes] or [None])
        for one in kernels
        for published in (each["counts"] for each in DATA["tests"] if each["title"] == one.published_test)
        for place, column in enumerate(COLUMNS)
        for group in groups
        for names in [[event.name for event in group.events if event.name in published]]
        for counts in [{n: published[n][place] for n in names if published[n][place] is not None}]
    ]
    part = CountersPart(A64FX.data, tuple(g.name for g in groups), False, None, "the file", None, A64FX.data)
    manifest = a_manifest(kind="counters", counters=part, **planned(kernels, COLUMNS, options))
    return written(folder, manifest, records)


def simulation(
    folder: Path, compiler: str, misses: Sequence[int], test: str = "3-d Hydro", arguments: Sequence[str] = ()
) -> Path:
    """A simulation under `none` and `fjmpg` with so many misses of the L1 DTLB per 1000 instructions."""
    facts = {"published_test": test, "published_region": "hydro", "program": True}
    one = kernel({**CHASE, "name": "blast", "compare": {"arguments": list(arguments)}, **facts})
    first = configuration(compiler, ("none", "hardware", "regular"), module="none")
    policies = [first, replace(first, hugepages="fjmpg", module="fjmpg")]
    records = []
    for policy, count in zip(policies, misses, strict=True):
        counts = {"INSTRUCTIONS": 1000, "LOADS": 300, "L1D_TLB_REFILL": count, "L1D_CACHE": 400}
        made = structured(Record, record_data(policy, 1.0, kernel="blast", series="simulate"))
        region = {"name": "hydro", "calls": 1, "counts": counts}
        whole = {name: 5 * n for name, n in counts.items()}
        about = {
            "geometry": "a64fx",
            "pages": "observed",
            "whole": False,
            "counts": whole,
            "regions": [region],
        }
        records.append(unstructured(simulated_record(made, about, "qemu 7.2")))
    cells = tuple(PlannedCell(one.module, (one.module,), one is first) for one in policies)
    plan = {"configurations": tuple(policies), "subjects": (PlannedSubject(one.data, cells),)}
    part = SimulationPart(find_geometry("a64fx").data, "qemu 7.2", 5, A64FX.data)
    return written(folder, a_manifest(kind="simulation", simulation=part, **plan), records)


def publication(layout: str) -> Published:
    """The publication of a layout."""
    return next(one for one in read_published() if one.layout.name == layout)


def rows_of(layout: str, *folders: Path) -> list[dict[str, Any]]:
    report = view(publication(layout), [read_result(folder) for folder in folders])
    assert not report.faulty
    return list(report.data["rows"])


def row_values(rows: Iterable[Mapping[str, Any]], **wanted: str) -> list[float | None]:
    return [row["value"] for row in rows if all(row[name] == value for name, value in wanted.items())]
