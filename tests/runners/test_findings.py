"""Outliers, drift, correction, and when a comparison has been measured well enough."""

from __future__ import annotations

import re

import numpy as np
import pytest

from builders import BASE, THP, configuration, kernel, rounds, row_of, subject_of
from pagewise.analysis.analysis import analyse, widths_of
from pagewise.analysis.comparison import correct_p
from pagewise.analysis.statistics import drift, largest, modified_z, outliers
from pagewise.core.plan import order_of_round
from pagewise.report.views import data, session
from pagewise.report.views.kernel import noise_table
from stage import TRIAD, Stage

STEADY = np.random.default_rng(4).lognormal(0.0, 0.004, size=(5, 14))


def compared(base, again, thp):
    """The result of a comparison from times by round: the baseline, again, and thp."""
    return analyse([subject_of(kernel(), BASE, THP)], rounds({BASE: base, THP: thp}, again), seed=1)[0]


def test_modified_z_matches_iglewicz_and_hoaglin():
    """By hand: the median is 2.45, and the middle distance from it 0.15."""
    values = [2.1, 2.6, 2.4, 2.5, 2.3, 2.1, 2.3, 2.6, 8.2, 8.3]
    expected = [0.6745 * (value - 2.45) / 0.15 for value in values]
    assert modified_z(values) == pytest.approx(expected)
    assert [number for number, _ in outliers(dict(enumerate(values)))] == [8, 9]
    # Where most are alike, that distance is 0.
    assert outliers(dict(enumerate([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 5.0]))) == ((7, 5.0),)
    assert outliers(dict.fromkeys(range(8), 1.0)) == () == outliers({1: 1.0, 2: 1.0, 3: 9.0})


def test_the_p_of_a_drift_is_exact():
    """Of 7! orders two are monotonous: the two-sided p is 2 / 5040."""
    actual = drift({number: 1.1**number for number in range(7)})
    assert actual is not None and actual.p == pytest.approx(2 / 5040)
    assert actual.change == pytest.approx(1.1**6 - 1)
    assert drift(dict.fromkeys(range(9), 2.0)) is None


def test_a_drift_is_detected_with_its_size():
    rng = np.random.default_rng(6)
    actual = drift({number: 1.01**number * rng.lognormal(0.0, 0.01) for number in range(3, 24)})
    assert actual is not None and actual.change == pytest.approx(1.01**20 - 1, rel=0.1)
    assert drift({number: 1.0 + 1e-5 * number for number in range(20)}) is None
    assert drift({number: 1.1**number for number in range(6)}) is None
    false = [drift(dict(enumerate(rng.lognormal(0.0, 0.05, 14)))) is not None for _ in range(500)]
    assert np.mean(false) <= 0.02


def test_correction_matches_benjamini_and_hochberg():
    """By hand: the smallest of p n / rank over this and all higher ranks."""
    ps = [0.010, 0.040, 0.030, 0.005, 0.600]
    assert correct_p(ps) == pytest.approx([0.025, 0.05, 0.05, 0.025, 0.6])
    assert correct_p([]) == [] and correct_p([0.03]) == [0.03]


def test_many_comparisons_are_corrected_together():
    """A difference that a single comparison would report is not reported among many that show nothing."""
    others = [configuration(label=("none", kind, "regular")) for kind in ("software", "block", "compiler")]
    rng = np.random.default_rng(34)
    times = {one: rng.lognormal(0.0, 0.02, 10) for one in (BASE, THP, *others)}
    times[THP] *= 0.98
    records = rounds(times, rng.lognormal(0.0, 0.02, 10))
    result = analyse([subject_of(kernel(), BASE, THP, *others)], records, seed=1)[0]
    rows = [row for row in result.groups[0].ranked if not row.cell.is_baseline]
    assert result.judged == len(rows) == 4
    expected = correct_p([row.time_ratio.p for row in rows])
    assert [row.time.p for row in rows] == pytest.approx(expected)
    assert all(row.time.p >= row.time_ratio.p for row in rows)


def test_a_spike_is_shown_and_kept():
    result = compared(*STEADY[:2], STEADY[2] * np.where(np.arange(14) == 4, 1.5, 1.0))
    row = row_of(result.ranked, THP)
    assert row.outliers == ((5, pytest.approx(1.5, rel=0.02)),) and row.time_ratio.pairs == 14
    assert re.search(r"(?<![\d.])5(?!\.?\d)", noise_table(result).as_text)


def test_bimodal_times_are_reported():
    slow = np.where(np.arange(14) % 2 == 0, 1.7, 1.0)
    result = compared(STEADY[0] * slow, STEADY[1] * slow[::-1], STEADY[2] * np.roll(slow, 1))
    row = row_of(result.ranked, THP)
    assert (row.verdict, row.reason) == ("inconclusive", "bimodal")
    assert [row.bimodal.slow_share for row in result.groups[0].ranked] == [0.5, 0.5]
    assert all("1.70" in str(row["bimodal"]) for row in noise_table(result).records())


def test_a_ratio_that_turns_is_not_reported():
    """Pairing removes the drift that all have; a ratio that passes 1 is not a verdict."""
    common = np.linspace(1.0, 1.4, 14)
    steady = compared(STEADY[0] * common, STEADY[1] * common, 0.95 * STEADY[2] * common)
    row = row_of(steady.ranked, THP)
    assert row.verdict == "faster" and row.time.drift is None
    assert steady.groups[0].baseline.drift.change == pytest.approx(0.4, abs=0.03)
    assert "39.8 %" in noise_table(steady).as_text
    turning = compared(STEADY[0], STEADY[1], STEADY[2] * np.linspace(0.9, 1.04, 14))
    row = row_of(turning.ranked, THP)
    assert (row.verdict, row.reason) == ("inconclusive", "drift") and row.time.drift.crosses_one
    assert row.time.drift.first < 0.95 and len(noise_table(turning).rows) == 1


def test_widths_decide_and_nothing_else():
    result = compared(*STEADY[:3])
    faster = compared(*STEADY[:2], 0.5 * STEADY[2])
    base, thp = (("triad", row.cell.key) for row in result.ranked)
    of_aa, of_thp = result.groups[0].repeated[0].width, row_of(result.ranked, THP).time_ratio.width
    # The noise floor must be known for each verdict.
    widths = {base: of_aa, thp: max(of_aa, of_thp)}
    assert widths_of([result]) == widths
    assert widths_of([faster]) == pytest.approx(widths)
    assert widths_of([compared(*STEADY[:3, :2])]) == {base: None, thp: None}
    assert largest([of_aa, of_thp]) == max(of_aa, of_thp) and largest([0.1, None]) is None


def test_a_clear_difference_needs_no_narrow_interval():
    def left(factor: float, rounds: int) -> set[str]:
        times = STEADY[:3, :rounds] * np.array([[1.0], [1.0], [factor]])
        widths = widths_of([compared(*times)], clear_suffices=True)
        return {name for (name, _), width in widths.items() if width != 0.0}

    assert left(0.5, 4) == set()
    # Equal, different with p above 0.001, and too few rounds.
    assert left(1.0, 14) == left(0.99, 5) == left(0.5, 2) == {"triad"}


def test_several_pairs_of_aa():
    steps = order_of_round([subject_of(kernel(), BASE, THP)], 1, seed=1, pairs=3)
    assert sorted(step.series for step in steps) == ["aa", "aa", "aa", "compare", "compare"]
    base, again, third, thp = STEADY[:4]
    records = rounds({BASE: base, THP: thp}, again, third)
    group = analyse([subject_of(kernel(), BASE, THP)], records, seed=1)[0].groups[0]
    assert len(group.repeated) == 2
    assert group.repeated[0].pairs == 14 and data.floors_text([group])


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "ended"),
    [(("--until", "90%"), "narrow"), (("--until", "0.01%", "--budget", "4s"), "budget")],
)
def test_rounds_are_added_until_narrow_or_the_budget_ends(stage: Stage, arguments, ended):
    for pages, factor in (("none", "1"), ("thp", "0.8")):
        stage.add("gcc-12.2.0", (pages, "hardware", "regular"), [TRIAD], factor=factor)
    stage.compare("--rounds", "3", "--no-sweep", "--aa", "2", *arguments, code=0)
    result = stage.read_result()
    manifest, until = result.manifest, result.manifest.until
    assert (until.ended, manifest.aa, manifest.rounds) == (ended, 2, 3)
    assert until.rounds == {"triad": manifest.rounds_done}
    assert len(result.records) == 4 * manifest.rounds_done
    if ended == "budget":
        # On a busy machine no further round fits: test_session.py adds some.
        assert manifest.rounds_done >= 3 and until.widest["triad"] > 1e-4
    text = session.until_text(manifest)
    assert text and (text in session.notes(result)) == (ended == "budget")
