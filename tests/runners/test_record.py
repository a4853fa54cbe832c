"""Records on disk: appended whole or not at all, read with what is wrong named."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from builders import configuration, record, record_data
from pagewise.core.errors import RefusedError
from pagewise.core.record import RecordWriter, dumped, parse_record, read_records
from pagewise.workloads.kernels.launch import read_written

ONE = record(configuration(), 1.0)


def test_what_is_written_is_read(tmp_path: Path):
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
    line = dumped(ONE).decode()
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
    file.write_text(dumped(ONE).decode())
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
