"""What many results answer."""

from __future__ import annotations

import re
import shlex
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

import table_results
from builders import configuration, failed_record, record, varied
from many_results import KERNELS, SLOW
from pagewise.analysis.validity import exclusion
from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import Configuration
from pagewise.core.errors import SelectionError
from pagewise.core.plan import at_placements, subject
from pagewise.core.record import dump_record
from pagewise.store.query import ask, known_queries, statement
from querying import NODES, answer, count, pagewise, rows
from stage import ROOT


def test_queries_report_the_slow_node_and_the_effect_of_the_new_kernel(many: Path):
    actual = answer(many, "slow-nodes")
    assert {row["hostname"] for row in actual["rows"]} == {SLOW}
    assert actual["skipped"] == actual["partial"] == actual["conflicts"] == {}
    history = [row for row in rows(many, "ratio-history") if row["kernel"] == "triad"]
    assert [row["kernel_release"] for row in history] == list(KERNELS)
    before, after = (row["time_ratio"] for row in history)
    assert before == pytest.approx(0.8, rel=0.03) and after / before == pytest.approx(1.1, rel=0.02)
    assert {row["nodes"] for row in history} == {NODES}


def test_several_programs_in_two_places_each_against_its_baseline(tmp_path: Path):
    """Times and memory differ by program, policy and placement."""
    places = [table_results.place(f"threads:{n}", n, cores=n) for n in (1, 2)]
    policies, metric = ("none", "thp"), ("peak_memory_gib", "GiB", "lower")

    subjects = []
    for name in ("first", "second"):
        built = [
            configuration("unchanged binary", (policy, "hardware", "regular"), module=f"{name}/{policy}")
            for policy in policies
        ]
        subjects.append(subject(table_results.program(name, name, metric), built, "none/hardware-regular"))

    def value(one: Benchmark, measured: Configuration, name: str) -> tuple[float, dict[str, float]]:
        times = 1 + policies.index(measured.hugepages)
        alone = 10.0 if name == "threads:1" else 1.0
        return alone * times ** (2 if one.name == "second" else 1), {"peak_memory_gib": alone / times}

    (tmp_path / "results").mkdir()
    both = at_placements(subjects, [place.name for place in places])
    table_results.result(tmp_path / "results" / "r", both, places, value)
    actual = {(r["program"], r["policy"], r["placement"]): r for r in rows(tmp_path / "results", "programs")}
    assert len(actual) == 6
    for (name, policy, where), row in actual.items():
        times = 1 + policies.index(policy)
        alone = 1.0 if where == "threads:1" else 0.1
        assert row["time_ratio"] == pytest.approx(alone * times ** (2 if name == "second" else 1), rel=0.02)
        assert row["memory_ratio"] == pytest.approx(alone / times, rel=0.02)


def test_records_without_a_manifest_are_excluded_for_their_own_faults(tmp_path: Path):
    thp = configuration(label=("thp", "hardware", "regular"))
    good = record(thp, [1.0, 3.0, 2.0])
    made = [
        good,
        varied(good, "validation", passed=False),
        failed_record(thp, "pages_unavailable", "no pages"),
        varied(good, "pages", huge_coverage=0.98),
        varied(varied(good, "pages", policy="thp:64k"), "run", pages="thp:64k"),
        replace(good, run=None),
    ]
    (tmp_path / "one").mkdir()
    lines = [dump_record(replace(one, started=f"2026-01-02T03:04:{n:02d}Z")) for n, one in enumerate(made)]
    (tmp_path / "one/records.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    actual = rows(tmp_path, "SELECT * FROM records ORDER BY started")
    codes = [None if (why := exclusion(one)) is None else why.code for one in made]
    assert [row["excluded"] for row in actual] == codes and len(set(codes)) > 3
    assert actual[0]["seconds"] == 2.0 and actual[0]["metrics"]["latency_ns"] == 3.0
    assert actual[0]["counters"] is None
    assert actual[0]["counters_unavailable"] == good.counters["unavailable"]
    assert actual[2]["message"] == made[2].failure.message and actual[4]["hugepages"] == "thp:64k"


def test_unknown_questions_are_refused_with_the_known_ones(many: Path, tmp_path: Path):
    with pytest.raises(SelectionError) as actual:
        ask([many], "SELECT nonsense FROM records")
    assert "nonsense" in str(actual.value) and "ratios" in actual.value.remedy
    with pytest.raises(SelectionError) as actual:
        statement("slow-node")
    assert "slow-nodes" in actual.value.remedy
    with pytest.raises(SelectionError) as missing:
        ask([tmp_path / "nowhere"], "SELECT 1")
    assert missing.value.where == str(tmp_path / "nowhere")
    assert count(tmp_path) == count(tmp_path, "results") == count(tmp_path, "runs") == 0


@pytest.mark.parametrize(
    "sql",
    [
        "COPY records TO '{folder}/out.csv'",
        "COPY (SELECT 1) TO '{result}/manifest.json'",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{result}/manifest.json'",
        "PREPARE p AS COPY (SELECT 1) TO '{result}/manifest.json'; EXECUTE p",
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
        "CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'k', SECRET 's')",
        "",
    ],
)
def test_a_query_reaches_the_results_and_nothing_else(sql: str, template: Path, tmp_path: Path):
    (tmp_path / "secret.csv").write_text("a,b\n1,2\n")
    written = tmp_path / "written"
    written.mkdir()
    before = {file.name: file.read_bytes() for file in template.iterdir() if file.is_file()}
    for folder in (None, written):
        with pytest.raises(SelectionError):
            ask([template], sql.format(folder=tmp_path, result=template), folder)
    assert {file.name for file in tmp_path.iterdir()} == {"secret.csv", "written"}
    assert {file.name: file.read_bytes() for file in template.iterdir() if file.is_file()} == before


def test_commands_and_queries_of_the_guide_run(template: Path):
    guide = (ROOT / "docs/reference/results.md").read_text()
    queries = re.findall(r"```sql\n(.*?)```", guide, re.S)
    assert queries
    for sql in queries:
        assert ask([template], sql).columns
    named = set(re.findall(r"results query ([a-z][a-z-]+)(?: |$)", guide, re.M))
    assert named and named <= set(known_queries())
    for name in known_queries():
        assert ask([template], statement(name)).columns
    tables = dict(re.findall(r"^`(\w+)`: one row .*?\n\n(.*?)\n\n", guide, re.M | re.S))
    assert {*tables} == {"results", "cells", "records"}
    for table, text in tables.items():
        columns = {row["column_name"] for row in rows(template, f"DESCRIBE {table}")}
        assert columns <= set(re.findall(r"`(\w+)`", text)), table
        named = {name for line in text.splitlines() for name in re.findall(r"`(\w+)`", line.split("|")[1])}
        assert named and named <= columns, table


def test_the_guide_writes_one_file_of_many_results(
    many: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    guide = (ROOT / "docs/reference/results.md").read_text()
    examples = [shlex.split(line) for line in re.findall(r"^ +\./pagewise (.*--write .*)$", guide, re.M)]
    (tmp_path / "results").symlink_to(many)
    monkeypatch.chdir(tmp_path)
    for words in examples:
        assert not pagewise(*words).return_value
    written = {file.suffix: file for file in tmp_path.iterdir() if file.is_file()}
    assert set(written) == {".parquet", ".duckdb"}
    with duckdb.connect(written[".duckdb"], read_only=True) as connection:
        for table in ("records", "ratios"):
            actual = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
            assert actual == (count(many, table),)
    actual = duckdb.read_parquet(str(written[".parquet"])).count("*").fetchone()
    assert actual == (count(many),)
