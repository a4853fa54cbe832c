"""From records to rows and verdicts; what must never be ranked."""

from __future__ import annotations

import pytest

from builders import BASE, SOFTWARE, THP, configuration, kernel, record, rounds, row_of, subject_of, varied
from pagewise.analysis.analysis import analyse
from pagewise.analysis.validity import exclusion
from pagewise.core.page_policy import HUGEPAGES
from stage import DISTANCES, TRIAD

NOISE = [1.0, 1.01, 0.99, 1.005, 0.995, 1.0, 1.002]


def drifting(factor: float, skew: int = 0) -> list[float]:
    """Seven rounds that drift by half; the noise of a series is another's, shifted."""
    return [factor * (1 + number / 14) * NOISE[(number + skew) % 7] for number in range(1, 8)]


def group(*records, configurations=(BASE, THP)):
    return analyse([subject_of(kernel(), *configurations)], records, seed=1)[0].groups[0]


SWEPT = record(BASE, 1.0, series="sweep")
BASELINES = rounds({BASE: drifting(1.0)}, drifting(1.0, skew=3))


def test_a_faster_configuration_is_seen_through_drift():
    actual = row_of(group(*BASELINES, *rounds({THP: drifting(0.9, skew=1)})).rows, THP)
    ratio = actual.time_ratio
    assert (actual.verdict, ratio.pairs, ratio.median) == ("faster", 7, pytest.approx(0.9, abs=0.01))
    assert ratio.low < 0.9 < ratio.high


def test_time_matches_one_pass_of_the_median_repetition():
    two = record(BASE, [4.0, 100.0, 2.0], passes_per_repetition=2)
    assert row_of(group(two).rows, BASE).seconds == pytest.approx(2.0)


def test_a_run_on_wrong_pages_is_excluded_with_a_note():
    records = rounds({THP: drifting(0.9, skew=1)})
    records[3] = varied(records[3], "pages", huge_coverage=0.6)
    actual = row_of(group(*BASELINES, *records).rows, THP)
    assert actual.runs == actual.time_ratio.pairs == 6 and actual.note


def test_an_invalid_baseline_leaves_no_ratios():
    bad = [varied(one, "validation", passed=False) for one in BASELINES]
    actual = group(*bad, *rounds({THP: drifting(0.5)}))
    assert actual.baseline is None
    kept = row_of(actual.rows, THP)
    assert (kept.time_ratio, kept.verdict, kept.reason) == (None, "inconclusive", "no baseline")


@pytest.mark.parametrize("policy", HUGEPAGES)
def test_each_policy_has_its_least_and_most_coverage(policy):
    one = configuration(label=(policy, "hardware", "regular"))
    least, most = (0.0, 0.0) if policy in ("none", "fjmpg-none") else (0.99, 1.0)
    codes = {}
    for coverage in (0.0, 0.001, 0.9899, 0.99, 1.0):
        actual = exclusion(varied(record(one, 1.0), "pages", huge_coverage=coverage))
        codes[coverage] = None if actual is None else actual.code
    assert codes == {coverage: None if least <= coverage <= most else "wrong_pages" for coverage in codes}


def points_of(one, *points):
    """What a curve has on its axis, and how many points it excludes."""
    curve = analyse([subject_of(one, BASE)], points, seed=1)[0].curves[0]
    return [x for x, _ in curve.points], curve.excluded


def test_curves_hold_valid_points_in_order():
    points = [varied(SWEPT, "sizes", working_set_bytes=size) for size in (64, 8, 32)]
    points[2] = varied(points[2], "validation", passed=False)
    assert points_of(kernel(), *points) == ([8.0, 64.0], 1)


@pytest.mark.parametrize(
    ("option", "values", "order"),
    [
        ("stride", [8, 1, 4], [1.0, 4.0, 8.0]),
        ("type", ["fp64", "fp32", "fp16"], ["fp64", "fp32", "fp16"]),
        ("width", ["scalar", 256, 128], ["scalar", "256", "128"]),
        ("fused", [False, True], ["off", "on"]),
    ],
)
def test_curves_over_any_option(option, values, order):
    swept = kernel(sweeps=[{**TRIAD["sweeps"][0], "x": f"options.{option}"}])
    points = [record(BASE, 1.0, series="sweep", options=given) for given in ({option: x} for x in values)]
    without_x = record(BASE, 1.0, series="sweep", options={})
    assert points_of(swept, *points, without_x) == (order, 1)


def test_a_curve_over_a_metric_keeps_the_order_of_measurement():
    field = TRIAD["metrics"][0]["field"]
    swept = kernel(sweeps=[{**TRIAD["sweeps"][0], "x": f"metrics.{field}"}])
    points = [varied(SWEPT, "metrics", **{field: x}) for x in (3.0, 5.0, 4.0)]
    assert points_of(swept, *points) == ([3.0, 5.0, 4.0], 0)


def test_each_sweep_has_curves_of_its_own():
    """A record without the number of its sweep belongs to the first sweep."""
    swept = kernel(sweeps=[*TRIAD["sweeps"], DISTANCES])
    points = [record(SOFTWARE, 1.0, series="sweep", options={"prefetch_distance": n}) for n in (16, 4)]
    points = [varied(one, "run", sweep="prefetch-distance") for one in points]
    sizes = [SWEPT, varied(record(SOFTWARE, 1.0, series="sweep"), "run", sweep="working-set")]
    (result,) = analyse([subject_of(swept, BASE, SOFTWARE)], [*points, *sizes], seed=1)
    cells = {sweep.name: [one.cell.measured.prefetch for one in actual] for sweep, actual in result.by_sweep}
    assert cells == {"working-set": ["hardware", "software"], "prefetch-distance": ["software"]}
    assert [x for x, _ in result.by_sweep[1][1][0].points] == [4.0, 16.0]
