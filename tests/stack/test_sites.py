"""A site that `pagewise site new` wrote, as Spack takes it."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, STATE, run, spack


@pytest.fixture(scope="module")
def solve(built: Path) -> Any:
    """Solves the quick environment on a new site for a processor; gives the roots."""
    (built / ".pagewise" / "detected").symlink_to((STATE / "detected").resolve())
    quick = (built / "envs" / "quick" / "spack.yaml").read_text()

    def roots(site: str, target: str) -> list[dict[str, Any]]:
        options = ("--yes", "--summary", "as detected", "--target", target, "--scheduler", "none")
        python = STATE / "venv" / "bin" / "python"
        settings = {"PAGEWISE_ROOT": str(built), "PYTHONPATH": str(ROOT / "runners")}
        made = run(python, "-m", "pagewise", "site", "new", site, *options, **settings)
        assert made.returncode == 0, made.stdout
        folder = built / "envs" / f"on-{site}"
        folder.mkdir()
        (folder / "spack.yaml").write_text(quick.replace("../../.pagewise/site", f"../sites/{site}"))
        done = spack(built, "-D", folder, "concretize")
        assert done.returncode == 0, done.stdout
        return lock_roots(folder)

    return roots


def lock_roots(folder: Path) -> list[dict[str, Any]]:
    """The roots of a solved environment."""
    lock = json.loads((folder / "spack.lock").read_text())
    return [lock["concrete_specs"][root["hash"]] for root in lock["roots"]]


def test_a_new_site_builds_what_the_detected_one_does(built: Path, solve: Any) -> None:
    assert lock_roots(built / "envs" / "quick") == solve("same", "native")


def test_a_site_says_the_processor(solve: Any) -> None:
    targets = [root["arch"]["target"] for root in solve("older", platform.machine())]
    assert len(targets) == 2
    assert {one if isinstance(one, str) else one["name"] for one in targets} == {platform.machine()}
