"""Fixtures of all tests, and the groups in which they run."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

STATE = Path(__file__).parents[1] / ".pagewise"
RUNNERS = Path(__file__).parent / "runners"
#: Slow fixtures that several files share: tests with the same first fixture of these run in one process.
SHARED = ("small", "checkout", "locked")
#: The groups of tests that take longest, in the order in which they start.
SLOWEST = ("checkout", "trixie", "test_container.py", "test_deploy.py", "test_cluster.py", "locked", "small")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Group the tests for `--dist loadgroup` by shared fixture or file; the slowest groups start first.

    Tests with Spack may take longer than a second.
    """
    for item in items:
        if RUNNERS not in item.path.parents:
            item.add_marker(pytest.mark.long)
        if item.get_closest_marker("xdist_group"):
            continue
        shared = [name for name in SHARED if name in getattr(item, "fixturenames", ())]
        item.add_marker(pytest.mark.xdist_group(shared[0] if shared else item.path.name))
    ranks = {name: rank for rank, name in enumerate(SLOWEST)}
    items.sort(key=lambda item: ranks.get(item.get_closest_marker("xdist_group").args[0], len(ranks)))


@pytest.fixture(scope="session")
def unavailable() -> Callable[[str], NoReturn]:
    """Ends a test that cannot run on this machine, with the reason: fails in CI, skips elsewhere."""
    return pytest.fail if os.environ.get("CI") else pytest.skip


@pytest.fixture(scope="session")
def spack_ready(unavailable: Callable[[str], NoReturn]) -> None:
    """Ends the test if Spack is unavailable."""
    spack = {"available": False, "reason": "the checkout is not set up", "remedy": "make setup"}
    if (STATE / "setup.json").exists():
        spack = json.loads((STATE / "setup.json").read_text())["spack"]
    if not spack["available"]:
        unavailable(f"needs Spack: {spack['reason']} ({spack['remedy']})")
