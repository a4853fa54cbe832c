"""Comparing results of two sessions: what is a change, what is none, and what CI reports."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from scipy.stats import ttest_ind

from builders import a_manifest, configuration, failed_record, kernel, record, subject_of, varied
from json_schema import faults
from pagewise.analysis.comparison import Reason
from pagewise.analysis.sessions import between, changes, session
from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.record import Record
from pagewise.core.structure import to_data
from pagewise.report.views.diff import notes_of
from pagewise.store.diff import compare
from querying import pagewise
from recorded import series
from stage import write_result

NONE, THP = configuration(), configuration(label=("thp", "hardware", "regular"))
SOFTWARE = configuration(label=("none", "software", "regular"))
SUBJECT = subject_of(kernel(), NONE, THP, SOFTWARE)


def records(thp: float, base: float = 1.0, rounds: int = 9, seed: int = 1, spread: float = 0.005) -> list:
    """Rounds of three configurations; thp takes `thp` of the baseline's time."""
    chance = random.Random(seed)
    actual = []
    for number in range(1, rounds + 1):
        mood = chance.lognormvariate(0.0, 0.05)
        for one, factor in ((NONE, 1.0), (NONE, 1.0), (THP, thp), (SOFTWARE, 0.9)):
            name = "aa" if one is NONE and actual and actual[-1].run.module == NONE.module else "compare"
            seconds = base * mood * factor * chance.lognormvariate(0.0, spread)
            actual.append(record(one, seconds, number=number, series=name))
    return actual


def changes_of(old: list, new: list, threshold: float = 0.03) -> tuple[Any, ...]:
    """The changes of the baseline, of software prefetch, and of thp."""
    before, after = (session([SUBJECT], one, 1) for one in (old, new))
    actual = {one.cell.measured: one for one in changes([before], after, "ratio", threshold)}
    return actual[NONE], actual[SOFTWARE], actual[THP]


def test_a_change_of_the_ratio_is_detected_in_all_sessions():
    base, software, thp = changes_of(records(0.8), records(0.88, base=2.0, seed=2))
    assert (base.status, software.status, thp.status) == ("baseline", "unchanged", "regression")
    assert thp.ratio.median == pytest.approx(1.1, rel=0.01) and thp.time_ratio == pytest.approx(2.2, rel=0.1)
    assert changes_of(records(0.88), records(0.8, seed=2))[-1].status == "improvement"


def test_a_change_below_the_threshold_is_none():
    assert changes_of(records(0.8), records(0.88, seed=2), threshold=0.15)[-1].status == "unchanged"
    noisy = changes_of(records(0.8, spread=0.1), records(0.82, seed=2, spread=0.1))[-1]
    few = changes_of(records(0.8, rounds=2), records(0.9, rounds=2))[-1]
    assert noisy.status == few.status == "inconclusive" and few.reason == get_args(Reason)[0]


def test_the_estimate_matches_welch_where_nothing_is_trimmed():
    chance = np.random.default_rng(1)
    old, new = chance.normal(0.0, 0.02, (1, 4)), chance.normal(0.05, 0.04, (1, 3))
    actual, known = between([old], new), ttest_ind(new[0], old[0], equal_var=False)
    low, high = known.confidence_interval(0.95)
    assert actual.p == pytest.approx(known.pvalue)
    assert (math.log(actual.low), math.log(actual.high)) == pytest.approx((low, high))
    assert math.log(actual.trimmed) == pytest.approx(new.mean() - old.mean())


def test_with_three_earlier_results_their_spread_counts():
    chance = np.random.default_rng(1)
    olds = [chance.normal(mood, 0.001, (1, 9)) for mood in (-0.1, 0.0, 0.1, 0.05)]
    new = chance.normal(0.12, 0.001, (1, 9))
    assert between(olds[:2], new).excludes_equality and not between(olds, new).excludes_equality
    assert between(olds, new + 1.0).excludes_equality
    moods = np.array([np.sort(one[0])[1:-1].mean() for one in olds])
    wide = math.log(between(olds, new).high / between(olds, new).low) / 2
    # Student's t for 3 degrees of freedom.
    assert wide == pytest.approx(3.1824 * moods.std(ddof=1) * math.sqrt(1.25), rel=1e-3)


@pytest.mark.long
def test_false_changes_on_recorded_noise_match_the_guide():
    chance = np.random.default_rng(3)
    ways: dict[tuple[str, ...], list[np.ndarray]] = {}
    for name, logs in series().items():
        file, _, *label, _ = name.split("/")
        ways.setdefault((file, *label), []).append(logs)
    subject = subject_of(kernel(), NONE, THP)
    reported: dict[tuple[str, int], list[bool]] = {("ratio", 1): [], ("time", 1): [], ("time", 5): []}
    for logs in ways.values():
        for _ in range(6):
            dealt = [deal(chance, logs[chance.integers(len(logs))]) for _ in range(6)]
            sessions = [session([subject], one, 1) for one in dealt]
            for (quantity, olds), each in reported.items():
                actual = changes(sessions[:olds], sessions[5], quantity, 0.0)
                (thp,) = (one.status for one in actual if one.cell.measured is THP)
                each.append(thp in ("regression", "improvement"))
    ratio, time, time_of_five = map(np.mean, reported.values())
    assert ratio <= 0.03 and time_of_five <= 0.05 < time


def deal(chance: np.random.Generator, logs: np.ndarray, rounds: int = 7) -> list[Record]:
    """A session of two equal configurations, the baseline twice, from a stretch of recorded runs."""
    start = chance.integers(len(logs) - 3 * rounds + 1)
    runs = chance.permuted(np.exp(logs[start : start + 3 * rounds]).reshape(rounds, 3), axis=1)
    return [
        record(one, float(seconds), number=number, series=name)
        for number, row in enumerate(runs, start=1)
        for seconds, (one, name) in zip(row, ((NONE, "compare"), (NONE, "aa"), (THP, "compare")), strict=True)
    ]


@pytest.fixture
def made(tmp_path: Path) -> Callable[..., Path]:
    """Makes a result's folder from records."""
    plain = a_manifest(configurations=(NONE, THP, SOFTWARE), subjects=(SUBJECT.planned_subject(),))

    def make(name: str, actual: list, change: Callable[[dict], None] = lambda manifest: None) -> Path:
        manifest = to_data(plain)
        change(manifest)
        return write_result(tmp_path / name, manifest, map(to_data, actual))

    return make


def diff(*arguments: object) -> tuple[int, str]:
    done = pagewise("results", "diff", *arguments)
    return done.return_value, done.stdout


@pytest.mark.long
def test_exit_codes(made: Callable[..., Path]):
    old = made("old", records(0.8))
    assert diff(old, made("same", records(0.8, seed=2)))[0] == 0
    slower = made("slower", records(0.88, seed=2))
    code, text = diff(old, slower, "--json")
    actual = json.loads(text)
    assert code == actual["exit_code"] == 1 and faults("diff", actual) == []
    thp = next(one for one in actual["changes"] if one["hugepages"] == "thp")
    assert thp["status"] == "regression" and thp["change_low"] < thp["change"] < thp["change_high"]
    for quantity, notes in (("ratio", 1), ("time", 2)):
        assert len(list(notes_of(compare((old, slower), quantity, 0.03, False, 1)))) == notes
    assert diff(old, made("faster", records(0.7, seed=2)))[0] == 0
    crashed = [one for one in records(0.8, seed=2) if one.run.module != THP.module]
    for name, status, failure in (
        ("crashed", "invalid", ("failed", "crashed by SIGSEGV")),
        ("none", "missing", ("pages_unavailable", "64 pages are missing")),
    ):
        code, text = diff(old, made(name, [*crashed, failed_record(THP, *failure)]), "--json")
        (one,) = (one for one in json.loads(text)["changes"] if one["status"] == status)
        assert code == 5 and one["module"] == THP.module and failure[1] in one["reason"]
    wide = made("wide", records(0.82, seed=2, spread=0.1))
    assert diff(old, wide)[0] == 0 and diff(old, wide, "--strict")[0] == 7


def test_another_machine_is_not_a_regression(made: Callable[..., Path]):
    def moved(manifest: dict) -> None:
        manifest["host"] |= {"kernel": "7.0", "hostname": "elsewhere"}

    def another(manifest: dict) -> None:
        moved(manifest)
        manifest["host"]["cpu"] = "Another CPU"
        manifest["configurations"][1]["hash"] = "fff"

    old, new = made("old", records(0.8)), made("new", records(0.95, seed=2), another)
    code, text = diff(old, new, "--json")
    actual = json.loads(text)
    *others, build = [(one["part"], one["new"]) for one in actual["differences"]]
    assert others == [("machine", "Another CPU"), ("node", "elsewhere"), ("system", "7.0")]
    assert build[0] == "build" and not actual["comparable"] and code == 6
    assert {one["status"] for one in actual["changes"]} <= {"other", "baseline"}
    assert diff(old, new, "--across-machines")[0] == 1
    code, text = diff(old, made("moved", records(0.95, seed=2), moved), "--json")
    assert code == 1 and [one["new"] for one in json.loads(text)["differences"]] == ["elsewhere", "7.0"]


def test_another_version_of_a_compiler_is_the_same_configuration(made: Callable[..., Path]):
    newer = {
        one.module: configuration("gcc-13.1.0", (one.hugepages, "hardware", "regular")) for one in (NONE, THP)
    }

    def change(manifest: dict) -> None:
        manifest["configurations"] = to_data(list(newer.values()))
        manifest["subjects"] = [to_data(subject_of(kernel(), *newer.values()).planned_subject())]

    actual = []
    for one in records(0.9, seed=2):
        if (to := newer.get(one.run.module)) is not None:
            reported = varied(one, "configuration", compiler=to.compiler)
            actual.append(varied(reported, "run", module=to.module))
    code, text = diff(made("old", records(0.8)), made("new", actual, change), "--json")
    data = json.loads(text)
    compilers = [(one["old"], one["new"]) for one in data["differences"] if one["part"] == "compiler"]
    assert code == 1 and ("gcc-12.2.0", "gcc-13.1.0") in compilers
    (gone,) = (one for one in data["changes"] if one["status"] == "missing")
    assert (gone["compiler"], gone["prefetch"]) == ("gcc-12.2.0", "software")


def test_incomparable_results_are_refused(made: Callable[..., Path], tmp_path: Path):
    old = made("old", records(0.8))
    about = {"geometry": {"name": "a64fx", "title": "A64FX"}, "tool": "QEMU 9", "functions": 5}
    change = {"kind": "simulation", "simulation": about}
    with pytest.raises(SelectionError):
        diff(old, made("simulated", records(0.8), lambda manifest: manifest.update(change)))
    with pytest.raises(FormatError) as caught:
        diff(old, tmp_path)
    assert caught.value.where == str(tmp_path)
