"""Whether pw-ember compares its state with a reference, and fails where a compiler damages the scheme."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import Ember

    InBuild = Callable[[str], Path]

SOURCES = Path(__file__).parents[1]
NORMS = SOURCES / "norms.txt"
WRONG = 1
SEDOV = ("--problem", "sedov", "--memory", "64MiB", "--highest-level", "2", "--steps", "5")
SUPERNOVA = ("--problem", "snia2d", "--memory", "64MiB", "--highest-level", "3", "--steps", "5")
TUBE = ("--problem", "sod", "--dims", "2", "--uniform", "--highest-level", "1")
WAVE = ("--problem", "wave", "--dims", "2", "--uniform", "--highest-level", "1")


def described(description: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml")
    return yaml.safe_load((SOURCES / description).read_text(encoding="utf-8"))


def checks(record: dict[str, Any]) -> dict[str, dict[str, float]]:
    return {check["name"]: check for check in record["validation"]["checks"]}


@pytest.mark.long
@pytest.mark.parametrize("description", ["kernel.yaml", "snia2d.yaml"])
def test_the_smoke_run_s_state_is_compared_with_committed_norms(ember: Ember, description: str) -> None:
    arguments = described(description)["smoke"]["arguments"]
    for other in ((), ("--threads", "2"), ("--layout", "soa")):
        record = ember.run(*arguments, *other)
        assert set(checks(record)) == {"conservation", "norms"}
    assert checks(record)["norms"]["error"] < 0.01 * checks(record)["norms"]["tolerance"]


@pytest.mark.long
@pytest.mark.parametrize("description", ["kernel.yaml", "snia2d.yaml"])
def test_the_compared_run_has_committed_norms(ember: Ember, description: str) -> None:
    """Every run of the comparison; this one makes no step, and only asks for its key."""
    kernel = described(description)
    for part in ("compare", "smoke"):
        *arguments, option, steps = kernel[part]["arguments"]
        assert option == "--steps"
        ember.run(*arguments, "--steps", "0", "--threads", "2", "--norms", "norms.txt")
        key = (ember.folder / "norms.txt").read_text(encoding="utf-8").splitlines()[-1].split(" | ")[0]
        wanted = key.removesuffix("0") + steps
        assert wanted in {line.split(" | ")[0] for line in NORMS.read_text(encoding="utf-8").splitlines()}


@pytest.mark.long
def test_a_shock_that_crosses_between_levels_has_its_norms(ember: Ember) -> None:
    """Prolongation and flux correction in 3-d: the smoke run's blast stays in blocks of one level."""
    mesh = (
        "--roots-x",
        "2",
        "--roots-y",
        "2",
        "--roots-z",
        "2",
        "--lowest-level",
        "0",
        "--highest-level",
        "1",
    )
    blast = ("--problem", "sedov", "--sedov-octant", "--sedov-radius", "12", "--memory", "64MiB")
    end = ("--regrid-interval", "1000", "--end-time", "0.3", "--steps", "200")
    record = ember.run(*blast, *mesh, *end)
    assert set(checks(record)) == {"conservation", "exact", "norms"}


@pytest.mark.long
@pytest.mark.parametrize("ranks", [1, 2])
def test_ranks_have_the_same_norms(ember: Ember, ranks: int) -> None:
    record = ember.run(*described("kernel.yaml")["smoke"]["arguments"], ranks=ranks)
    assert "norms" in checks(record)


def test_a_state_without_reference_is_recorded(ember: Ember) -> None:
    record = ember.run(*SEDOV[:-2], "--steps", "3", "--gamma", "1.3")
    assert set(checks(record)) == {"conservation"}


@pytest.mark.long
def test_exact_solutions_are_compared_where_they_hold(ember: Ember) -> None:
    assert set(checks(ember.run(*TUBE))) == {"conservation", "exact"}
    assert set(checks(ember.run(*TUBE, "--boundary-x", "periodic"))) == {"conservation"}
    for limiter in ("mc", "minmod"):
        assert set(checks(ember.run(*WAVE, "--limiter", limiter))) == {"conservation", "exact"}
    blast = ("--problem", "sedov", "--dims", "2", "--uniform", "--highest-level", "3")
    assert set(checks(ember.run(*blast, "--end-time", "0.03"))) == {"conservation", "exact"}
    assert set(checks(ember.run(*blast, "--steps", "3"))) == {"conservation"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("damage", "reference", "arguments"),
    [
        ("no_limiter", "norms", SEDOV),
        ("no_limiter", "norms", SUPERNOVA),
        ("limiter_side", "norms", SEDOV),
        ("limiter_side", "norms", SUPERNOVA),
        # Without a limiter a smooth wave is right.
        ("limiter_side", "exact", TUBE),
        ("limiter_side", "exact", WAVE),
    ],
)
def test_a_damaged_limiter_conserves_and_fails(
    ember: Ember, in_build: InBuild, damage: str, reference: str, arguments: tuple[str, ...]
) -> None:
    validation = damaged(ember, in_build, damage, arguments)
    is_present = {check["name"]: check["error"] <= check["tolerance"] for check in validation["checks"]}
    assert is_present == {"conservation": True, reference: False}


def test_a_state_with_nan_fails(ember: Ember, in_build: InBuild) -> None:
    validation = damaged(ember, in_build, "nan", (*SEDOV[:-2], "--steps", "1", "--gamma", "1.3"))
    assert [check["name"] for check in validation["checks"]] == ["conservation"]


def damaged(ember: Ember, in_build: InBuild, damage: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    """The validation of a damaged program's run, which fails."""
    program = type(ember)(in_build(f"test_ember_damaged_{damage}"), ember.folder)
    done = program.attempt(*arguments, "--record", "damaged.jsonl")
    assert done.returncode == WRONG, done.stdout + done.stderr
    record = json.loads((ember.folder / "damaged.jsonl").read_text(encoding="utf-8"))
    assert not record["validation"]["passed"]
    return record["validation"]


@pytest.mark.long
@pytest.mark.parametrize(("description", "region"), [("kernel.yaml", "hydro"), ("snia2d.yaml", "eos")])
def test_the_record_has_the_region_of_the_studies_and_the_figures_of_the_description(
    ember: Ember, description: str, region: str
) -> None:
    kernel = described(description)
    record = ember.folder / "record.jsonl"
    done = ember.attempt(*kernel["smoke"]["arguments"], "--record", str(record))
    result = json.loads(record.read_text(encoding="utf-8"))
    assert region in {each["path"].split("/")[-1] for each in result["regions"]}
    assert {metric["field"] for metric in kernel["metrics"]} <= set(result["metrics"])
    lines = [line.split() for line in done.stdout.splitlines()]
    shown = {line[0] for line in lines if line[-1:] == ["(estimated)"]}
    assert shown == {metric["field"] for metric in kernel["metrics"] if metric.get("estimated")} != set()
