"""What is advised: no answer contradicts the interval next to it, and each has its builds and commands."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

import table_results
from builders import compared, configuration, kernel, rounds, subject_of
from json_schema import faults
from many_kernels import COMPILERS, all_kernels, result_of
from pagewise.analysis.analysis import analyse
from pagewise.analysis.choices import Choice, advise
from pagewise.analysis.comparison import TIME, Comparison
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import KernelResult
from pagewise.report.model import Report
from pagewise.report.render import json, markdown
from pagewise.report.verdicts import AnswerRow
from pagewise.report.views import advice, report_of
from pagewise.report.views.applying import spec_of
from pagewise.report.views.data import capital

STORES, PAGES = ("none", "hardware", "nontemporal"), ("thp", "hardware", "regular")
BASE, THP = configuration(), configuration(label=PAGES)


@pytest.mark.parametrize(
    ("factors", "outcome", "shares"),
    [
        ((1.0,), "same", ""),
        ((0.8,), "use", "20 %"),
        ((0.8, 0.7), "use", "20 to 30 %"),
        ((0.8, 1.0), "use", "20 %"),
        ((1.3,), "keep", "30 %"),
        ((0.8, 1.3), "choose", "20 %"),
    ],
)
def test_the_headline_is_the_advice_on_pages(factors: Sequence[float], outcome: str, shares: str):
    times = {
        configuration(compiler, label): time
        for compiler, factor in zip(COMPILERS, factors, strict=False)
        for label, time in ((("none", "hardware", "regular"), 1.0), (PAGES, factor))
    }
    result = compared(times)
    first, *others = advice.answers([result])
    values = () if outcome == "same" else ("thp",)
    assert (first.factor, first.outcome, first.values) == ("hugepages", outcome, values)
    assert advice.headline([result], [first, *others]) == first.text and shares in first.text


def test_too_few_rounds_give_no_advice():
    actual = analyse([subject_of(kernel(), BASE, THP)], rounds({BASE: [1.0], THP: [0.5]}, [1.0]), seed=1)
    assert [one.outcome for one in advice.answers(actual)] == [None] and advice.answers([]) == []


def of_stores(second: int) -> AnswerRow:
    """Kernels with noise of 2.4 %, none of which differs alone; those of every second one may be inverted.

    The mean differs unless they are.
    """
    actual = []
    for name, power in zip("abcd", (1, second, 1, second), strict=True):
        times = {BASE: 1.0, configuration(label=STORES): 0.985**power}
        actual.append(compared(times, kernel(name=name, title=name), noise=12 * power))
    (answer,) = [answer for answer in advice.answers(actual) if answer.factor == "stores"]
    return answer


def test_no_answer_contradicts_the_interval_of_its_mean():
    no, unclear = of_stores(-1), of_stores(1)
    assert (no.outcome, unclear.outcome) == ("same", "unclear") and no.lead != unclear.lead


@pytest.mark.parametrize("label", [STORES, PAGES])
@pytest.mark.parametrize("factor", [0.95, 1.15])
def test_a_single_interval_that_excludes_1_is_not_answered_with_no(
    label: tuple[str, str, str], factor: float
):
    """The scatter is small, but the baseline differs from itself by more."""
    actual = [compared({BASE: 1.0, configuration(label=label): factor}, floor=0.2)]
    (row,) = [row for row in actual[0].ranked if not row.cell.is_baseline]
    assert row.verdict == "inconclusive" and row.time_ratio.excludes_equality
    (answer,) = advice.answers(actual)
    assert (answer.outcome, answer.cost) == ("unclear", "") and answer.lead != of_stores(-1).lead
    assert f"{row.time_ratio.low:.3f}" in advice.headline(actual, [answer])


def choice(draw: random.Random, value: str, results: Sequence[KernelResult]) -> Choice:
    effects = []
    for result in results:
        ratio, width = draw.lognormvariate(0, 0.03), draw.uniform(0.001, 0.05)
        interval = Ratio(7, ratio, ratio * (1 - width), ratio * (1 + width))
        is_decided = interval.excludes_equality and draw.random() < 0.7
        verdict = {"direction": "lower" if ratio < 1 else "higher"} if is_decided else {"reason": "floor"}
        of = {"kind": "baseline", "quantity": TIME, "benchmark": result.benchmark}
        effects.append(Comparison(**of, cell=result.ranked[0].cell, ratio=interval, **verdict))
    return Choice("stores", value, tuple(effects), 0)


def test_no_advice_contradicts_the_mean_of_a_choice():
    draw, results, outcomes = random.Random(5), [compared({BASE: 1.0, THP: 1.0})], set()
    for _ in range(500):
        several = results * draw.choice([1, 2, 6])
        known = [choice(draw, value, several) for value in ("nontemporal", "zfill")]
        given = advise(known)
        outcomes.add(given.outcome)
        means = [each.mean for each in known if each.mean is not None]
        faster = any(mean.high < 1.0 for mean in means)
        slower = any(mean.low > 1.0 for mean in means)
        assert given.outcome not in ("same", "keep") or not faster
        assert given.outcome != "same" or not slower
        if given.outcome == "use":
            assert given.choices[0].mean.low <= 1.0
    assert outcomes == {"use", "keep", "choose", "same", "unclear"}


DEFAULTS = {"hugepages": "none", "prefetch": "hardware", "stores": "regular", "loop": "explicit"}


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Report:
    names = ("schoenauer_triad", "pointer_chase", "gather")
    selected = [replace(one, sweeps=()) for one in all_kernels() if one.name in names]
    return report_of(result_of(tmp_path_factory.mktemp("advice"), selected, pool=False))


def test_answers_and_best_configurations_have_builds_and_commands(several: Report):
    shown, text = json.render(several.data), markdown.render(several)
    assert faults("verdicts", shown) == []
    configurations = {row["module"]: row for one in shown["kernels"] for row in one["configurations"]}
    factors = set()
    for answer in shown["answers"]:
        advised = [configurations[build["module"]] for build in answer["apply"]]
        assert bool(advised) == (answer["outcome"] in ("use", "keep", "choose"))
        if answer["factor"] in DEFAULTS and answer["outcome"] in ("use", "keep"):
            # The advised value, and all else as the baseline has it.
            value = answer["values"][0] if answer["outcome"] == "use" else DEFAULTS[answer["factor"]]
            expected = {**DEFAULTS, answer["factor"]: value}
            assert all({name: row[name] for name in expected} == expected for row in advised)
            wanted = [answer["compiler"]] if answer["compiler"] else list(COMPILERS)
            assert [row["compiler"] for row in advised] == wanted
            factors.add(answer["factor"])
        for build in answer["apply"]:
            assert " ".join(build["command"]) in text and f"spack install {build['spec']}" in text
    assert factors >= {"hugepages", "prefetch", "loop"}
    policy, *others = (answer["policy"] for answer in shown["answers"])
    assert policy["command"] == ["pagewise", "exec", "thp", "--", "PROGRAM"]
    assert policy["module"] == "pagewise-pages/thp" and {*others} == {None}
    for one in shown["kernels"]:
        rows = {row["module"]: row for row in one["configurations"]}
        assert [best["compiler"] for best in one["best"]] == list(COMPILERS)
        for best in one["best"]:
            faster = [row for row in rows.values() if row["verdict"] == "faster"]
            ratios = [row["time_ratio"] for row in faster if row["compiler"] == best["compiler"]]
            actual = rows[best["apply"]["module"]]
            assert best["is_baseline"] == (not ratios)
            assert actual["is_baseline"] if best["is_baseline"] else actual["time_ratio"] == min(ratios)


def test_choose_names_the_kernels_of_each_build():
    """Faster for one kernel, slower for another: each gets what is better for it."""
    factors = {"gains": 0.8, "loses": 1.3}
    actual = [compared({BASE: 1.0, THP: x}, kernel(name=name, title=name)) for name, x in factors.items()]
    (answer,) = advice.answers(actual)
    builds = {build.kernels: build.module for build in answer.apply}
    assert answer.outcome == "choose" and builds == {("gains",): THP.module, ("loses",): BASE.module}


@pytest.mark.parametrize(
    ("changes", "variants", "rest"),
    [
        ({}, "hugepages=none", "%c,fortran=gcc@12.2.0"),
        (
            {"compiler": "arm-compiler-24.10", "label": STORES, "simd": "512", "sector": "isolate"}
            | {"openmp": "off", "papi": "on"},
            "hugepages=none stores=nontemporal simd=512 sector=isolate ~openmp +papi",
            "%c,fortran=arm-compiler@24.10",
        ),
        (
            {"label": ("thp", "compiler", "regular"), "library": "sleef", "loop": "compiler"},
            "hugepages=thp prefetch=compiler loop=compiler mathlib=sleef",
            "%c,fortran=gcc@12.2.0",
        ),
        ({"library": "openblas"}, "hugepages=none needs=blas", "%c,fortran=gcc@12.2.0 ^openblas"),
        ({"library": "amdfftw"}, "hugepages=none needs=fftw", "%c,fortran=gcc@12.2.0 ^amdfftw"),
        ({"library": "intel-oneapi-mkl"}, None, None),
        ({"builder": "presets"}, None, None),
        ({"flags": "tuned"}, None, None),
        ({"target": "native"}, None, None),
    ],
)
def test_a_spec_names_the_differences_from_the_defaults(
    changes: dict, variants: str | None, rest: str | None
):
    spec = None if variants is None else f"pagewise-micro@0.1.0 {variants} {rest}"
    assert spec_of(configuration(**changes)) == spec


def test_a_program_is_advised_a_joined_policy():
    none, joined = (
        configuration("unchanged binary", (policy, "hardware", "regular"), module=f"code/{policy}")
        for policy in ("none", "reuse+malloc")
    )
    code = table_results.program("code", "code", ("rate", "1/s", "higher"))
    one = compared({none: 1.0, joined: 0.5}, code)
    (answer,) = advice.answers([one], programs={"code": {"command": ["a"]}})
    assert answer.policy.command == ("pagewise", "exec", "reuse+malloc", "--", "a")
    assert answer.policy.module == "pagewise-pages/reuse+malloc"


def test_a_sentence_keeps_the_name_of_a_version_at_its_begin():
    assert capital("llvm-22.1.8: 2 % less time") == "llvm-22.1.8: 2 % less time"
    assert capital("software prefetch: 14 % less time") == "Software prefetch: 14 % less time"
