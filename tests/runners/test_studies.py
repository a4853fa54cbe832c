"""`studies/fill.py`: tables from the CSV files of results, against numbers that are known here."""

from __future__ import annotations

import csv
import importlib.util
import json
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml
from tracing import needs_tracer

from builders import configuration, kernel, record_data, subject_of
from pagewise.core.dimensions import DIMENSIONS
from pagewise.core.events import EventFile
from pagewise.core.kernel import read_source
from pagewise.core.plan import at_placements
from pagewise.core.result import read_result
from pagewise.core.structure import to_data
from pagewise.report.render import csv as csv_files
from pagewise.report.views import report_of
from querying import pagewise
from stage import EVENTS, ROOT, TRIAD, csv_rows
from table_results import BYTES, TRAFFIC, place, result

STUDIES = ROOT / "studies"
_SPEC = importlib.util.spec_from_file_location("fill", STUDIES / "fill.py")
assert _SPEC is not None and _SPEC.loader is not None
fill = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(fill)

A64FX = EventFile.from_file(EVENTS / "a64fx.yaml")
PAPER = yaml.safe_load((STUDIES / "pearc23.yaml").read_text())
TESTS = PAPER["tests"]
#: The paper's tables 1, 2, 5 and 7.
PRINTED, CASES = (
    yaml.safe_load(Path(__file__).with_name("published").joinpath(f"{name}.yaml").read_text())
    for name in ("pearc23", "comparisons")
)
#: The value of each cell by table, with its part, row and column.
Cells = dict[tuple[str, str, str], str]


def filled(study: str, *arguments: object) -> Cells:
    """What the command writes about results."""
    assert fill.main([study, *map(str, arguments)]) == 0
    name = Path(study).stem
    rows = csv_rows(Path(str(arguments[0])) / name / f"{name}.csv")
    titles = [row["table"].partition(". ") for row in rows]
    parts = [text.partition("]: ")[2] or text.partition(": ")[2] for *_, text in titles]
    names = [f"{name} {part}".strip() for (name, *_), part in zip(titles, parts, strict=True)]
    return {(name, row["row"], row["column"]): row["value"] for name, row in zip(names, rows, strict=True)}


def table(cells: Cells, name: str) -> dict[tuple[str, str], float]:
    """The numbers of a table, or of one part of it."""
    known = {key[1:]: value for key, value in cells.items() if key[0] == name}
    return {key: float(value) for key, value in known.items() if value[:1].isdecimal()}


def rounded(printed: float) -> object:
    """Half a unit of the last digit, or a whole unit with two decimals: the paper sometimes truncates."""
    unit = 10.0 ** Decimal(str(printed)).as_tuple().exponent
    return pytest.approx(printed, abs=0.0101 if printed >= 0.05 else 0.51 * unit * (printed > 0), rel=0.006)


def exported(folder: Path, name: str, rows: Sequence[Mapping[str, Any]], **manifest: Any) -> Path:
    """A result with a CSV file of its report."""
    folder.mkdir()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with (folder / name).open("w", newline="") as stream:
        writer = csv.DictWriter(stream, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return folder


def counters(
    folder: Path, kernel: str, region: str, values: Mapping[str, Sequence[Any]], events: str = "a64fx"
) -> Path:
    """A result of counting, with values by the paper's columns."""
    rows = [
        {"kernel": kernel, **dict.fromkeys(("scheme", "layout", "table", "placement"), ""), **column}
        | {"quantity": name, "value": value}
        for name, row in values.items()
        for column, value in zip(PAPER["columns"], row, strict=True)
    ]
    file = EventFile.from_file(EVENTS / f"{events}.yaml")
    part = {"region": region, "events": {"reference": to_data(file.reference)}}
    return exported(folder, "counters.csv", rows, kind="counters", counters=part)


@pytest.fixture(scope="module")
def cells(tmp_path_factory: pytest.TempPathFactory) -> Cells:
    """The cells of results that counted the paper's numbers, and of a simulation."""
    folder = tmp_path_factory.mktemp("studies")
    whole = {"whole_time": [2.0, 1.0, 2.0, 1.0]}
    counted = [
        counters(folder / "hydro", "ember", "hydro", TESTS[1]["values"] | whole),
        counters(folder / "eos", "snia2d", "eos", TESTS[0]["values"]),
        counters(folder / "other", "snia2d", "step", {"CPU_CYCLES": [1, 2, 3, 4]}),
    ]
    refills = ("L1D_TLB_REFILL", "L2D_TLB_REFILL", "L1D_CACHE_REFILL", "L2D_CACHE_REFILL")
    rows = [
        {"kernel": "flashx", "policy": policy, "region": region, "count": name, "simulated": value}
        for policy, misses in (("as it is", 7), ("fjmpg", 1))
        for region in ("", "Hydro")
        for name, value in zip(("INSTRUCTIONS", "LOADS", *refills), (1000, 300, misses, 0, 8, 4), strict=True)
    ]
    program = {"kernel": {"name": "flashx", "arguments": ["-x"]}}
    about = {"subjects": [program], "configurations": [{"compiler": "unknown"}]}
    simulation = exported(folder / "simulated", "simulation.csv", rows, kind="simulation", **about)
    return filled("pearc23", *counted, simulation)


def of_row(cells: Cells, name: str, quantity: str, *words: str) -> list[float]:
    """The numbers of a row in columns with these words."""
    shown = next(each for each in PAPER["tables"] if each["name"] == name)
    title = shown["rows"][0]["words"][quantity]
    actual = table(cells, name).items()
    return [value for (row, column), value in actual if row == title and {*words} <= {*column.split(", ")}]


@pytest.mark.parametrize("kind", ["measured", "published"])
def test_the_papers_counts_give_the_papers_tables(cells: Cells, kind: str) -> None:
    """In its order of columns: by test GCC and Fujitsu; by test with and without huge pages."""
    for name, printed in PRINTED.items():
        words = (kind, "value") if name in ("Table 5", "Table 7") else (kind,)
        for quantity, row in printed.items():
            values = of_row(cells, name, quantity, *words)
            expected = [n if known is None else rounded(known) for n, known in zip(values, row, strict=True)]
            assert values == expected, (name, quantity)
    for name, test in zip(("Table 4", "Table 6"), TESTS, strict=True):
        for quantity in (each for each in test["values"] if each in A64FX.events):
            counts = [n for n in test["values"][quantity] if n is not None]
            assert of_row(cells, name, quantity, kind, "value") == pytest.approx(counts), (name, quantity)
    assert of_row(cells, "Table 1", "CPU_CYCLES", kind) == pytest.approx([0.96, 0.94, 1.10, 1.00], abs=0.005)
    assert of_row(cells, "Figure 1 (b)", "whole_time", kind) == ([2.0, 2.0] if kind == "measured" else [])


def test_simulated_values_match_the_region_and_their_rates(cells: Cells) -> None:
    of = ("flashx -x", "simulated")
    assert of_row(cells, "Table 6", "L1D_TLB_REFILL", *of, "value") == [1, 7]
    assert of_row(cells, "Table 1", "L1D_TLB_REFILL", *of) == pytest.approx([1 / 7])
    assert of_row(cells, "Table 7", "l1_dtlb_miss_rate", *of, "value") == pytest.approx([0.001, 0.007])
    for name, quantity in ("Table 6", "CPU_CYCLES"), ("Table 4", "L1D_TLB_REFILL"):
        assert of_row(cells, name, quantity, *of) == []


def test_cycles_of_another_cpu_share_the_row_of_the_cycles(tmp_path: Path) -> None:
    folder = counters(tmp_path / "zen", "snia2d", "eos", {"CYCLES": [900, 1000, "", ""]}, "zen4")
    actual = filled("pearc23", folder)
    assert of_row(actual, "Table 4", "CPU_CYCLES", "measured", "value") == [900, 1000]
    assert of_row(actual, "Table 1", "CPU_CYCLES", "measured") == pytest.approx([0.9])
    listing = table(filled("eahpc22", folder), "Supernova EOS")
    assert 333.15 in listing.values() and 900 in listing.values()


def test_nothing_that_was_varied_is_mixed(tmp_path: Path) -> None:
    """Neither placements of one result nor several results."""
    folder = counters(tmp_path / "eos", "snia2d", "eos", {"CPU_CYCLES": [900, 1000, "", ""]})
    rows = [line for line in (folder / "counters.csv").read_text().splitlines() if ",CPU_CYCLES," in line]
    with (folder / "counters.csv").open("a") as stream:
        for line in rows:
            stream.write(line.replace("snia2d,,,,,", "snia2d,,,,spread,").replace("00", "50") + "\n")
    actual = filled("pearc23", folder)
    for program, counts in ("snia2d", [900, 0.9]), ("snia2d placement=spread", [950, 950 / 1500]):
        values = of_row(actual, "Table 4", "CPU_CYCLES", program, "measured", "hp")
        assert values == pytest.approx(counts)
    again = filled("pearc23", folder, folder)
    assert (
        of_row(again, "Table 4", "CPU_CYCLES", "measured", "hp") == [] and "several values" in again.values()
    )


def test_results_without_values_of_the_study_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counters(tmp_path / "other", "chase", "hydro", {"CPU_CYCLES": [1, 2, 3, 4]})
    for name in ("nothing", "other"):
        assert fill.main(["pearc23", str(tmp_path / name), "--output", str(tmp_path / "out")]) == 2
        done = capsys.readouterr()
        assert done.out == "" and len(done.err.splitlines()) == 1 and not (tmp_path / "out").exists()


# Comparisons.

#: An unmodified program on one thread.
DEFAULT = {"module": "m", "ranks": "", "threads": 1, "cores": "", "memory": "first-touch", "invalid": ""}
DEFAULT |= dict.fromkeys(("sweep", "swept", "compiler", *(each.name for each in DIMENSIONS)), "")
DEFAULT |= {"hugepages": "none", "stores": "regular"}


def fact(
    name: str, quantity: str, value: object, *, better: str = "higher", unit: str = "u", **axes: object
) -> Any:
    """A row of data.csv."""
    row = {"kernel": name, "title": f"{name}.x", "quantity": quantity}
    row |= {"unit": unit, "better": better, "value": value}
    return DEFAULT | row | axes


def compared(study: str, folder: Path, *rows: Any, options: Sequence[str] = ()) -> Cells:
    """The cells of a comparison with these values."""
    return filled(study, exported(folder / "r", "data.csv", rows, kind="programs"), *options)


def test_values_are_the_medians_of_the_report(tmp_path: Path) -> None:
    """From records to data.csv to the table: threads by first touch, with a curve."""
    policies = ("first-thread", "first-touch")
    places = [place(f"{n}-{policy}", n, cores=n, policy=policy) for n in (1, 2) for policy in policies]
    one = kernel(TRIAD, name="schoenauer_triad", traffic=TRAFFIC)
    subjects = at_placements([subject_of(one, configuration())], [each.name for each in places])
    seconds = {each.name: at * 1e-6 for at, each in enumerate(places, start=1)}
    point = record_data(configuration(), 1e-6, kernel=one.name, series="sweep")
    point["sizes"]["working_set_bytes"] = 400_000
    point["run"] |= {"sweep": "working-set", "placement": places[0].name}
    folder = result(tmp_path / "r", subjects, places, lambda _, __, name: (seconds[name], {}), [point])
    for name, made in report_of(read_result(folder)).tables.items():
        (folder / name).write_text(csv_files.render(made))
    actual = filled("hager05", folder)
    values = table(actual, "Table 2")
    columns = [("1", "NoInit"), ("1", "ParInit"), ("2", "NoInit"), ("2", "ParInit")]
    expected = [BYTES / at / 1e3 for at in range(1, 5)]
    assert [values[column] for column in columns] == pytest.approx(expected, rel=5e-3)
    assert values["2", "relative, ParInit"] == pytest.approx(values["2", "ParInit"] / values["2", "NoInit"])
    assert ("1", "relative, NoInit") not in values
    assert actual["Table 2, published", "16", "IA64 (ParInit)"] == "34.27"
    ((_, bandwidth),) = table(actual, "Figure 2").items()
    assert bandwidth == pytest.approx(BYTES / 1e3)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["table"])
def test_tables_of_comparisons(case: Any, tmp_path: Path) -> None:
    rows = [case["same"] | dict(zip(case["axes"], row, strict=True)) for row in case["rows"]]
    cells = compared(case["study"], tmp_path, *(fact(row.pop("kernel"), **row) for row in rows))
    expected = {tuple(key.split(" | ")): number for key, number in case["cells"].items()}
    assert table(cells, case["table"]) == pytest.approx(expected)
    orders = [
        [key for key in keys if not key[1].startswith(("relative", "efficiency"))]
        for keys in (table(cells, case["table"]), expected)
    ]
    assert case["study"] == "hager05" or orders[0] == orders[1]


def test_excluded_runs_have_a_reason_and_no_value(tmp_path: Path) -> None:
    rows = [
        fact("npb_cg_a", "rate", value, ranks=n, invalid=why)
        for n, value, why in ((1, 2.0, ""), (2, "", "it crashed"), (4, "", ""))
    ]
    cells = compared("power6", tmp_path, *rows)
    assert table(cells, "Table 5-3") == {("1", "npb_cg_a"): 2.0}
    reasons = [cells["Table 5-3", str(ranks), "npb_cg_a"] for ranks in (2, 4)]
    assert "it crashed" in reasons[0] and reasons[1] not in ("", reasons[0])


@pytest.mark.long
def test_the_figures_are_drawn(tmp_path: Path) -> None:
    curve = [fact("schoenauer_triad", "b", n, sweep="working-set", swept=4e5 * n) for n in (1, 2)]
    compared("hager05", tmp_path, *curve, options=["--figures"])
    counted = counters(tmp_path / "eos", "snia2d", "eos", TESTS[0]["values"])
    filled("pearc23", counted, "--figures")
    for folder, number in ((tmp_path / "r/hager05", 2), (counted / "pearc23", 3)):
        names = [file.name for file in folder.glob("*.svg")]
        text = (folder / "tables.md").read_text()
        assert len(names) == number and all(f"]({name})" in text for name in names)


@pytest.mark.long
@needs_tracer
def test_a_simulated_program_fills_the_tables_of_a_study(build: Path, tmp_path: Path) -> None:
    """Any program, from its simulation to the tables of a further study."""
    output = tmp_path / "results"
    options = ("--build", build, "--policies", "fjmpg", "--output", output)
    pagewise("simulate", *options, "--", build / "walk", "cyclic", "800", "8000")
    study = tmp_path / "study.yaml"
    study.write_text((STUDIES / "pearc23.yaml").read_text().replace("ember: hydro", "walk: cyclic"))
    (folder,) = output.iterdir()
    actual = filled(str(study), folder)
    refills = of_row(actual, "Table 6", "L1D_TLB_REFILL", "walk cyclic 800 8000", "simulated", "value")
    assert len(refills) == 2 and min(refills) < max(refills)
    assert of_row(actual, "Table 4", "L1D_TLB_REFILL", "simulated") == []


def source_of(name: str) -> Path:
    return ROOT / "kernels/micro" / name / "kernel.yaml"


@pytest.mark.parametrize("study", ["a64fx", "power6", "hager05"])
def test_every_table_of_kernels_can_be_measured(study: str) -> None:
    """Each kernel has the curves, and each curve the quantity, that its tables show."""
    tables: Sequence[Any] = yaml.safe_load((STUDIES / f"{study}.yaml").read_text())["tables"]
    mine = [each for each in tables if all(map(Path.exists, map(source_of, each["where"]["kernel"])))]
    assert len(mine) >= 3
    for shown in mine:
        where = shown["where"]
        for one in (kernel(read_source(source_of(name))) for name in where["kernel"]):
            stems = [glob.removesuffix("*") for glob in where.get("sweep", ())]
            curves = [each for each in one.sweeps if any(each.name.startswith(stem) for stem in stems)]
            fields = {each.y.field for each in curves} if stems else {each.field for each in one.metrics}
            assert fields >= {*where.get("quantity", ())} and fields, (shown["name"], one.name)
