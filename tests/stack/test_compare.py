"""`make compare` from a checkout to a complete result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pagewise.core.kernel import read_source
from pagewise.core.manifest import Manifest
from pagewise.core.record import Record
from pagewise.core.structure import faults

from conftest import KERNELS, ROOT, succeed

_ALL = [read_source(ROOT / "kernels" / "micro" / name / "kernel.yaml") for name in KERNELS]
COMPARED = {kernel["name"] for kernel in _ALL if kernel["compare"].get("default")}


def records_of(result: Path) -> list[dict]:
    """All records of a result, all of them valid."""
    records = [json.loads(line) for line in (result / "records.jsonl").read_text().splitlines()]
    assert [fault for record in records for fault in faults(Record, record)] == []
    return records


@pytest.fixture(scope="module")
def quick(built: Path) -> Path:
    """The result of the quick environment with two rounds."""
    make = ("make", "--no-print-directory", "--old-file=setup", "-C", built, "compare")
    succeed(*make, "ENV=quick", "ARGS=--rounds 2", "BUILDER=spack", MAKEFLAGS="")
    (result,) = (built / "results").iterdir()
    return result


def test_every_default_kernel_is_measured_on_the_pages_of_its_configuration(quick: Path) -> None:
    records = records_of(quick)
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


def test_the_manifest_contains_the_provenance(quick: Path) -> None:
    manifest = json.loads((quick / "manifest.json").read_text())
    assert faults(Manifest, manifest) == []
    assert manifest["state"] == "complete"
    provenance = json.dumps(manifest["provenance"])
    assert "c8e4b8166d4aaa26ff0e515265d047b02cae3e2b" in provenance, "the tree of Spack"
    assert "0e093dad700a9be836b0d4aefc4bb5183e4990bd" in provenance, "the commit of its packages"
