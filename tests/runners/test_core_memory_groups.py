"""Tables and figures of the A64FX guide over core memory groups: DGEMM by threads, latency by cores."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from builders import configuration, kernel, record_data
from pagewise.core.configuration import Configuration
from pagewise.core.errors import SelectionError
from pagewise.core.kernel import Kernel
from pagewise.core.plan import placed, subject
from pagewise.core.reading import parse_yaml
from pagewise.core.result import read_result
from pagewise.core.schemas import faults
from pagewise.report.layouts.definition import find_table_layout
from pagewise.report.model import Lines, figures
from pagewise.report.views.tables import view
from stage import ROOT
from tabled_results import SCATTER, place, result

THREADS = (12, 24, 36, 48)
#: Gflop/s by library and threads.
RATES = {
    "openblas": dict(zip(THREADS, (700.0, 1380.0, 2050.0, 2660.0), strict=True)),
    "blis": dict(zip(THREADS, (600.0, 1200.0, 1500.0, 1800.0), strict=True)),
}
SIZES = (4 << 20, 7 << 20, 9 << 20)
#: The rows of the table by size.
SWEPT = set(map(str, SIZES))


def described(name: str) -> Kernel:
    """A kernel of this project."""
    return kernel(parse_yaml((ROOT / "kernels/micro" / name / "kernel.yaml").read_bytes()))


def swept(one: Configuration, name: str, where: str, size: int, metrics: dict[str, float]) -> dict[str, Any]:
    """A point of a curve over the working set."""
    made = record_data(one, 1.0, kernel=name, series="sweep")
    made["run"] |= {"placement": where, "sweep": "working-set"}
    made["sizes"]["working_set_bytes"] = size
    return {**made, "metrics": metrics}


@pytest.fixture(scope="module")
def dgemm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DGEMM of two libraries, as `compare --env libraries --kernels dgemm --threads 12,24,36,48` has it."""
    one, places = described("dgemm"), [place(f"threads:{n}", n, cores=n) for n in THREADS]
    built = [
        configuration(library=name, module=f"pagewise-blas/0.2.0/gcc-12.2.0/none/hardware-regular-{name}")
        for name in RATES
    ]

    def value(_: Kernel, each: Configuration, where: str) -> tuple[float, dict[str, float]]:
        return 1.0, {"gflop_per_s": RATES[each.library][int(where.removeprefix("threads:"))]}

    sweeps = [
        swept(each, "dgemm", where.name, size, {"gflop_per_s": RATES[each.library][where.threads]})
        for each in built
        for where in places
        for size in SIZES
    ]
    subjects = placed([subject(one, built, "none/hardware-regular")], [each.name for each in places])
    return result(tmp_path_factory.mktemp("dgemm") / "r", subjects, places, value, sweeps)


def test_dgemm_has_rates_and_efficiency_by_threads(dgemm: Path) -> None:
    report = view(find_table_layout("a64fx", ()), [read_result(dgemm)])
    data = json.loads(json.dumps(report.data, default=str))
    assert faults("tables", data) == [] and not report.faulty
    rows = {(row["row"], row["column"]): row for row in data["rows"] if row["row"] not in SWEPT}
    assert list(rows) == [(str(n), name) for n in THREADS for name in sorted(RATES)]
    for (threads, library), row in rows.items():
        rates, n = RATES[library], int(threads)
        assert row["unit"] == "Gflop/s"
        assert row["value"] == pytest.approx(rates[n] * median(SCATTER), rel=5e-3)
        if n == THREADS[0]:
            assert row["relative"] is None
        else:
            assert row["relative"] == pytest.approx(rates[n] / n / (rates[12] / 12), rel=0.02)
            assert row["low"] <= row["relative"] <= row["high"]
    # Of the library itself, not of the first one.
    assert rows["24", "blis"]["relative"] == pytest.approx(1.0, rel=0.02)


def test_dgemm_by_size_has_a_curve_for_each_number_of_threads(dgemm: Path) -> None:
    report = view(find_table_layout("a64fx", ()), [read_result(dgemm)])
    (drawn,) = [one.data for one in figures(report.sections) if isinstance(one.data, Lines)]
    ((_, lines),) = drawn.panels
    assert len({line.label for line in lines}) == len(THREADS) * len(RATES)
    assert all([size for size, _ in line.points] == list(SIZES) for line in lines)
    rows = [row for row in report.data["rows"] if row["row"] in SWEPT]
    found = {(row["part"], row["row"], row["column"]): row["value"] for row in rows}
    assert found == {
        (library, str(size), str(n)): rate
        for library, rates in RATES.items()
        for size in SIZES
        for n, rate in rates.items()
    }


def test_the_latency_of_each_group_is_a_curve_of_one_figure(tmp_path: Path) -> None:
    """As `compare --kernels pointer_chase --cpus 12 --cpus 36` has it."""
    one, built = described("pointer_chase"), configuration()
    places = [place(f"cpus:{cpu}", 1, cores=1) for cpu in (12, 36)]
    latency = {"cpus:12": (20.0, 60.0, 90.0), "cpus:36": (20.0, 20.0, 70.0)}
    sweeps = [
        swept(built, "pointer_chase", where, size, {"latency_ns": ns})
        for where, curve in latency.items()
        for size, ns in zip(SIZES, curve, strict=True)
    ]
    subjects = placed([subject(one, [built], "none/hardware-regular")], list(latency))
    folder = result(tmp_path / "r", subjects, places, lambda *_: (1.0, {"latency_ns": 90.0}), sweeps)
    report = view(find_table_layout("a64fx", ()), [read_result(folder)])
    (drawn,) = [one.data for one in figures(report.sections) if isinstance(one.data, Lines)]
    ((_, lines),) = drawn.panels
    assert {tuple(y for _, y in line.points) for line in lines} == set(latency.values())
    rows = {(row["part"], row["row"]): row["value"] for row in report.data["rows"]}
    assert rows == {
        (where, str(size)): ns
        for where, curve in latency.items()
        for size, ns in zip(SIZES, curve, strict=True)
    }


def test_one_number_of_threads_is_no_curve_of_groups(tmp_path: Path) -> None:
    one, built = described("dgemm"), configuration(library="openblas")
    places = [place("only", 12, cores=12)]
    folder = result(
        tmp_path / "r",
        [subject(one, [built], "none/hardware-regular")],
        places,
        lambda *_: (1.0, {"gflop_per_s": 700.0}),
    )
    with pytest.raises(SelectionError):
        view(find_table_layout("a64fx", ()), [read_result(folder)])
