"""A checkout of its own for the tests with Spack: sources copied, Spack and the Python environment shared."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
STATE = ROOT / ".pagewise"


def copy_checkout(root: Path, *names: str) -> Path:
    """A copy of these files and folders of the checkout in root, with an empty state."""
    for name in names:
        source = ROOT / name
        if source.is_dir():
            ignored = shutil.ignore_patterns("__pycache__", "spack.lock", ".spack-env")
            shutil.copytree(source, root / name, symlinks=True, ignore=ignored)
        else:
            shutil.copy2(source, root / name)
    (root / ".pagewise" / "stamps").mkdir(parents=True)
    return root


def run(*command: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, with these settings and none of whoever runs the tests."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PAGEWISE_")}
    return subprocess.run(
        [str(word) for word in command],
        env={**inherited, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )


@pytest.fixture(scope="session")
def checkout(spack_ready: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with Spack set up and nothing built."""
    root = tmp_path_factory.mktemp("checkout")
    copy_checkout(root, "setup", "envs", "repos", "modulefiles", "kernels", "spack.yaml")
    for shared in ("spack", "spack-packages", "venv", "site", "setup.json", "misc-cache", "stamps/spack"):
        (root / ".pagewise" / shared).symlink_to((STATE / shared).resolve())
    return root


@pytest.fixture(scope="session")
def built(checkout: Path) -> Path:
    """The checkout with the quick environment built."""
    done = run(checkout / "setup" / "stack", "quick")
    assert done.returncode == 0, done.stdout
    return checkout
