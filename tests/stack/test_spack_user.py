"""A Spack user without a checkout: recipes and sources come from the repository's address."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest

from conftest import (
    BUILTIN,
    KERNEL,
    RECIPES,
    ROOT,
    STATE,
    VERSION,
    git,
    lock_of,
    printed,
    spack_settings,
    succeed,
)

Spack = Callable[..., subprocess.CompletedProcess[str]]
LMOD = Path("/usr/share/lmod/lmod/init/bash")


@pytest.fixture
def spack(spack_ready: None, tmp_path: Path) -> Spack:
    """Run Spack as its user, with the pinned packages and this machine's packages alone."""
    # Indexing the builtin packages takes a minute; the set-up has done it.
    indexes, user = tmp_path / "indexes", tmp_path / "config"
    shutil.copytree(STATE / "misc-cache", indexes)
    # Recipes that are quick to solve, which a user does not have.
    externals = ROOT / "repos" / "spack_repo" / "externals"
    settings = spack_settings(user, repos={"externals": str(externals), "builtin:": str(BUILTIN)})
    for file in (ROOT / "envs/common/concretizer.yaml", STATE / "site" / "packages.yaml"):
        shutil.copy(file, user)
    program = (STATE / "spack" / "bin" / "spack", "-c", f"config:misc_cache:{indexes}")

    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        done = succeed(*program, *arguments, **settings)
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
    # Spack's setting for the sources of a package.
    mirror, settings = clone("mirror"), tmp_path / "config" / "packages.yaml"
    content = json.loads(settings.read_text())
    content["packages"]["libpagewise"] = {"package_attributes": {"git": f"file://{mirror}"}}
    settings.write_text(json.dumps(content))
    spack("stage", "--path", tmp_path / "mirrored", f"libpagewise@{VERSION} ~papi")
    origin = git(tmp_path / "mirrored" / "spack-src", "remote", "get-url", "origin")
    assert origin.strip() == f"file://{mirror}"


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
    roots = lock_of(checkout / "envs" / "user" / "micro")["roots"]
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
    own = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    assert "spack.package" in own
    assert {name for name in own if not name.startswith(allowed)} == set()


@dataclass(frozen=True)
class Owner:
    """A user with another Spack than the project's."""

    home: Path
    spack: Path

    def run(self, *blocks: str) -> str:
        """Run a page's blocks in one shell with Spack and Lmod; settings are written to the user's scope.

        `pagewise doctor` reports with exit code 1 what a node does not offer.
        """
        script = "\n".join(self.as_command(block) for block in blocks)
        done = succeed(
            *("env", "-C", self.home, "bash", "--noprofile", "--norc", "-c"),
            f"""trap 'code=$?; [[ $BASH_COMMAND == *doctor* ]] || exit $code' ERR
            source {LMOD}; SPACK_SKIP_MODULES=1; source {self.spack}/share/spack/setup-env.sh
            {script}""",
            HOME=str(self.home),
            SPACK_USER_CACHE_PATH=str(self.home / "cache"),
            SPACK_SYSTEM_CONFIG_PATH=str(self.home / "none"),
            SPACK_PYTHON=sys.executable,
            MODULEPATH="",
        )
        return done.stdout

    def as_command(self, block: str) -> str:
        """A block, or the command that writes its settings."""
        if not block.startswith("include:"):
            return block
        return f"cat >{self.home}/.spack/include.yaml <<'END'\n{block}END\n"


def externals() -> dict[str, object]:
    """The packages of this machine, and those of its Python environment that `pagewise` needs."""
    recipe = (ROOT / "repos/spack_repo/pagewise/packages/pagewise/package.py").read_text()
    named = {"hyperfine": ("1.15.0", "/usr"), "hwloc": ("2.9.0", "/usr"), "lmod": ("8.6.19", LMOD.parents[2])}
    # setuptools builds wheels without the package.
    named["py-wheel"] = ("0.45.1", sys.prefix)
    named["python"] = (".".join(map(str, sys.version_info[:3])), sys.prefix)
    for name in {"py-pip", *re.findall(r'"(py-[\w-]+|duckdb|reframe)@', recipe)}:
        distribution = "reframe-hpc" if name == "reframe" else name.removeprefix("py-")
        named[name] = (metadata.version(distribution), sys.prefix)
    specs = {name: f"{name}@{version}" for name, (version, _) in named.items()} | {
        "duckdb": f"duckdb@{named['duckdb'][0]} +python"
    }
    actual = {
        name: {"externals": [{"spec": specs[name], "prefix": str(prefix)}], "buildable": False}
        for name, (_, prefix) in named.items()
    }
    return {**json.loads((STATE / "site" / "packages.yaml").read_text())["packages"], **actual}


@pytest.fixture(scope="module")
def owner(spack_ready: None, tmp_path_factory: pytest.TempPathFactory) -> Owner:
    """A user whose Spack has the pinned packages and this machine's externals, and nothing of pagewise."""
    home = tmp_path_factory.mktemp("owner")
    git(home, "clone", "--quiet", str((STATE / "spack").resolve()), "spack")
    shutil.copytree(STATE / "misc-cache", home / "indexes")
    spack_settings(
        home / ".spack",
        packages=externals(),
        repos={"builtin:": str(BUILTIN)},
        config={"misc_cache": str(home / "indexes"), "build_stage": [str(home / "stage")]},
    )
    for name in ("concretizer", "bootstrap"):
        shutil.copy(ROOT / f"envs/common/{name}.yaml", home / ".spack")
    return Owner(home, home / "spack")


@pytest.mark.release
def test_the_page_for_spack_users_installs_compares_and_loads_as_printed(owner: Owner, origin: Path) -> None:
    """As printed, in the order of the page."""
    find = "spack find --format '{hash:7}' pagewise-micro hugepages=thp prefetch=hardware | head -n 1"
    facts = json.loads((STATE / "setup.json").read_text())["compilers"]
    gcc = next(entry["version"] for entry in facts if entry["name"] == "gcc" and entry["entered"])
    values = {
        "<address of this repository>": f"file://{origin}",
        "<checkout>": str(origin),
        "<commit>": git(origin, "rev-parse", "HEAD").strip(),
        "<hash>": f"$({find})",
        "gcc-12.2.0": f"gcc-{gcc}",
        "/apps/spack/config/pagewise-modules": str(owner.home / "modulefiles"),
    }
    shutil.copy("/bin/true", owner.home / "my_app")
    program, configurations, use = printed(origin, "spack-user", "From your own Spack", values)
    owner.run(program, configurations, use)
    (report,) = owner.home.glob("results/*/report.html")
    manifest = json.loads(report.with_name("manifest.json").read_text())
    assert {row["version"] for row in manifest["configurations"]} == {VERSION}
    owner.run("spack load pagewise", "pagewise list --json >listed.json")
    rows = json.loads((owner.home / "listed.json").read_text())["configurations"]
    assert [row["version"] for row in rows] == 2 * [VERSION]

    (several,) = printed(origin, "spack-user", "An environment with several configurations", values)
    owner.run("spack load pagewise", several)

    scope, load, copied = printed(origin, "spack-user", "Our module names", values)
    check = f"pw-{KERNEL} --version; module load pagewise pagewise-pages/thp; command -v pagewise-exec"
    shutil.copytree(origin / "modulefiles", owner.home / "modulefiles")
    for settings in (scope, copied):
        shown = owner.run(settings, load, check)
        assert VERSION in shown and "/bin/pagewise-exec" in shown

    (pip,) = printed(origin, "spack-user", "Without Spack", values)
    venv = owner.home / "venv"
    owner.run(f"{sys.executable} -m venv {venv}", f". {venv}/bin/activate", pip, "pagewise --version")


@pytest.mark.release
def test_the_page_for_centres_installs_into_its_own_spack_as_printed(owner: Owner, origin: Path) -> None:
    apps = owner.home / "apps"
    values = {"<address of this repository>": f"file://{origin}", "/apps": str(apps)}
    commands, scope = printed(origin, "centre", "In your own Spack", values)
    owner.run("spack repo remove pagewise || :", "spack env remove -y pagewise || :", commands)
    site = owner.spack / "etc/spack/site"
    (site / "include.yaml").write_text(scope)
    (owner.home / ".spack/include.yaml").unlink(missing_ok=True)
    listed = owner.run(
        "spack module lmod refresh --yes-to-all pagewise-micro",
        'module use "$(spack location --spack-root)"/share/spack/lmod/*/Core',
        "module avail 2>&1",
    )
    assert f"pagewise-micro/{VERSION}" in listed
