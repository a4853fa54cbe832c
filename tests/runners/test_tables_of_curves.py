"""Tables whose rows are the points of curves: the layout of the A64FX guide and the kernels that it names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import configuration, kernel, record_data
from pagewise.core.configuration import Configuration
from pagewise.core.errors import FormatError
from pagewise.core.kernel import Kernel
from pagewise.core.plan import subject
from pagewise.core.reading import parse_yaml
from pagewise.core.result import read_result
from pagewise.core.schemas import faults
from pagewise.report.layouts.definition import TableLayout, find_table_layout
from pagewise.report.views.tables import view
from stage import ROOT
from tabled_results import BYTES, TRAFFIC, place, result

NAMES = ("stream_triad", "component_sums", "arithmetic")
LABELS = [(prefetch, stores) for prefetch in ("hardware", "software") for stores in ("regular", "zfill")]
#: Seconds of a pass.
SECONDS = {
    (name, *label): 1e-6 * (1 + n + 4 * m) for m, name in enumerate(NAMES) for n, label in enumerate(LABELS)
}
DISTANCES = {"prefetch_distance": {4: 2e-6, 16: 1e-6}, "prefetch_distance_l2": {10: 3e-6, 16: 4e-6}}
OPERATIONS = {"operation": {"add": 0.5, "to_fp32": 2.0}, "operation-int32": {"add": 0.25}}


def described(name: str) -> Kernel:
    """A kernel of this project, with the traffic of the test's records."""
    data = parse_yaml((ROOT / "kernels/micro" / name / "kernel.yaml").read_bytes())
    return kernel(data, traffic=TRAFFIC) if "traffic" in data else kernel(data)


def point(
    one: Configuration, name: str, sweep: str, option: str, value: str | int, **metrics: float
) -> dict[str, Any]:
    """A point of a curve, its time or its metrics."""
    made = record_data(one, metrics.pop("seconds", 1e-6), kernel=name, series="sweep")
    made["run"]["sweep"] = sweep
    made["options"][option] = value
    made["metrics"] |= metrics
    return made


@pytest.fixture(scope="module")
def guide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three kernels by prefetch and stores, with curves by distance, type and operation."""
    configurations = [configuration(label=("none", *label)) for label in LABELS]
    base, software = configurations[0], configurations[2]
    only = place("only", 1, cores=1)
    kernels = [described(name) for name in NAMES]
    subjects = [
        subject(one, configurations if one.name != "arithmetic" else [base], "none/hardware-regular")
        for one in kernels
    ]

    def value(one: Kernel, each: Configuration, _: str) -> tuple[float, dict[str, float]]:
        return SECONDS[one.name, each.prefetch, each.stores], {}

    swept = [
        *(
            point(software, "stream_triad", option.replace("_", "-"), option, at, seconds=seconds)
            for option, curve in DISTANCES.items()
            for at, seconds in curve.items()
        ),
        *(
            point(one, "component_sums", "type", "type", name, seconds=(1 + n) * 1e-6)
            for one in (base, configurations[1])
            for n, name in enumerate(("fp64", "fp32", "int8"))
        ),
        *(
            point(base, "arithmetic", sweep, "operation", name, nanoseconds_per_operation=time)
            for sweep, curve in OPERATIONS.items()
            for name, time in curve.items()
        ),
    ]
    return result(tmp_path_factory.mktemp("guide") / "r", subjects, [only], value, swept)


@pytest.fixture(scope="module")
def rows(guide: Path) -> list[dict[str, Any]]:
    report = view(find_table_layout("a64fx", ()), [read_result(guide)])
    data = json.loads(json.dumps(report.data, default=str))
    assert faults("tables", data) == [] and not report.faulty
    return list(data["rows"])


def values(rows: list[dict[str, Any]], table: str) -> dict[tuple[str, str], float | None]:
    return {(row["row"], row["column"]): row["value"] for row in rows if row["table"] == table}


def test_patterns_stand_by_stores_and_prefetch(rows: list[dict[str, Any]]) -> None:
    found = values(rows, "Stores")
    assert len(found) == 2 * len(LABELS)
    for (name, prefetch, stores), seconds in SECONDS.items():
        if name != "arithmetic":
            at = (f"{described(name).title}, {prefetch} prefetch", stores)
            assert found[at] == pytest.approx(BYTES / seconds / 1e9, rel=0.01), at
    relative = {(row["row"], row["column"]): row["relative"] for row in rows if row["table"] == "Stores"}
    title = described("stream_triad").title
    assert relative[f"{title}, hardware prefetch", "zfill"] == pytest.approx(0.5, rel=0.02)
    assert relative[f"{title}, hardware prefetch", "regular"] is None


def test_curves_of_both_levels_are_columns_over_their_distances(rows: list[dict[str, Any]]) -> None:
    found = values(rows, "Prefetch distance")
    columns = {"prefetch_distance": "L1", "prefetch_distance_l2": "L2"}
    measured = {
        (str(at), columns[option]): BYTES / seconds / 1e9
        for option, curve in DISTANCES.items()
        for at, seconds in curve.items()
    }
    assert {at: value for at, value in found.items() if value is not None} == pytest.approx(measured)
    assert [row for row, _ in found] == ["4", "4", "10", "10", "16", "16"] and found["4", "L2"] is None


def test_words_keep_the_order_in_which_they_were_measured(rows: list[dict[str, Any]]) -> None:
    found = values(rows, "Throughput by type")
    title = described("component_sums").title
    assert [row for row, column in found if column == "zfill"] == [
        f"{title}, {name}" for name in ("fp64", "fp32", "int8")
    ]
    assert found[f"{title}, int8", "regular"] == pytest.approx(BYTES / 3e-6 / 1e9)
    table = values(rows, "Arithmetic")
    assert table == {
        ("add", "fp64"): 0.5,
        ("add", "int32"): 0.25,
        ("to_fp32", "fp64"): 2.0,
        ("to_fp32", "int32"): None,
    }


@pytest.mark.parametrize("layout", ["a64fx", "power6"])
def test_every_table_of_kernels_can_be_measured(layout: str) -> None:
    """Each kernel has the curves, and each curve the quantity, that its tables show."""
    kernels = {file.parent.name for file in ROOT.glob("kernels/micro/*/kernel.yaml")}
    tables = [table for table in find_table_layout(layout, ()).tables if kernels.issuperset(table.programs)]
    assert len(tables) >= 3
    for table in tables:
        for name in table.programs:
            one, (shown,) = described(name), table.values
            if not table.sweep:
                assert shown.quantity == "headline" or any(
                    each.field == shown.quantity for each in one.metrics
                )
                continue
            stem = table.sweep.removesuffix("*")
            curves = [each for each in one.sweeps if each.name.startswith(stem)]
            assert curves and {each.y.field for each in curves} == {shown.quantity}, (table.name, name)


def test_a_table_of_curves_needs_their_values_as_an_axis() -> None:
    file = ROOT / "runners/pagewise/report/layouts/a64fx.yaml"
    data = parse_yaml(file.read_bytes())
    table = next(each for each in data["tables"] if each["name"] == "Streams")
    for wrong in ({**table, "rows": [{"axis": "program"}]}, {**table, "relative": "row"}):
        with pytest.raises(FormatError):
            TableLayout.from_dict({**data, "tables": [wrong]}, file)
