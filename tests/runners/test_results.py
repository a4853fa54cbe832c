"""Many results in one store: what is taken, and what is reported as skipped."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from builders import configuration, record_data
from collecting import DATES, NODES, collected, count, data, pagewise, rows
from many_results import multiply
from pagewise.cli import root
from pagewise.core.record import Skipped, parse_record, read_records
from stage import ROOT, write_result


@pytest.mark.long
def test_only_what_is_new_is_taken_and_copies_count_once(template: Path, tmp_path: Path):
    multiply(template, tmp_path / "results", 2, 1)
    store = tmp_path / "store.duckdb"
    first = collected(store, tmp_path / "results")
    again = collected(store, tmp_path / "results")
    assert (again["taken"], again["known"], again["records"]) == (0, 2, 0)
    folder = next((tmp_path / "results").glob("node000/*"))
    shutil.copytree(folder, tmp_path / "copy")
    copied = collected(store, tmp_path)
    assert (copied["taken"], copied["copies"]) == (0, 1) and count(store) == first["records"]
    assert collected(store, tmp_path)["known"] == 3
    records = (folder / "records.jsonl").read_bytes().splitlines(keepends=True)
    manifest = json.loads((folder / "manifest.json").read_text())
    write_result(folder, manifest, b"".join([*records, records[-1]]))
    grown = collected(store, tmp_path)
    assert grown["taken"] == 1 and count(store) == first["records"] + 1
    assert count(store, "results") == 2
    shutil.rmtree(folder)
    assert collected(store, tmp_path)["taken"] == 0 and count(store, "results") == 2


@pytest.mark.long
def test_an_earlier_state_of_a_result_is_a_copy_of_it(template: Path, tmp_path: Path):
    whole = tmp_path / "b"
    shutil.copytree(template, whole)
    lines = (whole / "records.jsonl").read_text().splitlines(keepends=True)
    for name, kept in (("a", 3), ("c", 5)):
        shutil.copytree(whole, tmp_path / name)
        (tmp_path / name / "records.jsonl").write_text("".join(lines[:kept]))
        edit(tmp_path / name, state="running", finished=None, timing=None, rounds_done=0)
    reported = collected(tmp_path / "store", tmp_path)
    assert (reported["taken"], reported["copies"], reported["conflicts"]) == (1, 2, {})
    assert count(tmp_path / "store") == len(lines)
    assert collected(tmp_path / "store", tmp_path)["known"] == 3
    moved = tmp_path / "moved"
    shutil.copytree(whole, moved)
    shutil.rmtree(whole)
    (moved / "report.html").unlink()
    reported = collected(tmp_path / "store", moved)
    assert (reported["taken"], reported["copies"], reported["conflicts"]) == (0, 1, {})


def edit(folder: Path, **changes: Any) -> None:
    """Changes the manifest, with the digest that the records have now: a forger does that too."""
    write_result(folder, {**json.loads((folder / "manifest.json").read_text()), **changes})


def conflicting(store: Path, folder: Path) -> dict[str, Any]:
    arguments = ["results", "collect", str(folder), "--store", str(store), "--json"]
    done = CliRunner().invoke(root, arguments, standalone_mode=False)
    assert done.return_value == 1
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.parametrize("forged", ["faster", "other host", "longer"])
def test_of_results_with_one_id_and_other_content_none_is_taken(template: Path, tmp_path: Path, forged: str):
    genuine, other = tmp_path / "in/genuine", tmp_path / "in/a-forged"
    for folder in (genuine, other):
        shutil.copytree(template, folder)
    lines = [json.loads(line) for line in (other / "records.jsonl").read_text().splitlines()]
    for line in lines if forged != "other host" else []:
        line["seconds"]["repetitions"] = [value / 5 for value in line["seconds"]["repetitions"]]
    lines *= 2 if forged == "longer" else 1
    (other / "records.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    host = json.loads((other / "manifest.json").read_text())["host"]
    edit(other, host={**host, "hostname": "elsewhere"} if forged == "other host" else host)
    store = tmp_path / "store"
    data = conflicting(store, tmp_path / "in")
    assert set(data["conflicts"]) == {str(genuine), str(other)}
    assert (data["taken"], data["records"], count(store), count(store, "results")) == (0, 0, 0, 0)
    # What the store had before stays and is marked, every time.
    shutil.move(other, tmp_path / "other")
    assert collected(store, tmp_path / "in")["taken"] == 1
    for _ in range(2):
        assert len(conflicting(store, tmp_path)["conflicts"]) == 2
        found = rows(store, "SELECT folder, partial, len(faults) AS faults FROM results")
        assert found == [{"folder": str(genuine), "partial": True, "faults": 1}]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e400"])
@pytest.mark.parametrize(
    "place", ["seconds.repetitions", "metrics.latency_ns", "validation.tolerance", "options.size"]
)
def test_numbers_that_are_none_are_left_out_by_reports_and_store(tmp_path: Path, place: str, number: str):
    good = record_data(configuration(), 1.0)
    part, name = place.split(".")
    bad = {**good, part: {**good[part], name: ["@"] if name == "repetitions" else "@"}}
    (tmp_path / "one").mkdir()
    file = tmp_path / "one/records.jsonl"
    file.write_text(json.dumps(good) + "\n" + json.dumps(bad).replace('"@"', number) + "\n")
    assert [len(part) for part in read_records(file)] == [1, 1]
    reported = collected(tmp_path / "store", tmp_path)
    assert reported["records"] == count(tmp_path / "store") == 1 and len(reported["partial"]) == 1


def skipped_line(number: int, reason: str = "") -> str:
    return str(Skipped("records.jsonl", number, reason))


@pytest.mark.long
def test_what_is_broken_is_named_and_all_that_is_whole_is_kept(template: Path, tmp_path: Path):
    multiply(template, tmp_path / "in", 5, 1)
    folders = sorted(tmp_path.glob("in/*/*"))
    lines = (folders[0] / "records.jsonl").read_text().splitlines()
    cut, mixed, _, empty, _ = (folder / "records.jsonl" for folder in folders)
    cut.write_bytes(cut.read_bytes()[:-100])
    wrong = json.dumps({**json.loads(lines[0]), "schema": "pagewise.record/9"})
    text = json.dumps({**json.loads(lines[0]), "sizes": {"elements": "many"}})
    mixed.write_text("\n".join([lines[0], "[1]", wrong, text, "\x00\x01", lines[1]]) + "\n")
    (folders[2] / "manifest.json").write_text('{"schema": "pagewise.mani')
    empty.write_text("")
    for file in (cut, mixed, empty):
        # Killed before it named any records: lines beyond those named are validated.
        manifest = json.loads((file.parent / "manifest.json").read_text())
        none = {"lines": 0, "sha256": hashlib.sha256(b"").hexdigest()}
        manifest |= {"state": "running", "records": none}
        (file.parent / "manifest.json").write_text(json.dumps(manifest))
    (tmp_path / "in/foreign").mkdir()
    (tmp_path / "in/foreign/manifest.json").write_text('{"name": "a browser extension"}')
    (tmp_path / "in/newer").mkdir()
    (tmp_path / "in/newer/manifest.json").write_text('{"schema": "pagewise.manifest/99"}')
    store = tmp_path / "store.duckdb"
    reported = collected(store, tmp_path / "in")
    assert reported["taken"] == 5 and count(store) == (len(lines) - 1) + 2 + 2 * len(lines)
    partial = {Path(folder): " ".join(why) for folder, why in reported["partial"].items()}
    assert set(partial) == set(folders[:3])
    end = parse_record(cut.read_bytes().splitlines()[-1])[1]
    assert skipped_line(len(lines)) in partial[folders[0]] and end in partial[folders[0]]
    # Of a last line without its end, this is reported too.
    assert skipped_line(len(lines), end) not in partial[folders[0]]
    named = {2: "pagewise.record", 3: "pagewise.record/9", 4: "sizes", 5: ""}
    for number, line in enumerate(mixed.read_bytes().splitlines()[1:5], start=2):
        fault = parse_record(line)[1]
        assert named[number] in fault and skipped_line(number, fault) in partial[folders[1]]
    assert partial[folders[2]]
    skipped = {Path(folder).name: why for folder, why in reported["skipped"].items()}
    assert set(skipped) == {"foreign", "newer"}
    assert "pagewise.manifest" in skipped["foreign"] and "pagewise.manifest/99" in skipped["newer"]
    assert "pagewise.manifest/99" not in skipped["foreign"]
    kinds = {row["kind"]: row for row in rows(store, "SELECT kind, count(*) AS n FROM results GROUP BY ALL")}
    assert kinds["kernels"]["n"] == 4 and kinds["records"]["n"] == 1
    partly = "results WHERE partial"
    assert count(store, partly) == 3
    text = pagewise("results", "collect", tmp_path / "in", "--store", tmp_path / "other.duckdb")
    assert {"3", "2"} <= set(text.stdout.split()) and str(folders[0]) in text.stderr
    listing = data("results", "results", "list", tmp_path / "in")["results"]
    assert len(listing) == 7 and sum("fault" in one for one in listing) == 2


@pytest.mark.long
def test_two_at_once_take_all(many: Path, tmp_path: Path):
    store = tmp_path / "store.duckdb"
    nodes = sorted(many.iterdir())
    command = [sys.executable, "-m", "pagewise", "results", "collect", "--store", str(store)]
    halves = [[*command, *map(str, some)] for some in (nodes[:4], nodes[2:])]
    both = [
        subprocess.Popen(half, cwd=ROOT / "runners", stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for half in halves
    ]
    for one in both:
        _, said = one.communicate(timeout=60)
        assert one.returncode == 0, said
    assert count(store, "results") == NODES * DATES
    assert count(store) == sum(len(file.read_text().splitlines()) for file in many.glob("*/*/records.jsonl"))


def test_models_are_taken_too(tmp_path: Path, template: Path):
    manifest = json.loads((template / "manifest.json").read_text())
    kept = ("schema", "kernel", "started", "status", "configuration")
    modelled = {
        "geometry": "a64fx", "tool": "QEMU 9", "pages": "observed", "whole": True,
        "counts": {"PAGE_WALKS": 7}, "regions": [],
    }  # fmt: skip
    traced = {name: record_data(configuration(), 1.0)[name] for name in kept} | {"modelled": modelled}
    (tmp_path / "m").mkdir()
    about = {"geometry": {"name": "a64fx", "title": "A64FX"}, "tool": "QEMU 9", "functions": 5}
    changes = {"id": "1123456789abcdef", "kind": "simulation", "simulation": about}
    changes["subjects"] = manifest["subjects"][:1]
    write_result(tmp_path / "m", manifest | changes, (json.dumps(traced) + "\n").encode())
    reported = collected(tmp_path / "store", tmp_path)
    assert reported["taken"] == 1 and reported["partial"] == reported["skipped"] == {}
    asked = "SELECT modelled.counts['PAGE_WALKS'] AS walks, kind FROM records JOIN results USING (result)"
    assert rows(tmp_path / "store", asked) == [{"walks": 7, "kind": "simulation"}]


@pytest.mark.long
def test_a_result_is_shown(template: Path, tmp_path: Path):
    folder = tmp_path / "cut"
    shutil.copytree(template, folder)
    file = folder / "records.jsonl"
    file.write_bytes(file.read_bytes()[:-100])
    reported = data("result", "results", "show", folder)
    records, _ = read_records(file)
    assert reported["kind"] == "kernels" and sum(one["records"] for one in reported["runs"]) == len(records)
    assert skipped_line(len(file.read_bytes().splitlines())) in reported["faults"][0]
    assert "report.html" in reported["files"]
    text = pagewise("results", "show", folder).stdout
    assert "triad" in text
