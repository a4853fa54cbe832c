"""Shared by the Python tests of all mini-apps: the builds whose programs they run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).parents[2]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that uses `build` runs with each compiler's; a long one with the first, until a release."""
    if "build" in metafunc.fixturenames:
        is_long = metafunc.definition.get_closest_marker("long")
        others = pytest.mark.release if is_long else pytest.mark.long
        params = [
            pytest.param(folder, id=folder.parts[-3], marks=others if i > 0 else ())
            for i, folder in enumerate(builds(metafunc.definition.path))
        ]
        metafunc.parametrize("build", params, scope="session")


def builds(test: Path) -> list[Path]:
    """The build folders of this test's mini-app: <APP>_BUILD, or those of the test presets."""
    app = test.relative_to(ROOT / "kernels" / "mini").parts[0]
    named = os.environ.get(f"{app.upper()}_BUILD")
    if named is not None:
        return [Path(named)]
    return sorted((ROOT / ".pagewise" / "build").glob(f"*-test/mini/{app}"))


def _there(program: Path) -> Path:
    """The program, or the end of the test: a failure in CI, skipped with the reason elsewhere."""
    if not program.exists():
        reason = f"{program} is not built: run make check, or set <APP>_BUILD to a build folder"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    return program


@pytest.fixture(scope="session")
def in_build(build: Path) -> Callable[[str], Path]:
    """Return a function that locates a program in the folder of the test's build."""
    return lambda name: _there(build / name)


@pytest.fixture(scope="module")
def in_any_build(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Return a function that locates a program in the first build, if its compiler does not matter."""
    folder = next(iter(builds(request.path)), ROOT / ".pagewise" / "build")
    return lambda name: _there(folder / name)
