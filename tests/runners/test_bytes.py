"""Arguments and names that are not UTF-8: measured as they are, recorded, and read again."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace

import pytest

from builders import configuration, record
from own_program import Own
from pagewise.core.reading import parse_json
from pagewise.core.record import dumped, parse_record
from pagewise.core.result import read_result
from pagewise.core.text import json_text

ARGUMENT = os.fsdecode(b"a\xffb")


def test_a_record_keeps_the_bytes_of_an_argument():
    made = record(configuration(), 1.0)
    made = replace(made, run=replace(made.run, command=("program", ARGUMENT)))
    read, fault = parse_record(dumped(made))
    assert fault is None and read.run.command == made.run.command


def test_a_manifest_keeps_them():
    assert parse_json(json_text([ARGUMENT]).encode()) == [ARGUMENT]


@pytest.mark.long
def test_a_program_with_such_arguments_in_such_a_folder(own: Own):
    folder = own.folder / os.fsdecode(b"f\xff")
    folder.mkdir()
    program = folder / os.fsdecode(b"p\xfe")
    program.write_text('#!/bin/sh\nprintf %s "$1" | od -An -tx1\n')
    program.chmod(0o755)
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
