"""Every run of a program gets the standard input that the user gave: of compare, counters and simulate."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import pytest
from rich.console import Console

from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.result import read_result
from pagewise.session import standard_input
from pagewise.session.processes import NOTHING
from pagewise.session.standard_input import NO_INPUT, SILENT, StandardInput, take_input
from stage import Stage, write_case

TEXT = b"3\n1\n2\n" * 20_000
#: What these programs print of it.
PRINTED = {"sort -n": "^1\n(.*\n)*3$", "head -n 2": "^3\n1$", "wc -l": "60000"}
QUIET = Console(quiet=True)


@pytest.fixture
def given(tmp_path: Path) -> Path:
    file = tmp_path / "numbers"
    file.write_bytes(TEXT)
    return file


@pytest.fixture(autouse=True)
def kept_input(monkeypatch: pytest.MonkeyPatch):
    """Puts the standard input of this process back."""
    monkeypatch.setattr(standard_input.sys, "__stdin__", object())
    before = os.dup(0)
    yield
    os.dup2(before, 0)
    os.close(before)


@pytest.fixture
def ended_pipe() -> Iterator[int]:
    reader, writer = os.pipe()
    os.close(writer)
    yield reader
    os.close(reader)


def take(source: IO[bytes] | int) -> StandardInput:
    os.dup2(source if isinstance(source, int) else source.fileno(), 0)
    return take_input(QUIET)


def test_a_file_is_opened_again_at_its_beginning_by_each_run_also_when_it_was_deleted(given: Path):
    with given.open("rb") as stream:
        taken = take(stream)
    assert taken.path.read_bytes() == taken.path.read_bytes() == TEXT
    assert taken.to_dict() == {"kind": "file", "path": str(given), "start": 0, "bytes": len(TEXT)}
    assert taken.watched == (given,)
    with given.open("rb") as stream:
        given.unlink()
        deleted = take(stream)
    assert deleted.path.read_bytes() == TEXT and deleted.watched == ()


def test_a_file_is_given_from_its_offset_which_stays(given: Path):
    with given.open("rb", buffering=0) as stream:
        stream.seek(4)
        taken = take(stream)
        assert os.lseek(stream.fileno(), 0, os.SEEK_CUR) == 4
    rest = TEXT[4:]
    assert taken.path.read_bytes() == taken.path.read_bytes() == rest and taken.watched == ()
    digest = hashlib.sha256(rest).hexdigest()
    known = {"kind": "file", "path": str(given), "start": 4, "bytes": len(rest), "sha256": digest}
    assert taken.to_dict() == known


def test_a_pipe_is_kept_for_all_runs(given: Path):
    with subprocess.Popen(["cat", given], stdout=subprocess.PIPE) as feeding:
        taken = take(feeding.stdout)
    assert taken.path.read_bytes() == taken.path.read_bytes() == TEXT
    digest = hashlib.sha256(TEXT).hexdigest()
    assert taken.to_dict() == {"kind": "pipe", "start": 0, "bytes": len(TEXT), "sha256": digest}


def test_a_device_is_opened_by_each_run():
    with Path("/dev/zero").open("rb") as stream:
        taken = take(stream)
    assert taken.path.open("rb").read(3) == bytes(3) and taken.to_dict()["kind"] == "device"


def test_an_empty_pipe_a_terminal_devnull_and_a_closed_input_give_nothing(
    ended_pipe: int, monkeypatch: pytest.MonkeyPatch
):
    terminal, other = os.openpty()
    with Path(os.devnull).open("rb") as null:
        assert take(ended_pipe) == take(other) == take(null) == NO_INPUT
    os.close(terminal)
    os.close(other)
    monkeypatch.setattr(standard_input.sys, "__stdin__", None)
    assert take_input(QUIET) == NO_INPUT


def test_a_pipe_that_stays_open_and_empty_does_not_block(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(standard_input, "SECONDS_OF_SILENCE", 0.02)
    monkeypatch.setattr(standard_input, "_SECONDS_BEFORE_MESSAGE", 0.01)
    reader, writer = os.pipe()
    assert take(reader) == SILENT and SILENT.path == NOTHING
    os.close(writer)
    os.close(reader)


def test_a_pipe_larger_than_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(standard_input, "LARGEST", 1 << 20)
    with (
        subprocess.Popen(["cat", "/dev/zero"], stdout=subprocess.PIPE) as feeding,
        pytest.raises(SelectionError) as refused,
    ):
        try:
            take(feeding.stdout)
        finally:
            feeding.kill()
    assert refused.value.remedy


def test_a_folder_for_copies_that_is_missing_is_refused_with_its_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ended_pipe: int
):
    monkeypatch.setattr(standard_input.tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(RefusedError) as refused:
        take(ended_pipe)
    assert str(tmp_path / "missing") in refused.value.where


def measure(stage: Stage, source: IO[bytes], *words: str) -> dict[str, Any]:
    """Runs a command with this input; the manifest's part of the program."""
    done = subprocess.run(
        stage.command(*words), stdin=source, env=stage.variables(), cwd=stage.folder, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    (folder,) = stage.results.iterdir()
    result = read_result(folder)
    assert {record.status for record in result.records} == {"ok"}
    return json.loads((folder / "manifest.json").read_text())


@pytest.mark.long
@pytest.mark.parametrize(
    ("command", "program", "is_pipe"),
    [
        ("compare", "sort -n", False),
        ("compare", "head -n 2", True),
        ("counters", "wc -l", False),
        ("counters", "sort -n", True),
    ],
)
def test_each_run_reads_the_input(stage: Stage, given: Path, command: str, program: str, is_pipe: bool):
    words = [command, "--output", str(stage.results), "--rounds", "2", "--policies", "none"]
    words += ["--check", PRINTED[program], "--", *program.split()]
    # A file is watched, a pipe is not.
    source = ["cat", given] if is_pipe else ["true"]
    with subprocess.Popen(source, stdout=subprocess.PIPE) as feeding, given.open("rb") as stream:
        manifest = measure(stage, feeding.stdout if is_pipe else stream, *words)
    (part,) = manifest["programs"].values()
    assert part["standard_input"]["kind"] == ("pipe" if is_pipe else "file")
    assert (str(given) in manifest["files"]) != is_pipe


@pytest.mark.long
def test_the_load_of_a_service_reads_the_input(stage: Stage, given: Path):
    server = Path(__file__).with_name("own_programs") / "server.py"
    words = ["compare", "--output", str(stage.results), "--rounds", "1", "--policies", "none"]
    service = {"programs": ["python3"], "arguments": [str(server), "{port}"], "service": {"load": "wc -l"}}
    words += ["--case", write_case(stage.folder, **service), "--check", "60000"]
    with given.open("rb") as stream:
        measure(stage, stream, *words)
