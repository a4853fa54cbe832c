"""The way a loop is written: what is compared with what, and what reports say of it."""

from __future__ import annotations

import json

import pytest

from builders import a_manifest, compared, configuration, kernel, record, subject_of
from pagewise.analysis.analysis import analyse
from pagewise.analysis.choices import choices, own_loop
from pagewise.analysis.consistency import inconsistent
from pagewise.core.configuration import Configuration
from pagewise.report.model import Figure
from pagewise.report.render.figure import DASHES
from pagewise.report.verdicts import AnswerRow
from pagewise.report.views import advice
from pagewise.report.views.applying import first_answers
from pagewise.report.views.comparisons import loops
from pagewise.report.views.kernel import sweeps
from stage import COMPILERS, TRIAD, Stage

LOOPED_SENSITIVE = [*TRIAD["sensitive_to"], "loop"]
LOOPED = kernel(sensitive_to=LOOPED_SENSITIVE)


def made(compiler: str = COMPILERS[0], pages: str = "none", access: str = "hardware-regular", **given: str):
    prefetch, stores = access.split("-")
    loop = "-loop-compiler" if given.get("loop") == "compiler" else ""
    module = f"pagewise-micro/0.1.0/{compiler}/{pages}/{access}{loop}"
    return configuration(compiler, (pages, prefetch, stores), module=module, **given)


BASE, SOFTWARE = made(), made(access="software-regular")
LOOP = made(loop="compiler")
BY_COMPILER = made(access="compiler-regular", loop="compiler")
TIMES = {BASE: 1.0, SOFTWARE: 1.0, LOOP: 3.0, BY_COMPILER: 2.7}


def of_loops(*times: float) -> dict[Configuration, float]:
    """The compilers' explicit loops take 1, their own ones these times."""
    own = {made(name, loop="compiler"): time for name, time in zip(COMPILERS, times, strict=True)}
    return {made(name): 1.0 for name in COMPILERS} | own


def answers(times: dict[Configuration, float]) -> dict[tuple[str, str | None, str | None], AnswerRow]:
    return {(one.factor, one.loop, one.compiler): one for one in advice.answers([compared(times, LOOPED)])}


def test_prefetching_is_not_credited_with_the_loop():
    """As measured: the compiler's loop three times as slow as explicit code with and without prefetching."""
    reported = answers(TIMES)
    assert (reported["prefetch", None, None].outcome, reported["prefetch", None, None].values) == ("same", ())
    slow = reported["loop", None, COMPILERS[0]]
    assert (slow.lead, slow.outcome, slow.values) == ("No. ", "keep", ("compiler",))
    # Prefetching of the compiler is compared in its loop.
    rows = {row.cell.measured.module: row for row in compared(TIMES, LOOPED).ranked}
    row = rows[BY_COMPILER.module]
    assert row.differs == ("prefetch", "loop")
    assert (row.change.dimension, row.change.reference.measured) == ("prefetch", LOOP)
    assert row.change.verdict == "faster" and row.verdict == "slower"
    assert row.change.ratio.median == pytest.approx(0.9, abs=0.01)
    compiled = reported["prefetch", "compiler", None]
    assert (compiled.outcome, compiled.values) == ("use", ("compiler",))


def test_each_compiler_has_its_answer_on_its_loop():
    times = of_loops(3.0, 0.8)
    reported = answers(times)
    assert [reported["loop", None, compiler].lead for compiler in COMPILERS] == ["No. ", "Yes. "]
    result = compared(times, LOOPED)
    given = advice.answers([result])
    headline = advice.headline([result], given)
    assert [one.compiler for one in first_answers(given)] == list(COMPILERS)
    assert all(f"{compiler}: " in headline for compiler in COMPILERS)
    same = {BASE: 1.0, LOOP: 1.0}
    assert answers(same)["loop", None, COMPILERS[0]].lead == ""
    assert list(loops([compared(same, LOOPED)])) == []
    (section,) = loops([result])
    assert [row[1] for row in section.blocks[0].rows] == list(COMPILERS)


@pytest.mark.parametrize(("times", "lead"), [((3.0, 1.0), "No. "), ((1.0, 3.0), "Yes. "), ((1.0, 1.0), "")])
def test_the_answer_does_not_depend_on_the_baseline(times: tuple[float, float], lead: str):
    for baseline in (LOOP, BASE):
        result = compared(dict(zip((LOOP, BASE), times, strict=True)), LOOPED, baseline.label)
        assert result.groups[0].baseline.cell.measured == baseline
        assert [one.lead for one in advice.answers([result])] == [lead]


def test_compilers_are_compared_in_their_loops_too():
    times = of_loops(3.0, 1.5)
    versus = {own_loop(one): one for one in compared(times, LOOPED).of("compilers")}
    verdicts = [(loop, one.verdict) for loop, one in versus.items()]
    assert verdicts == [(None, "inconclusive"), ("compiler", "faster")]
    assert versus["compiler"].ratio.median == pytest.approx(0.5, abs=0.01)
    reported = answers(times)
    assert reported["compiler", None, None].outcome == "same"
    assert reported["compiler", "compiler", None].values == (f"{COMPILERS[1]} : {COMPILERS[0]}",)
    without = {one: time for one, time in times.items() if one != LOOP}
    assert [own_loop(one) for one in compared(without, LOOPED).of("compilers")] == [None]


@pytest.mark.parametrize("other", [{"openmp": "off"}, {"papi": "on"}, {"version": "9"}, {"builder": "cmake"}])
def test_other_differences_are_reported_without_an_answer(other):
    (name,) = other
    result = compared({BASE: 1.0, made(pages="thp", **other): 0.5}, LOOPED)
    (row,) = (row for group in result.groups for row in group.rows if not row.cell.is_baseline)
    assert row.differs == ("hugepages", name) and name in (row.note or row.invalid)
    assert advice.answers([result]) == [] and choices([result])[0].effects == ()


def test_a_comparison_includes_the_loop_without_prefetch(stage: Stage):
    """Of prefetching by the compiler, whose loop alone nobody asked for."""
    looped = {**TRIAD, "sensitive_to": LOOPED_SENSITIVE}
    for prefetch, loop, factor in (
        ("hardware", "explicit", "1"),
        ("software", "explicit", "1"),
        ("hardware", "compiler", "3"),
        ("compiler", "compiler", "2"),
    ):
        stage.add(COMPILERS[0], ("none", prefetch, "regular"), [looped], loop=loop, factor=factor)
    options = ("--configurations", "*/compiler-*", "--rounds", "3", "--no-sweep", "--json")
    reported = json.loads(stage.compare(*options, code=0).stdout)
    (measured,) = (one["configurations"] for one in reported["kernels"])
    assert {(one["prefetch"], one["loop"]) for one in measured} == {
        ("hardware", "explicit"),
        ("hardware", "compiler"),
        ("compiler", "compiler"),
    }
    answered = {(one["factor"], one["loop"], one["compiler"]): one["lead"] for one in reported["answers"]}
    assert answered == {("prefetch", "compiler", None): "Yes. ", ("loop", None, COMPILERS[0]): "No. "}


def test_curves_of_both_loops_have_different_lines():
    records = [record(one, 1.0, series="sweep") for one in (BASE, LOOP)]
    swept = analyse([subject_of(LOOPED, BASE, LOOP)], records, seed=1)
    figure = next(block for block in sweeps(swept[0], a_manifest()) if isinstance(block, Figure))
    ((_, lines),) = figure.panels
    assert len(lines) == len({str(DASHES[line.pattern]) for line in lines}) == 2
    assert len({*map(str, DASHES.values())}) == len(DASHES)


def test_a_record_of_another_loop_than_the_module_names_is_wrong():
    assert inconsistent(LOOPED, LOOP, [record(BASE, 1.0)]).code == "wrong_build"
    assert inconsistent(LOOPED, LOOP, [record(LOOP, 1.0)]) is None
