"""Files of a result: nothing outside a received folder is written, and no cell is a formula."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from builders import a_manifest
from pagewise.core.errors import RefusedError
from pagewise.core.files import write_inside
from pagewise.core.record import RecordWriter
from pagewise.core.result import keep_log, write_manifest
from pagewise.core.structure import to_data
from pagewise.report.render.csv import text as csv_text
from stage import Stage

Compared = tuple[Stage, subprocess.CompletedProcess[str]]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "file").write_text("untouched")
    return folder


def test_a_file_is_written_as_a_whole_and_where_it_is_named(tmp_path: Path):
    assert write_inside(tmp_path, "a/b/file", "one") == tmp_path / "a/b/file"
    assert write_inside(tmp_path, "a/b/file", b"two").read_bytes() == b"two"
    # A write that fails leaves nothing.
    with pytest.raises(IsADirectoryError):
        write_inside(tmp_path, "a/b", "text")
    assert [file.name for file in (tmp_path / "a").rglob("*")] == ["b", "file"]
    for name in ("../file", "a/../../file", "/etc/file", "", "."):
        with pytest.raises(OSError):
            write_inside(tmp_path, name, "text")
    assert {file.name for file in tmp_path.iterdir()} == {"a"}


def test_links_are_replaced_and_never_followed(tmp_path: Path, outside: Path):
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, target in (("file", outside / "file"), ("new", outside / "new"), ("below", outside)):
        (folder / name).symlink_to(target)
    for name in ("file", "new"):
        assert write_inside(folder, name, "text").read_text() == "text"
        assert not (folder / name).is_symlink()
    with pytest.raises(OSError):
        write_inside(folder, "below/file", "text")
    # A folder that the user names may be a link.
    (tmp_path / "link").symlink_to(folder)
    assert write_inside(tmp_path / "link", "file", "through").read_text() == "through"
    assert {file.name: file.read_text() for file in outside.iterdir()} == {"file": "untouched"}


@pytest.fixture
def received(compared: Compared, tmp_path: Path) -> Path:
    """A copy of a result."""
    return shutil.copytree(compared[0].result(), tmp_path / "received")


def test_a_report_replaces_links_in_a_received_result(compared: Compared, received: Path, outside: Path):
    names = ("report.html", "summary.csv", "summary.md", "comparisons.csv")
    for name in names:
        (received / name).unlink()
        (received / name).symlink_to(outside / "file")
    compared[0].run("report", str(received), code=0)
    assert (outside / "file").read_text() == "untouched"
    assert all(not (received / name).is_symlink() and (received / name).stat().st_size for name in names)


@pytest.mark.parametrize("target", ["outside", "nowhere"])
def test_a_report_draws_into_no_linked_folder(target, compared: Compared, received: Path, outside: Path):
    (received / "figures").symlink_to(outside.with_name(target))
    compared[0].run("report", str(received), "--png", code=4)
    assert [file.name for file in outside.iterdir()] == ["file"]
    assert not outside.with_name("nowhere").exists()


def test_manifest_records_and_logs_stay_in_their_folder(tmp_path: Path, outside: Path):
    folder = tmp_path / "result"
    folder.mkdir()
    for name in ("manifest.json", "manifest.json.new", "records.jsonl"):
        (folder / name).symlink_to(outside / "file")
    (folder / "logs").symlink_to(outside)
    write_manifest(folder, a_manifest())
    assert json.loads((folder / "manifest.json").read_text()) == to_data(a_manifest())
    with pytest.raises(RefusedError):
        RecordWriter(folder / "records.jsonl")
    assert keep_log(folder, "run.txt", "text") is None
    assert {file.name: file.read_text() for file in outside.iterdir()} == {"file": "untouched"}


def test_no_cell_of_a_table_is_a_formula():
    rows: list[list[Any]] = [["=1+1", "+1", "-1", "@x", "\tx", "a=b", -1.5, None]]
    (reported,) = csv.reader(csv_text([], rows).splitlines()[1:])
    assert reported == ["'=1+1", "'+1", "'-1", "'@x", "'\tx", "a=b", "-1.5", ""]


EVIL = "</td></svg><script>x</script><img src=x onerror=x>\\input{x}"


@pytest.mark.long
def test_names_of_a_received_result_are_text_in_every_report(compared: Compared, received: Path):
    file = received / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest |= {"name": EVIL, "command": ["pagewise", "kernels", EVIL]}
    manifest["host"] |= {"hostname": EVIL, "cpu": EVIL, "kernel": EVIL}
    for one in manifest["subjects"]:
        one["kernel"] |= {"title": EVIL, "summary": EVIL, "equation": EVIL}
        for metric in one["kernel"]["metrics"]:
            metric["label"] = EVIL
    for one in manifest["configurations"]:
        one["target"] = EVIL
    file.write_text(json.dumps(manifest))
    compared[0].run("report", str(received), "--png", code=0)
    for written in (received / "report.html", received / "summary.md", *received.glob("figures/*.svg")):
        # Markdown takes a sign after a backslash as text.
        assert not re.search(r"(?<!\\)<(script|img)", written.read_text()), written
    assert "&lt;script" in (received / "report.html").read_text()
