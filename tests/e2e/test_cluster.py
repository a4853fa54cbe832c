"""Comparisons on all nodes of a real Slurm, some of them slow, misconfigured, dying or late."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest
import yaml
from private_slurm import Slurm, private_slurm, unavailable_because, until

sys.path += [str(Path(__file__).parents[number] / "runners") for number in (1, 2)]

from pagewise.analysis.validity import exclusion
from pagewise.core.record import read_records
from pagewise.core.schemas import faults
from stage import CHASE, TRIAD, Stage

ROOT = Path(__file__).parents[2]
THP = "/sys/kernel/mm/transparent_hugepage/enabled"
NODES = ("n1", "n2", "n3", "n4", "slow", "wrong", "dies", "late", "again", "down")
OPTIONS = ("--rounds", "5", "--no-sweep")


@pytest.fixture(scope="module")
def cluster(
    unavailable: Callable[[str], NoReturn], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Slurm, Stage]]:
    """Ten nodes and a module tree that all of them see."""
    reason = unavailable_because()
    if reason is not None:
        unavailable(reason)
    folder = tmp_path_factory.mktemp("cluster")
    never = folder / "never"
    never.write_text("always madvise [never]\n")
    behaviours = folder / "nodes"
    behaviours.mkdir()
    for node, behaviour in {
        "slow": {"factor": 1.3},
        "dies": {"sleep": 2.0},
        "late": {"sleep": 5.0},
        "again": {"sleep": 0.3},
    }.items():
        (behaviours / f"{node}.json").write_text(json.dumps(behaviour))
    stage = Stage(folder / "stage")
    stage.folder.mkdir()
    for label, behaviour in (
        (("none", "hardware", "regular"), {}),
        (("thp", "hardware", "regular"), {"factor": "0.8"}),
    ):
        stage.add("gcc-12.2.0", label, [{**TRIAD, "ranks": True}, CHASE], nodes=str(behaviours), **behaviour)
    settings = {"wrong": [f"mount --bind {never} {THP}"]}
    with private_slurm(folder / "slurm", {node: settings.get(node, []) for node in NODES}) as slurm:
        slurm.call("scontrol", "update", "nodename=down", "state=drain", "reason=bad DIMM")
        stage.environment |= slurm.environment
        yield slurm, stage


@dataclass(frozen=True)
class Swept:
    """A finished node sweep: its folder, exit code and report."""

    stage: Stage
    folder: Path
    code: int
    report: dict

    def node(self, name: str) -> dict:
        return next(node for node in self.report["nodes"] if node["name"] == name)


@pytest.fixture(scope="module")
def swept(cluster: tuple[Slurm, Stage]) -> Swept:
    """A sweep of all nodes, while one dies, one is requeued and one takes too long."""
    slurm, stage = cluster
    options = ["--nodes", "all", "--time-limit", "1m", "--json", *OPTIONS]
    with (stage.folder / "stdout").open("w+") as stdout, (stage.folder / "stderr").open("w+") as stderr:
        process = subprocess.Popen(
            stage.command("cluster", "run", *options),
            env=stage.variables(),
            cwd=stage.folder,
            stdout=stdout,
            stderr=stderr,
            text=True,
        )

        def has_measured(node: str) -> bool:
            assert process.poll() is None, (stage.folder / "stderr").read_text()
            files = stage.results.glob(f"*/nodes/{node}/*/records.jsonl")
            return any(len(file.read_text().splitlines()) > 2 for file in files)

        try:
            until(lambda: has_measured("again"), "no record of the node that is requeued", 60)
            slurm.call("scontrol", "requeue", job_on(slurm, "again"))
            until(lambda: has_measured("dies"), "no record of the node that dies", 60)
            slurm.kill("dies")
            code = process.wait(200)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()
        stdout.seek(0)
        stderr.seek(0)
        text = stdout.read()
        assert text, stderr.read()
    return Swept(stage, stage.result(), code, json.loads(text))


def job_on(slurm: Slurm, node: str) -> str:
    return slurm.call("squeue", "-h", "-w", node, "-t", "R", "-o", "%i").split()[0]


def test_nodes_are_listed_with_why_they_are_unusable(cluster: tuple[Slurm, Stage]) -> None:
    _, stage = cluster
    done = stage.run("cluster", "nodes", "--json")
    assert done.returncode == 0, done.stderr
    assert faults("nodes", json.loads(done.stdout)) == []
    nodes = {node["name"]: node for node in json.loads(done.stdout)["nodes"]}
    assert set(nodes) == set(NODES)
    assert nodes["n1"]["usable"]
    assert not nodes["down"]["usable"]
    assert nodes["down"]["reason"] == "bad DIMM"


def test_every_usable_node_has_a_complete_comparison(swept: Swept) -> None:
    for name in ("n1", "n2", "n3", "n4", "slow", "wrong", "again"):
        node = swept.node(name)
        assert node["state"] == "complete", node
        manifest = json.loads((Path(node["result"]) / "manifest.json").read_text())
        assert manifest["host"]["hostname"] == name
        assert manifest["rounds_done"] == 5
        # Two kernels, per round the baseline twice and thp once.
        assert len((Path(node["result"]) / "records.jsonl").read_text().splitlines()) == 5 * 2 * 3


def test_only_the_slow_node_is_reported_as_slow(swept: Swept) -> None:
    times = [row for row in swept.report["away"] if row["kind"] == "time"]
    assert {row["node"] for row in times} == {"slow"}
    assert {row["kernel"] for row in times} == {"triad", "chase"}
    for row in times:
        assert row["factor"] == pytest.approx(1.3, rel=0.05)
    assert not [row for row in swept.report["away"] if row["kind"] == "time_ratio"]


def test_the_misconfigured_node_is_reported_by_its_pages_and_its_facts(swept: Swept) -> None:
    # What a dying node still records depends on what of it dies first.
    invalid = [row for row in swept.report["invalid"] if row["node"] != "dies"]
    assert {(row["node"], row["configuration"]) for row in invalid} == {
        ("wrong", "gcc-12.2.0/thp/hardware-regular")
    }
    records, _ = read_records(Path(swept.node("wrong")["result"]) / "records.jsonl")
    found = [fault for record in records if (fault := exclusion(record)) is not None]
    assert {fault.code for fault in found} == {"wrong_pages"}
    assert any(fault.reason in invalid[0]["reason"] for fault in found)
    (difference,) = [row for row in swept.report["differences"] if row["fact"] == "THP"]
    assert difference["others"] == {"never": ["wrong"]}
    assert difference["usual"] in ("madvise", "always")


def test_missing_nodes_are_reported_with_the_reason(swept: Swept) -> None:
    assert swept.code == 1
    missing = {node["name"]: node for node in swept.report["nodes"] if node["state"] != "complete"}
    assert set(missing) == {"dies", "late", "down"}
    assert "bad DIMM" in missing["down"]["why"]
    assert missing["down"]["state"] == "missing"
    # Slurm's states of the job and of the node.
    assert "TIMEOUT" in missing["late"]["why"]
    assert "down" in missing["dies"]["why"]
    assert missing["dies"]["state"] == missing["late"]["state"] == "partial"


def test_records_from_before_a_nodes_failure_are_kept(swept: Swept) -> None:
    for name in ("dies", "late"):
        records = Path(swept.node(name)["result"]) / "records.jsonl"
        assert len(records.read_text().splitlines()) > 2


def test_a_requeued_job_is_counted_once_and_its_first_attempt_is_reported(swept: Swept) -> None:
    node = swept.node("again")
    assert node["attempts"] == 2
    assert node["why"]
    assert len(list((swept.folder / "nodes" / "again").iterdir())) == 2


def test_the_report_can_be_repeated(swept: Swept) -> None:
    done = swept.stage.run("report", str(swept.folder), "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == swept.report and faults("cluster-report", swept.report) == []
    assert swept.report["verdict"] in swept.stage.run("report", str(swept.folder)).stdout
    text = (swept.folder / "summary.md").read_text()
    for name in ("slow", "wrong", "dies", "late", "down"):
        assert name in text


def test_the_store_collects_all_records(swept: Swept) -> None:
    store = swept.stage.folder / "store.duckdb"
    done = swept.stage.run("results", "collect", "--store", str(store), "--json", str(swept.folder))
    assert done.returncode == 0, done.stderr
    collected = json.loads(done.stdout)
    # Nine nodes started, one of them twice.
    assert collected["taken"] == 10
    assert collected["records"] >= 7 * 30


def test_an_environment_that_does_not_exist_is_not_set_up(
    cluster: tuple[Slurm, Stage],
) -> None:
    _, stage = cluster
    done = stage.run("cluster", "run", "--env", "nosuch", "--output", str(stage.folder / "other"))
    assert done.returncode == 3
    assert "pagewise list" in done.stderr


def test_a_sites_job_options_reach_the_scheduler_and_the_command_line_overrides_them(
    cluster: tuple[Slurm, Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison, a step of its job, starts two MPI ranks by srun."""
    slurm, stage = cluster
    # The site's toolchains are checked against those of the checkout.
    shutil.copytree(ROOT / "envs" / "toolchains", stage.folder / "envs" / "toolchains")
    site = stage.folder / "debian"
    shutil.copytree(ROOT / "envs" / "sites" / "debian", site)
    content = yaml.safe_load((site / "site.yaml").read_text())
    content["scheduler"] = {
        **{"kind": "slurm", "partition": "batch", "account": "perf", "launcher": "srun"},
        "options": ["--nodelist=n2", "--comment=of-the-site"],
    }
    content["launcher"] = {"kind": "srun", "options": ["--quiet"]}
    (site / "site.yaml").write_text(yaml.safe_dump(content))
    monkeypatch.setitem(stage.environment, "PAGEWISE_SITE", str(site))
    options = ["--site", str(site), "-J", "--account=other", "--name", "one", "--json"]
    where = ["--output", str(stage.folder / "other")]
    chosen = ["--rounds", "1", "--no-sweep", "-k", "triad", "--ranks", "2"]
    done = stage.run("cluster", "run", *options, *where, *chosen, timeout=120)
    assert done.returncode == 0, done.stderr
    (node,) = json.loads(done.stdout)["nodes"]
    manifest = json.loads((Path(node["result"]) / "manifest.json").read_text())
    assert manifest["host"]["hostname"] == "n2" and manifest["placement"]["ranks"] == 2
    for record in read_records(Path(node["result"]) / "records.jsonl")[0]:
        cpus = {use.rank: use.cpus for use in record.ranks}
        assert record.status == "ok" and [*cpus.values()] == [(cpu,) for cpu in record.run.bound.cpus]
    (folder,) = (stage.folder / "other").glob("*-one")
    (job,) = json.loads((folder / "cluster.json").read_text())["jobs"]
    known = slurm.call("scontrol", "show", "job", str(job["id"]))
    for fact in ("Account=other", "Partition=batch", "Comment=of-the-site"):
        assert fact in known
    (script,) = (folder / "work").rglob("rfm_job.sh")
    text = script.read_text()
    assert "#SBATCH --account=perf" in text and "\nsrun " in text

    done = stage.run("cluster", "nodes", "--site", str(site), "--partition", "nosuch")
    assert done.returncode == 2 and "'nosuch'" in done.stderr and "batch" in done.stderr


def test_plain_reframe_runs_a_comparison_too(cluster: tuple[Slurm, Stage]) -> None:
    _, stage = cluster
    site = stage.folder / "site.yaml"
    done = stage.run("cluster", "configure", str(site.parent / "mine"))
    assert done.returncode == 0, done.stderr
    command = [sys.executable, "-c", "from reframe.frontend.cli import main; main()"]
    settings = ROOT / "runners/pagewise/cluster/reframe_tests/settings.py"
    files = ["-C", settings, "-C", site.parent / "mine" / "reframe.yaml"]
    started = time.time()
    done = subprocess.run(
        [
            *command,
            *files,
            "-c",
            ROOT / "runners/pagewise/cluster/reframe_tests",
            "-S",
            "options=--rounds 3 --no-sweep",
            "-J",
            "-w n1",
            "-r",
        ],
        env={**stage.variables(), "PAGEWISE_CLUSTER_WORK": str(stage.folder / "work")},
        cwd=stage.folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "triad/gcc-12.2.0/none/hardware-regular" in done.stdout
    (manifest,) = (stage.folder / "results/nodes/any").glob("*/manifest.json")
    assert manifest.stat().st_mtime >= started - 1
    assert json.loads(manifest.read_text())["state"] == "complete"
