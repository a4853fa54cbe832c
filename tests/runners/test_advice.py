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
from pagewise.core.configuration import Configuration
from pagewise.report.render import json, markdown
from pagewise.report.verdicts import AnswerRow
from pagewise.report.views import advice, report_of
from pagewise.report.views.applying import spec_of

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
    actual = [
        compared(
            {BASE: 1.0, configuration(label=STORES): 0.985**power},
            kernel(name=f"k{place}", title=f"k{place}"),
            noise=12 * power,
        )
        for place, power in enumerate((1, second, 1, second))
    ]
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
        cell = result.ranked[0].cell
        row = Comparison(
            kind="baseline", quantity=TIME, benchmark=result.benchmark, cell=cell, ratio=interval, **verdict
        )
        effects.append(row)
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
        if given.outcome == "same":
            assert not faster and not slower
        if given.outcome == "keep":
            assert not faster
        if given.outcome == "use":
            assert given.choices[0].mean.low <= 1.0
    assert outcomes == {"use", "keep", "choose", "same", "unclear"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict:
    names = ("schoenauer_triad", "pointer_chase", "gather")
    selected = [replace(one, sweeps=()) for one in all_kernels() if one.name in names]
    report = report_of(result_of(tmp_path_factory.mktemp("advice"), selected, pool=False))
    shown = json.render(report.data)
    assert isinstance(shown, dict) and faults("verdicts", shown) == []
    # All formats show the commands of the data.
    text = markdown.render(report)
    for answer in shown["answers"]:
        for build in answer["apply"]:
            assert " ".join(build["command"]) in text and f"spack install {build['spec']}" in text
    return shown


DEFAULTS = {"hugepages": "none", "prefetch": "hardware", "stores": "regular", "loop": "explicit"}


def test_the_builds_of_an_answer_have_the_advised_value_and_all_else_as_the_baseline(data: dict):
    configurations = {row["module"]: row for one in data["kernels"] for row in one["configurations"]}
    factors = set()
    for answer in data["answers"]:
        advised = [configurations[build["module"]] for build in answer["apply"]]
        assert bool(advised) == (answer["outcome"] in ("use", "keep", "choose"))
        if answer["factor"] in DEFAULTS and answer["outcome"] in ("use", "keep"):
            value = answer["values"][0] if answer["outcome"] == "use" else DEFAULTS[answer["factor"]]
            expected = {**DEFAULTS, answer["factor"]: value}
            assert all({name: row[name] for name in expected} == expected for row in advised)
            wanted = [answer["compiler"]] if answer["compiler"] else list(COMPILERS)
            assert [row["compiler"] for row in advised] == wanted
            factors.add(answer["factor"])
    assert factors >= {"hugepages", "prefetch", "loop"}


def test_the_advised_pages_have_a_command_for_programs(data: dict):
    first, *others = data["answers"]
    assert first["policy"]["command"] == ["pagewise", "exec", "thp", "--", "PROGRAM"]
    assert first["policy"]["module"] == "pagewise-pages/thp"
    assert [answer["policy"] for answer in others] == [None] * len(others)


def test_each_best_configuration_can_be_loaded_and_installed(data: dict):
    for one in data["kernels"]:
        rows = {row["module"]: row for row in one["configurations"]}
        assert [best["compiler"] for best in one["best"]] == list(COMPILERS)
        for best in one["best"]:
            ratios = [
                row["time_ratio"]
                for row in one["configurations"]
                if row["verdict"] == "faster" and row["compiler"] == best["compiler"]
            ]
            actual = rows[best["apply"]["module"]]
            assert best["is_baseline"] == (not ratios)
            assert actual["is_baseline"] if best["is_baseline"] else actual["time_ratio"] == min(ratios)


def test_choose_names_the_kernels_of_each_build():
    """Faster for one kernel, slower for another: each gets what is better for it."""
    actual = [
        compared({BASE: 1.0, THP: factor}, kernel(name=name, title=name))
        for name, factor in (("gains", 0.8), ("loses", 1.3))
    ]
    (answer,) = advice.answers(actual)
    assert answer.outcome == "choose"
    assert {build.kernels: build.module for build in answer.apply} == {
        ("gains",): THP.module,
        ("loses",): BASE.module,
    }


@pytest.mark.parametrize(
    ("one", "spec"),
    [
        (BASE, "pagewise-micro@0.1.0 hugepages=none %c,fortran=gcc@12.2.0"),
        (
            configuration(
                "arm-compiler-24.10", STORES, simd="512", sector="isolate", openmp="off", papi="on"
            ),
            "pagewise-micro@0.1.0 hugepages=none stores=nontemporal simd=512 sector=isolate ~openmp +papi "
            "%c,fortran=arm-compiler@24.10",
        ),
        (
            configuration(label=("thp", "compiler", "regular"), library="sleef", loop="compiler"),
            "pagewise-micro@0.1.0 hugepages=thp prefetch=compiler loop=compiler mathlib=sleef "
            "%c,fortran=gcc@12.2.0",
        ),
        (
            configuration(library="openblas"),
            "pagewise-micro@0.1.0 hugepages=none needs=blas %c,fortran=gcc@12.2.0 ^openblas",
        ),
        (
            configuration(library="amdfftw"),
            "pagewise-micro@0.1.0 hugepages=none needs=fftw %c,fortran=gcc@12.2.0 ^amdfftw",
        ),
        (configuration(library="intel-oneapi-mkl"), None),
        (configuration(builder="presets"), None),
        (configuration(flags="tuned"), None),
        (configuration(target="native"), None),
    ],
)
def test_a_spec_names_the_differences_from_the_defaults(one: Configuration, spec: str | None):
    assert spec_of(one) == spec


def test_a_program_is_advised_a_joined_policy():
    times = {
        configuration("unchanged binary", (policy, "hardware", "regular"), module=f"code/{policy}"): time
        for policy, time in (("none", 1.0), ("reuse+malloc", 0.5))
    }
    code = table_results.program("code", "code", ("rate", "1/s", "higher"))
    (answer,) = advice.answers([compared(times, code)], programs={"code": {"command": ["a"]}})
    assert answer.policy is not None
    assert answer.policy.command == ("pagewise", "exec", "reuse+malloc", "--", "a")
    assert answer.policy.module == "pagewise-pages/reuse+malloc"
