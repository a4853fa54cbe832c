"""A new user on fresh Debian systems: packages are installed by root, all else runs as an ordinary user."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

import debian

ROOT = Path(__file__).parents[2]
STATE = ROOT / ".pagewise"
SPACK = ("spack", "spack-packages")
#: The default GCC by Debian release.
DEFAULT_GCC = {"bookworm": 12, "trixie": 14}
PROJECT = "pagewise"
NOWHERE = "file:///nowhere.git"
SOUND = {("none", "ok"), ("thp", "ok")}
#: The fast tests build all kernels; a comparison needs one.
ONE_KERNEL = "find kernels/micro -mindepth 1 -maxdepth 1 -type d ! -name pointer_chase -exec rm -r {} +"
ALL_KERNELS = "git checkout --quiet kernels"


@dataclass(frozen=True)
class Newcomer:
    """A user with a clone of the project on a fresh system."""

    release: str
    root: debian.Root

    @property
    def clone(self) -> Path:
        """The clone, seen from outside."""
        return self.root.home / PROJECT

    def use(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script in the clone as the user."""
        return self.root.use(
            f"cd {PROJECT}; {script}",
            PAGEWISE_SPACK_URL="file:///seed/spack.git",
            PAGEWISE_SPACK_PACKAGES_URL="file:///seed/spack-packages.git",
            # Indexing takes a minute; use the index of the checkout that runs these tests.
            PAGEWISE_SPACK_INDEX="/seed/misc-cache",
        )


#: One release in each run of CI, the other before a release.
SYSTEMS = [
    pytest.param(name, marks=[pytest.mark.xdist_group(name), mark])
    for name, mark in (("trixie", pytest.mark.systems), ("bookworm", pytest.mark.release))
]


@pytest.fixture(scope="module", params=SYSTEMS)
def newcomer(
    request: pytest.FixtureRequest, spack_ready: None, unavailable: Callable[[str], NoReturn]
) -> Iterator[Newcomer]:
    """A fresh system with the project's packages, and a clone of this checkout."""
    debian.needed(unavailable)
    with tempfile.TemporaryDirectory(prefix="pagewise-newcomer-", dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        newcomer = Newcomer(request.param, debian.unpack(request.param, Path(place, "root")))
        root = newcomer.root
        seed = root.folder / "seed"
        for name in SPACK:
            debian.succeed(
                "git", "clone", "--quiet", "--bare", (STATE / name).resolve(), seed / f"{name}.git"
            )
        shutil.copytree((STATE / "misc-cache").resolve(), seed / "misc-cache")
        debian.succeed("git", "clone", "--quiet", f"file://{ROOT}", newcomer.clone)
        debian.succeed("chown", "--recursive", f"{debian.UID}:{debian.UID}", seed, root.home)
        done = root.administer(f"/home/{debian.USER}/{PROJECT}/setup/system-packages first run gcc build")
        assert done.returncode == 0, done.stdout
        # Give the files that root wrote in the clone to the user.
        debian.succeed("chown", "--recursive", f"{debian.UID}:{debian.UID}", root.home)
        yield newcomer


def test_an_ordinary_user_compares(newcomer: Newcomer) -> None:
    done = newcomer.use(f"{ONE_KERNEL}; make compare ENV=quick ARGS='--rounds 3' BUILDER=spack")
    assert newcomer.use(ALL_KERNELS).returncode == 0
    assert (newcomer.clone / "results").is_dir(), done.stdout[-5000:]
    (result,) = (newcomer.clone / "results").iterdir()
    manifest = json.loads((result / "manifest.json").read_text())
    assert manifest["state"] == "complete"
    records = [json.loads(line) for line in (result / "records.jsonl").read_text().splitlines()]
    statuses = {(record["configuration"]["hugepages"], record["status"]) for record in records}
    # On a node that other work fragments a run may not get huge pages. It must say so; the others stay valid.
    assert ("none", "ok") in statuses and statuses <= {*SOUND, ("thp", "pages_unavailable")}
    refused = [record for record in records if record["status"] != "ok"]
    assert all(record["failure"]["message"] for record in refused)
    # The kernel's own counter confirms it.
    counted = [record["run"]["node"]["counted"] for record in refused]
    assert all(counts.get("thp_fault_fallback", 0) > 0 for counts in counted)
    assert done.returncode == 0 or refused, done.stdout[-5000:]
    assert (result / "report.html").stat().st_size > 0
    assert not (newcomer.clone / ".pagewise" / "missing.tsv").read_text()

    report = json.loads(newcomer.use(f"./pagewise report --json results/{result.name} 2>/dev/null").stdout)
    rows = [row for kernel in report["kernels"] for row in kernel["configurations"]]
    compared = [row for row in rows if row["hugepages"] == "thp"]
    assert compared and all(row["verdict"] or row["code"] == "pages_unavailable" for row in compared)
    assert refused or all(row["verdict"] for row in compared)
    gcc = {record["configuration"]["compiler"].split("-")[1].split(".")[0] for record in records}
    assert gcc == {str(DEFAULT_GCC[newcomer.release])}


@pytest.mark.release
def test_other_versions_of_gcc_compile_all_kernels(newcomer: Newcomer) -> None:
    """All other versions of the release, except the default of another release."""
    listed = newcomer.root.administer("apt-cache pkgnames gfortran-").stdout.split()
    numbers = {name.removeprefix("gfortran-") for name in listed}
    others = sorted({int(number) for number in numbers if number.isdecimal()} - set(DEFAULT_GCC.values()))
    assert others
    packages = " ".join(f"gcc-{version} gfortran-{version}" for version in others)
    done = newcomer.root.administer(f"apt-get install -q -y --no-install-recommends {packages}")
    assert done.returncode == 0, done.stdout[-2000:]
    for version in others:
        compilers = f"-DCMAKE_C_COMPILER=gcc-{version} -DCMAKE_Fortran_COMPILER=gfortran-{version}"
        parts = "-DPAGEWISE_LIBRARY=ON -DPAGEWISE_MICRO=ON -DPAGEWISE_MINI=ON -DPAGEWISE_MPI=AUTO"
        kind = "-G Ninja -DCMAKE_BUILD_TYPE=Debug -DBUILD_TESTING=OFF"
        build = f"~/gcc-{version}"
        done = newcomer.use(
            f"cmake -S kernels -B {build} {kind} {compilers} {parts};"
            f"cmake --build {build} --parallel; rm -rf {build}"
        )
        assert done.returncode == 0, done.stdout[-5000:]


@pytest.fixture(scope="module")
def offline(newcomer: Newcomer) -> Callable[[str], subprocess.CompletedProcess[str]]:
    """A function that runs a script in a second clone, in which no git server can be reached."""
    done = newcomer.root.use(f"git clone --quiet {PROJECT} offline")
    assert done.returncode == 0, done.stdout
    nowhere = {name: NOWHERE for name in ("PAGEWISE_SPACK_URL", "PAGEWISE_SPACK_PACKAGES_URL")}
    return lambda script: newcomer.root.use(f"cd offline; {script}", **nowhere)


def test_without_git_servers_the_presets_build_with_a_warning(
    newcomer: Newcomer, offline: Callable[[str], subprocess.CompletedProcess[str]]
) -> None:
    refused = offline("make compare ENV=quick BUILDER=spack")
    assert refused.returncode != 0
    # The reason, and the variable to set.
    assert NOWHERE in refused.stdout and "PAGEWISE_SPACK_URL" in refused.stdout
    folder = newcomer.root.home / "offline"
    assert not (folder / "results").exists()
    done = offline(f"{ONE_KERNEL}; make compare ENV=quick ARGS='--rounds 1'; {ALL_KERNELS}")
    assert done.returncode == 0 and NOWHERE in done.stdout, done.stdout[-4000:]
    (file,) = folder.glob("results/*/records.jsonl")
    records = [json.loads(line) for line in file.read_text().splitlines()]
    assert {record["run"]["builder"] for record in records} == {"cmake"}


def test_the_fast_tests_pass_without_git_servers(
    newcomer: Newcomer, offline: Callable[[str], subprocess.CompletedProcess[str]]
) -> None:
    done = newcomer.root.administer(f"/home/{debian.USER}/{PROJECT}/setup/system-packages test")
    assert done.returncode == 0, done.stdout
    done = offline("make check")
    assert done.returncode == 0, done.stdout[-4000:]
