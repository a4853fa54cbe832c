"""What a store of many results answers."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import pytest

import tabled_results
from builders import configuration, failed_record, record, varied
from collecting import DATES, NODES, collected, count, pagewise, rows
from many_results import KERNELS, SLOW
from pagewise.analysis.analysis import analyse
from pagewise.analysis.validity import exclusion
from pagewise.core.configuration import Configuration
from pagewise.core.errors import FormatError, PagewiseError, RefusedError, SelectionError
from pagewise.core.kernel import Kernel
from pagewise.core.plan import placed, subject
from pagewise.core.record import Record, dumped
from pagewise.core.result import read_result
from pagewise.store.query import ask, known, statement
from pagewise.store.store import writing
from stage import ROOT, TRIAD, Stage


@pytest.fixture(scope="module")
def store(many: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("store") / "many.duckdb"
    reported = collected(file, many)
    lines = len((next(many.glob("*/*/records.jsonl"))).read_text().splitlines())
    assert reported["taken"] == NODES * DATES and reported["records"] == NODES * DATES * lines == count(file)
    assert reported["skipped"] == {} and reported["partial"] == {}
    return file


@pytest.fixture(scope="module")
def both_stores(template: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("both")
    found = {"store": folder / "store.duckdb", "parquet": folder / "parquet"}
    pagewise("results", "collect", template, "--store", found["store"], "--parquet", found["parquet"])
    return found


def test_the_store_reports_the_slow_node_and_what_the_new_kernel_did(store: Path):
    assert {row["hostname"] for row in rows(store, "slow-nodes")} == {SLOW}
    history = [row for row in rows(store, "ratio-history") if row["kernel"] == "triad"]
    assert [row["kernel_release"] for row in history] == list(KERNELS)
    before, after = (row["time_ratio"] for row in history)
    assert before == pytest.approx(0.8, rel=0.03) and after / before == pytest.approx(1.1, rel=0.02)
    assert {row["nodes"] for row in history} == {NODES}


def test_times_by_the_distance_of_the_hardware_prefetcher(template: Path, tmp_path: Path):
    original = json.loads((template / "manifest.json").read_text())
    for distance, number in (("distL2=20", 1), ("distL2=40", 2)):
        folder = shutil.copytree(template, tmp_path / "results" / distance)
        prefetchers = {
            "off": [], "adjusted": [distance], "method": "hwpfctl", "read_back": False, "before": []
        }  # fmt: skip
        changed = {**original, "id": f"{number:016x}", "prefetchers": prefetchers}
        (folder / "manifest.json").write_text(json.dumps(changed))
    reported = collected(tmp_path / "store", tmp_path / "results")
    assert reported["taken"] == 2 and reported["partial"] == {}
    found = rows(tmp_path / "store", "prefetchers")
    assert {row["adjusted"] for row in found} == {'["distL2=20"]', '["distL2=40"]'}
    assert all(row["off"] == [] and row["runs"] > 0 and row["seconds"] > 0.0 for row in found)


def test_several_programs_in_two_places_each_against_its_baseline(tmp_path: Path):
    """Times and memory differ by program, policy and placement."""
    places = [tabled_results.place(f"threads:{n}", n, cores=n) for n in (1, 2)]
    policies, metric = ("none", "thp"), ("peak_memory_gib", "GiB", "lower")

    def built(name: str, policy: str) -> Configuration:
        return configuration("unchanged binary", (policy, "hardware", "regular"), module=f"{name}/{policy}")

    subjects = [
        subject(
            tabled_results.program(name, name, metric),
            [built(name, policy) for policy in policies],
            "none/hardware-regular",
        )
        for name in ("first", "second")
    ]

    def value(one: Kernel, measured: Configuration, name: str) -> tuple[float, dict[str, float]]:
        times = 1 + policies.index(measured.hugepages)
        alone = 10.0 if name == "threads:1" else 1.0
        return alone * times ** (2 if one.name == "second" else 1), {"peak_memory_gib": alone / times}

    (tmp_path / "results").mkdir()
    both = placed(subjects, [place.name for place in places])
    tabled_results.result(tmp_path / "results" / "r", both, places, value)
    collected(tmp_path / "store", tmp_path / "results")
    found = {(r["program"], r["policy"], r["placement"]): r for r in rows(tmp_path / "store", "programs")}
    assert len(found) == 6
    for (name, policy, where), row in found.items():
        times = 1 + policies.index(policy)
        alone = 1.0 if where == "threads:1" else 0.1
        assert row["time_ratio"] == pytest.approx(alone * times ** (2 if name == "second" else 1), rel=0.02)
        assert row["memory_ratio"] == pytest.approx(alone / times, rel=0.02)


def test_ratios_of_the_store_are_those_of_the_report(store: Path, many: Path):
    folder = next(many.glob("node000/*"))
    result = read_result(folder)
    reported = {
        (row["kernel"], row["module"]): row
        for row in rows(store, f"SELECT * FROM ratios JOIN results USING (result) WHERE folder = '{folder}'")
    }
    kernels = analyse(result.subjects, result.records, result.manifest.seed)
    wanted = [
        (one.kernel.name, row)
        for one in kernels
        for group in one.groups
        for row in group.ranked
        if row.time_ratio is not None and not row.cell.is_baseline
    ]
    assert len(wanted) == len(reported) > 1
    for kernel, row in wanted:
        found = reported[kernel, row.cell.measured.module]
        assert found["time_ratio"] == pytest.approx(row.time_ratio.median, rel=1e-9)
        assert found["pairs"] == row.time_ratio.pairs and found["seconds"] == pytest.approx(row.seconds)


def variants() -> list[Record]:
    none, thp = configuration(), configuration(label=("thp", "hardware", "regular"))
    good = record(thp, [1.0, 3.0, 2.0])

    def pages(one: Any, **changes: Any) -> Record:
        return varied(record(one, 1.0), "pages", **changes)

    return [
        good,
        varied(good, "validation", passed=False),
        failed_record(thp, "pages_unavailable", "no pages"),
        failed_record(thp, "failed", "crashed"),
        pages(thp, policy="none"),
        pages(thp, huge_coverage=0.98),
        pages(thp, huge_coverage=0.85, enough_coverage=0.8),
        pages(thp, page_size_observed_bytes=4096),
        pages(none, huge_coverage=0.01),
        pages(none, page_size_observed_bytes=65536),
        varied(pages(thp, policy="thp:64k"), "run", pages="thp:64k"),
        replace(good, run=None),
    ]


def test_the_store_ranks_what_the_reports_rank(tmp_path: Path):
    made = variants()
    (tmp_path / "one").mkdir()
    lines = [dumped(replace(one, started=f"2026-01-02T03:04:{n:02d}Z")) for n, one in enumerate(made)]
    (tmp_path / "one/records.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    reported = collected(tmp_path / "store", tmp_path)
    assert reported["records"] == len(made) and reported["partial"] == {}
    found = rows(tmp_path / "store", "SELECT * FROM records ORDER BY started")
    codes = [None if (why := exclusion(one)) is None else why.code for one in made]
    assert [row["excluded"] for row in found] == codes and None in codes
    assert found[0]["seconds"] == 2.0 and found[0]["metrics"]["latency_ns"] == 3.0
    assert (
        found[0]["counters"] is None and found[0]["counters_unavailable"] == made[0].counters["unavailable"]
    )
    assert found[2]["message"] == made[2].failure.message and found[10]["hugepages"] == "thp:64k"


def test_parquet_files_answer_as_the_store_does(store: Path, many: Path, tmp_path: Path):
    pagewise("results", "collect", many, "--store", store, "--parquet", tmp_path / "parquet")
    for question in ("slow-nodes", "ratio-history"):
        assert rows(tmp_path / "parquet", question) == rows(store, question)
    with pytest.raises(SelectionError):
        rows(tmp_path, "faults")


@pytest.mark.long
def test_what_a_configuration_calls_and_was_built_for_is_reported(stage: Stage, tmp_path: Path):
    calls = {**TRIAD, "sensitive_to": [*TRIAD["sensitive_to"], "library"]}
    for library in ("", "openblas"):
        stage.add("gcc-12.2.0", ("none", "hardware", "regular"), [calls], library=library)
    assert stage.compare("--rounds", "2", "--no-sweep").returncode == 0
    store = tmp_path / "store.duckdb"
    collected(store, stage.results)
    columns = "library, runtime, simd, target"
    reported = rows(store, f"SELECT DISTINCT {columns} FROM cells ORDER BY library NULLS FIRST")
    plain = {"library": None, "runtime": None, "simd": None, "target": "x86_64"}
    assert reported == [plain, {**plain, "library": "openblas"}]


def test_questions_that_cannot_be_asked_say_what_can(store: Path, tmp_path: Path):
    with pytest.raises(SelectionError) as found:
        ask(store, "SELECT nonsense FROM records", 0.0)
    assert "nonsense" in str(found.value) and "ratios" in found.value.remedy
    with pytest.raises(SelectionError) as found:
        statement("slow-node")
    assert "slow-nodes" in found.value.remedy
    with pytest.raises(SelectionError):
        ask(tmp_path / "none", "SELECT 1", 0.0)
    with pytest.raises(SelectionError, match="DELETE"):
        ask(store, "DELETE FROM records", 0.0)
    (tmp_path / "text").write_text("this is no database" * 1000)
    with pytest.raises(FormatError):
        ask(tmp_path / "text", "SELECT 1", 0.0)
    with writing(tmp_path / "newer", 0.0) as connection:
        connection.execute("UPDATE store SET layout = 99")
    with pytest.raises(FormatError, match=r"\b99\b"):
        ask(tmp_path / "newer", "SELECT 1", 0.0)
    with pytest.raises(PagewiseError) as missing:
        pagewise("results", "collect", tmp_path / "nowhere", "--store", tmp_path / "s")
    assert missing.value.where == str(tmp_path / "nowhere")


@pytest.mark.parametrize(
    "sql",
    [
        "COPY records TO '{folder}/out.csv'",
        "COPY (SELECT 1) TO '{folder}/out.parquet' (FORMAT parquet)",
        "EXPORT DATABASE '{folder}/out'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "LOAD '{folder}/secret.csv'",
        "SELECT * FROM read_csv('{folder}/secret.csv')",
        "SELECT * FROM '{folder}/secret.csv'",
        "SELECT * FROM read_text('{folder}/secret.csv')",
        "SELECT * FROM glob('{folder}/*')",
        "ATTACH '{folder}/out.duckdb'",
        "SET enable_external_access = true",
        "SET allowed_directories = ['/']",
        "SET temp_directory = '{folder}/out'",
        "RESET lock_configuration",
    ],
)
@pytest.mark.parametrize("kind", ["store", "parquet"])
def test_a_query_reaches_the_store_and_nothing_else(
    sql: str, kind: str, both_stores: dict[str, Path], tmp_path: Path
):
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    with pytest.raises(SelectionError):
        ask(both_stores[kind], sql.format(folder=tmp_path), 0.0)
    assert [file.name for file in tmp_path.iterdir()] == ["secret.csv"]
    assert ask(both_stores[kind], "SELECT count(*) FROM records", 0.0)[1][0][0] > 0


@pytest.mark.long
def test_commands_and_queries_of_the_guide_run(store: Path):
    guide = (ROOT / "docs/reference/results.md").read_text()
    queries = re.findall(r"```sql\n(.*?)```", guide, re.S)
    assert len(queries) >= 4
    for sql in queries:
        assert ask(store, sql, 0.0)[0]
    named = set(re.findall(r"results query ([a-z-]+)(?: |$)", guide, re.M))
    assert named and named <= set(known())
    for name in known():
        ask(store, statement(name), 0.0)
    described = {row["table_name"] for row in rows(store, "SELECT table_name FROM information_schema.tables")}
    columns = rows(store, "SELECT table_name, column_name FROM information_schema.columns")
    for table in described - {"store"}:
        assert f"`{table}`" in guide
    reported = set(chain.from_iterable(line.split("`") for line in guide.splitlines()))
    for row in columns:
        if row["table_name"] in ("results", "records", "cells"):
            assert any(row["column_name"] in part.split(", ") for part in reported), row


def test_who_waits_too_long_is_reported(tmp_path: Path):
    store = tmp_path / "store.duckdb"
    hold = "import sys, duckdb; c = duckdb.connect(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as held:
        assert held.stdout.readline() == b"held\n"
        with pytest.raises(RefusedError) as found:
            ask(store, "SELECT 1", 0.0)
        assert "--wait" in found.value.remedy
        held.stdin.close()
