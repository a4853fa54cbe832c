"""Records on disk: appended whole or not at all, read with what is wrong named."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders import configuration, record
from pagewise.core.errors import RefusedError
from pagewise.core.record import RecordWriter, dumped, read_records

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
    assert "not JSON" in skipped[0].reason and "NaN" in skipped[1].reason
    assert "cut short" in skipped[2].reason and "cut short" not in skipped[0].reason


def test_a_whole_last_line_without_newline_counts(tmp_path: Path):
    file = tmp_path / "records.jsonl"
    file.write_text(dumped(ONE).decode())
    assert read_records(file) == ([ONE], [])


def test_a_full_device_is_reported():
    with (
        RecordWriter(Path("/dev/full")) as writer,
        pytest.raises(RefusedError, match="No space left"),
    ):
        writer.append(ONE)


def test_no_file_no_records(tmp_path: Path):
    with pytest.raises(RefusedError, match="cannot be read"):
        read_records(tmp_path / "nothing")
    with pytest.raises(RefusedError, match="cannot be written"):
        RecordWriter(tmp_path / "no" / "folder")
