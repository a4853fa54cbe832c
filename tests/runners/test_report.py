"""What reports say, and that the pictures are legible."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from builders import chase, configuration, failed_record, kernel, record, subject_of
from many_kernels import all_kernels, result_of
from pagewise.analysis.analysis import KernelResult, analyse
from pagewise.analysis.statistics import Ratio
from pagewise.report import advice, words
from pagewise.report.draw import draw
from pagewise.report.figures import _spread, pictures
from pagewise.report.forest import Axis
from pagewise.report.latex import escaped, latex_tables
from pagewise.report.markdown import markdown
from pagewise.report.matrix import matrix
from pagewise.stack.provenance import provenance
from pagewise.stack.setup import SetupFacts, Spack
from stage import TRIAD

COMPILERS = ("gcc-12.2.0", "llvm-22.1.8")
NOISE = [1.0, 1.01, 0.99, 1.005, 0.995, 1.0, 1.002]
MANIFEST = {
    "host": {"virtual_machine": None},
    "state": "complete",
    "rounds": 7,
    "rounds_done": 7,
    "provenance": {"project_dirty": False},
}


def result(factors: dict[str, float], noise: float = 1.0) -> KernelResult:
    """Base pages at 1 s with each compiler, thp at the compiler's factor, an empty pool for hugetlbfs."""
    configurations, records = [], []
    for shift, (compiler, factor) in enumerate(factors.items()):
        base, thp, pool = (
            configuration(compiler, (pages, "hardware", "regular")) for pages in ("none", "thp", "hugetlbfs")
        )
        configurations += [base, thp, pool]
        for number in range(1, 8):
            wave = [NOISE[(number + shift + step) % 7] ** noise for step in (0, 2, 4)]
            records.append(record(base, wave[0], number=number))
            records.append(record(base, wave[1], number=number, series="aa"))
            records.append(record(thp, factor * wave[2], number=number))
        records.append(failed_record(pool, "pages_unavailable", "the pool is empty"))
    return analyse([subject_of(kernel(), *configurations)], records, seed=1)[0]


def test_effects_are_said_in_plain_words():
    told = dict(words.factor_sentences(result(dict(zip(COMPILERS, (0.8, 1.305), strict=True)))))
    assert told["Pages"] == (
        "thp: 20 % less time (gcc-12.2.0), 30 % more time (llvm-22.1.8); hugetlbfs was not measured."
    )
    assert "llvm-22.1.8 against gcc-12.2.0: inconclusive" in told["Compiler"]
    assert "Prefetch" not in told


def test_what_cannot_be_told_is_not_told():
    found = result({"gcc-12.2.0": 1.0})
    assert dict(words.factor_sentences(found))["Pages"].startswith("thp: inconclusive;")
    assert advice.headline([found]) == "Huge pages make no difference that can be told on this node."
    assert advice.largest([found]) == ""
    assert "Nothing can be said" in advice.headline([])


@pytest.mark.parametrize(
    ("factors", "told"),
    [
        ((0.8,), "Use transparent huge pages: 20 % less time."),
        ((0.8, 0.7), "Use transparent huge pages: 20 to 30 % less time."),
        (
            (0.8, 1.0),
            "Use transparent huge pages: 20 % less time; in 1 other comparison no difference can be told, in "
            "none a loss.",
        ),
        ((1.3,), "Keep base pages: with transparent huge pages 30 % more time."),
        (
            (0.8, 1.3),
            "Choose the pages by kernel. Transparent huge pages: 20 % less time; but 30 % more time.",
        ),
    ],
)
def test_the_headline_says_what_to_do(factors, told):
    found = result(dict(zip(COMPILERS, factors, strict=False)))
    assert advice.headline([found]) == told


def test_the_headline_of_too_few_rounds_asks_for_more():
    base, thp = configuration(), configuration(label=("thp", "hardware", "regular"))
    records = [record(base, 1.0), record(base, 1.0, series="aa"), record(thp, 0.5)]
    found = analyse([subject_of(kernel(), base, thp)], records, seed=1)
    assert advice.headline(found).startswith("Too few rounds to tell what huge pages do: a verdict takes")


def test_the_headline_names_few_kernels_and_counts_many():
    def named(title: str) -> KernelResult:
        one = result({"gcc-12.2.0": 0.8})
        return replace(one, kernel=replace(one.kernel, title=title, name=title))

    few = [named("Chase"), named("Triad")]
    assert advice.headline(few).endswith(": 20 % less time in Chase, 20 % in Triad.")
    many = [named(f"K{number}") for number in range(5)]
    assert advice.headline(many).endswith(": less time in 5 of 5 comparisons (20 %).")


def test_a_choice_counts_its_verdicts():
    first, second, *_ = advice.choices([result(dict(zip(COMPILERS, (0.8, 1.3), strict=True)))])
    assert (first.value, len(first.told("faster")), len(first.told("slower")), first.missing) == (
        "thp",
        1,
        1,
        0,
    )
    assert (second.value, second.effects, second.missing) == ("hugetlbfs", (), 2)


def test_the_best_is_the_smallest_ratio_that_is_told():
    (best,) = advice.bests([result({"gcc-12.2.0": 0.8})])
    assert best.row.cell.measured.hugepages == "thp" and best.as_good == ()
    (none,) = advice.bests([result({"gcc-12.2.0": 1.0})])
    assert none.row is None and advice.label_of(none) == "none"


def test_what_is_wrong_is_said_first_and_its_baseline_is_no_choice():
    base, thp = configuration(), configuration(label=("thp", "hardware", "regular"))
    bad = {"passed": False, "method": "sum", "error": 1.0, "tolerance": 0.0}
    records = [record(one, 1.0, validation=bad) for one in (base, thp)]
    found = analyse([subject_of(kernel(), base, thp)], records, seed=1)
    (note,) = words.notes(MANIFEST, found)
    assert note.startswith("Something is wrong with Vector triad, 2 configurations not ranked: the result ")
    assert [(one.value, one.missing) for one in advice.choices(found)] == [("thp", 1)]
    assert advice.bests(found) == [] and "Nothing can be said" in advice.headline(found)


def test_the_matrix_has_a_place_for_everything():
    found = matrix([result(dict(zip(COMPILERS, (0.5, 1.06), strict=True)))])
    assert found.columns == ("none", "thp", "hugetlbfs")
    assert [(line.compiler, line.span) for line in found.lines] == [(COMPILERS[0], 2), (COMPILERS[1], 0)]
    half, more = (line.cells[1] for line in found.lines)
    assert (half.is_best, more.is_best, half.step, more.step) == (True, False, 5, 1)
    assert found.lines[0].cells[2].row.invalid


def test_an_axis_holds_all_and_its_labels_keep_apart():
    axis = Axis.over([Ratio(7, 0.43, 0.34, 0.55), Ratio(7, 1.76, 1.38, 2.04), None])
    assert axis.first < 0.34 and axis.last > 2.04
    places = [place for place, _ in axis.ticks]
    assert "1" in [text for _, text in axis.ticks] and all(b - a >= 13 for a, b in pairwise(places))
    bar = axis.bar(Ratio(7, 0.43, 0.34, 0.55))
    assert bar.low < bar.start < bar.high < bar.end == axis.place(1.0)
    assert Axis.over([]).place(50.0) == 100.0


def test_notes_on_machine_and_noise():
    assert words.notes(MANIFEST, [result({"gcc-12.2.0": 0.8})]) == []
    steady = {**MANIFEST, "host": {"virtual_machine": "KVM"}, "state": "interrupted", "rounds_done": 3}
    machine, interrupted = words.notes(steady, [])
    assert "virtual machine (KVM)" in machine and "after 3 of 7 whole rounds" in interrupted
    assert "unsteady" in words.notes(MANIFEST, [result({"gcc-12.2.0": 0.8}, noise=30)])[0]


def test_labels_name_only_what_differs():
    told = [
        words.label(kernel(), configuration(label=label))
        for label in (
            ("none", "hardware", "regular"),
            ("thp", "software", "regular"),
            ("thp", "hardware", "nontemporal"),
        )
    ]
    assert told == ["none", "thp software", "thp nontemporal"]
    assert words.label(chase(), configuration(label=("thp", "software", "regular"))) == "thp"
    assert words.label(kernel(feels=["prefetch"]), configuration()) == "as built"


@pytest.mark.parametrize(
    ("x", "values", "scale", "ticks"),
    [
        ("options.stride", [1, 2, 4, 64], "log", ["1", "2", "4", "8", "16", "32", "64"]),
        ("options.block_size_bytes", [2048, 3072, 8192], "log", ["2 KiB", "4 KiB", "8 KiB"]),
        ("options.offset_bytes", [0, 16, 48], "linear", [f"{n} B" for n in range(0, 49, 8)]),
        ("options.prefetch_distance", [0, 3, 6, 12], "linear", ["0", "4", "8", "12"]),
        ("options.chains", [1, 2], "linear", ["1", "2"]),
        ("options.type", ["fp64", "fp32", 8], "linear", ["fp64", "fp32", "8"]),
    ],
)
def test_the_axis_of_a_sweep_suits_what_is_swept(x, values, scale, ticks):
    base = configuration()
    swept = kernel(sweeps=[{**TRIAD["sweeps"][0], "x": x}])
    points = [record(base, 1.0, series="sweep", options={x.split(".")[1]: value}) for value in values]
    bad = record(base, 1.0, series="sweep", options={}, validation={"passed": False, "method": "sum"})
    found = analyse([subject_of(swept, base)], [*points, bad], seed=1)
    machine = {"threads": 1, "host": {"caches": [{"level": 1, "bytes": 4, "shared_by": 1}]}}
    picture = pictures(found, machine)["triad"][0]
    (axes,) = picture.figure.axes
    low, high = axes.get_xlim()
    shown = [t.get_text() for t in axes.get_xticklabels() if low <= t.get_position()[0] <= high]
    name = x.split(".")[1].removesuffix("_bytes").replace("_", " ")
    assert (axes.get_xscale(), axes.get_xlabel(), shown) == (scale, name, ticks)
    assert f"over {name}, higher is better" in picture.caption and "cache sizes" not in picture.caption
    assert picture.caption.endswith("Not valid, and left out: 1 point.")
    assert f"at {ticks[-1]}." in picture.alternative


def test_the_label_of_a_sweep_has_its_unit():
    swept = {**TRIAD["sweeps"][0], "x": "options.distance"}
    assert kernel(sweeps=[{**swept, "label": "distance [lines]"}]).sweeps[0].label == "distance [lines]"
    assert kernel(sweeps=[swept]).sweeps[0].label == "distance"
    assert kernel().sweeps[0].label == "working set"


def test_coverage_is_never_rounded_up():
    thp = configuration(label=("thp", "hardware", "regular"))
    one = record(thp, 1.0)
    one["pages"]["huge_coverage"] = 0.99999
    rows = analyse([subject_of(kernel(), configuration(), thp)], [one], seed=1)[0].groups[0].ranked
    assert [words.pages_text(row) for row in rows] == ["2 MiB 99.9 %"]


@pytest.mark.parametrize("places", [[0.1, 0.5, 0.9], [0.3, 0.3, 0.3], [0.0, 0.01, 0.02, 0.5, 0.51], []])
def test_labels_beside_lines_do_not_overlap(places):
    spread = _spread(places, 0.05)
    assert len(spread) == len(places) and spread == sorted(spread)
    assert all(b - a >= 0.05 - 1e-9 for a, b in pairwise(spread))
    if places == [0.1, 0.5, 0.9]:
        assert spread == pytest.approx(places)
    if places == [0.3, 0.3, 0.3]:
        assert spread == pytest.approx([0.25, 0.3, 0.35])


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
    found = provenance(tmp_path, "quick", facts)
    assert found.project_dirty is False and len(found.project_commit) == 40
    assert (found.spack_tree, found.packages_commit) == ("t", "p")
    assert found.lockfile == "envs/quick/spack.lock"
    assert found.lockfile_sha256 == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    lock.write_text("{ }")
    assert provenance(tmp_path, "quick", facts).project_dirty is True


def test_markdown_and_latex_hold_the_tables(tmp_path: Path):
    """Each line of a table has as many cells as its head, and nothing of a name is taken for a sign."""
    kernels = [one for one in all_kernels() if one.name in ("schoenauer_triad", "pointer_chase")]
    made = result_of(tmp_path, [replace(one, sweeps=()) for one in kernels], rounds=3, pool=False)
    found = analyse(made.subjects, made.records, 1)
    lines = markdown(made, found).splitlines()
    assert lines[0] == f"**{advice.headline(found)}**"
    runs = groupby(lines, lambda line: line.startswith("|"))
    tables = [list(those) for is_table, those in runs if is_table]
    assert [len({re.sub(r"\\\|", "", line).count("|") for line in one}) for one in tables] == [1] * 4
    assert sum("× not ranked" in line for line in tables[3]) == 8 and "Latency \\[ns\\]" in tables[2][0]
    text = latex_tables("a_b\n", found)
    assert text.splitlines()[1] == ""
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 3
    for body in re.findall(r"\\begin\{tabular\}\{([lr]+)\}(.*?)\\end\{tabular\}", text, re.DOTALL):
        rows = [line for line in body[1].splitlines() if line.endswith(r"\\") and "multicolumn" not in line]
        assert {line.count(" & ") + 1 for line in rows} == {len(body[0])}
    assert escaped("50 % of a_b <x> & $5") == r"50 \% of a\_\allowbreak{}b \textless{}x\textgreater{} \& \$5"


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="apt-get install texlive-latex-recommended")
def test_latex_takes_the_tables(tmp_path: Path):
    found = [result(dict(zip(COMPILERS, (0.8, 1.3), strict=True)))]
    (tmp_path / "tables.tex").write_text(latex_tables("x", found))
    head = r"\documentclass{article}\usepackage{booktabs,graphicx}"
    (tmp_path / "paper.tex").write_text(head + "\n\\begin{document}\\input{tables}\\end{document}\n")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-draftmode", "paper.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.long
def test_kernels_drawn_side_by_side_look_as_alone(tmp_path: Path):
    chosen = [one for one in all_kernels() if one.name in ("pointer_chase", "gather")]
    made = result_of(tmp_path, chosen, rounds=3, pool=False)
    found = analyse(made.subjects, made.records, 1)
    for name in ("together", "alone"):
        (tmp_path / name).mkdir()
    together = draw(tmp_path / "together", found, made.manifest)
    assert list(together) == ["gather", "pointer_chase", ""]
    for one in found:
        alone = draw(tmp_path / "alone", [one], made.manifest)[one.kernel.name]
        assert alone == together[one.kernel.name] and len(alone) >= 2
        for picture in alone:
            for kind in ("svg", "png"):
                files = [tmp_path / name / f"figures/{picture.stem}.{kind}" for name in ("alone", "together")]
                assert files[0].read_bytes() == files[1].read_bytes()
    (tmp_path / "together" / "figures/gather-ratios.svg").unlink()
    (tmp_path / "together" / "figures/gather-ratios.svg").mkdir()
    with pytest.raises(IsADirectoryError):
        draw(tmp_path / "together", found, made.manifest)
