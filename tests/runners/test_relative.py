"""Suites whose metrics have targets relative to another code of the same session."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import yaml

from json_schema import faults
from pagewise.analysis.quantities import Goal, answers
from pagewise.core.errors import FormatError
from pagewise.workloads.program.output import CodeMetric, pattern_of
from pagewise.workloads.program.suite import read_code
from scripts import write_script
from stage import Stage, csv_rows

RATE = {"label": "Rate", "unit": "GB/s", "better": "higher", "pattern": r"^rate (?P<rate>\S+)"}


def code(name: str, **changes: Any) -> dict[str, Any]:
    return {
        **{"schema": "pagewise.suite/1", "name": name, "title": name, "summary": "s", "checks": ["^rate"]},
        **{"source": "https://example.org/", "programs": [name], "obtain": "build it", "policies": ["none"]},
        **{"arguments": ["{threads}", "{size}"], "metrics": [RATE]},
        **{"cases": {"default": "big-1", "pattern": r"(?P<name>\w+)-(?P<size>\d+)"}},
        **changes,
    }


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """Two stand-in programs, which print rates of 90 and 100 per thread, and their suites."""
    stage = Stage(tmp_path)
    (tmp_path / "envs/suites/codes").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    for name, rate in (("subject", 90), ("reference", 100)):
        write_script(tmp_path / "bin" / name, f"#!/bin/sh\necho rate $(({rate} * $1 * $2))\n")
    stage.environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}
    write(stage, code("reference"))
    return stage


def write(stage: Stage, data: dict[str, Any]) -> None:
    (stage.folder / f"envs/suites/codes/{data['name']}.yaml").write_text(yaml.safe_dump(data))


def aimed(stage: Stage, least: float | None, most: float | None, **changes: Any) -> None:
    """Writes the suite `subject` with this target."""
    row = RATE | {"target": [least, most], "value": "rate * 1"}
    write(stage, code("subject", relative_to="reference:{case}", **{"metrics": [row], **changes}))


def targets(data: dict[str, Any]) -> list[dict[str, Any]]:
    return [row for row in data["comparisons"] if row["kind"] == "target"]


def goal(centre: float, spread: float, floor: float | None, ends=(1.0, math.inf), rounds: int = 9) -> Goal:
    values = [centre * (1 + spread * math.sin(2.5 * number)) for number in range(rounds)]
    return Goal([values], floor, *ends, 1)


@pytest.mark.parametrize(
    ("measured", "expected"),
    [
        (goal(0.99, 0.02, 0.02), "inconclusive"),
        (goal(0.95, 0.01, 0.10), "inconclusive"),
        (goal(1.001, 0.01, 0.02), "met"),
        (goal(0.95, 0.01, 0.02), "not met"),
        (goal(1.5, 0.01, 0.02, rounds=2), "inconclusive"),
        (goal(1.5, 0.01, None), "inconclusive"),
        (goal(1.5, 0.01, 0.1, rounds=0), "inconclusive"),
        (goal(1.06, 0.005, 0.01, (0.97, 1.03)), "not met"),
        (goal(1.0, 0.005, 0.01, (0.97, 1.03)), "met"),
        (goal(1.0, 0.005, 0.01, (0.0, 1.05)), "met"),
    ],
)
def test_an_answer_needs_more_than_the_noise(measured: Goal, expected: str):
    assert answers([measured]) == [expected]


def test_answers_allow_for_their_number():
    """Significant alone, and not among many."""
    near = Goal([[0.97, 0.94, 0.985, 0.93, 0.96, 0.985, 0.995]], 0.001, 1.0, math.inf, 1)
    assert answers([near]) == ["not met"]
    assert answers([near, *[goal(1.0, 0.05, 0.001)] * 20])[0] == "inconclusive"


@pytest.mark.long
@pytest.mark.parametrize(
    ("target", "answer", "exit_code"),
    [((0.85, 0.95), "met", 0), ((0.95, None), "not met", 1), ((None, 0.85), "not met", 1)],
)
def test_the_ratio_of_two_programs_and_its_target(
    stage: Stage, target: tuple[float | None, float | None], answer: str, exit_code: int
):
    aimed(stage, *target)
    words = ("--suite", "subject:big-3", "--rounds", "3", "--threads", "2", "--json")
    data = json.loads(stage.compare(*words, code=exit_code).stdout)
    (row,) = targets(data)
    assert faults("verdicts", data) == [] and row["verdict"] == answer
    assert (row["value"], row["reference_value"]) == (90 * 2 * 3, 100 * 2 * 3)
    assert [row["ratio"], row["low"], row["high"]] == pytest.approx([0.9] * 3)
    assert row["pairs"] == 3 and row["noise_floor"] == 0
    (saved,) = (row for row in csv_rows(stage.result() / "comparisons.csv") if row["kind"] == "target")
    assert (saved["kernel"], saved["reference_kernel"]) == ("subject_big_3", "reference_big_3")
    result = stage.read_result()
    assert result.folder.name.endswith("-subject_big_3")
    assert faults("manifest", json.loads((result.folder / "manifest.json").read_text())) == []
    assert {record.run.command[1:] for record in result.records if record.run} == {("2", "3")}
    assert {(r.round, r.kernel) for r in result.records if r.series == "aa"} == {
        (number, name) for number in (1, 2, 3) for name in ("subject_big_3", "reference_big_3")
    }


@pytest.mark.long
def test_each_build_is_compared_with_the_one_of_the_other_code(stage: Stage):
    (stage.folder / "slow").mkdir()
    write_script(stage.folder / "slow/subject", "#!/bin/sh\necho rate $((45 * $1 * $2))\n")
    aimed(stage, 0.85, None)
    builds = ("--build", f"fast={stage.folder}/bin", "--build", f"slow={stage.folder}/slow")
    fast, slow = {"fast": ("0.9", "met")}, {"slow": ("0.45", "not met")}
    for suites, given, code, expected in (
        ("subject", builds, 1, fast | slow),
        ("subject,reference", builds[:2], 0, fast),
    ):
        stage.compare("--suite", suites, "--rounds", "3", "--threads", "1", *given, code=code)
        rows = [row for row in csv_rows(stage.result() / "comparisons.csv") if row["kind"] == "target"]
        assert {row["flags"]: (row["ratio"][:4], row["verdict"]) for row in rows} == expected


@pytest.mark.long
def test_a_wrong_result_of_the_other_program_leaves_no_ratio(stage: Stage):
    aimed(stage, 0.85, None)
    write(stage, code("reference", checks=["^valid"]))
    words = ("--suite", "subject", "--rounds", "1", "--threads", "1", "--json")
    (row,) = targets(json.loads(stage.compare(*words, code=1).stdout))
    assert (row["ratio"], row["reference_value"], row["verdict"]) == (None, None, "inconclusive")


@pytest.mark.parametrize(
    ("changes", "exit_code"),
    [
        ({"metrics": [RATE]}, 3),
        ({"metrics": [RATE | {"target": [0, 1]}]}, 3),
        ({"metrics": [RATE | {"label": "Other", "target": [0.9, None]}]}, 3),
        ({"metrics": [RATE | {"unit": "MB/s", "target": [0.9, None]}]}, 3),
        ({"metrics": [RATE | {"target": [0.9, None], "value": "other * 2"}]}, 2),
        ({"metrics": [RATE | {"target": [0.9, None], "value": "rate ** 2"}]}, 2),
        ({"relative_to": "reference:none"}, 2),
        ({"relative_to": "nowhere"}, 2),
    ],
)
def test_a_target_that_cannot_be_judged_is_refused(stage: Stage, changes: dict[str, Any], exit_code: int):
    aimed(stage, 0.9, None)
    file = stage.folder / "envs/suites/codes/subject.yaml"
    file.write_text(yaml.safe_dump(yaml.safe_load(file.read_text()) | changes))
    stage.compare("--suite", "subject", code=exit_code)
    assert not stage.results.exists()


def test_a_target_without_another_code_is_refused(stage: Stage):
    write(stage, code("alone", metrics=[RATE | {"target": [0.9, None]}]))
    with pytest.raises(FormatError):
        read_code(stage.folder / "envs/suites/codes/alone.yaml")


def test_a_value_is_calculated_from_the_groups():
    row = CodeMetric("Rate", "GB/s", "higher", r"(?P<a>\S+) of (?P<b>\S+)", value="2 * a / b")
    made = pattern_of(row, "here")
    assert made.value("3 of 4\n5 of 4") == 2.5 and made.value("3 of 0") is None
    with pytest.raises(ValueError, match="x"):
        made.value("3 of x")
