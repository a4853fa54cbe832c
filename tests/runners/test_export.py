"""The export for Ramble: applications and a workspace, their patterns against what kernels write."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from builders import configuration, record_data
from pagewise.cli import root
from scripts import called
from stage import Stage


@pytest.fixture
def exported(small: Stage) -> tuple[Stage, Path]:
    folder = small.folder / "exported"
    done = small.run("export", "ramble", str(folder), "--rounds", "3", "--threads", "2", code=0)
    assert [Path(line).is_file() for line in done.stdout.split()] == [True] * 5
    return small, folder


def calls(folder: Path, kernel: str) -> dict[str, list[ast.Call]]:
    """The directives in the class of an application, by name."""
    tree = ast.parse((folder / f"repo/applications/pagewise-{kernel}/application.py").read_text())
    (actual,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    by_name: dict[str, list[ast.Call]] = {}
    for node in actual.body:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            by_name.setdefault(node.value.func.id, []).append(node.value)
    return by_name


def keyword(call: ast.Call, name: str) -> object:
    return next(ast.literal_eval(one.value) for one in call.keywords if one.arg == name)


def test_experiments_and_patterns_of_an_export(exported: tuple[Stage, Path], tmp_path: Path) -> None:
    stage, folder = exported
    reported = yaml.safe_load((folder / "configs/ramble.yaml").read_text())["ramble"]
    applications = reported["applications"]
    triad, chase = (
        applications[f"pagewise-{name}"]["workloads"]["compare"]["experiments"] for name in ("triad", "chase")
    )
    # The chase is not sensitive to prefetching.
    assert (len(triad), len(chase)) == (3, 2)
    thp = triad["gcc-12.2.0_thp_hardware-regular"]
    assert thp["n_repeats"] == "3"
    assert thp["variables"]["configuration"].endswith("gcc-12.2.0/thp/hardware-regular")
    assert Path(reported["variables"]["pagewise"]).name == "pagewise"
    assert reported["variables"]["n_threads"] == 2
    # The patterns match the output of a kernel.
    record = tmp_path / "record.jsonl"
    (program,) = stage.folder.glob("opt/*thp*/bin/pw-triad")
    variables = {"COMPILER": "gcc", "HUGEPAGES": "thp", "PREFETCH": "hardware", "STORES": "regular"}
    environment = {f"PAGEWISE_{name}": value for name, value in variables.items()}
    called([program, "--record", record], env=environment, check=True)
    actual, values = json.loads(record.read_text()), {}
    for call in calls(folder, "triad")["figure_of_merit"]:
        # Ramble matches line by line, from the beginning.
        match = re.compile(keyword(call, "fom_regex")).match(record.read_text())
        values[ast.literal_eval(call.args[0])] = float(match[keyword(call, "group_name")])
    assert values["bandwidth_stream_gb_per_s"] == actual["metrics"]["bandwidth_stream_gb_per_s"]
    assert values["huge_coverage"] == actual["pages"]["huge_coverage"] == 1.0
    assert values["first_touch"] == actual["seconds"]["first_touch"]
    refused = stage.run("export", "ramble", str(folder), code=2)
    assert f" {folder}\n" in refused.stderr


RECORDS: list[tuple[dict[str, Any] | None, bool]] = [
    ({}, True),
    ({"pages": {"policy": "thp:64k"}}, True),
    ({"status": "failed", "failure": {"exit_code": 1, "message": "m", "remedy": "r"}}, False),
    ({"validation": {"passed": False}}, False),
    ({"pages": {"huge_coverage": 0.5}}, False),
    ({"pages": {"policy": "hugetlbfs"}}, False),
    (None, False),
]


def test_an_experiment_succeeds_if_pagewise_excludes_nothing(exported: tuple[Stage, Path]) -> None:
    stage, folder = exported
    (valid,) = calls(folder, "triad")["success_criteria"]
    job = (folder / "configs/execute_experiment.tpl").read_text().splitlines()
    (line,) = [line for line in job if line.startswith("{pagewise}")]
    words = shlex.split(line.partition(" > ")[0].replace("{experiment_run_dir}", str(stage.folder)))
    file = stage.folder / "records.jsonl"
    for changes, is_valid in RECORDS:
        file.unlink(missing_ok=True)
        if changes is not None:
            made = record_data(configuration(label=("thp", "hardware", "regular")), 1.0)
            del made["run"]
            for name, part in changes.items():
                made[name] = {**made.get(name, {}), **part} if isinstance(part, dict) else part
            file.write_text(json.dumps(made) + "\n")
        done = CliRunner().invoke(root, words[1:])
        actual = re.match(keyword(valid, "match"), done.stdout, re.DOTALL) is not None
        lines = [re.match(keyword(valid, "match"), text) for text in done.stdout.splitlines()]
        assert actual == any(lines) == is_valid, changes
