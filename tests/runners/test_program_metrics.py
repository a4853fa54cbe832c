"""Verdicts on the metrics of the user's program: noise floor, correction, nothing of what is excluded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builders import BASE, THP, a_manifest, kernel, record, subject_of, varied
from pagewise.analysis.analysis import analyse_result
from pagewise.core.configuration import Configuration
from pagewise.core.record import Record
from pagewise.core.result import Result

ROUNDS = 7
METRICS = [
    {"field": name, "label": name, "unit": "u", "better": better}
    for name, better in (("rate", "higher"), ("latency", "lower"), ("same", "lower"))
]


def runs(one: Configuration, series: str = "compare", skew: int = 0, **factors: float) -> list[Record]:
    """Runs whose metrics scatter by 1 %; the baseline's twin (A/A) scatters in another order."""
    records = []
    for number in range(1, ROUNDS + 1):
        scatter = 1.0 + 0.01 * (((number + skew) * 3) % ROUNDS) / ROUNDS
        made = record(one, 1.0, number=number, series=series)
        metrics = {metric["field"]: factors.get(metric["field"], 1.0) * scatter for metric in METRICS}
        records.append(replace(made, metrics=metrics, traffic=None))
    return records


def rows(*records: Record) -> dict[tuple[str, str], Any]:
    subjects = [subject_of(replace(kernel(metrics=METRICS, sweeps=[]), unit="run"), BASE, THP)]
    analysed = analyse_result(Result(Path(), a_manifest(seed=1), subjects, list(records), []))
    return {(row.quantity.name, row.configuration.hugepages): row for row in analysed[0].of("metric")}


def test_changes_are_by_the_metrics_own_direction():
    actual = rows(*runs(BASE), *runs(BASE, "aa", 2), *runs(THP, skew=4, rate=1.3, latency=1.2))
    changes = {field: actual[field, "thp"].verdict for field in ("rate", "latency", "same")}
    assert changes == {"rate": "better", "latency": "worse", "same": "inconclusive"}
    assert actual["rate", "none"].verdict is None
    assert actual["rate", "thp"].ratio.median == pytest.approx(1.3, rel=0.01)
    # Corrected for three: never below what they are alone.
    compared = [actual[field, "thp"] for field in changes]
    assert all(row.p >= row.ratio.p for row in compared) and any(row.p > row.ratio.p for row in compared)


def test_a_difference_within_the_noise_of_the_baseline_is_inconclusive():
    actual = rows(*runs(BASE), *runs(BASE, "aa", rate=1.4), *runs(THP, skew=4, rate=1.3))
    assert (actual["rate", "thp"].verdict, actual["rate", "thp"].reason) == ("inconclusive", "floor")
    without = rows(*runs(BASE), *runs(THP, rate=1.3))
    assert (without["rate", "thp"].floor, without["rate", "thp"].verdict) == (None, "inconclusive")


def test_excluded_runs_have_no_metrics():
    wrong = runs(THP, rate=1.3)
    wrong[3] = varied(wrong[3], "validation", passed=False)
    actual = rows(*runs(BASE), *runs(BASE, "aa", 2), *wrong)
    assert {policy for _, policy in actual} == {"none"}


def valued(one: Configuration, series: str = "compare", *values: float) -> list[Record]:
    """Runs with these rates, one per round; the other metrics are 1."""
    made = zip(runs(one, series), values, strict=True)
    return [replace(each, metrics={**each.metrics, "rate": value}) for each, value in made]


def test_values_that_are_not_above_zero_count_and_are_compared_by_differences():
    actual = rows(
        *valued(BASE, "compare", -30, -31, -30, -29, 10, 0, -30),
        *valued(BASE, "aa", -31, -30, -30, -30, 11, 0, -29),
        *valued(THP, "compare", 20, 19, 20, 21, 60, 50, 20),
    )
    base, thp = actual["rate", "none"], actual["rate", "thp"]
    assert (base.value, thp.value) == (-30, 20)
    assert thp.ratio.is_difference and thp.ratio.low <= thp.ratio.median == 50 <= thp.ratio.high
    assert thp.verdict == "better" and thp.floor < 2
    assert not actual["latency", "thp"].ratio.is_difference


def test_zeros_are_not_a_change():
    planned = ((BASE, "compare"), (BASE, "aa"), (THP, "compare"))
    records = [record for run in planned for record in valued(*run, *[0.0] * ROUNDS)]
    thp = rows(*records)["rate", "thp"]
    assert (thp.value, thp.ratio.median, thp.verdict) == (0.0, 0.0, "inconclusive")
