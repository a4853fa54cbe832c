"""The recipes with several versions of Spack and its packages, as a user with default settings has them.

`make test-all`: clones Spack and its packages, and solves with all builtin recipes, which takes an
hour on two processors.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT, STATE, git, spack_settings, succeed

pytestmark = pytest.mark.release

PINS = dict(re.findall(r"^(\w+)=(\S+)$", (ROOT / "setup" / "spack-pins.sh").read_text(), re.MULTILINE))
#: The pinned release, and the default branch.
SPACKS = (PINS["spack_tag"], "HEAD")
PACKAGES = ("v2025.11.0", PINS["spack_packages_tag"], "v2026.06.0")
PAIRS = tuple(itertools.product(SPACKS, PACKAGES))
#: Oldest and newest of both.
CORNERS = tuple(itertools.product(SPACKS, (PACKAGES[0], PACKAGES[-1])))
SPECS = (
    "pagewise-micro hugepages=thp prefetch=software",
    "pagewise-micro needs=fftw",
    "pagewise-helmholtz",
    "pagewise-ember ~mpi",
)

Spack = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def cloned(spack_ready: None, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """Clone a repository at a tag, or at HEAD, once."""
    place = tmp_path_factory.mktemp("clones")

    def clone(name: str, version: str) -> Path:
        folder = place / f"{name}-{version}"
        if not folder.exists():
            branch = () if version == "HEAD" else ("--branch", version)
            url = PINS[f"{name}_url"]
            succeed("git", "clone", "--quiet", "--depth", "1", *branch, url, folder)
        return folder

    return clone


@pytest.fixture
def user(
    cloned: Callable[[str, str], Path], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Spack]:
    """A user with a version of Spack and of its packages, and this machine's packages as externals."""
    home = tmp_path_factory.mktemp("user")

    def make(pair: tuple[str, str], repositories: dict[str, Path], *files: Path) -> Spack:
        builtin = cloned("spack_packages", pair[1]) / "repos" / "spack_repo" / "builtin"
        repos = {name: str(folder) for name, folder in repositories.items()}
        settings = spack_settings(home, repos={**repos, "builtin:": str(builtin)})
        for file in (STATE / "site" / "packages.yaml", *files):
            shutil.copy(file, home)
        place = home / "place"
        # Indexing the packages takes a minute, so the tests of a pair share the index.
        index = cloned("spack_packages", pair[1]).with_name("index-" + "-".join(pair))
        program = (
            cloned("spack", pair[0]) / "bin" / "spack",
            *("-c", f"config:install_tree:root:{place}"),
            *("-c", f"config:build_stage:{home}/stage", "-c", f"config:misc_cache:{index}"),
        )

        def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
            done = succeed(*program, *arguments, **settings)
            return done

        return call

    return make


@pytest.fixture(scope="session")
def recipes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recipes in a clone of this checkout."""
    folder = tmp_path_factory.mktemp("recipes") / "clone"
    git(ROOT, "clone", "--quiet", str(ROOT), str(folder))
    # The checkout may have another branch.
    git(folder, "checkout", "--quiet", "-B", "main")
    return folder / "repos" / "spack_repo" / "pagewise"


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_all_packages_concretize(pair: tuple[str, str], user: Callable[..., Spack], recipes: Path) -> None:
    spack = user(pair, {"pagewise": recipes})
    for spec in SPECS:
        concrete = json.loads(spack("spec", "--json", spec).stdout)["spec"]["nodes"]
        assert concrete[0]["name"] == spec.split()[0]


@pytest.mark.parametrize("pair", CORNERS, ids="-".join)
def test_a_package_is_installed_and_passes_its_test(
    pair: tuple[str, str], user: Callable[..., Spack], recipes: Path
) -> None:
    spack = user(pair, {"pagewise": recipes})
    for version in ("develop", ""):
        spec = f"{SPECS[0].split()[0]}{'@' if version else ''}{version} hugepages=thp prefetch=software"
        spack("install", "--no-cache", spec)
    spack("test", "run", "pagewise-micro")
    audited = [
        folder.name.replace("_", "-") for folder in (recipes / "packages").iterdir() if folder.is_dir()
    ]
    spack("audit", "packages", *audited)


@pytest.mark.parametrize("pair", PAIRS, ids="-".join)
def test_short_recipes_find_their_base_classes(
    pair: tuple[str, str], user: Callable[..., Spack], recipes: Path
) -> None:
    """The recipes of externals take private members of the builtin ones; loading them fails without these."""
    externals = ROOT / "repos" / "spack_repo" / "externals"
    settings = ROOT / "envs" / "common" / "concretizer.yaml"
    spack = user(pair, {"externals": externals, "pagewise": recipes}, settings)
    for compiler in ("gcc", "llvm"):
        nodes = json.loads(spack("spec", "--json", f"pagewise-micro %c,fortran={compiler}").stdout)
        namespaces = {node["name"]: node["namespace"] for node in nodes["spec"]["nodes"]}
        assert namespaces[compiler] == "externals"
