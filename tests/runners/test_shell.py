"""What a shell is offered for completion, and what may have been meant."""

from __future__ import annotations

import os
import re
import shutil
import sys

import pytest

from pagewise.core.text import choose_of
from scripts import called, write_script
from stage import BASE, GATHER, THP, TRIAD, Stage

CONFIGURATION = "gcc-12.2.0/{}/hardware-regular"
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
    program = write_script(
        stage.folder / "bin" / "pagewise", f'#!/bin/sh\nexec {sys.executable} -m pagewise "$@"\n'
    )
    stage.environment["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    return stage


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_is_offered_words(offering: Stage, shell: str):
    """By the variables that the shell's script sets, which set-up writes."""

    def answer(**variables: str) -> str:
        command = [shutil.which("pagewise", path=offering.environment["PATH"])]
        return called(command, env=offering.variables() | variables, check=True).stdout

    assert f"_PAGEWISE_COMPLETE={shell}_complete" in answer(_PAGEWISE_COMPLETE=f"{shell}_source")
    for line, expected in LINES:
        *words, last = line.split()
        place = last if shell == "fish" else str(len(words))
        typed = {"COMP_WORDS": line, "COMP_CWORD": place, "_PAGEWISE_COMPLETE": f"{shell}_complete"}
        assert expected in re.split(r"[,\t\n]", answer(**typed))


@pytest.mark.parametrize(
    ("arguments", "meant", "other"),
    [
        (("comapre",), "compare", "cluster"),
        (("compare", "--round", "3"), "--rounds", None),
        (("kernels", "--kernels", "traid"), "triad", None),
        (("kernels", "--configurations", CONFIGURATION.format("tph")), CONFIGURATION.format("thp"), None),
        (("compare", "--policies", "hugetlb", "--", "true"), "hugetlbfs", "none"),
        (("counters", "--events", "skylak"), "skylake", "a64fx"),
        (("simulate", "--geometry", "zen3", "ember"), "zen4", "a64fx"),
    ],
)
def test_similar_names_are_suggested(
    offering: Stage, arguments: tuple[str, ...], meant: str, other: str | None
):
    """What was meant is named first, before the list of all."""
    done = offering.run(*arguments)
    words = re.findall(r"[\w./:-]+\w", done.stderr)
    assert done.returncode == 2 and meant in words, done.stderr
    assert other is None or words.index(meant) < words.index(other), done.stderr


def test_the_environment_that_was_meant_is_asked(stage: Stage):
    stage.environment = {"PAGEWISE_MODULES": ""}
    (stage.folder / ".pagewise" / "modules" / "quick").mkdir(parents=True)
    done = stage.compare("--env", "quik", code=3)
    assert choose_of("quik", ["quick"]) in done.stderr and "make stack ENV=quik" in done.stderr
