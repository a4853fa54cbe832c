"""What the tests of the stack and of the whole way have in common."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

STATE = Path(__file__).parents[1] / ".pagewise"


def pytest_configure(config: pytest.Config) -> None:
    """The mark of tests that are no part of `make test`."""
    config.addinivalue_line("markers", "container: builds images, which takes minutes; `make test-container`")


@pytest.fixture(scope="session")
def spack_ready() -> None:
    """Ends the test where Spack cannot be had: a failure in CI, skipped with the reason elsewhere."""
    spack = {"available": False, "reason": "the checkout is not set up", "remedy": "make setup"}
    if (STATE / "setup.json").exists():
        spack = json.loads((STATE / "setup.json").read_text())["spack"]
    if not spack["available"]:
        told = f"needs Spack: {spack['reason']} ({spack['remedy']})"
        if os.environ.get("CI"):
            pytest.fail(told)
        pytest.skip(told)
