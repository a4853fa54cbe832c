"""What reports say, and that the pictures are legible."""

from __future__ import annotations

import re
import subprocess
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from builders import BASE, THP, a_manifest, compared, configuration, kernel, record, subject_of, varied
from many_kernels import all_kernels, result_of
from pagewise.analysis.analysis import analyse
from pagewise.analysis.choices import bests, choices
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import KernelResult
from pagewise.core.manifest import Reservation, Switched
from pagewise.report.model import Figure, Table, TableCell, blocks_of
from pagewise.report.render import markdown
from pagewise.report.render.figure import describe, drawing, png, svg, svgs
from pagewise.report.render.html import Axis
from pagewise.report.views import data, kernels, report_of, session
from pagewise.report.views import kernel as kernel_view
from pagewise.report.views.kernels import matrix
from pagewise.stack.provenance import provenance
from pagewise.stack.setup import SetupFacts, Spack
from stage import COMPILERS, TRIAD


def result(factors: dict[str, float], noise: float = 1.0) -> KernelResult:
    """Base pages at 1 s with each compiler, thp at the compiler's factor, an empty pool for hugetlbfs."""
    times = {
        configuration(compiler, (pages, "hardware", "regular")): time
        for compiler, factor in factors.items()
        for pages, time in (("none", 1.0), ("thp", factor), ("hugetlbfs", None))
    }
    return compared(times, noise=5.0 * noise)


def test_a_choice_counts_its_verdicts_and_the_best_is_the_smallest_ratio():
    actual = result(dict(zip(COMPILERS, (0.8, 1.3), strict=True)))
    first, second, *_ = choices([actual])
    assert (len(first.having("faster")), len(first.having("slower")), first.missing) == (1, 1, 0)
    assert (first.value, second.value, second.effects, second.missing) == ("thp", "hugetlbfs", (), 2)
    best, none = bests([actual])
    assert best.row.cell.measured.hugepages == "thp" and best.as_good == ()
    assert none.row is None and data.label_of(none) == "none"


def test_the_matrix_has_a_place_for_everything():
    actual = matrix([result(dict(zip(COMPILERS, (0.5, 1.06), strict=True)))])
    assert [column.name for column in actual.columns[2:]] == ["none", "thp", "hugetlbfs"]
    assert [row[1] for row in actual.rows] == list(COMPILERS)
    assert (actual.repeats_above(0, 0), actual.repeats_above(1, 0)) == (False, True)
    half, more = (row[3] for row in actual.rows)
    assert (half.style, half.best, more.style, more.best) == ("faster", True, "slower", False)
    assert actual.rows[0][4] == TableCell(None, "excluded")


def test_an_axis_holds_all_and_its_labels_keep_apart():
    axis = Axis.over([Ratio(7, 0.43, 0.34, 0.55), Ratio(7, 1.76, 1.38, 2.04), None])
    assert axis.first < 0.34 and axis.last > 2.04
    places = [place for place, _ in axis.ticks]
    assert "1" in [text for _, text in axis.ticks] and all(b - a >= 13 for a, b in pairwise(places))
    bar = axis.bar(Ratio(7, 0.43, 0.34, 0.55))
    assert bar.low < bar.start < bar.high < bar.end == axis.place(1.0)
    assert Axis.over([]).place(50.0) == 100.0


def test_notes_on_machine_and_noise(tmp_path: Path):
    made = result_of(tmp_path, all_kernels()[:1], rounds=3)
    assert session.notes(made) == [] == list(kernels.notes_of([result({"gcc-12.2.0": 0.8})]))
    host = replace(made.manifest.host, virtual_machine="KVM")
    manifest = replace(made.manifest, host=host, state="interrupted", rounds_done=2)
    machine, interrupted = session.notes(replace(made, manifest=manifest))
    assert "(KVM)" in machine and re.findall(r"\d+", interrupted) == ["2", "3"]
    assert len(list(kernels.notes_of([result({"gcc-12.2.0": 0.8}, noise=30)]))) == 1


@pytest.mark.parametrize(
    ("x", "values", "scale", "ticks"),
    [
        ("options.stride", [1, 2, 4, 64], "log", ["1", "2", "4", "8", "16", "32", "64"]),
        ("options.block_size_bytes", [2048, 3072, 8192], "log", ["2 KiB", "4 KiB", "8 KiB"]),
        ("options.prefetch_distance", [0, 3, 6, 12], "linear", ["0", "4", "8", "12"]),
        ("options.type", ["fp64", "fp32", 8], "linear", ["fp64", "fp32", "8"]),
    ],
)
def test_the_axis_of_a_sweep_suits_the_swept_option(x, values, scale, ticks):
    swept = kernel(sweeps=[{**TRIAD["sweeps"][0], "x": x}])
    points = [record(BASE, 1.0, series="sweep", options={x.split(".")[1]: value}) for value in values]
    bad = record(BASE, 1.0, series="sweep", options={}, validation={"passed": False, "method": "sum"})
    actual = analyse([subject_of(swept, BASE)], [*points, bad], seed=1)
    machine = {"threads": 1, "host": {"caches": [{"level": 1, "bytes": 4, "shared_by": 1}]}}
    figure, section = kernel_view.sweeps(actual[0], machine)
    (axes,) = drawing(figure).axes
    low, high = axes.get_xlim()
    shown = [t.get_text() for t in axes.get_xticklabels() if low <= t.get_position()[0] <= high]
    name = x.split(".")[1].removesuffix("_bytes").replace("_", " ")
    assert (axes.get_xscale(), axes.get_xlabel(), shown) == (scale, name, ticks)
    assert figure.marks == () and "1 point" in figure.caption
    assert f"at {ticks[-1]}." in describe(figure)
    (table,) = section.blocks
    column = table.columns[0]
    assert [column.text(row[0]) for row in table.rows][-1] == ticks[-1] and len(table.rows) == len(values)


def test_no_configuration_is_shown_as_the_excluded_baseline():
    actual = compared({BASE: None, THP: 1.0})
    table = next(b for b in kernel_view.section(actual, a_manifest()).blocks if isinstance(b, Table))
    (row,) = table.records()
    assert (row["time ratio"], row["verdict"]) == (None, "inconclusive")


def test_coverage_is_never_rounded_up():
    one = varied(record(THP, 1.0), "pages", huge_coverage=0.99999)
    rows = analyse([subject_of(kernel(), BASE, THP)], [one], seed=1)[0].ranked
    assert [data.pages_text(row) for row in rows] == ["2 MiB 99.9 %"]


def test_provenance_of_a_checkout(tmp_path: Path):
    def git(*arguments: str) -> None:
        identity = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
        subprocess.run(["git", "-C", tmp_path, *identity, *arguments], check=True, capture_output=True)

    assert provenance(tmp_path, "quick", None).project_commit is None
    git("init", "-q")
    lock = tmp_path / "envs/quick/spack.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text("{}")
    git("add", ".")
    git("commit", "-qm", "x")
    facts = SetupFacts(Spack(True, version="1.1.0", tree="t", packages_commit="p"))
    actual = provenance(tmp_path, "quick", facts)
    assert actual.project_dirty is False and len(actual.project_commit) == 40
    assert (actual.spack_tree, actual.packages_commit) == ("t", "p")
    assert actual.lockfile == "envs/quick/spack.lock"
    assert actual.lockfile_sha256 == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    lock.write_text("{ }")
    assert provenance(tmp_path, "quick", facts).project_dirty is True


def test_markdown_holds_the_tables(tmp_path: Path):
    """Each line of a table has as many cells as its head, and nothing of a name is taken for a sign."""
    names = ("schoenauer_triad", "pointer_chase")
    selected = [replace(one, sweeps=()) for one in all_kernels() if one.name in names]
    report = report_of(result_of(tmp_path, selected, rounds=3, pool=False))
    lines = markdown.render(report).splitlines()
    assert lines[0] == f"**{report.headline}**"
    runs = groupby(lines, lambda line: line.startswith("|"))
    tables = [list(those) for is_table, those in runs if is_table]
    assert [len({re.sub(r"\\\|", "", line).count("|") for line in one}) for one in tables] == [1] * 11


@pytest.mark.long
def test_figures_drawn_side_by_side_equal_single_figures(tmp_path: Path):
    selected = [one for one in all_kernels() if one.name in ("pointer_chase", "gather")]
    report = report_of(result_of(tmp_path, selected, rounds=3, pool=False))
    several: list[Figure] = list(blocks_of(Figure, report.sections))
    together = svgs(several)
    assert {figure.name.split("-")[0] for figure in several} == {"pointer_chase", "gather"}
    assert {figure.name: svg(figure) for figure in several} == together
    assert all(png(figure).startswith(b"\x89PNG") and describe(figure) for figure in several)


def test_advice_names_the_settings_that_the_session_changed():
    plain = a_manifest()
    changed = a_manifest(
        switches=(Switched("/sys/enabled", "never", "madvise"),),
        pool=(Reservation(2 << 20, 0, 64, 70),),
        clocks=(Switched("/sys/boost", "1", "0"),),
    )
    before, text = session.condition(plain), session.condition(changed)
    assert "70" in text.split() and "2 MiB" in text
    for reverted in ("switches", "pool", "clocks"):
        others = replace(changed, **{reverted: getattr(plain, reverted)})
        assert session.condition(others) not in (text, before)
