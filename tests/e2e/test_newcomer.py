"""The newcomer's path on fresh systems of Debian: packages as root, all else as an ordinary user."""

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
pytestmark = pytest.mark.newcomer
#: GCC by release of Debian: what its newcomers build with.
DEFAULT_GCC = {"bookworm": 12, "trixie": 14}
PROJECT = "pagewise"


@dataclass(frozen=True)
class Newcomer:
    """A user with a clone of the project on a fresh system."""

    release: str
    root: debian.Root

    @property
    def clone(self) -> Path:
        """The clone, from outside."""
        return self.root.home / PROJECT

    def use(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script in the clone as the user."""
        return self.root.use(
            f"cd {PROJECT}; {script}",
            PAGEWISE_SPACK_URL="file:///seed/spack.git",
            PAGEWISE_SPACK_PACKAGES_URL="file:///seed/spack-packages.git",
            # Indexing takes a minute; the set-up of the machine that runs these tests has done it.
            PAGEWISE_SPACK_INDEX="/seed/misc-cache",
        )


@pytest.fixture(
    scope="module", params=[pytest.param(name, marks=pytest.mark.xdist_group(name)) for name in DEFAULT_GCC]
)
def newcomer(
    request: pytest.FixtureRequest, spack_ready: None, unavailable: Callable[[str], NoReturn]
) -> Iterator[Newcomer]:
    """A fresh system with the project's packages, and a clone of this checkout."""
    debian.needed(unavailable)
    with tempfile.TemporaryDirectory(prefix="pagewise-newcomer-", dir="/var/tmp") as place:
        Path(place).chmod(0o755)
        one = Newcomer(request.param, debian.unpack(request.param, Path(place, "root")))
        seed = one.root.folder / "seed"
        for name in SPACK:
            debian.succeed(
                "git", "clone", "--quiet", "--bare", (STATE / name).resolve(), seed / f"{name}.git"
            )
        shutil.copytree((STATE / "misc-cache").resolve(), seed / "misc-cache")
        debian.succeed("git", "clone", "--quiet", f"file://{ROOT}", one.clone)
        debian.succeed("chown", "--recursive", f"{debian.UID}:{debian.UID}", seed, one.root.home)
        done = one.root.administer(f"/home/{debian.USER}/{PROJECT}/setup/system-packages first run gcc build")
        assert done.returncode == 0, done.stdout
        # What root's call left in the clone is the user's to write.
        debian.succeed("chown", "--recursive", f"{debian.UID}:{debian.UID}", one.root.home)
        yield one


def test_an_ordinary_user_compares(newcomer: Newcomer) -> None:
    done = newcomer.use("make compare ENV=quick ROUNDS=3 BUILDER=spack")
    assert done.returncode == 0, done.stdout[-5000:]
    (result,) = (newcomer.clone / "results").iterdir()
    manifest = json.loads((result / "manifest.json").read_text())
    assert manifest["state"] == "complete"
    records = [json.loads(line) for line in (result / "records.jsonl").read_text().splitlines()]
    assert records and {record["status"] for record in records} == {"ok"}
    assert (result / "report.html").stat().st_size > 0
    assert not (newcomer.clone / ".pagewise" / "missing.tsv").read_text()

    told = json.loads(newcomer.use(f"./pagewise report --json results/{result.name} 2>/dev/null").stdout)
    rows = [row for kernel in told["kernels"] for row in kernel["configurations"]]
    compared = [row for row in rows if row["hugepages"] == "thp"]
    assert compared and all(row["verdict"] for row in compared)
    gcc = {record["configuration"]["compiler"].split("-")[1].split(".")[0] for record in records}
    assert gcc == {str(DEFAULT_GCC[newcomer.release])}


def test_other_versions_of_gcc_compile_all_kernels(newcomer: Newcomer) -> None:
    """Those that the release has besides, but for what newcomers of another release build with."""
    listed = newcomer.root.administer("apt-cache pkgnames gfortran-").stdout.split()
    numbers = {name.removeprefix("gfortran-") for name in listed}
    others = sorted({int(one) for one in numbers if one.isdecimal()} - set(DEFAULT_GCC.values()))
    assert others
    packages = " ".join(f"gcc-{one} gfortran-{one}" for one in others)
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


def test_the_everyday_tests_pass_on_debian_13(newcomer: Newcomer) -> None:
    if newcomer.release != "trixie":
        pytest.skip("`make check` has passed on the machine that runs this, or on Debian 12")
    done = newcomer.root.administer(f"/home/{debian.USER}/{PROJECT}/setup/system-packages test")
    assert done.returncode == 0, done.stdout
    done = newcomer.use("make check")
    assert done.returncode == 0, done.stdout[-4000:]
