"""Releases and lockfiles: one clone makes a release (docs/how-to/release.md), others deploy it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import KERNEL, RECIPES, ROOT, STATE, VERSION, git, lock_of, run, set_up, spack, succeed

#: Where a file names the current release.
ENVIRONMENT = r"pagewise-[a-z]+@(\d[\d.]*)"
PRINTED = r"(?:RELEASE=|releases/|pagewise[-/@]|pagewise-micro[/@])(\d+(?:\.\d+)+)"
NAMED = {
    "runners/pagewise/__init__.py": r'^__version__ = "(.*)"$',
    "runners/pyproject.toml": r'^version = "(.*)"$',
    "kernels/CMakeLists.txt": r"^project\(pagewise VERSION (\S+)",
    "CITATION.cff": r"^version: (\S+)$",
    RECIPES: r'^RELEASES = \{\n    "(.*?)"',
    **{f"envs/{name}/spack.yaml": ENVIRONMENT for name in ("release", "release-quick", "source")},
    **{f"docs/how-to/{name}.md": PRINTED for name in ("centre", "release", "spack-user")},
    "setup/help.txt": PRINTED,
}


def released(recipes: str) -> dict[str, str]:
    """The commits of the releases in a version of the recipes."""
    return dict(re.findall(r'^    "([\d.]+)": "([0-9a-f]{40})",$', recipes, re.MULTILINE))


@pytest.fixture(scope="module")
def releases() -> dict[str, str]:
    """The commits of the project's releases; they are in its history, which a snapshot does not have."""
    if run("git", "-C", ROOT, "rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("this checkout has no history")
    known = released((ROOT / RECIPES).read_text())
    assert known
    return known


def test_every_release_is_a_commit_with_kernels_of_its_version(releases: dict[str, str]) -> None:
    for version, commit in releases.items():
        done = run("git", "-C", ROOT, "show", f"{commit}:kernels/CMakeLists.txt")
        assert f"project(pagewise VERSION {version} " in done.stdout, done.stdout
        done = run("git", "-C", ROOT, "show", f"{commit}:runners/pagewise/__init__.py")
        assert re.findall(NAMED["runners/pagewise/__init__.py"], done.stdout, re.MULTILINE) == [version]
        assert run("git", "-C", ROOT, "merge-base", "--is-ancestor", commit, "HEAD").returncode == 0


def test_a_release_never_changes(releases: dict[str, str]) -> None:
    history = run("git", "-C", ROOT, "rev-list", "HEAD", "--", RECIPES).stdout.split()
    assert history
    for commit in history:
        for version, sources in released(
            run("git", "-C", ROOT, "show", f"{commit}:{RECIPES}").stdout
        ).items():
            assert releases.get(version) == sources, f"{version} in {commit}"


def test_recipes_environments_runner_and_pages_name_one_release(origin: Path) -> None:
    for root in (ROOT, origin):
        actual = {
            file: set(re.findall(pattern, (root / file).read_text(), re.MULTILINE))
            for file, pattern in NAMED.items()
        }
        (version,) = actual[RECIPES]
        assert actual == {file: {version} for file in actual}
        assert f"\n## {version} (" in (root / "CHANGELOG.md").read_text()
    assert version == VERSION


def test_a_release_never_gets_another_commit(clone: Callable[..., Path]) -> None:
    checkout = clone("again")
    before = git(checkout, "rev-parse", "HEAD")
    for version in (VERSION, "next", ""):
        done = run(checkout / "setup" / "release", version)
        assert done.returncode == 4, done.stdout
    (checkout / "new").touch()
    assert run(checkout / "setup" / "release", "9.9.9").returncode == 4
    assert git(checkout, "rev-parse", "HEAD") == before and not git(checkout, "diff")


def test_every_package_has_the_release(checkout: Path) -> None:
    names = [folder.name for folder in (checkout / RECIPES).parents[1].glob("packages/*/")]
    own = sorted(name.replace("_", "-") for name in names if not name.startswith("fujitsu"))
    script = f"import spack.repo as r; _ = [print(*r.PATH.get_pkg_class(name).versions) for name in {own}]"
    quick = checkout / "envs" / "quick"
    listed = spack(checkout, quick, "python", "-c", script).stdout.splitlines()
    (version,) = re.findall(NAMED[RECIPES], (checkout / RECIPES).read_text(), re.MULTILINE)
    assert "pagewise" in own and len(listed) == len(own)
    assert all({version, "develop"} <= set(versions.split()) for versions in listed)


@pytest.fixture
def untagged(origin: Path) -> Iterator[Path]:
    """A clone without tags in a folder that all users can reach, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="pagewise-apps-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)
        git(origin, "clone", "--quiet", "--no-tags", f"file://{origin}", f"{folder}/clone")
        yield Path(folder) / "clone"


def deploy(checkout: Path, version: str, **settings: str) -> str:
    """Fail to deploy a release, and return the error."""
    prefix = checkout.with_name("apps") / "pagewise"
    done = run(checkout / "setup" / "deploy", prefix, version, ENV="release-quick", **settings)
    assert done.returncode == 4, done.stdout
    return done.stdout


def test_a_refused_deployment_leaves_nothing_behind(untagged: Path) -> None:
    short = untagged.with_name("short")
    git(untagged, "clone", "--quiet", "--depth", "1", f"file://{untagged}", str(short))
    initial = untagged / "runners" / "pagewise" / "__init__.py"
    initial.write_text(initial.read_text().replace(VERSION, "9.0.0"))
    git(untagged, "commit", "--quiet", "--all", "--message", "Another runner")
    for folder, version, settings, cause in (
        (untagged, VERSION, {}, "9.0.0"),
        (untagged, "9.0.0", {}, VERSION),
        (untagged, VERSION, {"REVISION": "nowhere"}, "nowhere"),
        (untagged, VERSION, {"GROUP": "no-group"}, "no-group"),
        (untagged, VERSION, {"PAGEWISE_PYTHON": "no-python"}, "no-python"),
        (short, VERSION, {}, str(short)),
    ):
        assert cause in deploy(folder, version, **settings)
        assert not untagged.with_name("apps").exists() and not (folder / ".pagewise").exists()


def test_a_clone_without_tags_deploys_its_release(untagged: Path) -> None:
    """It gets as far as to the folder of the release, which is another clone's."""
    there = untagged.with_name("apps") / "pagewise" / "releases" / VERSION
    git(untagged, "init", "--quiet", str(there))
    git(there, "commit", "--quiet", "--allow-empty", "--message", "Another")
    error = deploy(untagged, VERSION)
    assert all(git(folder, "rev-parse", "HEAD").strip() in error for folder in (untagged, there))


def test_the_manifest_of_a_lock_describes_its_origin(locked: Path) -> None:
    manifest = json.loads((locked / "lock" / "manifest.json").read_text())
    facts = json.loads((STATE / "setup.json").read_text())
    assert manifest["spack"]["tree"] == facts["spack"]["tree"]
    assert manifest["spack"]["packages_commit"] == facts["spack"]["packages_commit"]
    assert manifest["project"] == {"commit": git(locked, "rev-parse", "HEAD").strip(), "changed": False}
    (compiler,) = manifest["compilers"]
    assert compiler["name"] == "gcc" and all(proof["ok"] for proof in compiler["proof"])
    assert manifest["system"]["libc"] == "glibc@" + os.confstr("CS_GNU_LIBC_VERSION").split()[1]
    lock = (locked / "lock" / "spack.lock").read_bytes()
    assert manifest["lockfile"] == {"sha256": hashlib.sha256(lock).hexdigest(), "roots": 2}


@pytest.mark.release
def test_the_lock_installs_the_same_hashes_in_another_clone(locked: Path, clone: Callable[..., Path]) -> None:
    other = set_up(clone("elsewhere"))
    succeed(other / "setup" / "stack", "release-quick", LOCK=str(locked / "lock"))
    wanted = {root["hash"] for root in lock_of(locked / "lock")["roots"]}
    installed = {folder.name for folder in (other / ".pagewise/opt/pagewise-micro").iterdir()}
    assert installed == {f"{VERSION}-{digest}" for digest in wanted}
    modules = sorted((other / ".pagewise/modules/release-quick").rglob("*.lua"))
    assert [module.parent.parent.parent.name for module in modules] == [VERSION] * 2
    program = next((other / ".pagewise/opt/pagewise-micro").glob(f"*/bin/pw-{KERNEL}"))
    done = run(program, "--working-set", "1MB", "--repetitions", "1")
    assert done.returncode == 0 and VERSION in run(program, "--version").stdout, done.stdout
    # Without LOCK the lock stays in use, and a lock made here is the same.
    assert run(other / "setup" / "stack", "release-quick").stdout == ""
    assert run(other / "setup" / "lock", "release-quick", "host", other / "own").returncode == 0
    own = lock_of(other / "own")
    assert {root["hash"] for root in own["roots"]} == wanted


def refused(checkout: Path, lock: Path) -> str:
    """Install from a lock that does not fit, and return the error."""
    # Other tests with this checkout may have installed the environment.
    current = checkout / "envs" / "release-quick" / "spack.lock"
    before = current.read_bytes() if current.exists() else None
    done = run(checkout / "setup" / "stack", "release-quick", LOCK=str(lock))
    assert done.returncode == 4, done.stdout
    assert "Traceback" not in done.stdout
    assert (current.read_bytes() if current.exists() else None) == before
    return done.stdout


def test_a_lock_that_does_not_fit_is_refused_with_every_difference(
    locked: Path, clone: Callable[..., Path]
) -> None:
    other = set_up(clone("elsewhere"))
    site = other / ".pagewise" / "site" / "packages.yaml"
    gcc = re.search(r"gcc@=([\d.]+)", site.read_text())[1]
    site.write_text(site.read_text().replace(f"gcc@={gcc}", "gcc@=11.9.9"))
    facts = json.loads((other / ".pagewise" / "setup.json").read_text())
    facts["spack"]["packages_commit"] = "0123abc"
    (other / ".pagewise" / "setup.json").write_text(json.dumps(facts))
    with (other / RECIPES).open("a") as recipes:
        recipes.write("# edited\n")
    header, *differences, remedy = refused(other, locked / "lock").splitlines()
    assert len(differences) == 3 and header and remedy
    packages, recipes, compiler = differences
    assert "0123abc" in packages and RECIPES in recipes
    assert gcc in compiler and "11.9.9" in compiler


def test_a_lock_for_another_processor_is_refused(locked: Path) -> None:
    # Knights Landing: GCC 12 compiles for it, and no later processor has all of its instructions.
    succeed(locked / "setup" / "lock", "release-quick", "mic_knl", locked / "knl")
    assert json.loads((locked / "knl" / "manifest.json").read_text())["targets"] == ["mic_knl"]
    error = refused(locked, locked / "knl")
    assert "mic_knl" in error and "avx512pf" in error


def test_a_damaged_lock_is_refused(locked: Path, tmp_path: Path) -> None:
    edited = tmp_path / "edited"
    shutil.copytree(locked / "lock", edited)
    with (edited / "spack.lock").open("a") as lock:
        lock.write("\n")
    assert f"{edited}/spack.lock" in refused(locked, edited)
    (edited / "manifest.json").write_text("{")
    assert f"{edited}/manifest.json" in refused(locked, edited)
    assert f"{tmp_path}/nowhere" in refused(locked, tmp_path / "nowhere")


def test_an_unlockable_environment_or_target_is_refused(locked: Path) -> None:
    done = run(locked / "setup" / "lock", "quick")
    assert done.returncode == 4 and "ENV=release-quick" in done.stdout
    done = run(locked / "setup" / "lock", "release-quick", "abacus")
    assert done.returncode == 4 and "'abacus'" in done.stdout
