"""`make compare` from a checkout to a complete result."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

ROOT = Path(__file__).parents[2]
SCHEMA = ROOT / "runners" / "pagewise" / "core" / "schema"
ALL = [yaml.safe_load(file.read_text()) for file in ROOT.glob("kernels/micro/*/kernel.yaml")]
# Kernels that measure libraries are in another environment.
DESCRIPTIONS = [kernel for kernel in ALL if kernel["compare"].get("default") and "needs" not in kernel]
KERNELS = {description["name"] for description in DESCRIPTIONS}


def make(root: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run make in a checkout with these settings, without the variables of a make that runs the tests."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", "--no-print-directory", "-C", str(root), *arguments],
        env=inherited | settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


def new_result(root: Path, before: set[Path]) -> Path:
    """The folder of the only new result."""
    new = set((root / "results").glob("*")) - before
    assert len(new) == 1, f"expected one new result: {new}"
    return new.pop()


def records_of(result: Path) -> list[dict]:
    """All records of a result, validated against the schema."""
    validator = Draft202012Validator(json.loads((SCHEMA / "record-1.json").read_text()))
    records = [json.loads(line) for line in (result / "records.jsonl").read_text().splitlines()]
    for record in records:
        validator.validate(record)
    return records


@pytest.fixture(scope="module")
def quick(spack_ready: None) -> tuple[Path, str]:
    """The result of the quick environment with two rounds, and the command's output."""
    results = ROOT / "results"
    before = set(results.glob("*"))
    done = make(ROOT, "compare", "ENV=quick", "ROUNDS=2", "BUILDER=spack")
    assert done.returncode == 0, done.stdout
    return new_result(ROOT, before), done.stdout


def test_every_default_kernel_is_measured_on_the_pages_of_its_configuration(quick: tuple[Path, str]) -> None:
    records = records_of(quick[0])
    assert {record["kernel"] for record in records} == KERNELS
    for record in records:
        assert record["status"] == "ok", record
        assert record["validation"]["passed"]
        policy = record["configuration"]["hugepages"]
        assert policy == record["pages"]["policy"]
        assert f"/{policy}/" in record["run"]["module"]
        if policy == "none":
            assert record["pages"]["huge_coverage"] == 0
        else:
            assert record["pages"]["huge_coverage"] >= 0.99
            assert record["pages"]["page_size_observed_bytes"] > record["pages"]["base_page_size_bytes"]


def test_rounds_are_complete_and_the_baseline_runs_twice(quick: tuple[Path, str]) -> None:
    runs = [(record["kernel"], record["run"]) for record in records_of(quick[0])]
    runs = [(kernel, run) for kernel, run in runs if run["series"] != "sweep"]
    for kernel in KERNELS:
        for number in (1, 2):
            modules = [run["module"] for name, run in runs if name == kernel and run["round"] == number]
            assert len(modules) == 3, "baseline, its repetition, and thp"
            assert sum("/none/" in module for module in modules) == 2


def test_the_manifest_contains_the_provenance(quick: tuple[Path, str]) -> None:
    manifest = json.loads((quick[0] / "manifest.json").read_text())
    Draft202012Validator(json.loads((SCHEMA / "manifest-1.json").read_text())).validate(manifest)
    assert manifest["state"] == "complete"
    provenance = json.dumps(manifest["provenance"])
    assert "c8e4b8166d4aaa26ff0e515265d047b02cae3e2b" in provenance, "the tree of Spack"
    assert "0e093dad700a9be836b0d4aefc4bb5183e4990bd" in provenance, "the commit of its packages"


def test_summary_report_and_table_contain_all_kernels(quick: tuple[Path, str]) -> None:
    result, printed = quick
    with (result / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["kernel"] for row in rows} == KERNELS
    report = (result / "report.html").read_text()
    for description in DESCRIPTIONS:
        assert description["title"] in printed
        assert description["title"] in report
    for link in ('src="http', 'href="http', "@import", "url(http"):
        assert link not in report, "the report needs no network"


def test_without_spack_the_presets_build_with_a_warning(tmp_path: Path) -> None:
    clone = tmp_path / "clone"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    # tests/kernels.py builds all kernels with presets.
    for folder in (clone / "kernels" / "micro").iterdir():
        if folder.name != "pointer_chase" and (folder / "kernel.yaml").exists():
            shutil.rmtree(folder)
    nowhere = f"file://{tmp_path}/nowhere.git"
    without = {"PAGEWISE_SPACK_URL": nowhere, "PAGEWISE_REQUIRE_SPACK": "", "PAGEWISE_USE_SPACK": ""}

    refused = make(clone, "compare", "ENV=quick", "BUILDER=spack", **without)
    assert refused.returncode != 0
    assert nowhere in refused.stdout
    assert "PAGEWISE_SPACK_URL" in refused.stdout, "the variable to set"
    assert not (clone / "results").exists()

    arguments = ("ENV=quick", "ROUNDS=1", "KERNELS=pointer_chase")
    done = make(clone, "compare", *arguments, **without)
    assert done.returncode == 0, done.stdout
    assert nowhere in done.stdout, "the reason for the presets"
    records = records_of(new_result(clone, set()))
    assert {record["run"]["builder"] for record in records} == {"cmake"}
