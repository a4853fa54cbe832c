"""Records that are not those that were measured: no verdict, and nothing that is taken from them."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from builders import BASE, THP, a_manifest, failed_record, kernel, rounds, row_of, subject_of
from pagewise.analysis.analysis import analyse, analyse_result
from pagewise.core.record import Record, Status, digest_of
from pagewise.core.result import Result, read_result
from pagewise.report.model import Table, blocks_of
from pagewise.report.render import html, markdown
from pagewise.report.render.json import render
from pagewise.report.views import advice, data, session
from pagewise.report.views.kernels import view
from pagewise.stack.files import Watch
from stage import Stage


def fifth(lines: list[bytes]) -> list[bytes]:
    """All times divided by five."""
    actual = []
    for line in lines:
        one = json.loads(line)
        if "seconds" in one:
            one["seconds"]["repetitions"] = [value / 5 for value in one["seconds"]["repetitions"]]
        actual.append(json.dumps(one).encode() + b"\n")
    return actual


CHANGES: dict[str, Callable[[list[bytes]], list[bytes]]] = {
    "times-divided": fifth,
    "rounds-removed": lambda lines: [one for one in lines if json.loads(one)["run"]["round"] != 2],
    "run-removed": lambda lines: lines[1:],
    "run-repeated": lambda lines: [*lines, lines[-1]],
    "order-changed": lambda lines: lines[::-1],
    "line-cut": lambda lines: [*lines[:-1], lines[-1][:40]],
    "records-emptied": lambda lines: [],
}


@pytest.mark.long
def test_altered_records_have_no_verdict_and_are_taken_nowhere(compared, stage: Stage):
    original = compared[0].result()
    folders = {name: shutil.copytree(original, stage.folder / "altered" / name) for name in CHANGES}
    altered = {}
    for name, folder in folders.items():
        file = folder / "records.jsonl"
        file.write_bytes(b"".join(CHANGES[name](file.read_bytes().splitlines(keepends=True))))
        reported = json.loads(stage.run("report", str(folder), "--json", code=1).stdout)
        assert reported["altered"] is not None and reported["answers"] == reported["comparisons"] == [], name
        rows = [row for one in reported["kernels"] for row in one["configurations"]]
        actual = {(row["code"], row["verdict"], row["time_ratio"]) for row in rows}
        assert actual == {("records_altered", None, None)}, name
        stage.run("results", "diff", str(original), str(folder), code=3)
        altered[str(folder)] = reported["altered"]
    whole = str(stage.folder / "altered")
    listed = json.loads(stage.run("results", "list", whole, "--json").stdout)["results"]
    assert {one["folder"]: one["altered"] for one in listed} == altered
    answer = json.loads(stage.run("results", "query", "FROM results", whole, "--json").stdout)
    assert answer["rows"] == [] and answer["skipped"].keys() == altered.keys()


def test_a_manifest_names_its_records(compared):
    folder = compared[0].result()
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["records"] == asdict(digest_of((folder / "records.jsonl").read_bytes()))
    assert read_result(folder).altered is None
    assert "changed_files" not in manifest and all(manifest["files"].values())


def test_a_killed_session_may_have_more_records_than_its_manifest_names(compared, tmp_path: Path):
    folder = shutil.copytree(compared[0].result(), tmp_path / "killed")
    records, file = folder / "records.jsonl", folder / "manifest.json"
    lines = records.read_bytes().splitlines(keepends=True)
    running = {"state": "running", "records": asdict(digest_of(b"".join(lines[:4])))}
    file.write_text(json.dumps({**json.loads(file.read_text()), **running}))
    assert read_result(folder).altered is None
    records.write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))
    assert read_result(folder).altered is not None


def test_a_watch_reports_changes_by_module(tmp_path: Path):
    program, library, module = (tmp_path / name for name in ("program", "library", "module"))
    for file in (program, library, module):
        file.write_text("1")
    watch = Watch({"one": (program, library), "two": (module, library), "three": (tmp_path / "none",)})
    assert [watch.look(name) for name in ("one", "two", "three")] == [[], [], []] and watch.verify() == {}
    module.touch()
    assert watch.look("two") == [], "the content is the same"
    (tmp_path / "new").write_text("2")
    (tmp_path / "new").rename(library)
    assert watch.look("one") == [library]
    library.write_text("1")
    assert watch.look("two") == [library], "what changed once stays reported"
    (tmp_path / "none").write_text("now there")
    assert watch.verify() == {"one": [library], "two": [library], "three": [tmp_path / "none"]}


def sixty(lost: int, status: Status = "pages_unavailable") -> list[Record]:
    """60 rounds; thp takes 0.87 of the time until it fails in a round."""
    noise = [1.0 + 0.001 * (number % 7) for number in range(1, 61)]
    thp = [0.87 * each for each in noise[: lost - 1]]
    failed = [failed_record(THP, status, "THP is never", number=lost)] if lost <= 60 else []
    return [*rounds({BASE: noise, THP: thp}, [2.0 - each for each in noise]), *failed]


def numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))


@pytest.mark.parametrize("lost", [2, 59])
def test_a_policy_that_could_not_be_kept_is_a_finding_and_no_advice(lost: int):
    actual = analyse([subject_of(kernel(), BASE, THP)], sixty(lost), seed=1)
    [row] = actual[0].groups[0].unranked
    assert row.code == "policy_not_kept" and row.is_fault and row.time_ratio is None
    assert (row.rounds, row.rounds_made) == (lost - 1, 60)
    assert [one.row for one in data.faults(actual)] == [row]
    assert advice.answers(actual) == [] and {str(lost - 1), "60"} <= numbers(advice.headline(actual, []))


@pytest.mark.parametrize("status", ["pages_unavailable", "failed", "check_failed"])
def test_failures_after_some_rounds_are_reported_with_their_share(status: Status, tmp_path: Path):
    manifest = a_manifest(rounds=60, rounds_done=60, configurations=(BASE, THP))
    result = Result(tmp_path, manifest, [subject_of(kernel(), BASE, THP)], sixty(19, status), [])
    report = view(result)
    assert advice.answers(analyse_result(result)) == [] and report.faulty
    some, every = session.rounds_text(result), session.rounds_text(replace(result, records=sixty(61)))
    assert sorted(re.findall(r"\d+", some)) == ["18", "60", "60"] and some in session.runs_text(result)
    assert sum(some in text for _, text in report.facts) == 1
    assert all(any({"18", "60"} <= numbers(text) for text in of) for of in ([report.headline], report.notes))
    [rounds] = [
        row["rounds"]
        for table in blocks_of(Table, report.sections)
        for row in table.records()
        if "remedy" in row
    ]
    assert numbers(str(rounds)) == {"18", "60"}
    texts = (markdown.render(report), html.render(report), json.dumps(render(report.data)))
    assert all(every not in text for text in texts)


@pytest.mark.parametrize(("missing", "code"), [(6, None), (7, "incomplete")])
def test_a_configuration_with_too_few_rounds_is_excluded(missing: int, code: str | None):
    kept = [one for one in sixty(61) if one.run.module != THP.module or one.round > missing]
    thp = row_of(analyse([subject_of(kernel(), BASE, THP)], kept, seed=1)[0].groups[0].rows, THP)
    assert thp.code == code and thp.rounds == 60 - missing
