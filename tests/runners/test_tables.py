"""`report --layout` of comparisons: each cell against values that are computed here from the records."""

from __future__ import annotations

import json
import math
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from click.testing import CliRunner

from builders import configuration, kernel, record_data
from pagewise.analysis.pivot import AXES
from pagewise.cli import root
from pagewise.core.configuration import Configuration
from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.kernel import Kernel
from pagewise.core.plan import Cell, Subject, placed, subject, varied
from pagewise.core.reading import parse_yaml
from pagewise.core.result import read_result
from pagewise.core.schemas import faults
from pagewise.report.layouts.definition import TableLayout, find_table_layout, read_layouts
from pagewise.report.model import Lines, Table, figures
from pagewise.report.render import figure
from pagewise.report.views.tables import view
from stage import ROOT, TRIAD
from tabled_results import BYTES, ROUNDS, SCATTER, TRAFFIC, of_sum, place, program, result, written_data

LAYOUTS = ROOT / "runners/pagewise/report/layouts"


def cells_of(folder: Path, layout: str, table: str) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The cells of a table by part, row and column, after a check of the JSON object."""
    report = view(find_table_layout(layout, ()), [read_result(folder)])
    data = json.loads(json.dumps(report.data, default=str))
    assert faults("tables", data) == [] and not report.faulty
    rows = [row for row in data["rows"] if row["table"] == table]
    return {(row["part"], row["row"], row["column"]): row for row in rows}


def middle(value: float, *, repeated: bool = False) -> float:
    """The median of all runs of a configuration."""
    return value * median(SCATTER * (2 if repeated else 1))


def pairs(value: float, other: float, shift: int, base: int = 0) -> float:
    """The median performance relative to a base without repetitions, paired by round."""
    times = [
        other * SCATTER[(n + base) % ROUNDS] / (value * SCATTER[(n + shift) % ROUNDS])
        for n in range(1, ROUNDS + 1)
    ]
    return math.exp(median(map(math.log, times)))


TIMES = {("1", "NoInit"): 4e-6, ("1", "ParInit"): 4.1e-6, ("2", "NoInit"): 3.9e-6, ("2", "ParInit"): 2e-6}
WORDS = {"first-thread": "NoInit", "first-touch": "ParInit"}


@pytest.fixture(scope="module")
def triad(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two threads by first touch, as `compare --threads 1,2 --memory first-thread,first-touch` has it."""
    places = [
        place(f"threads:{threads}-{memory}", threads, cores=threads, policy=memory)
        for threads in (1, 2)
        for memory in WORDS
    ]
    one = kernel(TRIAD, name="schoenauer_triad", traffic=TRAFFIC)
    summed = kernel(
        TRIAD, name="stream_sum", traffic={**TRAFFIC, "loads": 1, "stores": 0, "write_allocate": 0}
    )
    base = configuration()
    subjects = placed(
        [subject(each, [base], "none/hardware-regular") for each in (one, summed)], [p.name for p in places]
    )

    def value(_: Kernel, __: Configuration, name: str) -> tuple[float, dict[str, float]]:
        threads, memory = name.removeprefix("threads:").split("-", 1)
        return TIMES[threads, WORDS[memory]], {}

    sweeps = [
        {**made, "run": {**made["run"], "placement": "threads:1-first-touch", "sweep": "working-set"}}
        for name, factor in (("schoenauer_triad", 1.0), ("stream_sum", 1.5))
        for size, seconds in SWEPT.items()
        for made in [swept(base, name, size, seconds / factor)]
    ]
    return result(tmp_path_factory.mktemp("triad") / "r", subjects, places, value, sweeps)


# Seconds for 32000 bytes by working set: in L2 (1 MiB), in L3 (32 MiB), in memory.
SWEPT = {400_000: 1e-6, 1_000_000: 1.25e-6, 8_000_000: 2e-6, 400_000_000: 5e-6}


def swept(one: Configuration, name: str, size: int, seconds: float) -> dict[str, Any]:
    """A point of a curve; the sum moves a quarter of the bytes in a quarter of the time."""
    made = record_data(one, seconds / (1 if name == "schoenauer_triad" else 4), kernel=name, series="sweep")
    made["sizes"]["working_set_bytes"] = size
    return made if name == "schoenauer_triad" else of_sum(made)


def test_table_2_has_threads_by_first_touch(triad: Path) -> None:
    cells = cells_of(triad, "hager05", "Table 2")
    assert [key[1:] for key in cells] == [(t, m) for t in ("1", "2") for m in ("NoInit", "ParInit")]
    for shift, ((threads, memory), seconds) in enumerate(TIMES.items()):
        row = cells["", threads, memory]
        expected = BYTES / middle(seconds, repeated=shift == 0) / 1e9
        assert row["value"] == pytest.approx(expected, rel=2e-3) and row["unit"] == "GB/s"
        if memory == "NoInit":
            assert row["relative"] is None
        else:
            other = TIMES[threads, "NoInit"]
            assert row["relative"] == pytest.approx(other / seconds, rel=0.015)
            assert row["low"] <= row["relative"] <= row["high"]
    exact = cells["", "2", "ParInit"]["relative"]
    assert exact == pytest.approx(pairs(TIMES["2", "ParInit"], TIMES["2", "NoInit"], 3, 2), rel=1e-9)


def test_limits_are_the_highest_measured_bandwidth_of_each_level(triad: Path) -> None:
    report = view(find_table_layout("hager05", ()), [read_result(triad)])
    limits = {(row["level"], row["kind"]): row["value"] for row in report.data["limits"]}
    bandwidth = {size: BYTES * 1.5 / seconds / 1e9 for size, seconds in SWEPT.items()}
    assert limits == pytest.approx(
        {
            ("L2", "plain"): bandwidth[400_000],
            ("L3", "plain"): bandwidth[8_000_000],
            ("L3", "with write-allocate"): 0.8 * bandwidth[8_000_000],
            ("memory", "plain"): bandwidth[400_000_000],
            ("memory", "with write-allocate"): 0.8 * bandwidth[400_000_000],
        }
    )
    (drawn,) = [one for one in figures(report.sections) if isinstance(one.data, Lines)]
    assert next((line.label, line.plain) for line in drawn.data.limits) == ("L2", True)
    assert len(drawn.data.limits) == 5 and figure.svg(drawn).count("write-allocate") == 2


def test_figure_6_has_all_regions_and_threads(tmp_path: Path) -> None:
    one = kernel(
        TRIAD, name="schoenauer_triad", traffic=TRAFFIC, options={"parallel": ["once", "barrier", "pass"]}
    )
    places = [place(f"threads:{threads}", threads, cores=threads) for threads in (1, 2)]
    built = configuration()
    planned = varied([subject(one, [built], "none/hardware-regular")], {"parallel": ["once", "pass"]})
    names = [each.name for each in places]
    sweeps = [
        {
            **made,
            "run": {
                **made["run"],
                "placement": name,
                "options": f"parallel={region}",
                "sweep": "working-set",
            },
        }
        for at, name in enumerate(names, start=1)
        for region, seconds in (("once", 1e-6), ("pass", 4e-6))
        for size in SWEPT
        for made in [swept(built, "schoenauer_triad", size, seconds / at)]
    ]
    folder = tmp_path / "regions"
    subjects = placed(planned, names)
    result(folder, subjects, places, lambda *_: (1e-6, {}), sweeps)
    report = view(find_table_layout("hager05", ()), [read_result(folder)])
    assert faults("tables", json.loads(json.dumps(report.data, default=str))) == []
    by_name = {one.name: one.data for one in figures(report.sections) if isinstance(one.data, Lines)}
    ((_, lines),) = by_name["hager05-figure-6"].panels
    assert len(lines) == 4 and by_name["hager05-figure-6"].limits == ()
    found = sorted(line.points[0][1] for line in lines)
    assert found == pytest.approx([BYTES / seconds / 1e9 for seconds in (4e-6, 2e-6, 1e-6, 5e-7)])
    assert len({line.label for line in lines}) == 4
    assert sum(name.startswith("hager05-figure-2") for name in by_name) == 2


def test_curves_that_do_not_differ_are_no_figure(triad: Path) -> None:
    report = view(find_table_layout("hager05", ()), [read_result(triad)])
    drawn = [one.name for one in figures(report.sections) if isinstance(one.data, Lines)]
    assert [name for name in drawn if "figure-6" in name] == []
    assert sum("Figure 6" in note for note in report.notes) == 1


RATES = {("cg.A", 1): 100.0, ("cg.A", 2): 180.0, ("mg.A", 1): 300.0, ("mg.A", 2): 500.0}
HPCC = {"hpl": 0.5, "ptrans": 9.3, "randomaccess_mpi": 0.12, "fft_mpi": 20.7}
RINGS = {"ring_latency": 4.16, "ring_bandwidth": 2.91}


@pytest.fixture(scope="module")
def by_ranks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """HPCC and two of the NPB on one and two ranks; one process has no ring."""
    places = [place(f"ranks:{ranks}", 1, ranks=ranks, cores=ranks) for ranks in (1, 2)]
    higher = [(name, "u", "higher") for name in HPCC]
    rings = [("ring_latency", "µs", "lower"), ("ring_bandwidth", "GB/s", "higher")]
    rates = [("rate", "Mop/s", "higher"), ("time", "s", "lower")]
    codes = [
        program("hpcc", "hpcc", *higher, *rings),
        *(program(f"npb_{title[:2]}_a", f"{title}.x", *rates) for title in ("cg.A", "mg.A")),
    ]
    subjects = []
    for code in codes:
        base = configuration("unchanged binary", module=f"{code.name}/none", package=code.name)
        subjects.append(subject(code, [base], "none/hardware-regular"))

    def value(one: Kernel, _: Configuration, name: str) -> tuple[float, dict[str, float]]:
        ranks = int(name.removeprefix("ranks:"))
        if one.name == "hpcc":
            return 2.0, {**{n: ranks * x for n, x in HPCC.items()}, **(RINGS if ranks > 1 else {})}
        rate = RATES[one.title.removesuffix(".x"), ranks]
        return 1000 / rate, {"rate": rate, "time": 900 / rate}

    folder = tmp_path_factory.mktemp("ranks") / "r"
    return result(folder, placed(subjects, [p.name for p in places]), places, value)


def test_table_5_2_has_hpcc_by_ranks_in_the_guides_units(by_ranks: Path) -> None:
    cells = cells_of(by_ranks, "power6", "Table 5-2")
    columns = ["HPL", "PTRANS", "RandomAccess", "MPIFFT", "RR lat", "RR bw"]
    assert list(cells) == [("", ranks, column) for ranks in ("1", "2") for column in columns]
    for ranks in ("1", "2"):
        for column, (name, value) in zip(columns, HPCC.items(), strict=False):
            scale = 1000 if name == "hpl" else 1
            expected = int(ranks) * scale * middle(value)
            assert cells["", ranks, column]["value"] == pytest.approx(expected, rel=2e-3)
    assert cells["", "1", "RR lat"]["value"] is None and cells["", "1", "RR lat"]["missing"]
    assert cells["", "2", "RR lat"]["value"] == pytest.approx(middle(4.16))
    assert cells["", "2", "RR bw"]["unit"] == "GB/s" and cells["", "2", "HPL"]["unit"] == "GFLOP/s"


def test_table_5_3_has_the_rates_of_the_benchmarks_by_ranks(by_ranks: Path) -> None:
    cells = cells_of(by_ranks, "power6", "Table 5-3")
    assert list(cells) == [("", ranks, title) for ranks in ("1", "2") for title in ("cg.A", "mg.A")]
    for (title, ranks), rate in RATES.items():
        assert cells["", str(ranks), title]["value"] == pytest.approx(middle(rate), rel=2e-3)


BUILDS = {"p6-p5": 1.0, "p6-balanced": 0.8, "p6-p6": 0.9}
SMT_TIME = {"compact": 1.0, "compact-smt2": 0.7}


@pytest.fixture(scope="module")
def by_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three builds with one and with two threads on each of four cores."""
    places = [place("compact", 4, cores=4), place("compact-smt2", 8, cores=4)]
    codes = [
        program("gamess", "gamess", ("rate", "1/s", "higher")),
        program("npb_cg_a", "cg.A.x", ("rate", "Mop/s", "higher"), ("time", "s", "lower")),
    ]
    subjects = []
    for code in codes:
        builds = [
            configuration(
                "unchanged binary", module=f"{code.name}/{build}/none", package=code.name, flags=build
            )
            for build in BUILDS
        ]
        cells = tuple(Cell(build, (build,), build is builds[0]) for build in builds)
        subjects.append(Subject(code, cells))

    def value(one: Kernel, build: Configuration, name: str) -> tuple[float, dict[str, float]]:
        seconds = BUILDS[build.flags] * SMT_TIME[name]
        own = {"time": 10 * seconds} if one.name != "gamess" else {}
        return 20 * seconds, {"rate": 1 / seconds, **own}

    folder = tmp_path_factory.mktemp("builds") / "r"
    return result(folder, placed(subjects, [p.name for p in places]), places, value)


def test_figures_3_1_and_3_2_compare_builds_without_and_with_smt(by_build: Path) -> None:
    for name, factor in (("Figure 3-1", 1.0), ("Figure 3-2", 0.7)):
        cells = cells_of(by_build, "power6", name)
        assert [key[1:] for key in cells] == [("cg.A", build) for build in BUILDS]
        for (_, _, build), row in cells.items():
            assert row["value"] == pytest.approx(10 * BUILDS[build] * factor, rel=2e-3)
            if build != "p6-p5":
                assert row["relative"] == pytest.approx(1 / BUILDS[build], rel=0.015)
    report = view(find_table_layout("power6", ()), [read_result(by_build)])
    assert {one.name for one in figures(report.sections)} == {"figure-3-1", "figure-3-2", "figure-4-1"}


def test_figure_4_1_is_relative_to_the_first_build_with_the_fewest_tasks(by_build: Path) -> None:
    cells = cells_of(by_build, "power6", "Figure 4-1")
    gamess = {key[1:]: row for key, row in cells.items() if key[0] == "gamess"}
    assert list(gamess) == [(tasks, build) for tasks in ("4", "8") for build in BUILDS]
    assert gamess["4", "p6-p5"]["relative"] is None
    for (tasks, build), row in gamess.items():
        factor = BUILDS[build] * (1.0 if tasks == "4" else 0.7)
        assert row["value"] == pytest.approx(20 * factor, rel=2e-3)
        assert row["relative"] is None or row["relative"] == pytest.approx(1 / factor, rel=0.015)


def test_table_5_4_has_the_benefit_of_smt_on_the_same_cores(by_build: Path) -> None:
    cells = cells_of(by_build, "power6", "Table 5-4")
    parts = {part for part, *_ in cells}
    assert parts == set(BUILDS)
    for build, factor in BUILDS.items():
        st, smt = cells[build, "gamess [1/s]", "ST"], cells[build, "gamess [1/s]", "SMT"]
        assert st["value"] == pytest.approx(1 / factor, rel=2e-3) and st["relative"] is None
        assert smt["relative"] == pytest.approx(1 / 0.7, rel=0.015)
    report = view(find_table_layout("power6", ()), [read_result(by_build)])
    (section,) = (one for one in report.sections if one.title.startswith("Table 5-4"))
    benefits = [
        record["benefit"]
        for one in section.blocks
        if isinstance(one, Table)
        for record in one.records()
        if "benefit" in record
    ]
    assert len(benefits) == 6 and benefits == pytest.approx([1 / 0.7 - 1] * 6, abs=0.02)


def test_pages_are_columns_by_the_name_of_the_policy(tmp_path: Path) -> None:
    factors = {"hugetlbfs:16g": 0.5, "none": 1.0, "hugetlbfs:16m": 0.6, "thp:64k": 0.8}
    one = program("gamess", "gamess", ("rate", "1/s", "higher"))
    policies = [
        configuration("unchanged binary", (policy, "hardware", "regular"), module=policy)
        for policy in factors
    ]
    cells = tuple(Cell(each, (each,), each.hugepages == "none") for each in policies)
    places = [place("compact", 1, cores=1)]

    def value(_: Kernel, each: Configuration, __: str) -> tuple[float, dict[str, float]]:
        return factors[each.hugepages], {"rate": 1 / factors[each.hugepages]}

    folder = result(tmp_path / "r", [Subject(one, cells)], places, value)
    table = cells_of(folder, "power6", "Pages")
    assert [column for _, _, column in table] == ["base", "64 KiB", "16 MiB", "16 GiB"]
    for policy, column in (("thp:64k", "64 KiB"), ("hugetlbfs:16m", "16 MiB"), ("hugetlbfs:16g", "16 GiB")):
        row = table["", "gamess [1/s]", column]
        assert row["relative"] == pytest.approx(1 / factors[policy], rel=0.015)


def test_what_is_excluded_has_no_value_but_its_reason(by_build: Path, tmp_path: Path) -> None:
    lines = [json.loads(line) for line in (by_build / "records.jsonl").read_text().splitlines()]
    for line in lines:
        if line["run"]["module"] == "gamess/p6-p6/none":
            line["validation"]["passed"] = False
    manifest = json.loads((by_build / "manifest.json").read_text())
    folder = written_data(tmp_path / "r", manifest, lines)
    report = view(find_table_layout("power6", ()), [read_result(folder)])
    rows = [row for row in report.data["rows"] if row["table"] == "Figure 4-1" and row["column"] == "p6-p6"]
    assert report.faulty and {row["value"] for row in rows if row["part"] == "gamess"} == {None}
    assert all(row["missing"] for row in rows if row["value"] is None)


@pytest.mark.long
def test_the_command_writes_all_files_and_refuses_the_rest(by_build: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(root, ["report", str(by_build), "--layout", "power6", "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["schema"] == "pagewise.tables/1"
    names = {file.name for file in (by_build / "power6").iterdir()}
    assert names >= {"power6.csv", "report.html", "summary.md"}
    for arguments in (["--layout", "nothing"], ["--layout", "hager05"], ["--layout", "pearc23"]):
        with pytest.raises(SelectionError):
            CliRunner().invoke(root, ["report", str(by_build), *arguments], catch_exceptions=False)


@pytest.mark.parametrize("file", sorted(LAYOUTS.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_fault_of_a_definition_is_reported(file: Path) -> None:
    data = parse_yaml(file.read_bytes())
    assert TableLayout.from_dict(data, file).name == file.stem and file.stem in read_layouts()
    table = {
        **data["tables"][0],
        "follows": ["nowhere"],
        "published": {"columns": ["a", "b"], "rows": [[1, 2, 3]]},
    }
    with pytest.raises(FormatError) as caught:
        TableLayout.from_dict({**data, "tables": [table]}, file)
    assert "nowhere" in caught.value.what
    wrong = next(
        line for line in caught.value.what.splitlines() if line.strip().startswith(f"{table['name']}: 3")
    )
    assert {"3", "2"} <= set(wrong.split())
    with pytest.raises(FormatError):
        TableLayout.from_dict({**data, "tables": []}, file)
    curves = {"name": "x", "caption": "x", "programs": ["x"]}
    for wrong in (
        curves,
        {**curves, "compares": ["nowhere"]},
        {**curves, "compares": ["parallel"], "limits": ["x"]},
    ):
        with pytest.raises(FormatError):
            TableLayout.from_dict({**data, "curves": [wrong]}, file)
    assert len(set(AXES)) == len(AXES)
