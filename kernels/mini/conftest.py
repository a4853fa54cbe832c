"""What the Python tests of all mini-apps have in common."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: takes many seconds; part of `make test`, not of `make check`")
