"""How `pagewise` ends: an exit code of its table, whatever happens, also under a limit on address space."""

from __future__ import annotations

import errno
import importlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import click
import pytest

from pagewise import cli
from pagewise.core.errors import Interrupted, RefusedError, SetupError, refused_by_system
from pagewise.store import sources
from scripts import called
from stage import Stage

COMMANDS = cli.root.list_commands(click.Context(cli.root))


def end(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """The exit code of the command line in this process."""
    monkeypatch.setattr(sys, "argv", ["pagewise", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def command_of(name: str) -> click.Command:
    return importlib.import_module(f"pagewise.cli.commands.{name.replace('-', '_')}").command


@pytest.mark.parametrize("command", COMMANDS)
def test_an_error_of_pagewise_ends_with_70_and_a_traceback(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    # Before arguments are read, so that each command fails alike.
    monkeypatch.setattr(command_of(command), "make_context", Mock(side_effect=LookupError("unforeseen")))
    assert end(monkeypatch, command) == 70
    output = capsys.readouterr()
    assert output.out == "" and "Traceback" in output.err
    assert "LookupError: unforeseen" in output.err and f"pagewise {command} " in output.err


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (KeyboardInterrupt(), 130),
        (click.exceptions.Abort(), 130),
        (Interrupted(signal.SIGTERM), 143),
        (click.UsageError("wrong"), 2),
        (SetupError("missing"), 3),
        (RefusedError("refused"), 4),
        (RecursionError(), 70),
        (MemoryError(), 4),
        (BlockingIOError(errno.EAGAIN, "fork"), 4),
        (RuntimeError("can't start new thread"), 4),
        (OSError(errno.EMFILE, "pipe"), 4),
        (FileNotFoundError(errno.ENOENT, "getcwd"), 4),
        (OSError(errno.EBADF, "close"), 70),
        (RuntimeError("other"), 70),
        # Of a pipe to another program: our own output is whole.
        (BrokenPipeError(), 70),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else None,
)
def test_each_fault_has_its_exit_code(
    fault: BaseException, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(command_of("doctor"), "callback", Mock(side_effect=fault))
    assert end(monkeypatch, "doctor") == code
    assert ("Traceback" in capsys.readouterr().err) == (code == 70)


@pytest.mark.parametrize(
    ("fault", "places", "is_access"),
    [
        (OSError(errno.E2BIG, "long", "/usr/bin/hyperfine"), {"/usr/bin/hyperfine", "ulimit"}, False),
        (OSError(errno.ENOSPC, "full", "/tmp/x"), {"/tmp/x", "quota"}, False),
        (OSError(errno.EMFILE, "many", "/tmp/x"), {"/tmp/x", "ulimit"}, False),
        (FileNotFoundError(errno.ENOENT, "No usable temporary directory found in ['/']"), {"TMPDIR"}, False),
        (FileNotFoundError(errno.ENOENT, "getcwd"), {"cd"}, False),
        (PermissionError(errno.EACCES, "denied", "/tmp/x"), {"/tmp/x"}, True),
    ],
)
def test_a_refusal_of_the_system_has_its_place(fault: OSError, places: set[str], is_access: bool):
    error = refused_by_system(fault)
    assert error is not None and error.remedy is not None and error.where is not None
    assert places <= set(re.findall(r"[\w/]+", f"{error.where} {error.remedy}"))
    assert ("access" in error.message) == is_access


@pytest.mark.parametrize("output", ["stdout", "stderr"])
def test_a_closed_reader_of_the_output_is_not_an_error(stage: Stage, output: str):
    reader, writer = os.pipe()
    os.close(reader)
    arguments = ["compare", "--help"] if output == "stdout" else ["list", "--env", "nonesuch"]
    outputs = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, output: writer}
    done = subprocess.run(stage.command(*arguments), env=stage.variables(), text=True, **outputs)
    os.close(writer)
    if output == "stdout":
        assert (done.returncode, done.stderr) == (128 + signal.SIGPIPE, "")
    else:
        assert (done.returncode, done.stdout) == (3, "")


def test_too_little_memory_is_not_a_fault_of_a_result(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "manifest.json").write_text("{}")
    monkeypatch.setattr(sources, "read_result", Mock(side_effect=MemoryError))
    with pytest.raises(MemoryError):
        sources.find_sources([tmp_path])


@pytest.mark.long
def test_a_session_and_its_result(tmp_path: Path):
    stage = Stage(tmp_path)

    def run(*words: str) -> str:
        limited = ["prlimit", f"--as={4_000_000 * 1024}", *stage.command(*words)]
        done = called(limited, env=stage.variables(), cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    results = str(stage.results)
    run("compare", "--output", results, "--rounds", "3", "--policies", "none,reuse", "--", "true")
    assert stage.read_result().manifest.state == "complete"
    (listed,) = json.loads(run("results", "list", "--json", results))["results"]
    assert listed["faults"] == [] and listed["state"] == "complete"
    run("report", str(stage.result()))
    run("results", "query", "programs", results)
