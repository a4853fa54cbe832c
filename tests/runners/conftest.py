"""Fixtures: stages with stand-in modules and kernels (see stage.py)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from stage import CHASE, TRIAD, Stage


@pytest.fixture(autouse=True, scope="session")
def no_columns() -> None:
    """Tables are as wide as they are without a terminal: processes of pytest-xdist have the width of one."""
    os.environ.pop("COLUMNS", None)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def fill(stage: Stage) -> Stage:
    """One compiler; base pages, thp and prefetch by software; thp takes 0.8 of the time."""
    stage.add("gcc-12.2.0", ("none", "hardware", "regular"), [TRIAD, CHASE])
    stage.add("gcc-12.2.0", ("thp", "hardware", "regular"), [TRIAD, CHASE], factor="0.8")
    stage.add("gcc-12.2.0", ("none", "software", "regular"), [TRIAD, CHASE])
    return stage


@pytest.fixture
def small(stage: Stage) -> Stage:
    return fill(stage)


@pytest.fixture(scope="session")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Stage, subprocess.CompletedProcess[str]]:
    """A comparison that is over, and what it said; tests copy its result before they change it."""
    stage = fill(Stage(tmp_path_factory.mktemp("compared")))
    return stage, stage.compare("--rounds", "4", "--name", "first", "--seed", "5")
