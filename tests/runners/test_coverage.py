"""The coverage of the guides: rows are complete, and the kernels, options and groups of commands exist."""

from __future__ import annotations

import re

import click
import yaml

from pagewise.cli import root
from stage import EVENTS, ROOT

STATES = {"complete", "in part", "missing"}
LINES = next((ROOT / "docs").rglob("coverage.md")).read_text().splitlines()
ROWS = [[cell.strip() for cell in line[1:-1].split("|")] for line in LINES if line.count("|") == 6]
ROWS = [row for row in ROWS if row[0] != "experiment" and not row[0].startswith("---")]
COMMANDS = [command for row in ROWS for command in re.findall(r"`([^`]+)`", row[1])]
MICRO = ROOT / "kernels" / "micro"
GROUPS = {group["name"] for group in yaml.safe_load((EVENTS / "a64fx.yaml").read_text())["groups"]}


def test_every_row_has_a_state_and_a_command_unless_it_is_missing() -> None:
    assert len(ROWS) > 60
    for experiment, command, machine, state, missing in ROWS:
        assert state in STATES and machine, experiment
        assert bool(command) == (state != "missing"), experiment
        assert missing if state == "in part" else True, experiment


def test_every_guide_has_rows() -> None:
    headings = [i for i, line in enumerate(LINES) if line.startswith("## ")]
    for start, end in zip(headings, [*headings[1:], len(LINES)], strict=True):
        assert any(line.count("|") == 6 for line in LINES[start:end]), LINES[start]
    assert len(headings) == 3


def sources_of(kernel: str) -> str:
    """What declares the options of a kernel: its driver, and the shared ones."""
    files = [*(MICRO / kernel).glob("*.f90"), *(ROOT / "kernels" / "harness").glob("*.f90")]
    return "".join(file.read_text() for file in files)


def test_the_kernels_of_the_commands_have_the_options() -> None:
    wrong = []
    named = [command for command in COMMANDS if command.startswith("pw-")]
    assert len(named) > 20
    for command in named:
        kernel, text = command.split()[0].removeprefix("pw-"), sources_of(command.split()[0][3:])
        options = re.findall(r"--([a-z-]+)", command) + re.findall(r"--sweep ([a-z-]+)", command)
        assert (MICRO / kernel).is_dir(), command
        wrong += [(command, option) for option in options if f"'{option}'" not in text]
    assert wrong == []


def test_the_studies_of_the_commands_exist() -> None:
    studies = [command.split()[1] for command in COMMANDS if command.startswith("studies/fill.py")]
    assert set(studies) == {"hager05", "power6", "a64fx"}
    assert all((ROOT / "studies" / f"{study}.yaml").is_file() for study in studies)


def test_the_commands_of_pagewise_have_the_options() -> None:
    wrong = []
    for command in COMMANDS:
        if not command.startswith("./pagewise"):
            continue
        name, *words = command.split(" -- ")[0].split()[1:]
        found = root.get_command(click.Context(root), name)
        assert found is not None, command
        known = {option for one in found.params for option in one.opts}
        # What follows a kernel is its own.
        own = words if name != "simulate" else words[: words[0].startswith("--")]
        wrong += [(command, word) for word in own if word.startswith("--") and word not in known]
        if "--kernels" in words:
            kernels = words[words.index("--kernels") + 1].split(",")
            wrong += [(command, one) for one in kernels if not (MICRO / one).is_dir()]
        if "--groups" in words:
            groups = words[words.index("--groups") + 1].split(",")
            wrong += [(command, one) for one in groups if one not in GROUPS]
    assert wrong == []
