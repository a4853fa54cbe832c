"""`make compare` from a checkout to a complete result."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml
from pagewise.core.manifest import Manifest
from pagewise.core.record import Record
from pagewise.core.structure import faults

from conftest import KERNELS, ROOT, run

ALL = [yaml.safe_load((ROOT / "kernels" / "micro" / name / "kernel.yaml").read_text()) for name in KERNELS]
DESCRIPTIONS = [kernel for kernel in ALL if kernel["compare"].get("default")]
COMPARED = {description["name"] for description in DESCRIPTIONS}


def records_of(result: Path) -> list[dict]:
    """All records of a result, all of them valid."""
    records = [json.loads(line) for line in (result / "records.jsonl").read_text().splitlines()]
    assert [fault for record in records for fault in faults(Record, record)] == []
    return records


@pytest.fixture(scope="module")
def quick(built: Path) -> tuple[Path, str]:
    """The result of the quick environment with two rounds, and the command's output."""
    make = ("make", "--no-print-directory", "--old-file=setup", "-C", built, "compare")
    done = run(*make, "ENV=quick", "ARGS=--rounds 2", "BUILDER=spack", MAKEFLAGS="")
    assert done.returncode == 0, done.stdout
    (result,) = (built / "results").iterdir()
    return result, done.stdout


def test_every_default_kernel_is_measured_on_the_pages_of_its_configuration(quick: tuple[Path, str]) -> None:
    records = records_of(quick[0])
    assert {record["kernel"] for record in records} == COMPARED
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
    for kernel in COMPARED:
        for number in (1, 2):
            modules = [run["module"] for name, run in runs if name == kernel and run["round"] == number]
            assert len(modules) == 3, "baseline, its repetition, and thp"
            assert sum("/none/" in module for module in modules) == 2


def test_the_manifest_contains_the_provenance(quick: tuple[Path, str]) -> None:
    manifest = json.loads((quick[0] / "manifest.json").read_text())
    assert faults(Manifest, manifest) == []
    assert manifest["state"] == "complete"
    provenance = json.dumps(manifest["provenance"])
    assert "c8e4b8166d4aaa26ff0e515265d047b02cae3e2b" in provenance, "the tree of Spack"
    assert "0e093dad700a9be836b0d4aefc4bb5183e4990bd" in provenance, "the commit of its packages"


def test_summary_report_and_table_contain_all_kernels(quick: tuple[Path, str]) -> None:
    result, printed = quick
    with (result / "summary.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["kernel"] for row in rows} == COMPARED
    report = (result / "report.html").read_text()
    for description in DESCRIPTIONS:
        assert description["title"] in printed
        assert description["title"] in report
    for link in ('src="http', 'href="http', "@import", "url(http"):
        assert link not in report, "the report needs no network"
