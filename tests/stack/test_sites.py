"""A site made of the template, used by Spack; switching an environment between sites."""

from __future__ import annotations

import json
import platform
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, STATE, installed, lock_of, roots, run, spack, succeed, write_script


@pytest.fixture(scope="module")
def solve(built: Path) -> Any:
    """Solve the quick environment on a new site for a processor, and return the roots."""
    quick = (built / "envs" / "quick" / "spack.yaml").read_text()

    def solved(site: str, target: str) -> list[dict[str, Any]]:
        new = built / "envs" / "sites" / site
        shutil.copytree(STATE / "detected", new)
        text = (ROOT / "envs" / "sites" / "site.yaml.template").read_text().replace("NAME", site)
        if target != "native":
            text = text.replace("target: null", f"target: {target}")
            packages = json.loads((new / "packages.yaml").read_text())
            packages["packages"]["all"] = {"target": [target]}
            (new / "packages.yaml").write_text(json.dumps(packages))
        (new / "site.yaml").write_text(text)
        python = STATE / "venv" / "bin" / "python"
        settings = {"PAGEWISE_ROOT": str(built), "PYTHONPATH": str(ROOT / "runners")}
        succeed(python, "-m", "pagewise", "site", "check", site, **settings)
        folder = built / "envs" / f"on-{site}"
        folder.mkdir()
        (folder / "spack.yaml").write_text(quick.replace("../../.pagewise/sites/quick", f"../sites/{site}"))
        spack(built, folder, "concretize")
        return roots(folder)

    return solved


def test_a_new_site_builds_the_same_as_the_detected_one(built: Path, solve: Any) -> None:
    assert roots(built / "envs" / "quick") == solve("same", "native")


def test_a_site_sets_the_processor(solve: Any) -> None:
    targets = [root["arch"]["target"] for root in solve("older", platform.machine())]
    assert len(targets) == 2
    names = {target if isinstance(target, str) else target["name"] for target in targets}
    assert names == {platform.machine()}


@pytest.fixture
def two_environments(built: Path) -> Iterator[Path]:
    """The checkout with the quick environment and a copy of it, `copied`."""
    folder = built / "envs" / "copied"
    shutil.copytree(
        built / "envs" / "quick", folder, ignore=shutil.ignore_patterns("spack.lock", ".spack-env")
    )
    text = (folder / "spack.yaml").read_text()
    (folder / "spack.yaml").write_text(text.replace("sites/quick", "sites/copied"))
    yield built
    shutil.rmtree(folder)


def state_of(checkout: Path) -> dict[str, Any]:
    """The quick environment's packages section, lock and installed files."""
    done = spack(checkout, checkout / "envs" / "quick", "config", "get", "packages")
    files = [file for prefix in installed(checkout, "quick") for file in sorted(prefix.rglob("*"))]
    lock = (checkout / "envs" / "quick" / "spack.lock").read_bytes()
    return {"packages": done.stdout, "lock": lock, "times": {file: file.stat().st_mtime for file in files}}


def test_a_site_that_cannot_be_solved_changes_nothing(two_environments: Path) -> None:
    before = state_of(two_environments)
    for environment in ("quick", "copied"):
        done = run(two_environments / "setup" / "stack", environment, PAGEWISE_SITE="ookami")
        assert done.returncode != 0, done.stdout
        assert state_of(two_environments) == before
    # The environment that was never solved keeps its site too.
    done = spack(two_environments, two_environments / "envs" / "copied", "config", "get", "packages")
    assert done.returncode == 0 and "a64fx" not in done.stdout
    assert run(two_environments / "setup" / "stack", "quick").returncode == 0


def test_a_switch_back_solves_and_installs_nothing(two_environments: Path) -> None:
    checkout = two_environments
    before = state_of(checkout)
    other = checkout / "older-site"
    shutil.copytree(STATE / "site", other)
    packages = json.loads((other / "packages.yaml").read_text())
    packages["packages"]["all"] = {"target": [platform.machine()]}
    (other / "packages.yaml").write_text(json.dumps(packages))
    succeed(checkout / "setup" / "solve", "copied", PAGEWISE_SITE=str(other))
    assert state_of(checkout) == before, "the other environment did not change"
    lock = checkout / "envs" / "copied" / "spack.lock"
    locks = {str(other): lock.read_bytes()}
    assert run(checkout / "setup" / "solve", "copied").returncode == 0
    locks[""] = lock.read_bytes()
    assert locks[""] != locks[str(other)]

    # From here on Spack cannot solve or install.
    program = checkout / ".pagewise" / "spack"
    kept = program.rename(program.with_name("spack-kept"))
    (program / "bin").mkdir(parents=True)
    write_script(program / "bin" / "spack", "#!/bin/sh\nexit 9\n")
    try:
        for site, content in [*locks.items()] * 2:
            assert run(checkout / "setup" / "solve", "copied", PAGEWISE_SITE=site).returncode == 0
            assert lock.read_bytes() == content
    finally:
        shutil.rmtree(program)
        kept.rename(program)


@pytest.mark.release
def test_without_stubs_spack_builds_packages_of_the_site(built: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    shutil.copytree(STATE / "site", site)
    packages = json.loads((site / "packages.yaml").read_text())
    packages["packages"]["hdf5"] = {"buildable": True, "require": "+mpi+hl"}
    (site / "packages.yaml").write_text(json.dumps(packages))
    (site / "concretizer.yaml").write_text("concretizer: {reuse: true}")
    folder = built / "envs" / "own-hdf5"
    folder.mkdir()
    include = [str(site), "../common", "../../modulefiles"]
    specs = ["pagewise-ember +mpi %pagewise-gcc"]
    (folder / "spack.yaml").write_text(json.dumps({"spack": {"include": include, "specs": specs}}))
    # The short recipe has no variant mpi.
    spack(built, folder, "concretize", fails=True)
    spack(built, folder, "concretize", STUBS="0")
    lock = lock_of(folder)
    nodes = {node["name"]: node for node in lock["concrete_specs"].values()}
    assert {node["namespace"] for node in nodes.values()} == {"builtin", "pagewise"}
    assert nodes["hdf5"]["parameters"]["mpi"] and not nodes["hdf5"].get("external")
    assert {"gcc", "cmake"} <= {name for name, node in nodes.items() if node.get("external")}


@pytest.mark.release
@pytest.mark.parametrize(("stubs", "namespace"), [("1", "externals"), ("", "builtin")])
def test_stubs_are_an_input_of_a_solve(two_environments: Path, stubs: str, namespace: str) -> None:
    checkout = two_environments
    for _ in range(2):
        done = succeed(checkout / "setup" / "solve", "copied", STUBS=stubs)
    assert not done.stdout, "the second solve has nothing to do"
    lock = lock_of(checkout / "envs" / "copied")
    assert namespace in {node["namespace"] for node in lock["concrete_specs"].values()}
