"""Many results: what queries read of them, and what is reported as skipped."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from builders import configuration, record_data
from many_results import multiply
from pagewise.core.record import Skipped, parse_record, read_records
from querying import answer, count, data, pagewise, rows
from stage import result_content, write_result


def edit(folder: Path, **changes: Any) -> None:
    """Changes the manifest, with the digest that the records have now: a forger does that too."""
    write_result(folder, {**json.loads((folder / "manifest.json").read_text()), **changes})


def test_copies_and_earlier_states_of_a_result_count_once(template: Path, tmp_path: Path):
    lines = (template / "records.jsonl").read_text().splitlines(keepends=True)
    for name, kept in (("a", 3), ("b", len(lines)), ("c", 5), ("d", len(lines))):
        shutil.copytree(template, tmp_path / name)
        if kept < len(lines):
            (tmp_path / name / "records.jsonl").write_text("".join(lines[:kept]))
            edit(tmp_path / name, state="running", finished=None, timing=None, rounds_done=0)
    actual = answer(
        tmp_path, "SELECT folder, count(*) AS n FROM records JOIN results USING (result) GROUP BY ALL"
    )
    ((folder, number),) = (row.values() for row in actual["rows"])
    assert Path(folder).name in "bd" and number == len(lines)
    assert len(actual["skipped"]) == 3 and folder not in actual["skipped"] and actual["conflicts"] == {}


@pytest.mark.parametrize("forged", ["faster", "longer"])
def test_of_results_with_one_id_and_other_content_none_is_queried(
    template: Path, tmp_path: Path, forged: str
):
    genuine, other = tmp_path / "genuine", tmp_path / "a-forged"
    for folder in (genuine, other):
        shutil.copytree(template, folder)
    manifest, lines = result_content(other)
    for line in lines:
        line["seconds"]["repetitions"] = [value / 5 for value in line["seconds"]["repetitions"]]
    lines *= 2 if forged == "longer" else 1
    write_result(other, manifest, lines)
    done = pagewise("results", "query", "FROM results", tmp_path, "--json")
    assert done.return_value == 1
    reported = json.loads(done.stdout)
    assert reported["rows"] == [] and set(reported["conflicts"]) == {str(genuine), str(other)}


def test_folders_without_a_current_analysis_or_with_odd_names_are_analysed(template: Path, tmp_path: Path):
    def verdicts(folder: Path) -> list[dict[str, Any]]:
        columns = "kernel, module, time_ratio, low, high, verdict, noise_floor, pairs, baseline_seconds"
        return rows(
            folder,
            f"SELECT {columns}, count(r.kernel) AS runs FROM cells "
            "LEFT JOIN runs AS r USING (result, kernel, module) GROUP BY ALL ORDER BY ALL",
        )

    assert (template / "analysis.json").is_file()
    expected = verdicts(template)
    assert {row["verdict"] for row in expected} > {None} and all(row["runs"] for row in expected)
    judged = json.loads((template / "analysis.json").read_text())
    for number, changed in enumerate(
        [None, b"", b"[]", b"\xff", {**judged, "records": {**judged["records"], "lines": 1}, "cells": []}]
    ):
        folder = shutil.copytree(template, tmp_path / f"[{number}]*?" / os.fsdecode(b"\xff"))
        file = folder / "analysis.json"
        file.unlink()
        if changed is not None:
            file.write_bytes(changed if isinstance(changed, bytes) else json.dumps(changed).encode())
        assert verdicts(folder) == expected
    lost = shutil.copytree(template, tmp_path / "lost")
    (lost / "analysis.json").write_text(json.dumps({**judged, "cells": [1, {"kernel": []}], "excluded": "x"}))
    assert count(lost, "cells") == 2 and count(lost) == count(template)


@pytest.mark.parametrize(
    ("place", "number"),
    [("seconds.repetitions", "NaN"), ("metrics.latency_ns", "Infinity"), ("validation.tolerance", "1e400")],
)
def test_numbers_that_are_none_are_omitted_by_reports_and_queries(tmp_path: Path, place: str, number: str):
    good = record_data(configuration(), 1.0)
    part, name = place.split(".")
    bad = {**good, part: {**good[part], name: ["@"] if name == "repetitions" else "@"}}
    (tmp_path / "one").mkdir()
    file = tmp_path / "one/records.jsonl"
    file.write_text(json.dumps(good) + "\n" + json.dumps(bad).replace('"@"', number) + "\n")
    assert [len(part) for part in read_records(file)] == [1, 1]
    reported = answer(tmp_path, "FROM records")
    assert len(reported["rows"]) == 1 and len(reported["partial"]) == 1


def skipped_line(number: int, reason: str = "") -> str:
    return str(Skipped("records.jsonl", number, reason))


@pytest.mark.long
def test_broken_parts_are_reported_and_intact_ones_kept(template: Path, tmp_path: Path):
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
    reported = answer(tmp_path / "in", "SELECT kind, partial FROM results ORDER BY ALL")
    assert [tuple(row.values()) for row in reported["rows"]] == [
        *[("kernels", False)] * 2, *[("kernels", True)] * 2, ("records", True),
    ]  # fmt: skip
    assert count(tmp_path / "in") == (len(lines) - 1) + 2 + 2 * len(lines)
    partial = {Path(folder): why for folder, why in reported["partial"].items()}
    assert set(partial) == set(folders[:3]) and all(partial.values())
    # A last line without its end is named as that.
    end = parse_record(cut.read_bytes().splitlines()[-1])[1]
    assert end in partial[folders[0]] and skipped_line(len(lines), end) not in partial[folders[0]]
    for number, line in enumerate(mixed.read_bytes().splitlines()[1:5], start=2):
        assert skipped_line(number, parse_record(line)[1]) in partial[folders[1]]
    skipped = {Path(folder).name: why for folder, why in reported["skipped"].items()}
    assert set(skipped) == {"foreign", "newer"} and "pagewise.manifest/99" in skipped["newer"]
    text = pagewise("results", "query", "FROM results", tmp_path / "in")
    assert all(str(folder) in text.stderr for folder in [*partial, *reported["skipped"]])
    listing = data("results", "results", "list", tmp_path / "in")["results"]
    assert len(listing) == 7 and sum("fault" in one for one in listing) == 2


def test_simulations_are_queried_too(tmp_path: Path, template: Path):
    manifest = json.loads((template / "manifest.json").read_text())
    kept = ("schema", "kernel", "started", "status", "configuration")
    simulated = {
        "geometry": "a64fx", "tool": "QEMU 9", "pages": "observed", "whole": True,
        "counts": {"PAGE_WALKS": 7}, "regions": [],
    }  # fmt: skip
    traced = {name: record_data(configuration(), 1.0)[name] for name in kept} | {"simulated": simulated}
    about = {"geometry": {"name": "a64fx", "title": "A64FX"}, "tool": "QEMU 9", "functions": 5}
    changes = {"id": "1123456789abcdef", "kind": "simulation", "simulation": about}
    changes["subjects"] = manifest["subjects"][:1]
    write_result(tmp_path / "m", manifest | changes, [traced])
    asked = "SELECT simulated.counts['PAGE_WALKS'] AS walks, kind FROM records JOIN results USING (result)"
    assert rows(tmp_path, asked) == [{"walks": 7, "kind": "simulation"}]


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
