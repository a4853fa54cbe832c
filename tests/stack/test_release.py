"""Releases and lockfiles: a release is made in one clone, as in docs/release.md, and deployed from others."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import KERNEL, RECIPES, ROOT, STATE, VERSION, dist, git, run, set_up


def archive(checkout: Path) -> Path:
    """The link to the archive in Spack's mirror."""
    return checkout / ".pagewise" / "mirror" / "pagewise" / f"pagewise-kernels-{VERSION}.tar"


def test_two_clones_make_the_same_bytes(clone: Callable[..., Path]) -> None:
    first = clone("first")
    other = clone("other", "--config", "core.autocrlf=true", "--config", "tar.umask=0077")
    strict = ("bash", "-c", 'umask 077; exec "$0" "$@"', sys.executable, other / "setup" / "dist.py")
    assert dist(first, TZ="UTC", LC_ALL="C").returncode == 0
    os.utime(other / "kernels" / "CMakeLists.txt", (1, 1))
    done = run(*strict, TZ="Asia/Tokyo", LC_ALL="C.UTF-8", GIT_CONFIG_GLOBAL="/dev/null")
    assert done.returncode == 0, done.stdout
    assert archive(first).read_bytes() == archive(other).read_bytes()


def test_the_archive_is_in_spacks_mirror_and_contains_no_recipe(clone: Callable[..., Path]) -> None:
    checkout = clone("checkout")
    assert dist(checkout).returncode == 0
    content = archive(checkout).read_bytes()
    sha256 = hashlib.sha256(content).hexdigest()
    assert f'"{VERSION}": "{sha256}"' in (checkout / RECIPES).read_text()
    assert archive(checkout).resolve().name == f"{sha256}.tar"
    listing = run("tar", "--list", "--verbose", "--file", archive(checkout)).stdout.splitlines()
    names = [line.split()[5] for line in listing]
    top = f"pagewise-kernels-{VERSION}"
    assert {f"{top}/LICENSE", f"{top}/CMakeLists.txt", f"{top}/micro/{KERNEL}/kernel.yaml"} <= set(names)
    assert names == sorted(names) and not [name for name in names if "spack" in name]
    assert {line.split()[0] for line in listing} <= {"-rw-r--r--", "-rwxr-xr-x"}


def test_a_clone_without_tags_finds_the_release_by_its_content(clone: Callable[..., Path]) -> None:
    checkout = clone("checkout", "--no-tags")
    git(checkout, "rm", "--quiet", "-r", "kernels")
    git(checkout, "commit", "--quiet", "--message", "Continue after the release")
    assert git(checkout, "tag") == ""
    done = dist(checkout, "--version", VERSION)
    assert done.returncode == 0, done.stdout


def test_a_tag_on_other_content_is_refused(clone: Callable[..., Path]) -> None:
    checkout = clone("checkout")
    (checkout / "kernels" / "ruff.toml").write_text("# another\n")
    git(checkout, "commit", "--quiet", "--all", "--message", "Edit")
    git(checkout, "tag", "--force", f"v{VERSION}")
    done = dist(checkout, "--version", VERSION)
    assert done.returncode == 4
    assert f"v{VERSION}" in done.stdout and "git fetch --tags" in done.stdout
    assert not archive(checkout).exists()


def test_a_released_or_wrong_version_is_refused(clone: Callable[..., Path]) -> None:
    checkout = clone("checkout")
    (checkout / "kernels" / "ruff.toml").write_text("# another\n")
    git(checkout, "commit", "--quiet", "--all", "--message", "Edit")
    released = re.search(rf'"{VERSION}": "(\w+)"', (checkout / RECIPES).read_text())[1]
    done = dist(checkout, "--revision", "HEAD")
    assert done.returncode == 4 and released in done.stdout
    done = dist(checkout, "--version", "1.2.3")
    assert done.returncode == 4 and VERSION in done.stdout
    done = dist(checkout, "--revision", "HEAD", "--version", "1.2.3")
    assert done.returncode == 4 and VERSION in done.stdout and "CMakeLists.txt" in done.stdout


def test_the_projects_own_releases_can_be_made(tmp_path: Path) -> None:
    """From this checkout's history, which a snapshot or shallow clone does not have."""
    if run("git", "-C", ROOT, "rev-parse", "--is-shallow-repository").stdout.strip() != "false":
        pytest.skip("this checkout has no history")
    lines = re.compile(r'^    "([\d.]+)": "([0-9a-f]{64})",$', re.MULTILINE)
    known = dict(lines.findall((ROOT / RECIPES).read_text()))
    assert known
    for version, sha256 in known.items():
        done = dist(ROOT, "--version", version, "--mirror", str(tmp_path))
        assert done.returncode == 0 and f"sha256 {sha256}" in done.stdout, done.stdout


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


def test_the_lock_installs_the_same_hashes_in_another_clone(locked: Path, clone: Callable[..., Path]) -> None:
    other = set_up(clone("elsewhere"))
    done = run(other / "setup" / "stack", "release-quick", LOCK=str(locked / "lock"))
    assert done.returncode == 0, done.stdout
    wanted = {root["hash"] for root in json.loads((locked / "lock" / "spack.lock").read_text())["roots"]}
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
    own = json.loads((other / "own" / "spack.lock").read_text())
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
    done = run(locked / "setup" / "lock", "release-quick", "mic_knl", locked / "knl")
    assert done.returncode == 0, done.stdout
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
