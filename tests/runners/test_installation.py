"""The runner as a package: what an installation from runners/ contains."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stage import RUNNERS


@pytest.mark.long
def test_an_installed_package_has_all_files_and_runs_without_the_checkout(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    shutil.copytree(RUNNERS, source, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    code = "import setuptools; setuptools.setup()"
    subprocess.run(
        [sys.executable, "-c", code, "--quiet", "build", "--build-lib", built], cwd=source, check=True
    )
    packaged, installed = (
        {file.relative_to(folder) for file in folder.rglob("*") if file.is_file()}
        for folder in (source / "pagewise", built / "pagewise")
    )
    assert packaged == installed
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pagewise", "list", "policies"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(built)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "hugetlbfs" in done.stdout, done.stderr
