"""Nodes unlike the others: error rates on simulated partitions, facts, and what schedulers say."""

from __future__ import annotations

import json
import math
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from builders import a_host
from many_results import SLOW, SLOWER
from pagewise.analysis.nodes import (
    NodeQuantity,
    NodeValue,
    differences,
    find_outliers,
    host_facts,
    node_value,
    population,
    spread_of,
)
from pagewise.cluster.findings import find
from pagewise.core.errors import SelectionError
from pagewise.core.host import Thp
from pagewise.report.views import cluster
from querying import DATES, NODES, data
from stage import Stage, csv_rows

#: ReFrame's configuration without a scheduler.
LOCAL = {"name": "login", "scheduler": "local", "launcher": "local", "environs": ["builtin"]}
SITE = {"systems": [{"name": "here", "hostnames": [".*"], "partitions": [LOCAL]}]}
TIME = NodeQuantity("triad", "gcc-12.2.0/none/hardware-regular", "time")


def quantity(number: int) -> NodeQuantity:
    return NodeQuantity("triad", f"gcc-12.2.0/{number}", "time")


def partition(rng: np.random.Generator, nodes: int, quantities: int, spread: float) -> dict:
    """Nodes that are alike but for their spread."""
    return {
        quantity(number): {f"n{node}": NodeValue(math.exp(rng.normal(0.0, spread))) for node in range(nodes)}
        for number in range(quantities)
    }


@pytest.mark.long
@pytest.mark.parametrize(
    ("nodes", "quantities"), [(4, 6), (5, 1), (6, 6), (7, 1), (9, 6), (16, 6), (60, 4), (300, 2)]
)
def test_where_all_nodes_are_alike_at_most_5_percent_of_sweeps_accuse_one(
    nodes: int, quantities: int
) -> None:
    rng = np.random.default_rng(nodes)
    trials = 400 if nodes < 100 else 150
    wrong = [find_outliers(partition(rng, nodes, quantities, 0.02), at_least=1e-9) for _ in range(trials)]
    # Three standard errors of that many trials above 5 %.
    assert np.mean([bool(one) for one in wrong]) <= 0.05 + 3.0 * math.sqrt(0.05 * 0.95 / trials)


@pytest.mark.parametrize(("nodes", "least_detected"), [(6, 0.9), (8, 0.95), (16, 0.99), (100, 0.99)])
def test_a_node_that_is_a_tenth_slower_is_detected_where_others_differ_by_half_a_percent(
    nodes: int, least_detected: float
) -> None:
    rng = np.random.default_rng(7)

    def is_detected() -> bool:
        reported = partition(rng, nodes, 4, 0.005)
        for by_node in reported.values():
            by_node["n2"] = NodeValue(1.1 * by_node["n2"].value)
        return {one.node for one in find_outliers(reported)} == {"n2"}

    assert np.mean([is_detected() for _ in range(100)]) >= least_detected


def test_a_quarter_of_bad_nodes_does_not_hide_itself() -> None:
    rng = np.random.default_rng(11)
    reported = partition(rng, 40, 1, 0.005)[quantity(0)]
    bad = {f"n{number}" for number in range(10)}
    slowed = {name: NodeValue(one.value * (1.15 if name in bad else 1.0)) for name, one in reported.items()}
    assert {one.node for one in find_outliers({TIME: slowed})} == bad


SMALL = {f"n{number}": NodeValue(1.025 if number == 3 else 1.0 + 1e-4 * number) for number in range(20)}
ALIKE = {f"n{number}": NodeValue(1.0 + 0.001 * (number % 5), 0.001) for number in range(12)}


@pytest.mark.parametrize(
    ("values", "at_least", "accused"),
    [
        ({"n1": NodeValue(1.0), "n2": NodeValue(1.0), "n3": NodeValue(9.0)}, 0.03, []),
        (dict.fromkeys(("n1", "n2", "n3", "n4", "n5", "n6"), NodeValue(2.0)), 0.03, []),
        (SMALL, 0.03, []),
        (SMALL, 0.02, ["n3"]),
        # A node that is measured badly must lie farther out.
        (ALIKE | {"n0": NodeValue(1.1, 0.001)}, 0.03, ["n0"]),
        (ALIKE | {"n0": NodeValue(1.1, 0.1)}, 0.03, []),
    ],
)
def test_few_equal_slightly_different_and_badly_measured_nodes_are_not_accused(
    values: dict[str, NodeValue], at_least: float, accused: list[str]
) -> None:
    assert [one.node for one in find_outliers({TIME: values}, at_least)] == accused


def test_the_spread_and_the_error_of_a_median_match_normal_values() -> None:
    rng = np.random.default_rng(3)
    for count in (4, 5, 8, 9, 30, 2500):
        actual = np.mean([spread_of(rng.normal(0.0, 1.0, count)) for _ in range(300 if count < 100 else 10)])
        assert actual == pytest.approx(1.0, abs=0.15), count
    # Outliers do not count.
    values = rng.normal(0.0, 1.0, 100)
    values[:40] += 1000.0
    assert spread_of(values) < 4.0
    rng = np.random.default_rng(5)
    rounds = np.exp(rng.normal(0.0, 0.02, (2000, 25)))
    errors = [node_value(one).error for one in rounds]
    true = float(np.std([math.log(node_value(one).value) for one in rounds]))
    assert float(np.median(errors)) == pytest.approx(true, rel=0.15)


def test_two_kinds_of_nodes_are_reported() -> None:
    rng = np.random.default_rng(9)
    values = np.exp(np.concatenate([rng.normal(0.0, 0.005, 12), rng.normal(math.log(1.5), 0.005, 8)]))
    actual = population(TIME, {f"n{number}": NodeValue(float(one)) for number, one in enumerate(values)})
    assert actual.two is not None
    assert actual.two.apart == pytest.approx(1.5, rel=0.02)
    assert actual.two.slow_share == pytest.approx(0.4)


def test_facts_that_differ_are_reported_with_their_nodes() -> None:
    nodes = {f"n{number}": host_facts(a_host()) for number in range(4)}
    nodes["n9"] = host_facts(a_host(thp=Thp("never", "madvise", {}), kernel="5.14"))
    actual = {one.fact: one for one in differences(nodes)}
    assert set(actual) == {"THP", "kernel"}
    assert actual["THP"].usual == "madvise"
    assert actual["THP"].others == {"never": ("n9",)}
    # No value has a majority.
    (smt,) = differences({"n1": {"SMT": "on"}, "n2": {"SMT": "off"}})
    assert smt.usual is None and set(smt.others) == {"on", "off"}


def test_memory_that_differs_by_the_kernels_reserve_is_the_same() -> None:
    sizes = {"n1": 400_000_000_000, "n2": 400_300_000_000, "n3": 399_900_000_000}
    nodes = {name: host_facts(a_host(memory_bytes=size)) for name, size in sizes.items()}
    assert differences(nodes) == []
    nodes["n4"] = host_facts(a_host(memory_bytes=350_000_000_000))
    assert [(one.fact, list(one.others.values())) for one in differences(nodes)] == [("memory", [("n4",)])]


@pytest.mark.long
def test_of_each_node_the_newest_complete_comparison_counts(many: Path, tmp_path: Path) -> None:
    results = shutil.copytree(many, tmp_path / "results")
    actual = data("cluster-report", "cluster", "nodes", results)
    assert [node["attempts"] for node in actual["nodes"]] == NODES * [DATES]
    newest = [str(max(folder.iterdir())) for folder in sorted(results.glob("node0*"))]
    assert [node["result"] for node in actual["nodes"]] == newest
    assert all(node["state"] == "complete" and node["why"] is None for node in actual["nodes"])
    assert {(each["node"], each["kind"]) for each in actual["outliers"]} == {(SLOW, "time")}
    assert all(each["factor"] == pytest.approx(SLOWER, rel=0.05) for each in actual["outliers"])
    assert not actual["invalid"] and not actual["differences"] and not actual["unreadable"]
    assert {"report.html", "summary.md"} <= {file.name for file in results.iterdir()}
    rows = csv_rows(results / "nodes.csv")
    assert {row["is_outlier"] for row in rows} == {"True", "False"}
    assert {(row["node"], row["kind"]) for row in rows if row["is_outlier"] == "True"} == {(SLOW, "time")}

    def end(node: str, number: int, state: str) -> Path:
        folder = sorted((results / node).iterdir())[number]
        manifest = json.loads((folder / "manifest.json").read_text())
        (folder / "manifest.json").write_text(json.dumps({**manifest, "state": state, "rounds_done": 2}))
        return folder

    end("node000", -1, "interrupted")
    for number in range(DATES):
        partial = end("node001", number, "running")
    (end("node002", 0, "complete") / "manifest.json").write_text("{")
    (partial / "records.jsonl").unlink()
    findings = find([results / "node000", *sorted(results.glob("node00[1-5]/*"))], 0.03)
    nodes = {node.name: node for node in findings.nodes}
    assert nodes["node000"].state == "complete" and nodes["node000"].why
    assert nodes["node000"].attempt.folder == min((results / "node000").iterdir())
    assert nodes["node001"].state == "partial" and nodes["node002"].attempts == DATES - 1
    assert len(nodes) == NODES and len(findings.unreadable) == 1 and cluster.view(findings).faulty
    (tmp_path / "empty").mkdir()
    with pytest.raises(SelectionError):
        find([tmp_path / "empty"], 0.03)


@pytest.mark.long
@pytest.mark.parametrize(("kernel", "code"), [("triad", 0), ("nosuch", 1)])
def test_reframe_compares_on_this_node_without_a_scheduler(small: Stage, kernel: str, code: int) -> None:
    site, report = small.folder / "site.py", small.folder / "run.json"
    site.write_text(f"site_configuration = {SITE}")
    options = {"options": f"--rounds 1 --no-sweep --kernels {kernel}"}
    done = small.reframe(site, options, "--distribute=all", "--report-file", str(report))
    assert done.returncode == code, done.stdout + done.stderr
    (case,) = json.loads(report.read_text())["runs"][0]["testcases"]
    assert len(case["perfvalues"] or {}) == (3 if code == 0 else 0), case
    results = list(small.results.glob(f"*-nodes/{os.uname().nodename}/*/manifest.json"))
    assert len(results) == 1 - code
