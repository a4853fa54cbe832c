"""Dimensions in which configurations differ: labels, baselines, and what reports say of each."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields

import pytest

from builders import compared, configuration, kernel
from pagewise.analysis.choices import bests, choices
from pagewise.analysis.comparison import TIME
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import KernelResult
from pagewise.analysis.statistics import geometric_mean
from pagewise.core.configuration import Configuration
from pagewise.core.plan import baselines, subject
from pagewise.core.structure import from_data, to_data
from pagewise.report.verdicts import AnswerRow
from pagewise.report.views import advice, data
from pagewise.report.views.kernels import matrix
from stage import COMPILERS

ANCESTORS = {
    "native": "x86_64_v4 x86_64_v3 x86_64_v2 x86_64",
    "x86_64_v4": "x86_64_v3 x86_64_v2 x86_64",
    "x86_64_v3": "x86_64_v2 x86_64",
    "x86_64_v2": "x86_64",
}
#: What names of modules contain before a value, in this order; values that they do not contain.
IN_NAMES = dict.fromkeys(("loop", "library", "runtime", "simd", "sector", "flags", "target"), "")
IN_NAMES |= {name: f"{name}-" for name in ("loop", "simd", "sector")}
PLAIN = ("", "explicit")


def variant(compiler: str = COMPILERS[0], pages: str = "none", **given: str) -> Configuration:
    """A configuration as its module sets it."""
    named = [f"{IN_NAMES[name]}{given[name]}" for name in IN_NAMES if given.get(name, "") not in PLAIN]
    module = f"pagewise-micro/0.1.0/{compiler}/{pages}/{'-'.join(['hardware-regular', *named])}"
    ancestors = {"ancestors": ANCESTORS.get(given["target"], "")} if "target" in given else {}
    return configuration(compiler, (pages, "hardware", "regular"), module=module, **given, **ancestors)


def columns_of(result: KernelResult) -> list[str]:
    return [column.name for column in matrix([result]).columns[2:]]


def answer(result: KernelResult, factor: str) -> AnswerRow:
    return next(one for one in advice.answers([result]) if one.factor == factor)


def test_a_module_names_library_width_and_target():
    required = {field.name for field in fields(Configuration) if field.default is MISSING}
    given = {f"PAGEWISE_{name.upper()}": "x" for name in required - {"module", "digest"}}
    given |= {"PAGEWISE_HUGEPAGES": "thp", "PAGEWISE_PREFETCH": "hardware", "PAGEWISE_STORES": "regular"}
    given |= {"PAGEWISE_BUILDER": "spack", "PAGEWISE_OPENMP": "on", "PAGEWISE_PAPI": "off"}
    more = {"PAGEWISE_TARGET": "x86_64_v3", "PAGEWISE_SIMD": "128", "PAGEWISE_LIBRARY": "sleef"}
    more |= {"PAGEWISE_RUNTIME": "libomp", "PAGEWISE_LOOP": "compiler", "PAGEWISE_FLAGS": "pearc23"}
    tail = "hardware-regular-loop-compiler-sleef-libomp-simd-128-pearc23-x86_64_v3"
    name = f"pagewise-micro/0.1.0/gcc-12.2.0/thp/{tail}"
    read = Configuration.from_environment(name, given | more | {"PAGEWISE_TARGET_ANCESTORS": "x86_64"}, "d")
    assert name.endswith(f"/{read.label}") and read.plain == "thp/hardware-regular"
    assert from_data(Configuration, to_data(read)) == read
    plain = Configuration.from_environment("p/1/gcc/thp/hardware-regular", given, "d")
    assert plain.label == "thp/hardware-regular" and to_data(plain)["loop"] == "explicit"
    assert not {"simd", "flags", "ancestors", "library", "runtime"} & set(to_data(plain))
    assert data.label(kernel(), read) == "thp simd=128 pearc23 x86_64_v3"
    assert data.label(kernel(), plain) == "thp"


def test_sectors_are_a_dimension_of_kernels_that_are_sensitive_to_them():
    apart = variant(loop="compiler", sector="isolate")
    whole = variant(loop="compiler")
    assert apart.label == "none/hardware-regular-loop-compiler-sector-isolate"
    assert "sector" not in to_data(whole) and from_data(Configuration, to_data(apart)) == apart
    sensitive = kernel(sensitive_to=["compiler", "sector"])
    cells = subject(sensitive, [apart, whole], "none/hardware-regular").cells
    assert [(cell.measured.sector, cell.is_baseline) for cell in cells] == [("", True), ("isolate", False)]
    assert len(subject(kernel(sensitive_to=["compiler"]), [apart, whole], "none/*").cells) == 1
    result = compared({whole: 1.0, apart: 0.8}, sensitive)
    assert answer(result, "sector").outcome == "use"


def test_each_compiler_has_one_baseline_the_most_specific_target():
    names = ("x86_64_v2", "native", "x86_64_v4")
    both = [(compiler, pages) for compiler in COMPILERS for pages in ("thp", "none")]
    actual = [variant(compiler, pages, target=name) for compiler, pages in both for name in names]
    # A compiler that supports less of the processor has a separate baseline.
    actual = [one for one in actual if (one.compiler, one.target) != (COMPILERS[1], "native")]
    pattern = "none/hardware-regular"
    selected = [(one.compiler, one.hugepages, one.target) for one in baselines(actual, pattern)]
    assert selected == [(COMPILERS[0], "none", "native"), (COMPILERS[1], "none", "x86_64_v4")]
    (other,) = baselines(actual[:6], "none/hardware-regular-x86_64_v2")
    assert other.target == "x86_64_v2"
    loops = [variant(loop=name) for name in ("compiler", "explicit")]
    assert [one.loop for one in baselines(loops, pattern)] == ["explicit"]
    assert [one.loop for one in baselines(loops[:1], pattern)] == ["compiler"]
    widths = [variant(simd=width) for width in ("512", "", "scalar")]
    assert [one.simd for one in baselines(widths, pattern)] == [""]


@pytest.mark.parametrize(
    ("times", "outcome", "values"),
    [
        ({"x86_64_v4": 1.0, "x86_64_v3": 1.1, "x86_64_v2": 1.5}, "keep", ("x86_64_v3", "x86_64_v2")),
        ({"x86_64_v2": 1.0}, "same", ()),
        ({"x86_64_v3": 1.2, "x86_64_v2": 0.8}, "use", ("x86_64_v2",)),
    ],
)
def test_whether_a_tuned_build_pays(times: dict[str, float], outcome: str, values: tuple[str, ...]):
    of_all = {"native": 1.0, **times}
    actual = compared(
        {variant(compiler, target=name): time for compiler in COMPILERS for name, time in of_all.items()}
    )
    reported = answer(actual, "target")
    assert (reported.outcome, reported.values) == (outcome, values)
    assert (reported.lead == "Yes. ") == (outcome == "keep") and reported.lead
    means = {one.value: one.mean.median for one in choices([actual]) if one.factor == "target"}
    assert means == pytest.approx(times, rel=0.01)


@pytest.mark.parametrize(
    ("factor", "value", "label"),
    [
        ("runtime", "libomp", "none libomp"),
        ("loop", "compiler", "none loop=compiler"),
        ("library", "openblas", "none openblas"),
        ("simd", "512", "none simd=512"),
        ("simd", "scalar", "none simd=scalar"),
        ("flags", "pearc23", "none pearc23"),
    ],
)
def test_other_dimensions_are_reported_in_the_same_way(factor: str, value: str, label: str):
    sensitive = kernel(sensitive_to=["compiler", "hugepages", "loop", "library", "runtime"])
    actual = compared({variant(): 1.0, variant(**{factor: value}): 0.5}, sensitive)
    reported = answer(actual, factor)
    assert (reported.outcome, reported.values) == ("use", (value,))
    (best,) = bests([actual])
    assert data.label_of(best) == label
    assert columns_of(actual) == ["none", label]
    assert [one.name for one in data.shown_dimensions(actual)][-1] == factor
    assert [one.factor for one in choices([actual])] == [factor]


def test_pages_are_reported_for_the_baselines_target_alone():
    targets = ("native", "x86_64_v2")
    times = {"none": 1.0, "thp": 0.8}
    actual = compared(
        {variant(pages=name, target=target): time for name, time in times.items() for target in targets}
    )
    assert [one.configuration.hugepages for one in actual.of("pages") if one.quantity is TIME] == ["thp"]
    first, second = advice.answers([actual])
    assert (first.outcome, first.values, second.factor) == ("use", ("thp",), "target")
    assert columns_of(actual) == ["none native", "none x86_64_v2", "thp native", "thp x86_64_v2"]


def test_the_geometric_mean_has_the_interval_of_independent_ones():
    actual = geometric_mean([Ratio(7, 2.0, 1.9, 2.1), Ratio(9, 0.5, 0.45, 0.55)])
    assert (actual.pairs, actual.median) == (7, pytest.approx(1.0))
    half = math.hypot(math.log(2.1 / 1.9) / 2, math.log(0.55 / 0.45) / 2) / 2
    assert (math.log(actual.high), math.log(actual.low)) == (pytest.approx(half), pytest.approx(-half))
    assert geometric_mean([]) is None
    assert geometric_mean([Ratio(2, 2.0, None, None)]) == Ratio(2, pytest.approx(2.0), None, None)
