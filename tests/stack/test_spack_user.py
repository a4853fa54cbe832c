"""A Spack user without a checkout: recipes and sources come from the repository's address."""

from __future__ import annotations

import ast
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import RECIPES, ROOT, STATE, VERSION, git, run

Spack = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def spack(spack_ready: None, tmp_path: Path) -> Spack:
    """Run Spack as its user: with the pinned packages, this machine's packages and nothing else of ours."""
    # Indexing the builtin packages takes a minute; the set-up has done it.
    indexes, user = tmp_path / "indexes", tmp_path / "config"
    shutil.copytree(STATE / "misc-cache", indexes)
    user.mkdir()
    for file in (ROOT / "envs/common/concretizer.yaml", STATE / "site" / "packages.yaml"):
        shutil.copy(file, user)
    builtin = STATE / "spack-packages" / "repos" / "spack_repo" / "builtin"
    # Recipes that are quick to solve, which a user does not have.
    externals = ROOT / "repos" / "spack_repo" / "externals"
    repos = f"repos:\n  externals: {externals}\n  builtin:: {builtin.resolve()}\n"
    (user / "repos.yaml").write_text(repos)
    settings = {
        "SPACK_USER_CONFIG_PATH": str(user),
        "SPACK_USER_CACHE_PATH": str(tmp_path / "cache"),
        "SPACK_SYSTEM_CONFIG_PATH": str(tmp_path / "none"),
        "SPACK_PYTHON": str(STATE / "venv" / "bin" / "python"),
    }
    program = (STATE / "spack" / "bin" / "spack", "-c", f"config:misc_cache:{indexes}")

    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        done = run(*program, *arguments, **settings)
        assert done.returncode == 0, done.stdout
        return done

    return call


def test_spack_takes_recipes_and_sources_from_the_repositorys_address(
    spack: Spack, clone: Callable[..., Path], tmp_path: Path
) -> None:
    fork = clone("fork")
    # Spack clones two commits, and the release's sources are older.
    (fork / "kernels" / "new").touch()
    git(fork, "add", "kernels/new")
    git(fork, "commit", "--quiet", "--message", "Continue after the release")
    spack("repo", "add", f"file://{fork}")
    # The recipes of externals must not be added.
    shown = spack("repo", "list", "--names").stdout.split()
    assert sorted(shown) == ["builtin", "externals", "pagewise"]
    for version, continued in (("develop", True), (VERSION, False)):
        staged = tmp_path / f"staged-{version}"
        spack("stage", "--path", staged, f"libpagewise@{version} ~papi")
        assert (staged / "spack-src" / "kernels" / "CMakeLists.txt").exists()
        assert (staged / "spack-src" / "kernels" / "new").exists() == continued
    commit = git(fork, "rev-parse", "HEAD").strip()
    assert f"commit={commit}" in spack("spec", "libpagewise@develop ~papi").stdout


def test_a_checkout_provides_recipes_and_sources(
    spack: Spack, clone: Callable[..., Path], tmp_path: Path
) -> None:
    checkout = clone("checkout")
    git(checkout, "remote", "remove", "origin")
    spack("repo", "add", checkout / "repos" / "spack_repo" / "pagewise")
    staged = tmp_path / "staged"
    spack("stage", "--path", staged, f"libpagewise@{VERSION} ~papi")
    assert VERSION in (staged / "spack-src" / "kernels" / "CMakeLists.txt").read_text()
    assert VERSION not in (staged / "spack-src" / RECIPES).read_text(), (
        "the commit before the recipes name it"
    )


def test_an_environment_is_created_and_activated_without_the_clone(
    spack: Spack, clone: Callable[..., Path], tmp_path: Path
) -> None:
    checkout = clone("checkout")
    spack("repo", "add", checkout / "repos" / "spack_repo" / "pagewise")
    spack("env", "create", "--dir", tmp_path / "created", checkout / "envs" / "user" / "micro" / "spack.yaml")
    spack("repo", "remove", "pagewise")
    shutil.rmtree(checkout)
    environment = ("--env-dir", tmp_path / "created")
    assert "pagewise-gcc:" in spack(*environment, "config", "get", "toolchains").stdout
    assert "module_tail" in spack(*environment, "config", "get", "modules").stdout
    assert spack(*environment, "env", "activate", "--sh", tmp_path / "created").stdout


@pytest.mark.release
def test_a_tracked_environment_concretizes(spack: Spack, clone: Callable[..., Path], tmp_path: Path) -> None:
    checkout = clone("checkout")
    spack("repo", "add", checkout / "repos" / "spack_repo" / "pagewise")
    settings = ("-c", f"config:environments_root:{tmp_path}/environments")
    (tmp_path / "environments").mkdir()
    spack(*settings, "env", "track", "--name", "tracked", checkout / "envs" / "user" / "micro")
    spack("--env-dir", tmp_path / "environments" / "tracked", "concretize")
    roots = json.loads((checkout / "envs" / "user" / "micro" / "spack.lock").read_text())["roots"]
    assert len(roots) == 4


def test_recipes_import_only_the_package_api_and_run_with_spacks_oldest_python() -> None:
    allowed = ("spack.package", "spack_repo.builtin.build_systems.", "spack_repo.pagewise.build_systems.")
    imported = set()
    for file in (ROOT / "repos" / "spack_repo" / "pagewise").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(), feature_version=(3, 6))):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imported.add(str(node.module))
    ours = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    assert "spack.package" in ours
    assert {name for name in ours if not name.startswith(allowed)} == set()
