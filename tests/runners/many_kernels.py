"""A result of all kernels in all configurations, made in memory: as large as a report gets."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from builders import a_manifest, configuration, failed_record, record, subject_of, varied
from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import Configuration
from pagewise.core.kernel import Kernel, read_source
from pagewise.core.record import Record
from pagewise.core.result import Result
from pagewise.core.structure import document
from stage import ALL_LABELS, COMPILERS, ROOT

DISTANCES = [2**power for power in range(2, 7)]
SIZES = [2**power for power in range(13, 29)]
# Time over that of the baseline, before the share of a kernel.
_EFFECTS = {
    "thp": 0.8,
    "hugetlbfs": 0.78,
    "software": 0.9,
    "block": 1.15,
    "nontemporal": 0.93,
    "loop-compiler": 1.6,
}
_EMPTY = "policy hugetlbfs: 64 huge pages of 2048 KiB are missing: of the pool's 0 pages 0 are available"


def all_kernels() -> list[Benchmark]:
    """The micro-kernels as they are described in their kernel.yaml."""
    return [
        document(Kernel, read_source(file)).benchmark
        for file in sorted(ROOT.glob("kernels/micro/*/kernel.yaml"))
    ]


def result_of(
    folder: Path, kernels: Sequence[Benchmark], rounds: int = 7, *, pool: bool = True, wrong: str = ""
) -> Result:
    """The kernels in the 26 configurations of the default environment.

    Without `pool` none has reserved pages; the kernel `wrong` fails its check.
    """
    configurations = [configuration(name, label) for name in COMPILERS for label in ALL_LABELS]
    configurations += [_with_loop(configuration(name)) for name in COMPILERS]
    subjects = [subject_of(kernel, *configurations) for kernel in kernels]
    draw = random.Random(7)
    records: list[Record] = []
    for one in subjects:
        felt = draw.random()
        for cell in one.cells:
            if cell.measured.hugepages == "hugetlbfs" and not pool:
                failed = failed_record(cell.measured, "pages_unavailable", _EMPTY)
                records.append(replace(failed, kernel=one.benchmark.name))
                continue
            factor = _factor(cell.measured, felt)
            for number in range(1, rounds + 1):
                for series in ("compare", "aa") if cell.is_baseline else ("compare",):
                    seconds = factor * draw.lognormvariate(0, 0.01)
                    made = record(cell.measured, seconds, number=number, series=series)
                    made = _measured_as(made, one.benchmark, factor)
                    if one.benchmark.name == wrong:
                        made = varied(made, "validation", passed=False)
                    records.append(made)
            records += _sweep(cell.measured, one.benchmark, factor)
    manifest = a_manifest(
        command=("pagewise", "kernels", "--kernels", "*"),
        rounds=rounds,
        rounds_done=rounds,
        configurations=tuple(configurations),
    )
    return Result(folder, manifest, subjects, records, [])


def _with_loop(one: Configuration) -> Configuration:
    return replace(one, loop="compiler", module=f"{one.module}-loop-compiler")


def _factor(one: Configuration, felt: float) -> float:
    product = 1.05 if one.compiler == COMPILERS[1] else 1.0
    for value in (one.hugepages, one.prefetch, one.stores, f"loop-{one.loop}"):
        product *= 1 + felt * (_EFFECTS.get(value, 1.0) - 1)
    return product


def _measured_as(made: Record, kernel: Benchmark, factor: float) -> Record:
    metrics = {
        metric.field: 10 / factor if metric.better == "higher" else 10 * factor for metric in kernel.metrics
    }
    return replace(made, kernel=kernel.name, traffic=None, metrics=metrics)


def _sweep(one: Configuration, kernel: Benchmark, factor: float) -> Iterator[Record]:
    for sweep in (sweep for sweep in kernel.sweeps if sweep.suits(one)):
        for place, value in enumerate(DISTANCES if sweep.name == "prefetch-distance" else SIZES):
            made = _measured_as(record(one, 1.0, series="sweep"), kernel, factor * (1 + place / 4))
            made = varied(varied(made, "run", sweep=sweep.name), "sizes", working_set_bytes=value)
            yield varied(made, "options", **{sweep.x.removeprefix("options."): value})
