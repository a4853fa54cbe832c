"""Records on disk: appended whole or not at all, read with what is wrong named; names that are not UTF-8."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest

from builders import configuration, record, record_data
from own_program import Own
from pagewise.core.errors import RefusedError
from pagewise.core.record import RecordWriter, dump_record, parse_record, read_records
from pagewise.core.result import read_result
from pagewise.workloads.kernels.launch import read_written
from scripts import write_script

ONE = record(configuration(), 1.0)


def test_written_results_are_read(tmp_path: Path):
    file = tmp_path / "records.jsonl"
    with RecordWriter(file) as writer:
        writer.append(ONE)
        assert read_records(file) == ([ONE], [])
        writer.append(ONE)
    with RecordWriter(file) as writer:
        writer.append(ONE)
    assert read_records(file) == ([ONE] * 3, [])
    # A whole last line without a newline counts.
    file.write_bytes(dump_record(ONE))
    assert read_records(file) == ([ONE], [])


def test_bad_lines_are_named_and_skipped(tmp_path: Path):
    file = tmp_path / "records.jsonl"
    line = dump_record(ONE).decode()
    file.write_text(f"{line}\nnonsense\n\n{line.replace('[1.0]', '[NaN]')}\n{line}\n{line[:50]}")
    records, skipped = read_records(file)
    assert records == [ONE, ONE]
    assert [one.line for one in skipped] == [2, 4, 6]
    bad = (file.read_bytes().splitlines()[number - 1] for number in (2, 4, 6))
    nonsense, number, cut = (parse_record(one)[1] for one in bad)
    assert (skipped[0].reason, skipped[1].reason) == (nonsense, number) and "NaN" in number
    # Of a last line without its end, this is reported too.
    assert cut in skipped[2].reason and cut != skipped[2].reason


def test_missing_files_and_a_full_device_are_reported(tmp_path: Path):
    for opened, file in ((read_records, tmp_path / "nothing"), (RecordWriter, tmp_path / "no" / "folder")):
        with pytest.raises(RefusedError, match=os.strerror(errno.ENOENT)) as refused:
            opened(file)
        assert refused.value.where == str(file)
    full = RecordWriter(Path("/dev/full"))
    with full as writer, pytest.raises(RefusedError, match=os.strerror(errno.ENOSPC)):
        writer.append(ONE)


@pytest.mark.parametrize("missing", ["sizes", "seconds"])
def test_a_record_of_a_kernel_has_its_sizes_and_first_touch_time(tmp_path: Path, missing: str):
    """A program's need not: the launcher of kernels skips what is not a kernel's."""
    whole = record_data(configuration(), 1.0)
    without = {name: part for name, part in whole.items() if name != missing}
    without |= {"seconds": {"repetitions": [1.0]}} if missing == "seconds" else {}
    file = tmp_path / "record.jsonl"
    file.write_text(f"{json.dumps(without)}\n{json.dumps(whole)}\n")
    assert len(read_records(file)[0]) == 2
    records, (skipped,) = read_written(file)
    assert len(records) == 1 and missing in skipped.reason


#: Bytes of an argument that are not UTF-8.
ARGUMENT = os.fsdecode(b"a\xffb")


@pytest.mark.long
def test_a_program_with_unusual_arguments_in_an_unusual_folder(own: Own):
    folder = own.folder / os.fsdecode(b"f\xff")
    folder.mkdir()
    program = write_script(folder / os.fsdecode(b"p\xfe"), '#!/bin/sh\nprintf %s "$1" | od -An -tx1\n')

    def run(*words: str) -> bytes:
        command, environment = own.stage.command(*words), own.stage.variables()
        return subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, check=True).stdout

    selected = ("--output", "results", "--rounds", "1", "--policies", "none,reuse", "--check", "61 ff 62")
    run("compare", *selected, "--", str(program), ARGUMENT)
    (result,) = (folder / "results").iterdir()
    read = read_result(result)
    assert read.manifest.command[-1] == ARGUMENT == read.records[0].run.command[-1] and not read.skipped
    run("report", str(result))
    run("results", "list", "results")
    run("results", "show", str(result))
    run("results", "diff", str(result), str(result))
    (row,) = json.loads(run("results", "query", "FROM results", "results", "--json"))["rows"]
    assert row["command"][-1] == "a?b" and "f\\xff" in row["folder"]
