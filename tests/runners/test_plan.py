"""Merging of configurations that a kernel is not sensitive to, and the order of runs."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from builders import chase, configuration, kernel, subject_of
from pagewise.core.plan import order_of_round, order_of_sweeps
from pagewise.session.workload import ComparisonPlanner
from stage import ALL_LABELS, COMPILERS, DISTANCES, TRIAD

ALL = [configuration(compiler, label) for compiler in COMPILERS for label in ALL_LABELS]


def test_equal_configurations_are_merged_and_none_is_lost():
    everything = subject_of(kernel(), *ALL)
    assert [len(cell.stands_for) for cell in everything.cells] == [1] * 24
    subject = subject_of(chase(), *reversed(ALL))
    assert len(subject.cells) == 6
    merged = [c.module for cell in subject.cells for c in cell.stands_for]
    assert sorted(merged) == sorted(c.module for c in ALL)
    for cell in subject.cells:
        assert len({(c.compiler, c.hugepages) for c in cell.stands_for}) == 1
        assert cell.measured.label.endswith("/hardware-regular")
    # Sensitive to prefetch, but not to stores.
    some = subject_of(kernel(sensitive_to=["compiler", "hugepages", "prefetch"]), *ALL)
    assert len(some.cells) == 18
    assert {cell.measured.prefetch for cell in some.cells if len(cell.stands_for) == 2} == {"hardware"}
    # Different builds are never merged.
    other = configuration(builder="cmake", module="other")
    assert len(subject_of(chase(), configuration(), other).cells) == 2


def test_a_round_is_a_permutation_with_the_baselines_twice():
    subjects = [subject_of(kernel(), *ALL), subject_of(chase(), *ALL)]
    steps = order_of_round(subjects, 1, seed=1)
    seen = Counter((s.benchmark.name, s.cell.measured.module, s.series) for s in steps)
    assert set(seen.values()) == {1}
    assert len(steps) == 24 + 2 + 6 + 2
    assert {key for key in seen if key[2] == "aa"} == {
        (name, configuration(compiler).module, "aa") for name in ("triad", "chase") for compiler in COMPILERS
    }
    assert [step.position for step in steps] == list(range(1, len(steps) + 1))


def test_rounds_and_seeds_are_random_and_repeatable():
    subjects = [subject_of(kernel(), *ALL)]

    def modules(number: int, seed: int) -> list[str]:
        return [step.cell.measured.module for step in order_of_round(subjects, number, seed)]

    assert modules(1, 1) == modules(1, 1)
    assert len({tuple(modules(number, 1)) for number in range(1, 8)}) == 7
    assert modules(1, 1) != modules(1, 2)
    # Over many rounds, each configuration is first about equally often.
    subjects = [subject_of(chase(), *ALL)]
    first = Counter(order_of_round(subjects, number, 1)[0].cell.measured.module for number in range(1, 401))
    assert len(first) == 6
    for cell in subjects[0].cells:
        # Baselines are in a round twice: 2 of 8 places, the others 1 of 8.
        assert 30 <= first[cell.measured.module] / (2 if cell.is_baseline else 1) <= 75


def test_programs_that_are_compared_with_each_other_are_shuffled_together():
    names = ("a", "b", "c", "d")
    subjects = [subject_of(kernel(name=name), *ALL[:6]) for name in names]
    steps = order_of_round(subjects, 1, 1, related={"c": "a"})
    order = [step.benchmark.name for step in steps]
    changes = Counter(pair for pair in pairwise(order) if pair[0] != pair[1])
    assert changes["a", "c"] + changes["c", "a"] > 2
    assert sum(changes.values()) - changes["a", "c"] - changes["c", "a"] == 2
    planner = ComparisonPlanner(subjects, 1, whole_because=lambda step: None, related={"c": "a"})
    assert sorted(len(group) for group in planner.together(steps)) == [len(steps) // 4] * 4


def test_unavailable_policies_take_no_turns_with_others():
    steps = order_of_round([subject_of(kernel(), *ALL[:6])], 1, 1)
    refused = next(step for step in steps if not step.cell.is_baseline)
    planner = ComparisonPlanner([], 1, can_run=lambda one: one is not refused, whole_because=lambda _: None)
    others = [step for step in steps if step is not refused]
    assert sorted(planner.together(steps), key=len) == [[refused], others]


@pytest.mark.parametrize(
    ("when", "labels"),
    [
        ({"prefetch": "software"}, 6),
        ({"prefetch": ["software", "block"]}, 12),
        ({"prefetch": "software", "hugepages": "thp"}, 2),
        ({"stores": "zfill"}, 0),
    ],
)
def test_a_sweep_runs_in_the_configurations_that_it_names(when, labels):
    swept = kernel(sweeps=[*TRIAD["sweeps"], {**DISTANCES, "when": when}])
    # The chase has no sweep.
    subjects = [subject_of(swept, *ALL), subject_of(chase(), *ALL)]
    steps = order_of_sweeps(subjects, seed=1)
    assert steps != order_of_sweeps(subjects, seed=2)
    assert {step.benchmark.name for step in steps} == {"triad"}
    assert [step.swept for step in steps] == ["working-set"] * 24 + ["prefetch-distance"] * labels
    assert [step.position for step in steps] == list(range(1, 25 + labels))
    assert steps[0].arguments == ("--sweep", "working-set", "--working-set", "64MiB")
    for step in steps[24:]:
        assert step.arguments == tuple(DISTANCES["arguments"])
        assert all(getattr(step.cell.measured, name) in values for name, values in when.items())
