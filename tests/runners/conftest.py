"""Fixtures: stages with stand-in modules and kernels (see stage.py)."""

from __future__ import annotations

from pathlib import Path

import pytest

from stage import CHASE, TRIAD, Stage


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture
def small(stage: Stage) -> Stage:
    """One compiler; base pages, thp and prefetch by software; thp takes 0.8 of the time."""
    stage.add("gcc-12.2.0", ("none", "hardware", "regular"), [TRIAD, CHASE])
    stage.add("gcc-12.2.0", ("thp", "hardware", "regular"), [TRIAD, CHASE], factor="0.8")
    stage.add("gcc-12.2.0", ("none", "software", "regular"), [TRIAD, CHASE])
    return stage
