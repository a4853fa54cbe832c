"""Completion as real shells do it, what may have been meant, and the manual page."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pagewise.core.suggestions import choose_of
from stage import GATHER, TRIAD, Stage
from test_options import COMMANDS

BASE, THP = ("none", "hardware", "regular"), ("thp", "hardware", "regular")
# What is typed before the tab, and what then stands on the line or is offered.
LINES = [
    ("pagewise compl", "completion"),
    ("pagewise compare --no-sw", "--no-sweep"),
    ("pagewise compare --kernels tri", "triad"),
    ("pagewise compare --kernels triad,gat", "triad,gather"),
    ("pagewise compare --configurations gcc-12.2.0/th", "gcc-12.2.0/thp/hardware-regular"),
    ("pagewise compare --policies hugetlbfs:2", "hugetlbfs:2m"),
    ("pagewise compare --policies none,libh", "none,libhugetlbfs"),
    ("pagewise counters --events a64", "a64fx"),
    ("pagewise report results/2026", "results/20261121T010203Z-mine"),
    ("pagewise results diff results/20261121T010203Z-mine results/2026", "results/20261121T010203Z-mine"),
    ("pagewise results show results/2026", "results/20261121T010203Z-mine"),
    ("pagewise results query slow", "slow-nodes"),
    ("pagewise results collect results/2026", "results/20261121T010203Z-mine"),
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


@pytest.mark.long
@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_a_tab_completes(offering: Stage, name: str):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not here")
    script = offering.folder / f"complete.{name}"
    script.write_text(offering.run("completion", name).stdout)
    command, start = {
        "bash": (["bash", "--norc", "--noprofile", "-i"], ""),
        "zsh": (["zsh", "-f", "-i"], "autoload -Uz compinit && compinit -u -D; "),
    }[name]
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
def test_every_value_can_be_offered(offering: Stage, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(offering.folder)
    for name, value in offering.variables().items():
        if name.startswith("PAGEWISE_"):
            monkeypatch.setenv(name, value)
    offered = {}
    for name, command in COMMANDS.items():
        context = command.make_context(name, [], resilient_parsing=True)
        for parameter in command.params:
            for item in parameter.shell_complete(context, ""):
                offered.setdefault(f"{name} {parameter.opts[-1]}", []).append(item.value)
    assert offered["compare --kernels"][:2] == ["gather", "triad"]
    assert {"compact", "scatter"} == set(offered["peers --placement"])
    assert "a64fx" in offered["simulate --geometry"] and "first-touch" in offered["compare --memory"]
    assert "tlb" in offered["counters --groups"] and "generic" in offered["counters --events"]
    assert "stream" in offered["peers --peers"] and "none" in offered["simulate --policies"]


@pytest.mark.long
@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not here")
def test_fish_completes(offering: Stage):
    script = offering.folder / "complete.fish"
    script.write_text(offering.run("completion", "fish").stdout)
    for line, expected in LINES:
        done = subprocess.run(
            ["fish", "--no-config", "-c", f"source {script}; complete -C '{line}'"],
            env=offering.variables() | {"HOME": str(offering.folder)},
            cwd=offering.folder,
            capture_output=True,
            text=True,
        )
        assert expected in [reported.split("\t")[0] for reported in done.stdout.splitlines()], (line, done)


def test_completion_says_nothing_where_nothing_is_built(stage: Stage):
    stage.environment = {
        "COMP_WORDS": "pagewise compare --kernels ",
        "_PAGEWISE_COMPLETE": "bash_complete",
        "PAGEWISE_MODULES": "/nowhere",
    }
    done = stage.run()
    assert (done.stdout.strip(), done.stderr) == ("", "")


@pytest.mark.parametrize(
    ("arguments", "meant", "other"),
    [
        (("comapre",), "compare", "cluster"),
        (("compare", "--round", "3"), "--rounds", None),
        (("compare", "--kernels", "traid"), "triad", None),
        (
            ("compare", "--configurations", "gcc-12.2.0/tph/hardware-regular"),
            "gcc-12.2.0/thp/hardware-regular",
            None,
        ),
        (("compare", "--policies", "hugetlb", "--", "true"), "hugetlbfs", "none"),
        (("counters", "--events", "skylak"), "skylake", "a64fx"),
        (("simulate", "--geometry", "zen3", "ember"), "zen4", "a64fx"),
        (("peers", "--peers", "sream"), "stream", "likwid-bench"),
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


@pytest.mark.long
def test_the_manual_page_has_every_option_and_no_fault(stage: Stage, tmp_path: Path):
    page = tmp_path / "pagewise.1"
    page.write_text(stage.run("manual").stdout)
    text = page.read_text().replace("\\-", "-")
    for name in ("compare", "completion", "results show"):
        # Titles of panels, and options, in their order.
        entries = re.findall(
            r"^(\w[\w ,()]+(?=: *$)| {2,6}(?:-\w +)?--[a-z-]+)",
            stage.run(*name.split(), "--help").stdout,
            re.M,
        )
        options = [entry.split()[-1] if "--" in entry else entry for entry in entries if entry != "Examples"]
        assert len(options) > 2 or name == "completion"
        section = text.split(f"\n.SS {name}\n")[1].split("\n.S")[0]
        listed = re.findall(r"^\\f(?:I(.+)|B(?:-\w, )?(--[a-z-]+).*)\\fR$", section, re.M)
        assert [panel or option for panel, option in listed] == options, name
    checkers = [["man", "--warnings", "-l", str(page)], ["mandoc", "-T", "lint", "-W", "warning", str(page)]]
    for command in checkers:
        if shutil.which(command[0]) is not None:
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0 and done.stderr == "", (command, done.stderr)
            assert command[0] != "man" or "pagewise compare [OPTIONS]" in done.stdout
