"""Configurations, subjects and records made in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import Any

from pagewise.analysis.analysis import analyse
from pagewise.analysis.rows import KernelResult, Row
from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import Configuration
from pagewise.core.host import Cache, Host, NumaNode, PoolState, Thp
from pagewise.core.kernel import Kernel
from pagewise.core.manifest import Manifest, Modules, PlannedPlacement, Provenance, RecordsDigest, Timing
from pagewise.core.manifest_parts import Origin, Simulated
from pagewise.core.plan import Subject, subject
from pagewise.core.record import Record, Status
from pagewise.core.record_parts import Failure
from pagewise.core.structure import document, from_data, to_data
from stage import CHASE, TRIAD

HUGE = 2 * 1024 * 1024
_NOISE = [1.0, 1.002, 0.998, 1.001, 0.999, 1.0, 1.0004]


def kernel(data: dict[str, Any] = TRIAD, **changes: Any) -> Benchmark:
    return document(Kernel, {**data, **changes}).benchmark


def chase() -> Benchmark:
    return kernel(CHASE)


def configuration(
    compiler: str = "gcc-12.2.0",
    label: tuple[str, str, str] = ("none", "hardware", "regular"),
    **changes: str,
) -> Configuration:
    hugepages, prefetch, stores = label
    facts = {
        "module": f"pagewise-micro/0.1.0/{compiler}/{hugepages}/{prefetch}-{stores}",
        "package": "pagewise-micro",
        "version": "0.1.0",
        "compiler": compiler,
        "hugepages": hugepages,
        "prefetch": prefetch,
        "stores": stores,
        "openmp": "on",
        "papi": "off",
        "target": "x86_64",
        "hash": "abc",
        "builder": "spack",
        "prefix": "/opt",
        "digest": "0" * 64,
    }
    return Configuration(**{**facts, **changes})


BASE, THP, SOFTWARE = (
    configuration(label=(pages, prefetch, "regular"))
    for pages, prefetch in (("none", "hardware"), ("thp", "hardware"), ("none", "software"))
)
LLVM, LLVM_THP = (configuration("llvm-22.1.8", (one.hugepages, "hardware", "regular")) for one in (BASE, THP))


def a_host(**changes: Any) -> Host:
    host = Host(
        hostname="node7",
        cpu="Example 9000",
        architecture="x86_64",
        microcode=None,
        kernel="6.1.0",
        base_page_size_bytes=4096,
        memory_bytes=400_000_000_000,
        cpus=64,
        smt=False,
        numa_nodes=(NumaNode(0, (0, 1), None),),
        caches=(Cache(2, 2**20, 1), Cache(3, 2**25, 32)),
        thp=Thp("madvise", "madvise", {}),
        thp_allowed=True,
        pools=(PoolState(HUGE, 0, 0),),
        governors=("performance",),
        virtual_machine=None,
        container=False,
        pmu=True,
        perf_event_paranoid=2,
    )
    return replace(host, **changes)


def a_manifest(**changes: Any) -> Manifest:
    """The manifest of a complete session on `a_host`."""
    place = PlannedPlacement("close", 1, (0,), "default", {})
    manifest = Manifest(
        kind="kernels",
        id="0123456789abcdef",
        name="all",
        created="2026-01-02T03:04:05Z",
        finished="2026-01-02T04:04:05Z",
        state="complete",
        command=("pagewise", "kernels"),
        started_in="/",
        seed=1,
        rounds=7,
        rounds_done=7,
        aa=1,
        until=None,
        breaks=(),
        baseline="none/hardware-regular",
        sweep=True,
        limit_seconds=300.0,
        placements=(place,),
        pool=(),
        prefetchers=None,
        software={"lmod": "8.6"},
        provenance=Provenance("1.1.0", "t", "p", "0" * 40, False, None, None),
        modules=Modules("default", "/modules"),
        configurations=(),
        records=RecordsDigest(0, "0" * 64),
        files={},
        subjects=(),
        broken_modules=(),
        timing=Timing(1.0, 0.99, 0.01, 1),
        host=a_host(),
    )
    return replace(manifest, **changes)


def subject_of(one: Benchmark, *configurations: Configuration) -> Subject:
    return subject(one, configurations, "none/hardware-regular")


def record(one: Configuration, seconds: float | list[float], **changes: Any) -> Record:
    return from_data(Record, record_data(one, seconds, **changes))


def record_data(
    one: Configuration,
    seconds: float | list[float],
    *,
    number: int = 1,
    series: str = "compare",
    kernel: str = "triad",
    **changes: Any,
) -> dict[str, Any]:
    huge = one.hugepages != "none"
    page = HUGE if huge else 4096
    repetitions = seconds if isinstance(seconds, list) else [seconds]
    moved = 32000.0 * changes.get("passes_per_repetition", 1)
    bandwidth = moved / median(repetitions) / 1e9
    made: dict[str, Any] = {
        "schema": "pagewise.record/1",
        "kernel": kernel,
        "started": "2026-01-02T03:04:05Z",
        "status": "ok",
        "configuration": {
            "version": "0.1.0",
            "compiler": one.compiler,
            "compiler_version": "c",
            "compiler_options": "-O2",
            "hugepages": one.hugepages,
            "prefetch": one.prefetch,
            "stores": one.stores,
            "loop": one.loop,
            "openmp": True,
            "papi": False,
        },
        "options": {"threads": 1, "first_touch": "parallel"},
        "sizes": {
            "elements": 1000,
            "element_bytes": 8,
            "arrays": 4,
            "working_set_bytes": 32000,
            "array_spacing_bytes": 0,
        },
        "seconds": {"first_touch": 0.1, "repetitions": repetitions},
        "passes_per_repetition": 1,
        "traffic": {"bytes_stream": moved, "bytes_hardware": 1.25 * moved, "flops": 2},
        "metrics": {
            "bandwidth_stream_gb_per_s": bandwidth,
            "bandwidth_hardware_gb_per_s": 1.25 * bandwidth,
            "latency_ns": 3.0,
        },
        "validation": {"passed": True, "method": "closed form", "error": 0.0, "tolerance": 1e-12},
        "pages": {
            "policy": one.hugepages,
            "page_size_requested_bytes": page,
            "page_size_observed_bytes": page,
            "huge_coverage": 1.0 if huge else 0.0,
            "base_page_size_bytes": 4096,
            "method": "smaps",
            "arrays": [{"name": "a", "bytes": 8000, "huge_bytes": 0, "page_size_observed_bytes": page}],
        },
        "page_faults": {
            "first_touch_minor": 1,
            "first_touch_major": 0,
            "compute_minor": 0,
            "compute_major": 0,
        },
        "counters": {"unavailable": "built without PAPI"},
        "placement": {"threads": 1, "cpus": [0], "numa_nodes": [0]},
        "host": {"hostname": "h", "cpu": "c", "kernel": "6.1", "base_page_size_bytes": 4096},
        "run": {
            "module": one.module,
            "hash": one.hash,
            "builder": one.builder,
            "round": number,
            "position": 1,
            "series": series,
            "wall_seconds": 0.5 + sum(repetitions),
            "exit_code": 0,
            "command": ["pw-triad"],
        },
    }
    return {**made, **changes}


def rounds(
    times: Mapping[Configuration, Sequence[float]], *again: Sequence[float], kernel: str = "triad"
) -> list[Record]:
    """Records of these times by round; `again` are those of the first configuration's further runs (A/A)."""
    first = next(iter(times))
    runs = [*((one, "compare", several) for one, several in times.items())]
    runs += [(first, "aa", several) for several in again]
    return [
        record(one, float(seconds), number=number, series=series, kernel=kernel)
        for one, series, several in runs
        for number, seconds in enumerate(several, start=1)
    ]


def compared(
    times: Mapping[Configuration, float | None],
    one: Benchmark | None = None,
    baseline: str = "none/hardware-regular",
    *,
    noise: float = 1.0,
    floor: float = 0.0,
) -> KernelResult:
    """Seven rounds of these times, the baseline twice in each.

    The baseline differs from itself by `floor`, and each time by up to `noise` times 0.2 %. Without a time
    the pages are unavailable.
    """
    one = one or kernel()
    planned = subject(one, times, baseline)
    records = []
    for place, cell in enumerate(planned.cells):
        time = times[cell.measured]
        if time is None:
            records.append(failed_record(cell.measured, "pages_unavailable", "no pages"))
            continue
        for number in range(1, 8):
            for series, shift in (("compare", place), *((("aa", place + 2),) if cell.is_baseline else ())):
                seconds = time * _NOISE[(number + shift) % 7] ** noise
                seconds *= 1.0 + floor * (series == "aa")
                name = {"number": number, "series": series, "kernel": one.name}
                records.append(record(cell.measured, seconds, **name))
    return analyse([planned], records, seed=1)[0]


def row_of(rows: Iterable[Row], one: Configuration) -> Row:
    return next(row for row in rows if row.cell.measured == one)


def origin(name: str = "here", **changes: Any) -> Origin:
    """A page of memory that a simulated program allocated, without misses."""
    memory = {"kind": "allocation", "bytes": 4096, "allocations": 1, "begin": 0, "end": 9, "page_faults": 1}
    return Origin(name=name, **{**memory, "counts": {}, **changes})


def simulated(*origins: Origin, **changes: Any) -> Simulated:
    whole = {"geometry": "any", "tool": "any", "pages": "base", "whole": True, "counts": {}, "regions": ()}
    return Simulated(**{**whole, **changes}, origins=origins)


def varied(made: Record, part: str, **changes: Any) -> Record:
    """The record with some of the data of a part changed."""
    data = to_data(made)
    return from_data(Record, {**data, part: {**data.get(part, {}), **changes}})


def failed_record(
    one: Configuration, status: Status, message: str, *, number: int = 1, remedy: str = "do that"
) -> Record:
    made = record(one, 1.0, number=number)
    return Record(
        kernel=made.kernel,
        started=made.started,
        status=status,
        failure=Failure(3, message, remedy),
        configuration=made.configuration,
        run=made.run,
    )
