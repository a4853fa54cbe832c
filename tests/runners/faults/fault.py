"""A fault: how it is made, what is run, and how it must end; and the place where it happens."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any
from unittest.mock import patch

import pytest

from forked import run_module
from pagewise.cli import main
from pagewise.core.text import printable
from stage import Stage

#: How long a command may take; what takes longer hangs.
SECONDS = 40
INTERNAL = 70


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    output: str
    messages: str

    def data(self) -> Any:
        return json.loads(self.output)


class HangsError(BaseException):
    """A command took too long. No Exception, so that nothing handles it."""


@dataclass
class Place:
    """Place of a fault: a stage with modules, a good result, a bad one next to it, and what is outside."""

    folder: Path
    modules: Path
    bad: Path
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def results(self) -> Path:
        return self.folder / "results"

    @property
    def good(self) -> Path:
        return self.results / "good"

    @property
    def manifest(self) -> Path:
        return self.bad / "manifest.json"

    @property
    def records(self) -> Path:
        return self.bad / "records.jsonl"

    @property
    def tree(self) -> Path:
        """A separate module tree, for faults that change it."""
        made = self.folder / "tree"
        return made if made.exists() else Path(shutil.copytree(self.modules, made))

    def edit(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Changes the bad result's manifest."""
        data = json.loads(self.manifest.read_text())
        change(data)
        self.manifest.write_text(json.dumps(data))

    def edit_records(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Changes the first record of the bad result."""
        first, *others = self.records.read_text().splitlines()
        data = json.loads(first)
        change(data)
        self.records.write_text("\n".join([json.dumps(data), *others]) + "\n")

    def prints(self) -> dict[str, str]:
        """What no command may change: the good result's data, the modules, what is outside."""
        files = [*self.modules.rglob("*"), *(self.folder / "outside").rglob("*")]
        files += [self.good / "manifest.json", self.good / "records.jsonl"]
        return {str(f): hashlib.sha256(f.read_bytes()).hexdigest() for f in files if f.is_file()}

    def variables(self) -> dict[str, str]:
        stage = Stage(self.folder, self.environment)
        return {**stage.variables(), "PAGEWISE_MODULES": str(self.modules), **self.environment}

    def words(self, arguments: Iterable[str]) -> list[str]:
        """Arguments of a command; {good} and {bad} are the results, {all} the folder of both."""
        return [one.format(good=self.good, bad=self.bad, all=self.results) for one in arguments]

    def run(self, *arguments: str) -> Ended:
        """A command in this process."""
        output, messages = io.StringIO(), io.StringIO()
        with (
            patch.dict(os.environ, self.variables(), clear=True),
            patch.object(sys, "argv", ["pagewise", *arguments]),
            _limited(self.folder),
            redirect_stdout(output),
            redirect_stderr(messages),
            pytest.raises(SystemExit) as ended,
        ):
            main()
        code = ended.value.code if isinstance(ended.value.code, int) else 0
        return Ended(code, output.getvalue(), messages.getvalue())

    def run_all(self, *commands: str) -> list[Ended]:
        """Several commands, each a line of words."""
        return [self.run(*self.words(command.split())) for command in commands]

    def fork(self, *arguments: str) -> Ended:
        """A command in a separate process, which may leave or lose others."""
        done = run_module("pagewise", arguments, self.variables(), self.folder, SECONDS)
        return Ended(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments: str, shell: str = 'exec "$@"', **more: Any) -> Ended:
        """A command in a separate process, started by a line of the shell."""
        command = ["/bin/sh", "-c", shell, "sh", sys.executable, "-m", "pagewise", *arguments]
        done = subprocess.run(
            command,
            env=self.variables(),
            cwd=more.pop("cwd", self.folder),
            capture_output=True,
            errors="replace",
            timeout=SECONDS,
            **{"stdin": subprocess.DEVNULL, **more},
        )
        return Ended(done.returncode, done.stdout, done.stderr)

    def compare(self, *arguments: str, **more: Any) -> Ended:
        """A short comparison, in a separate process."""
        options = ["--rounds", "1", "--no-sweep", "--kernels", "chase", "--output", str(self.results)]
        return self.start("kernels", *options, *arguments, **more)


@dataclass(frozen=True)
class Fault:
    """A row: `happen` makes the fault and returns how commands ended; `codes` are the exit codes allowed.

    `is_silent`: its output cannot be read.
    """

    name: str
    happen: Callable[[Place], Ended | list[Ended]]
    codes: tuple[int, ...]
    is_silent: bool = False

    def survive(self, place: Place) -> None:
        """Raises AssertionError unless everything held that must."""
        before = place.prints()
        ended = self.happen(place)
        for one in ended if isinstance(ended, list) else [ended]:
            reported = ascii(f"exit code {one.code}\n{one.output[-2000:]}\n{one.messages[-4000:]}")
            reported = reported.replace("\\n", "\n")
            assert one.code != INTERNAL and "Traceback" not in one.messages, reported
            assert one.code in self.codes, reported
            # Our own colours, which FORCE_COLOR asks for, are not a fault.
            styles = r"\x1b\[[0-9;]*m" if "FORCE_COLOR" in place.environment else "$"
            shown = re.sub(styles, "", one.output)
            assert printable(shown) == shown and printable(one.messages) == one.messages, reported
            # A failure has a message.
            is_ended = one.code == 0 or one.code > INTERNAL
            assert self.is_silent or is_ended or one.messages or one.output, reported
        assert place.prints() == before


def make_place(folder: Path, modules: Path, result: Path) -> Place:
    """A fresh place; both results are copies of a good one."""
    place = Place(folder, modules, folder / "results/bad")
    for to in (place.good, place.bad):
        to.mkdir(parents=True)
        for name in ("manifest.json", "records.jsonl"):
            shutil.copy(result / name, to)
    place.edit(lambda data: data.update(id="0123456789abcdef"))
    # Killed before it named any records: lines beyond those named are validated.
    nothing = {"lines": 0, "sha256": hashlib.sha256(b"").hexdigest()}
    place.edit(lambda data: data.update(state="running", records=nothing))
    (folder / "outside").mkdir()
    (folder / "outside/file").write_text("as it is")
    return place


def neighbours(place: Place) -> list[Ended]:
    """The commands that go through all results: the good one must be among what they find."""
    listed = place.run("results", "list", "--json")
    actual = {Path(one["folder"]).name: one for one in listed.data()["results"]}
    assert "fault" not in actual["good"] and actual["good"]["records"] > 0
    return [listed, query(place)]


def query(place: Place) -> Ended:
    """A query of all results; the good one must be among its rows."""
    sql = "SELECT folder, count(*) FROM results JOIN records USING (result) GROUP BY ALL"
    done = place.run("results", "query", sql, str(place.results), "--json")
    answer = done.data()
    assert str(place.good) in {row["folder"] for row in answer["rows"]}
    assert str(place.good) not in {**answer["skipped"], **answer["partial"], **answer["conflicts"]}
    return done


@contextmanager
def _limited(folder: Path) -> Iterator[None]:
    """Work in this folder, for a limited time."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise HangsError(f"longer than {SECONDS} s")

    here, before = Path.cwd(), signal.signal(signal.SIGALRM, stop)
    os.chdir(folder)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
        os.chdir(here)
