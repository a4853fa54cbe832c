"""Images: built by buildah on a base that debootstrap makes, run as an ordinary user, compared with outside.

The builds take minutes: `make test-container`. What asks for no build is part of `make test`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import pytest

import debian
from conftest import KERNEL, ROOT, STATE, VERSION, git, run, set_up

DEFINITION = ROOT / "containers" / "pagewise.def"
#: Sections of a definition file, by Apptainer's user guide (Definition Files).
SECTIONS = {"arguments", "labels", "help", "environment", "runscript", "test"}


def definition() -> tuple[dict[str, str], dict[str, str]]:
    """Header and sections of the definition file."""
    header: dict[str, str] = {}
    sections: dict[str, str] = {}
    name = ""
    for line in DEFINITION.read_text().splitlines():
        if line.startswith("#"):
            continue
        if match := re.fullmatch(r"%([a-z]+)", line):
            name = match[1]
            sections[name] = ""
        elif name:
            sections[name] += f"{line}\n"
        elif line:
            key, value = line.split(": ", 1)
            header[key] = value
    return header, sections


def test_the_definition_file_is_whole() -> None:
    header, sections = definition()
    assert header == {"Bootstrap": "oci-archive", "From": "{{ ARCHIVE }}"}
    assert set(sections) == SECTIONS and "ARCHIVE=pagewise.tar" in sections["arguments"]
    for name in ("environment", "runscript", "test"):
        done = subprocess.run(["sh", "-n"], input=sections[name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_a_base_that_is_no_pin_is_refused(tmp_path: Path) -> None:
    (tmp_path / "engine").write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    (tmp_path / "engine").chmod(0o755)
    image, engine = ROOT / "setup" / "image", str(tmp_path / "engine")
    for base, told in (("", "BASE is not given"), ("docker.io/library/debian:12", "another image tomorrow")):
        done = run(image, BASE=base, ENGINE=engine)
        assert done.returncode == 4 and told in done.stdout and "remedy:" in done.stdout
    done = run(image, BASE="localhost/debian:12", ENGINE="nowhere-there")
    assert done.returncode == 4 and "nowhere-there" in done.stdout
    if (ROOT / ".git").is_dir():
        pinned = "debian@sha256:" + 64 * "0"
        words = run(image, "build", BASE=pinned, ENGINE=engine, ENV="quick").stdout.splitlines()
        assert (
            words[words.index("--target") + 1] == "build"
            and words[words.index("--tag") + 1] == "pagewise-build"
        )
        assert f"BASE={pinned}" in words and "ENV=quick" in words


def packages(role: str) -> list[tuple[str, str]]:
    """The system packages of a role, with their proofs."""
    lines = (ROOT / "setup" / "system-packages.tsv").read_text().splitlines()
    rows = [line.split("\t") for line in lines if not line.startswith("#")]
    return [(package, proof) for of, package, proof, _ in rows if of == role]


@dataclass(frozen=True)
class Engine:
    """Buildah with a store of its own."""

    place: Path

    @property
    def options(self) -> list[str]:
        """What tells it where its store is. Where there is an overlay already, whole copies it must be."""
        below = run("stat", "--file-system", "--format", "%T", self.place).stdout.strip()
        driver = "vfs" if below == "overlayfs" else "overlay"
        return ["--root", f"{self.place}/store", "--runroot", f"{self.place}/run", "--storage-driver", driver]

    def __call__(self, *words: str | Path) -> str:
        """Run a command of it."""
        done = run("buildah", *self.options, *words)
        assert done.returncode == 0, done.stdout[-5000:]
        return done.stdout.strip()

    def inside(self, container: str, script: str, user: str = "pagewise") -> subprocess.CompletedProcess[str]:
        """Run a script in a container, as its ordinary user, without network."""
        words = ("run", "--isolation", "chroot", "--user", user, container, "--", "bash", "-c", script)
        return run("unshare", "--net", "buildah", *self.options, *words)


@pytest.fixture(scope="session")
def engine(lacking: Callable[[str], NoReturn]) -> Iterator[Engine]:
    """A store with a base image that debootstrap makes of the distribution's mirror."""
    debian.needed(lacking)
    if not shutil.which("buildah"):
        lacking("needs buildah (setup/bootstrap container)")
    place = Path(tempfile.mkdtemp(prefix="pagewise-images-", dir="/var/tmp"))
    place.chmod(0o755)
    try:
        one = Engine(place)
        container = one("from", "scratch")
        one("add", container, debian.base(debian.codename()), "/")
        one("commit", "--quiet", "--rm", container, "localhost/base")
        yield one
    finally:
        # What a build that failed left mounted.
        run("buildah", *Engine(place).options, "rm", "--all")
        run("umount", place / "store" / "overlay")
        shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="session")
def images(engine: Engine, spack_ready: None, origin: Path) -> Path:
    """The project of which both images are built."""
    project = engine.place / "project"
    git(engine.place, "clone", "--quiet", f"file://{origin}", "project")
    shutil.copytree(ROOT / "containers", project / "containers")
    # All of the runner's packages, unlike in the other tests.
    shutil.copy(ROOT / "setup" / "requirements.lock", project / "setup" / "requirements.lock")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "Add what images need")
    seed = engine.place / "seed"
    seed.mkdir()
    for name in ("spack", "spack-packages"):
        git(seed, "clone", "--quiet", "--bare", str((STATE / name).resolve()), f"{name}.git")
    run("chown", "-R", "1000", seed)
    settings = {}
    # Under a name of its own: the package ca-certificates writes to /etc/ssl/certs.
    bundle = Path(os.environ.get("PIP_CERT", debian.BUNDLE))
    if bundle.exists():
        shutil.copy(bundle, seed / "ca.crt")
        settings["PIP_CERT"] = "/seed/ca.crt"
    settings |= {
        "ENGINE": "buildah",
        "ENGINE_OPTIONS": " ".join(engine.options),
        "IMAGE_OPTIONS": f"--isolation chroot --format oci --layers --volume {seed}:/seed:ro",
        "BASE": "localhost/base",
        "PACKAGES": "run gcc",
        "PAGEWISE_SPACK_URL": "file:///seed/spack.git",
        "PAGEWISE_SPACK_PACKAGES_URL": "file:///seed/spack-packages.git",
    }
    make = ("make", "--no-print-directory", "-C", project, "image", "ENV=release-quick")
    for stage in (("STAGE=build",), ()):
        done = run(*make, *stage, **settings)
        assert done.returncode == 0, done.stdout[-5000:]
    return project


@pytest.mark.container
def test_the_image_for_running_compares_as_an_ordinary_user(engine: Engine, images: Path) -> None:
    container = engine("from", "localhost/pagewise")
    assert (
        engine.inside(container, "id -u; ! touch /opt/pagewise/file 2>/dev/null && pwd").stdout.split()[0]
        == "1000"
    )
    compare = f"pagewise compare --kernels {KERNEL} --rounds 3"
    done = engine.inside(container, f"cd ~ && {compare} && ls results/*/report.html")
    assert done.returncode == 0 and "noise floor" in done.stdout.lower(), done.stdout
    module = f"pagewise-micro/{VERSION}/gcc-12.2.0/thp/hardware-regular"
    script = f"bash -lc 'module avail 2>&1; module load {module} && pw-{KERNEL} --version && man -w pagewise'"
    done = engine.inside(container, script)
    assert f"pagewise-micro/{VERSION}" in done.stdout and f"{KERNEL}" in done.stdout, done.stdout
    for package, proof in packages("run"):
        there = f"ls {proof}" if proof.startswith("/") else f"command -v {proof}"
        assert engine.inside(container, there).returncode == 0, package
    for absent in ("gcc", "gfortran", "cmake", "git"):
        assert engine.inside(container, f"command -v {absent}").returncode != 0
    # What Apptainer would run of the definition file.
    sections = definition()[1]
    for name in ("test", "runscript"):
        done = engine.inside(
            container, f"set -e\n{sections['environment']}\nset -- --version\n{sections[name]}"
        )
        assert done.returncode == 0, done.stdout
    told = json.loads(engine("inspect", "--type", "image", "localhost/pagewise"))["OCIv1"]["config"]
    assert told["User"] == "pagewise"
    assert told["Labels"]["org.opencontainers.image.revision"] == git(images, "rev-parse", "HEAD").strip()
    engine("rm", container)


@pytest.mark.container
def test_the_environment_is_that_of_outside(engine: Engine, images: Path, tmp_path: Path) -> None:
    """The same hashes, if the same distribution is outside, and programs from the same sources."""
    container = engine("from", "localhost/pagewise-build")
    done = engine.inside(container, "cat /opt/pagewise/envs/release-quick/spack.lock")
    within = json.loads(done.stdout)
    outside = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", f"file://{images}", "clone")
    made = run(set_up(outside) / "setup" / "lock", "release-quick", "host", tmp_path / "lock")
    assert made.returncode == 0, made.stdout
    lock = json.loads((tmp_path / "lock" / "spack.lock").read_text())

    def brought(one: dict) -> set[tuple[str, str]]:
        return {
            (node["name"], node["version"]) for node in one["concrete_specs"].values() if "external" in node
        }

    if brought(lock) != brought(within):
        pytest.skip(f"the distribution differs: {brought(lock) ^ brought(within)}")
    assert {root["hash"] for root in lock["roots"]} == {root["hash"] for root in within["roots"]}
    archive = engine.inside(
        container, "sha256sum /opt/pagewise/.pagewise/mirror/pagewise/*.tar"
    ).stdout.split()[0]
    assert archive in (images / "repos/spack_repo/pagewise/build_systems/kernels.py").read_text()
    assert len(archive) == len(hashlib.sha256().hexdigest())
    done = engine.inside(container, "cd /opt/pagewise && make stack ENV=release-quick", user="pagewise")
    assert done.returncode == 0 and "installing" not in done.stdout, done.stdout
    engine("rm", container)
