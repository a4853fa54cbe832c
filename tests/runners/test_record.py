"""Records on disk: appended whole or not at all, read with what is wrong named; names that are not UTF-8."""

from __future__ import annotations

import errno
import json
import os
import subprocess
from dataclasses import replace
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


def test_a_whole_last_line_without_newline_counts(tmp_path: Path):
    file = tmp_path / "records.jsonl"
    file.write_text(dump_record(ONE).decode())
    assert read_records(file) == ([ONE], [])


def test_a_full_device_is_reported():
    with (
        RecordWriter(Path("/dev/full")) as writer,
        pytest.raises(RefusedError, match=os.strerror(errno.ENOSPC)),
    ):
        writer.append(ONE)


def test_no_file_no_records(tmp_path: Path):
    for opened, file in ((read_records, tmp_path / "nothing"), (RecordWriter, tmp_path / "no" / "folder")):
        with pytest.raises(RefusedError, match=os.strerror(errno.ENOENT)) as refused:
            opened(file)
        assert refused.value.where == str(file)


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


def test_a_record_keeps_the_bytes_of_an_argument():
    made = record(configuration(), 1.0)
    made = replace(made, run=replace(made.run, command=("program", ARGUMENT)))
    read, fault = parse_record(dump_record(made))
    assert fault is None and read.run.command == made.run.command


@pytest.mark.long
def test_a_program_with_unusual_arguments_in_an_unusual_folder(own: Own):
    folder = own.folder / os.fsdecode(b"f\xff")
    folder.mkdir()
    program = write_script(folder / os.fsdecode(b"p\xfe"), '#!/bin/sh\nprintf %s "$1" | od -An -tx1\n')
    command = own.stage.command(
        *("compare", "--output", str(folder / "results"), "--rounds", "1", "--policies", "none,reuse"),
        *("--check", "61 ff 62", "--", str(program), ARGUMENT),
    )
    run = lambda *words: subprocess.run(  # noqa: E731
        words, cwd=folder, env=own.stage.variables(), capture_output=True, check=False
    )
    done = run(*command)
    assert done.returncode == 0, done.stderr
    (result,) = (folder / "results").iterdir()
    assert read_result(result).manifest.command[-1] == ARGUMENT
    for words in (
        ("report", str(result)),
        ("results", "list", "results"),
        ("results", "show", str(result)),
        ("results", "diff", str(result), str(result)),
    ):
        again = run(*own.stage.command(*words))
        assert again.returncode == 0, again.stderr
    answer = run(*own.stage.command("results", "query", "FROM results", "results", "--json"))
    (row,) = json.loads(answer.stdout)["rows"]
    assert row["command"][-1] == "a?b" and "f\\xff" in row["folder"] and answer.returncode == 0
