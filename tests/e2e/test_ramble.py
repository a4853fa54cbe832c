"""Ramble runs what is exported for it, and a user's application under page policies."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

sys.path += [str(Path(__file__).parents[number] / "runners") for number in (1, 2)]

from own_program import compile_program, needs_thp
from pagewise.core.structure import faults
from pagewise.stack.launcher import find_launcher
from pagewise.workloads.program.production import ExecRecord
from stage import TRIAD, Stage

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[2]
URL = "https://github.com/GoogleCloudPlatform/ramble.git"
TAG, TREE = "v0.5.0", "abfebc9d5f05c0f7191e53cbda65d735a7a2bcc9"
#: A program that refuses transparent huge pages to what it becomes, where no library notices it.
REFUSING = """#!{python}
import ctypes, os, sys
number = {{"x86_64": 157}}.get(os.uname().machine, 167)
ctypes.CDLL(None).syscall(number, 41, 1, 0, 0, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""
APPLICATION = """
from ramble.appkit import *


class Memory(ExecutableApplication):
    name = "memory"

    executable("prepare", template=["cd {experiment_run_dir}", "export SHORTLY=0.1", "cp {program} copy"])
    executable("serial", "CHOSEN=1 ./copy {way} $SHORTLY", use_mpi=False)
    executable("refused", "{refusing} {program} {way}", use_mpi=False)
    executable("parallel", "{program} {way}", use_mpi=True)
    workload("serial", executables=["prepare", "serial"])
    workload("refused", executables=["refused"])
    workload("parallel", executables=["prepare", "parallel"])
    workload_variable("way", default="large", description="way", workloads=["serial", "refused", "parallel"])
    figure_of_merit("rate", fom_regex=r"rate: (?P<value>[0-9.]+) GB/s", group_name="value", units="GB/s")
"""


class Ramble:
    """A clone of Ramble with the settings of a user, and a workspace."""

    def __init__(self, clone: Path, folder: Path, **environment: str) -> None:
        self.program, self.folder, self.workspace = clone / "bin" / "ramble", folder, folder / "workspace"
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("PAGEWISE_")}
        self.environment = inherited | environment | {"HOME": str(folder)}

    def run(self, *words: str | Path, code: int = 0) -> None:
        # Without the progress bar it needs no further Python packages.
        command = [sys.executable, "-I", self.program, "-c", "config:disable_progress_bar:true", *words]
        done = subprocess.run(
            command, env=self.environment, cwd=self.folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr

    def measure(self, runs: int = 1, code: int = 0) -> dict[str, tuple[str, dict[str, str]]]:
        """Status and figures of merit of all experiments, after so many runs with this exit code."""
        self.run("-D", self.workspace, "workspace", "setup")
        for _ in range(runs):
            self.run("-D", self.workspace, "on", code=code)
        self.run("-D", self.workspace, "workspace", "analyze", "-f", "json", "--always-print-foms")
        experiments = json.loads((self.workspace / "results.latest.json").read_text())["experiments"]
        return {
            experiment["name"]: (
                experiment["RAMBLE_STATUS"],
                {
                    figure["name"]: figure["value"]
                    for context in experiment["CONTEXTS"]
                    for figure in context["foms"]
                },
            )
            for experiment in experiments
        }


@pytest.fixture(scope="module")
def clone(unavailable: Callable[[str], NoReturn]) -> Path:
    """Ramble's pinned release, cloned once."""
    folder = ROOT / ".pagewise" / "ramble" / TAG
    if not folder.exists():
        fresh = folder.with_name(f"{TAG}-{os.getpid()}")
        options = ("--quiet", "--depth", "1", "--branch", TAG)
        done = subprocess.run(
            ["git", "-c", "advice.detachedHead=false", "clone", *options, URL, fresh],
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            unavailable(f"needs Ramble: {done.stderr.strip()}")
        fresh.rename(folder)
    actual = ["git", "-C", str(folder), "rev-parse", "HEAD^{tree}"]
    assert subprocess.run(actual, capture_output=True, text=True, check=True).stdout.strip() == TREE
    return folder


@pytest.fixture(scope="module")
def measured(
    clone: Path, unavailable: Callable[[str], NoReturn], tmp_path_factory: pytest.TempPathFactory
) -> tuple[Ramble, dict]:
    """A user's own application under page policies, with and without MPI."""
    if shutil.which("mpiexec") is None:
        unavailable("needs MPI (make setup-tests)")
    folder = tmp_path_factory.mktemp("memory")
    refusing = folder / "refusing"
    refusing.write_text(REFUSING.format(python=sys.executable))
    refusing.chmod(0o755)
    application = folder / "repo" / "applications" / "memory"
    application.mkdir(parents=True)
    (folder / "repo" / "repo.yaml").write_text("repo: {namespace: mine}")
    (application / "application.py").write_text(APPLICATION)
    launcher = find_launcher([], os.environ)
    by_variable = {"modifiers": [{"name": "pagewise-pages"}]}
    by_mode = {"modifiers": [{"name": "pagewise-pages", "mode": "thp", "on_executable": ["serial"]}]}
    of_policies = {"of_{page_policy}": by_variable | {"variables": {"page_policy": ["none", "thp"]}}}
    # Ramble stops at the first experiment whose last command fails.
    workloads = {
        "serial": {"experiments": {**of_policies, "by_mode": by_mode}},
        "parallel": {"experiments": of_policies},
        "refused": {
            "experiments": {
                name: by_variable | {"variables": {"page_policy": name}} for name in ("thp", "hugetlbfs:1g")
            }
        },
    }
    settings = {
        "variables": {
            "mpi_command": " ".join(launcher.command(2, 1)),
            "batch_submit": "{execute_experiment}",
            **{"processes_per_node": 2, "n_nodes": 1, "n_ranks": 2},
            "program": str(compile_program(folder, "memory")),
            "refusing": str(refusing),
        },
        "applications": {"memory": {"workloads": workloads}},
    }
    (folder / "ramble.yaml").write_text(yaml.safe_dump({"ramble": settings}, sort_keys=False))
    ramble = Ramble(clone, folder, **launcher.environment)
    ramble.run("repo", "add", "-t", "modifiers", ROOT / "repos" / "ramble")
    ramble.run("repo", "add", "-t", "applications", folder / "repo")
    ramble.run("workspace", "create", "-d", ramble.workspace, "-c", folder / "ramble.yaml")
    return ramble, ramble.measure(runs=2, code=3)


def records(ramble: Ramble, workload: str, experiment: str) -> list[dict]:
    folder = ramble.workspace / "experiments" / "memory" / workload / experiment
    lines = [line for file in folder.glob("pagewise-pages.*.jsonl") for line in file.read_text().splitlines()]
    assert [fault for line in lines for fault in faults(ExecRecord, json.loads(line))] == []
    return [json.loads(line) for line in lines]


@needs_thp
@pytest.mark.parametrize(
    ("workload", "experiment", "policy", "ranks"),
    [
        ("serial", "of_none", "none", [None, None]),
        ("serial", "of_thp", "thp", [None, None]),
        ("serial", "by_mode", "thp", [None]),
        ("parallel", "of_none", "none", [0, 1]),
        ("parallel", "of_thp", "thp", [0, 1]),
    ],
)
def test_an_experiment_has_the_pages_of_its_policy_as_figures_of_merit(
    measured: tuple[Ramble, dict], workload: str, experiment: str, policy: str, ranks: list[int | None]
) -> None:
    """Its programs are under the policy, not the shell's own commands; of a second run as well."""
    ramble, results = measured
    status, figures = results[f"memory.{workload}.{experiment}"]
    assert status == "SUCCESS" and figures["rate"] == "1.500"
    assert figures["pages_policy"] == policy and figures["pages_met"] == "1"
    written = records(ramble, workload, experiment)
    assert {record["policy"] for record in written} == {policy}
    assert sorted([record["rank"] for record in written], key=str) == ranks
    assert int(figures["pages_processes"]) == len(ranks)
    assert int(figures["pages_peak"]) == max(record["peak_bytes"] for record in written) > 64 << 20
    used = [record["kinds"]["anonymous"] for record in written]
    share = sum(kind["huge_bytes"] for kind in used) / sum(kind["resident_bytes"] for kind in used)
    assert float(figures["pages_coverage_anonymous"]) == pytest.approx(share, abs=1e-6)
    assert share > 0.8 if policy == "thp" else share == 0


@needs_thp
@pytest.mark.parametrize(("experiment", "processes"), [("thp", 1), ("hugetlbfs:1g", 0)])
def test_an_experiment_with_an_unmet_policy_fails(
    measured: tuple[Ramble, dict], experiment: str, processes: int
) -> None:
    ramble, results = measured
    status, figures = results[f"memory.refused.{experiment}"]
    assert status == "FAILED" and figures["pages_met"] == "0" and figures["pages_problem"]
    assert int(figures["pages_processes"]) == len(records(ramble, "refused", experiment)) == processes
    # Only the pages make it fail, where the program ran.
    assert ("rate" in figures) == bool(processes)


def test_an_archive_has_the_records(measured: tuple[Ramble, dict]) -> None:
    ramble, _ = measured
    ramble.run("-D", ramble.workspace, "workspace", "archive")
    (archive,) = [folder for folder in (ramble.workspace / "archive").iterdir() if not folder.is_symlink()]
    kept = {file.parent.name for file in archive.glob("experiments/memory/serial/*/pagewise-pages.*.jsonl")}
    assert kept == {"of_none", "of_thp", "by_mode"}


@pytest.mark.parametrize(
    ("times", "selected"),
    [(1, {}), (1, {"variables": {"page_policy": "nosuch"}}), (2, {"variables": {"page_policy": "thp"}})],
)
def test_an_experiment_needs_one_policy_that_exists(
    measured: tuple[Ramble, dict], tmp_path: Path, times: int, selected: dict[str, object]
) -> None:
    ramble, _ = measured
    settings = yaml.safe_load((ramble.folder / "ramble.yaml").read_text())
    workload = {"experiments": {"wrong": {"modifiers": [{"name": "pagewise-pages"}] * times} | selected}}
    settings["ramble"]["applications"]["memory"]["workloads"] = {"serial": workload}
    (tmp_path / "ramble.yaml").write_text(yaml.safe_dump(settings))
    ramble.run("workspace", "create", "-d", tmp_path / "other", "-c", tmp_path / "ramble.yaml")
    ramble.run("-D", tmp_path / "other", "workspace", "setup", code=1)


def test_exported_kernels_run(clone: Path, tmp_path: Path) -> None:
    """An experiment for each configuration; one with other pages than its configuration's fails."""
    stage = Stage(tmp_path)
    for label, behaviour in (
        (("none", "hardware", "regular"), {}),
        (("thp", "hardware", "regular"), {"mode": "wrong_pages"}),
    ):
        stage.add("gcc-12.2.0", label, [TRIAD], **behaviour)
    program = tmp_path / "pagewise"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pagewise "$@"\n')
    program.chmod(0o755)
    stage.run("export", "ramble", "exported", "--rounds", "1", code=0)
    ramble = Ramble(clone, tmp_path, **stage.variables())
    ramble.run("repo", "add", "-t", "applications", "exported/repo")
    files = ("-c", "exported/configs/ramble.yaml", "-t", "exported/configs/execute_experiment.tpl")
    ramble.run("workspace", "create", "-d", ramble.workspace, *files)
    results = ramble.measure()
    # Next to each experiment there is one that sums up its repeats.
    repeats = {name: result for name, result in results.items() if name.endswith(".1")}
    assert len(results) == 2 * len(repeats) == 4
    for name, (status, figures) in repeats.items():
        _, application, workload, experiment = ("", *name.split(".", 2))
        (file,) = (ramble.workspace / "experiments" / application / workload / experiment).glob(
            "records.jsonl"
        )
        (line,) = file.read_text().splitlines()
        record = json.loads(line)
        assert status == ("SUCCESS" if "_none_" in name else "FAILED")
        assert float(figures["huge_coverage"]) == record["pages"]["huge_coverage"]
        for field in ("bandwidth_stream_gb_per_s", "bandwidth_hardware_gb_per_s"):
            assert float(figures[field]) == record["metrics"][field]
