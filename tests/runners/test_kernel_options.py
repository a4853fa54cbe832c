"""Options of kernels as dimensions of a comparison: any name that a kernel.yaml has."""

from __future__ import annotations

import json
import math

import pytest

from builders import configuration, kernel, record
from builders import varied as recorded_with
from json_schema import faults
from pagewise.analysis.analysis import analyse
from pagewise.analysis.comparison import neighbour
from pagewise.analysis.consistency import incomparable
from pagewise.analysis.rows import KernelResult
from pagewise.core.dimensions import differing
from pagewise.core.plan import Subject, order_of_sweeps, subject, with_options
from pagewise.report.model import Table
from pagewise.report.views import comparisons
from stage import CHASE, DISTANCES, PAGES, TRIAD, Stage

OPTIONS = {"align": ["aos", "soa"], "buffer": ["planes", "flash"]}
STRUCTURES = {"options": OPTIONS, "structures": ["align", "buffer"]}
REGIONS = {"parallel": ["once", "pass"]}
BUILT = [configuration(label=label) for label in PAGES]
BASELINE = "none/hardware-regular"


def planned() -> Subject:
    """A kernel with base pages and thp, in two aligns and two buffers."""
    return with_options([subject(kernel(**STRUCTURES), BUILT, BASELINE)], OPTIONS)[0]


def test_cells_have_all_combinations_and_one_baseline():
    both = planned()
    cells = both.cells
    assert len({cell.key for cell in cells}) == len(cells) == 8
    (base,) = (cell for cell in cells if cell.is_baseline)
    assert base.options == "align=aos,buffer=planes"
    assert base.arguments == ("--align", "aos", "--buffer", "planes")
    assert len({cell.measured.label for cell in cells}) == 8
    values = {"at_once": ["1", "2"]}
    (one,) = with_options([subject(kernel(options=values), [configuration()], "*")], values)
    assert one.cells[1].arguments == ("--at-once", "2")
    assert Subject.of(both.planned_subject(), {one.module: one for one in BUILT}) == both


def test_a_configuration_differs_from_its_reference_in_one_thing():
    one = planned()
    (base,) = (cell for cell in one.cells if cell.is_baseline)
    actual = {}
    for cell in one.cells:
        changed = neighbour(one.benchmark, cell, base, one.cells)
        difference = changed and (changed.dimension, changed.reference.options)
        actual[cell.measured.hugepages, cell.options] = difference
    assert actual["thp", "align=soa,buffer=flash"] == ("hugepages", "align=soa,buffer=flash")
    assert actual["none", "align=soa,buffer=flash"] == ("align", "align=aos,buffer=flash")
    assert subject(kernel(), [], "*").cells == () and actual["none", "align=aos,buffer=planes"] is None


def test_a_sweep_of_one_value_of_an_option():
    orders = {"order": ["source", "interleaved"]}
    one = kernel(options=orders, sweeps=[{**DISTANCES, "when": {"order": "interleaved"}}])
    plain = [subject(one, BUILT, BASELINE)]
    assert order_of_sweeps(plain, seed=1) == []
    swept = {step.cell.options for step in order_of_sweeps(with_options(plain, orders), seed=1)}
    assert swept == {"order=interleaved"}


def test_a_build_without_openmp_has_one_kind_of_parallel_regions():
    built = [configuration(), configuration(openmp="off", module="m/1/gcc/none/hardware-regular-serial")]
    plain = subject(kernel(options=REGIONS, options_of_threads=["parallel"]), built, BASELINE)
    (one,) = with_options([plain], REGIONS)
    actual = {(cell.measured.openmp, cell.measured.value("parallel")): cell for cell in one.cells}
    assert actual.keys() == {("on", "once"), ("on", "pass"), ("off", "once")}
    assert [key for key, cell in actual.items() if cell.is_baseline] == [("on", "once")]
    serial = actual["off", "once"].measured
    assert serial.label == "none/hardware-regular-serial+parallel=once"
    assert differing(one.benchmark, serial, actual["on", "once"].measured) == ("openmp",)


def test_options_values_and_scales_of_some_kernels_and_builds(stage: Stage):
    changes = {"options": {**OPTIONS, **REGIONS}, "options_of_threads": ["parallel"]}
    scales = {"studies": ["--working-set", "8MiB"]}
    stage.add("gcc-12.2.0", PAGES[0], [{**TRIAD, **changes, "scales": scales}, CHASE], openmp="off")
    for refused in (
        # No build, kernel, or selected kernel has it; one of both kernels does not.
        *(("--vary", "parallel=pass"), ("--vary", "align=rows"), ("--vary", "threads=1")),
        *(("-k", "chase", "--vary", "align"), ("--scale", "studies")),
    ):
        stage.compare("--plan", *refused, code=2)
    stage.compare("--plan", "--vary", "parallel", code=0)
    done = stage.compare("-k", "triad", "--scale", "studies", "--vary", "all", "--plan", "--json", code=0)
    (planned,) = json.loads(done.stdout)["kernels"]
    assert planned["arguments"] == scales["studies"]
    assert len({cell["options"] for cell in planned["configurations"]}) == 4
    assert not stage.results.exists()


@pytest.mark.parametrize(("more", "is_other"), [("", False), (" -ffast-math", True)])
def test_the_option_of_openmp_does_not_make_another_build(more: str, is_other: bool):
    with_threads, serial = configuration(), configuration(openmp="off")
    base = recorded_with(record(with_threads, 1.0), "configuration", compiler_options="-O3 -fopenmp")
    built = {"compiler_options": f"-O3{more}", "openmp": False}
    own = recorded_with(record(serial, 1.0), "configuration", **built)
    fault = incomparable(kernel(), [own], [base], serial, with_threads)
    assert (fault is not None) == is_other and (not fault or fault.code == "wrong_build")


@pytest.mark.long
def test_options_are_compared_as_configurations_are(stage: Stage):
    for label in PAGES:
        factor = "0.5" if label[0] == "thp" else "1"
        stage.add("gcc-12.2.0", label, [{**TRIAD, **STRUCTURES}, CHASE], factor=factor, slow="soa:2")
    options = ("--rounds", "3", "--no-sweep", "--vary", "align", "--vary", "buffer=planes", "--json")
    data = json.loads(stage.compare(*options, code=0).stdout)
    assert faults("verdicts", data) == []
    of_kernel = {one["name"]: one["configurations"] for one in data["kernels"]}
    assert [one["options"] for one in of_kernel["chase"]] == [{}] * 2
    rows = {(one["hugepages"], one["options"]["align"]): one for one in of_kernel["triad"]}
    assert len(rows) == 4 and {one["options"]["buffer"] for one in rows.values()} == {"planes"}
    assert rows["none", "aos"]["is_baseline"] and not rows["none", "soa"]["is_baseline"]
    assert rows["none", "soa"]["differs_in"] == "align" and rows["none", "soa"]["time_ratio"] > 1.5
    actual = {row["kind"]: row for row in data["comparisons"] if row["kernel"] == "triad"}
    change, effect = actual["change"], actual["structure"]
    assert (change["dimension"], change["hugepages"]) == ("hugepages", "thp")
    assert (change["options"]["align"], change["reference_options"]) == ("soa", "align=soa,buffer=planes")
    assert change["ratio"] == pytest.approx(0.5, rel=0.1)
    assert (effect["dimension"], effect["options"]["align"]) == ("align", "soa")
    assert effect["reference_options"] == "align=aos,buffer=planes"
    assert effect["value"] == pytest.approx(change["ratio"]) and effect["pairs"] == 3
    for run in (one.run for one in stage.read_result().records):
        given = dict(option.split("=") for option in (run.options or "").split(",") if option)
        assert given.keys() == ({"align", "buffer"} if run.kernel == "triad" else set())
        for name, value in given.items():
            assert run.command[run.command.index(f"--{name}") + 1] == value


def with_structures(slower: float) -> KernelResult:
    """Seven rounds: huge pages save 40 % with soa, and with aos `slower` times as much is left."""
    one = planned()
    records = []
    for place, cell in enumerate(one.cells):
        facts, given = cell.measured, cell.settings.options
        seconds = (1.0 if given["align"] == "aos" else 3.0) * (2.0 if given["buffer"] == "flash" else 1.0)
        seconds *= (0.6 * (slower if given["align"] == "aos" else 1.0)) if facts.hugepages == "thp" else 1.0
        for number in range(1, 8):
            for series in ("compare", *(("aa",) if cell.is_baseline else ())):
                noise = 1.0 + 0.002 * ((3 * number + 2 * place + len(series)) % 7 - 3)
                made = record(facts, seconds * noise, number=number, series=series)
                records.append(recorded_with(made, "run", options=cell.options))
    return analyse([one], records, seed=1)[0]


@pytest.mark.parametrize(
    ("slower", "share"), [(1.0, None), (0.8 / 0.6, math.log(0.75) / math.log(0.6)), (1 / 0.6, 1.0)]
)
def test_the_share_of_the_data_structure_in_the_effect_of_pages(slower: float, share: float | None):
    result = with_structures(slower)
    effects = {
        (one.dimension, *one.cell.measured.settings.options.values()): one for one in result.of("structure")
    }
    assert effects.keys() == {
        ("align", "soa", "planes"),
        ("align", "soa", "flash"),
        ("buffer", "aos", "flash"),
        ("buffer", "soa", "flash"),
    }
    for (dimension, _, _), effect in effects.items():
        if dimension == "buffer":
            assert effect.verdict == "inconclusive" and effect.share is None
            continue
        assert effect.value == pytest.approx(0.6, rel=0.02)
        assert effect.reference_value == pytest.approx(0.6 * slower, rel=0.02)
        assert effect.ratio.median == pytest.approx(1 / slower, rel=0.02)
        assert effect.share == (None if share is None else pytest.approx(share, rel=0.05))
        assert effect.verdict == ("inconclusive" if share is None else "faster")
    sections = comparisons.structures([result])
    (table,) = (block for each in sections for block in each.blocks if isinstance(block, Table))
    assert len(table.rows) == 4
