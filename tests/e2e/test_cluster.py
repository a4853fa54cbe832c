"""Comparisons on the nodes of a real Slurm by ReFrame; a slow and a misconfigured node are found."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import yaml
from private_slurm import Slurm, private_slurm, unavailable_because

sys.path += [str(Path(__file__).parents[number] / "runners") for number in (1, 2)]

from pagewise.analysis.validity import exclusion
from pagewise.core.record import read_records
from pagewise.core.structure import faults
from pagewise.report.documents import ClusterReport
from stage import CHASE, TRIAD, Stage

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "envs/sites/rocky/reframe.py"
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
NODES = ("n1", "n2", "n3", "n4", "slow", "wrong", "down")


@pytest.fixture(scope="module")
def cluster(
    unavailable: Callable[[str], NoReturn], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Slurm, Stage]]:
    """Seven nodes and a module tree that all of them see."""
    reason = unavailable_because()
    if reason is not None:
        unavailable(reason)
    folder = tmp_path_factory.mktemp("cluster")
    never = folder / "never"
    never.write_text("always madvise [never]\n")
    (folder / "slow.json").write_text(json.dumps({"factor": 1.3}))
    stage = Stage(folder / "stage")
    stage.folder.mkdir()
    for pages, behaviour in (("none", {}), ("thp", {"factor": "0.8"})):
        kernels = [{**TRIAD, "ranks": True}, CHASE]
        stage.add("gcc-12.2.0", (pages, "hardware", "regular"), kernels, nodes=str(folder), **behaviour)
    settings = {"wrong": [f"mount --bind {never} {THP}"]}
    with private_slurm(folder / "slurm", {node: settings.get(node, []) for node in NODES}) as slurm:
        slurm.call("scontrol", "update", "nodename=down", "state=drain", "reason=bad DIMM")
        stage.environment |= slurm.environment
        yield slurm, stage


@pytest.fixture(scope="module")
def swept(cluster: tuple[Slurm, Stage]) -> dict:
    """The report of a sweep over all idle nodes."""
    _, stage = cluster
    settings = {"results": "results/sweep", "options": "--rounds 5 --no-sweep"}
    done = stage.reframe(EXAMPLE, settings, "--distribute=idle")
    assert done.returncode == 0, done.stdout + done.stderr
    done = stage.run("cluster", "nodes", "results/sweep", "--json", code=0)
    report = json.loads(done.stdout)
    assert faults(ClusterReport, report) == []
    return report


def test_every_usable_node_has_a_complete_comparison(swept: dict) -> None:
    assert [node["name"] for node in swept["nodes"]] == sorted(set(NODES) - {"down"})
    for node in swept["nodes"]:
        assert node["state"] == "complete" and node["attempts"] == 1
        manifest = json.loads(Path(node["result"], "manifest.json").read_text())
        assert manifest["host"]["hostname"] == node["name"] and manifest["rounds_done"] == 5
        # Two kernels, per round the baseline twice and thp once.
        assert len(Path(node["result"], "records.jsonl").read_text().splitlines()) == 5 * 2 * 3


def test_only_the_slow_node_is_reported_as_slow(swept: dict) -> None:
    assert {(row["node"], row["kind"]) for row in swept["outliers"]} == {("slow", "time")}
    assert {row["kernel"] for row in swept["outliers"]} == {"triad", "chase"}
    for row in swept["outliers"]:
        assert row["factor"] == pytest.approx(1.3, rel=0.05)


def test_the_misconfigured_node_is_reported_by_its_pages_and_its_facts(swept: dict) -> None:
    assert {(row["node"], row["configuration"]) for row in swept["invalid"]} == {
        ("wrong", "gcc-12.2.0/thp/hardware-regular")
    }
    (node,) = [node for node in swept["nodes"] if node["name"] == "wrong"]
    records, _ = read_records(Path(node["result"], "records.jsonl"))
    actual = [fault for record in records if (fault := exclusion(record)) is not None]
    assert {fault.code for fault in actual} == {"wrong_pages"}
    assert any(fault.reason in swept["invalid"][0]["reason"] for fault in actual)
    (difference,) = [row for row in swept["differences"] if row["fact"] == "THP"]
    assert difference["others"] == {"never": ["wrong"]}
    assert difference["usual"] in ("madvise", "always")


def test_ranks_are_started_by_slurm_with_the_options_of_jobs(
    cluster: tuple[Slurm, Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison in a job on the requested node starts two MPI ranks by srun."""
    slurm, stage = cluster
    # The site's toolchains are checked against those of the checkout.
    shutil.copytree(ROOT / "envs" / "toolchains", stage.folder / "envs" / "toolchains")
    site = shutil.copytree(ROOT / "envs" / "sites" / "debian", stage.folder / "debian")
    content = yaml.safe_load((site / "site.yaml").read_text())
    content["launcher"] = {"kind": "srun", "options": ["--quiet"]}
    (site / "site.yaml").write_text(yaml.safe_dump(content))
    monkeypatch.setitem(stage.environment, "PAGEWISE_SITE", str(site))
    settings = {"results": "results/one", "options": "--rounds 1 --no-sweep -k triad --ranks 2"}
    done = stage.reframe(EXAMPLE, settings, "-J", "nodelist=n2", "-J", "comment=ours")
    assert done.returncode == 0, done.stdout + done.stderr
    (folder,) = (stage.folder / "results/one/n2").iterdir()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["host"]["hostname"] == "n2" and manifest["placements"][0]["ranks"] == 2
    for record in read_records(folder / "records.jsonl")[0]:
        cpus = {use.rank: use.cpus for use in record.ranks}
        assert record.status == "ok" and [*cpus.values()] == [(cpu,) for cpu in record.run.bound.cpus]
    assert "Comment=ours" in slurm.call("scontrol", "show", "jobs")
