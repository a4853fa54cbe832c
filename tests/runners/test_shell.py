"""Completion as real shells do it, and what may have been meant."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time

import pytest

from pagewise.core.suggestions import choose_of
from stage import GATHER, TRIAD, Stage

BASE, THP = ("none", "hardware", "regular"), ("thp", "hardware", "regular")
# What is typed before the tab, and what then stands on the line or is offered.
LINES = [
    ("pagewise coun", "counters"),
    ("pagewise kernels --no-sw", "--no-sweep"),
    ("pagewise results sh", "show"),
]


@pytest.fixture(scope="module")
def offering(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    """A stage with `pagewise` on PATH, two configurations and a result."""
    stage = Stage(tmp_path_factory.mktemp("shell"))
    for label in (BASE, THP):
        stage.add("gcc-12.2.0", label, [TRIAD, GATHER])
    result = stage.folder / "results" / "20261121T010203Z-mine"
    result.mkdir(parents=True)
    (result / "manifest.json").write_text('{"state": "complete"}')
    program = stage.folder / "bin" / "pagewise"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m pagewise "$@"\n')
    program.chmod(0o755)
    stage.environment["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    return stage


class Terminal:
    """An interactive shell on a separate terminal."""

    def __init__(self, stage: Stage, command: list[str]) -> None:
        leader, follower = pty.openpty()
        variables = stage.variables() | {"TERM": "dumb", "HOME": str(stage.folder), "PS1": "READY> "}
        self.shell = subprocess.Popen(
            command,
            env=variables,
            cwd=stage.folder,
            stdin=follower,
            stdout=follower,
            stderr=follower,
            start_new_session=True,
        )
        os.close(follower)
        self.terminal = leader

    def type(self, text: str, until: str) -> str:
        """What the shell writes after this was typed, until a pattern is in it."""
        os.write(self.terminal, text.encode())
        seen, end = "", time.monotonic() + 30
        while not re.search(until, seen):
            assert time.monotonic() < end, f"waited for {until!r}, saw {seen!r}"
            if select.select([self.terminal], [], [], 0.1)[0]:
                seen += os.read(self.terminal, 4096).decode(errors="replace")
        return seen

    def close(self) -> None:
        self.shell.kill()
        self.shell.wait()
        os.close(self.terminal)


def completion(offering: Stage, shell: str) -> str:
    """Return the completion script of a shell, as set-up writes it."""
    command = [shutil.which("pagewise", path=offering.environment["PATH"])]
    variables = offering.variables() | {"_PAGEWISE_COMPLETE": f"{shell}_source"}
    return subprocess.run(command, env=variables, capture_output=True, text=True, check=True).stdout


@pytest.mark.long
@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_tab_completes(offering: Stage, shell: str):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not here")
    script = offering.folder / f"complete.{shell}"
    script.write_text(completion(offering, shell))
    command, start = {
        "bash": (["bash", "--norc", "--noprofile", "-i"], ""),
        "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit && compinit -u -D; "),
    }[shell]
    terminal = Terminal(offering, command)
    try:
        terminal.type(f"{start}. {script}; echo lo''aded\n", "loaded")
        for line, expected in LINES:
            # The line is thrown away by Ctrl-U; the word must stand there whole, followed by a space.
            reported = terminal.type(f"{line}\t", re.escape(expected) + r"[ \x08]|\x07")
            plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\r", "", reported)
            assert expected.removeprefix(line.split()[-1]) in plain, (line, reported)
            terminal.type("\x15echo ne''xt\n", "next")
    finally:
        terminal.close()


@pytest.mark.long
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
def test_fish_completes(offering: Stage):
    script = offering.folder / "complete.fish"
    script.write_text(completion(offering, "fish"))
    for line, expected in LINES:
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
            env=offering.variables() | {"HOME": str(offering.folder)},
            cwd=offering.folder,
            capture_output=True,
            text=True,
        )
        assert expected in [reported.split("\t")[0] for reported in done.stdout.splitlines()], (line, done)


@pytest.mark.parametrize(
    ("arguments", "meant", "other"),
    [
        (("comapre",), "compare", "cluster"),
        (("compare", "--round", "3"), "--rounds", None),
        (("kernels", "--kernels", "traid"), "triad", None),
        (
            ("kernels", "--configurations", "gcc-12.2.0/tph/hardware-regular"),
            "gcc-12.2.0/thp/hardware-regular",
            None,
        ),
        (("compare", "--policies", "hugetlb", "--", "true"), "hugetlbfs", "none"),
        (("counters", "--events", "skylak"), "skylake", "a64fx"),
        (("simulate", "--geometry", "zen3", "ember"), "zen4", "a64fx"),
    ],
)
def test_what_was_meant_is_asked(offering: Stage, arguments: tuple[str, ...], meant: str, other: str | None):
    """What was meant is named first, before the list of all."""
    done = offering.run(*arguments)
    words = re.findall(r"[\w./:-]+\w", done.stderr)
    assert done.returncode == 2 and meant in words, done.stderr
    assert other is None or words.index(meant) < words.index(other), done.stderr


def test_the_environment_that_was_meant_is_asked(stage: Stage):
    stage.environment = {"PAGEWISE_MODULES": ""}
    (stage.folder / ".pagewise" / "modules" / "quick").mkdir(parents=True)
    done = stage.compare("--env", "quik")
    assert done.returncode == 3
    assert choose_of("quik", ["quick"]) in done.stderr and "make stack ENV=quik" in done.stderr
