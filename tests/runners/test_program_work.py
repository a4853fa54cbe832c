"""A program that works otherwise under a page policy is noticed, as far as its output repeats."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from builders import configuration
from pagewise.core.manifest import WorkDifference
from pagewise.core.plan import Cell
from pagewise.session.work import MOST_LINES, Work
from scripts import write_script
from stage import Stage, write_case


def cell(module: str, placement: str | None = None) -> Cell:
    built = configuration(module=module, placement=placement or "")
    return Cell(built, (built,), module == "none")


def differences(*runs_of_both: Sequence[tuple[str, int]]) -> tuple[WorkDifference, ...]:
    """By the outputs and exit codes of the runs of the baseline and of the policy."""
    work, cells = Work(), [cell("none"), cell("thp")]
    for each, runs in zip(cells, runs_of_both, strict=True):
        for output, code in runs:
            work.note(each.key, output, code)
    return work.differences(cells, {"thp": "none"})


@pytest.mark.parametrize(
    ("baseline", "policy", "difference"),
    [
        (["a\nb", "a\nb"], ["a\nb", "a\nb"], None),
        (["took 1.5 s", "took 1.5 s"], ["took 0.75 s", "took 0.75 s"], None),
        (["took 1e-2 s", "took 1e-2 s"], ["took 1.25E+3 s", "took 1.25E+3 s"], None),
        (["seed 12", "seed 13"], ["seed 14", "seed 15"], None),
        (["a\nb", "b\na"], ["b\na", "a\nb"], None),
        (["a 1", "a 2"], ["b"], None),
        (["a"], ["b", "b"], None),
        (["", ""], ["", ""], None),
        (["17\n1.5 s", "17\n1.6 s"], ["new\n17\n2.5 s"] * 2, {"added": ("new",)}),
        (["17\nseed 1", "17\nseed 2"], ["18\nseed 3", "18\nseed 4"], {"missing": ("17",), "added": ("18",)}),
        (["a\nb\nc"] * 2, ["a\nb"] * 2, {"missing": ("c",)}),
        (["a"] * 2, [""] * 2, {"missing": ("a",)}),
        (["a"] * 2, ["b"], {"missing": ("a",), "added": ("b",)}),
        (["5.5 GB/s"] * 2, ["nan GB/s"] * 2, {"missing": ("~ GB/s",), "added": ("nan GB/s",)}),
    ],
)
def test_repeated_lines_that_only_one_of_them_has_are_a_difference(baseline, policy, difference):
    expected = () if difference is None else (WorkDifference("thp", **difference),)
    assert differences([(text, 0) for text in baseline], [(text, 0) for text in policy]) == expected


def test_exit_codes_are_compared():
    (difference,) = differences([("a", 0), ("a", 2)], [("a", 3)])
    assert (difference.baseline_exit_codes, difference.exit_codes) == ((0, 2), (3,))
    assert differences([("a", 0), ("a", 2)], [("a", 2)]) == ()


def test_a_large_output_is_compared_in_part():
    large = "".join(f"{number}\n" for number in range(3 * MOST_LINES))
    assert differences([(large, 0)] * 2, [(large + "more", 0)] * 2) == ()
    (difference,) = differences([(large, 0)] * 2, [("more\n" + large, 0)] * 2)
    assert difference.added == ("more",)


def test_each_placement_is_compared_with_its_own_baseline():
    work, cells = Work(), [cell(module, place) for place in ("1", "2") for module in ("none", "thp")]
    for each in cells * 2:
        work.note(each.key, f"threads {each.placement}", 0)
    assert work.differences(cells, {"thp": "none"}) == ()


@pytest.mark.long
@pytest.mark.parametrize("command", ["compare", "counters"])
def test_a_script_that_depends_on_the_policys_settings(stage: Stage, command: str):
    slow = 'case "$GLIBC_TUNABLES" in *trim_threshold*) echo slow way; exit 3;; esac'
    script = write_script(stage.folder / "start.sh", f"#!/bin/sh\necho process $$\n{slow}\necho fast way\n")
    selected = ("--output", str(stage.results), "--rounds", "2", "--policies", "none,reuse", "--json")
    case = write_case(stage.folder, exit_codes=[0, 3])
    done = stage.run(command, *selected, "--case", case, "--", str(script), code=0)
    (difference,) = stage.read_result().manifest.differing_work
    assert difference == WorkDifference(
        "case/reuse", missing=("fast way",), added=("slow way",), baseline_exit_codes=(0,), exit_codes=(3,)
    )
    assert any("slow way" in note for note in json.loads(done.stdout)["notes"])
    assert "slow way" in (stage.result() / "report.html").read_text()
