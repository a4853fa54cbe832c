"""Container images: built by buildah on a base from debootstrap, run as an ordinary user.

The builds take minutes: `make test-systems` builds the image for running, `make test-all` the others. Tests
without a build are part of `make test`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import NoReturn

import pytest
import registry
import yaml

import debian
from conftest import KERNEL, ROOT, STATE, VERSION, git, lock_of, printed, run, set_up, succeed, write_script

CI_JOBS = yaml.safe_load((ROOT / "ci" / "gitlab.yml").read_text())
DEFINITION = ROOT / "containers" / "pagewise.def"
#: Sections of a definition file (Apptainer's user guide, Definition Files).
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


def test_the_definition_file_is_complete() -> None:
    header, sections = definition()
    assert header == {"Bootstrap": "oci-archive", "From": "{{ ARCHIVE }}"}
    assert set(sections) == SECTIONS and "ARCHIVE=pagewise.tar" in sections["arguments"]
    for name in ("environment", "runscript", "test"):
        done = subprocess.run(["sh", "-n"], input=sections[name], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_a_base_without_a_digest_is_refused(tmp_path: Path) -> None:
    write_script(tmp_path / "engine", '#!/bin/sh\nprintf "%s\\n" "$@"\n')
    image, engine = ROOT / "setup" / "image", str(tmp_path / "engine")
    for base in ("", "docker.io/library/debian:12"):
        done = run(image, BASE=base, ENGINE=engine)
        assert done.returncode == 4 and "BASE" in done.stdout and base in done.stdout
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
    """Buildah with a separate store."""

    place: Path

    @property
    def options(self) -> list[str]:
        """The options for its store. An overlay on an overlay does not work: copy whole layers there."""
        below = run("stat", "--file-system", "--format", "%T", self.place).stdout.strip()
        driver = "vfs" if below == "overlayfs" else "overlay"
        return ["--root", f"{self.place}/store", "--runroot", f"{self.place}/run", "--storage-driver", driver]

    def __call__(self, *words: str | Path) -> str:
        """Run one of its commands, and return the output."""
        done = succeed("buildah", *self.options, *words)
        return done.stdout.strip()

    def inside(self, container: str, script: str, user: str = "pagewise") -> subprocess.CompletedProcess[str]:
        """Run a script in a container as an ordinary user, without network."""
        words = ("run", "--isolation", "chroot", "--user", user, container, "--", "bash", "-c", script)
        return run("unshare", "--net", "buildah", *self.options, *words)


@pytest.fixture(scope="session")
def engine(unavailable: Callable[[str], NoReturn]) -> Iterator[Engine]:
    """A store with a base image that debootstrap creates from the distribution's mirror."""
    debian.needed(unavailable)
    if not shutil.which("buildah"):
        unavailable("needs buildah (setup/bootstrap container)")
    place = Path(tempfile.mkdtemp(prefix="pagewise-images-", dir="/var/tmp"))
    place.chmod(0o755)
    try:
        engine = Engine(place)
        container = engine("from", "scratch")
        engine("add", container, debian.base(debian.codename()), "/")
        engine("commit", "--quiet", "--rm", container, "localhost/base")
        yield engine
    finally:
        # A failed build leaves mounts.
        run("buildah", *Engine(place).options, "rm", "--all")
        run("umount", place / "store" / "overlay")
        shutil.rmtree(place, ignore_errors=True)


def page(origin: Path, section: str) -> list[str]:
    """The lines of a section, for the base image of these tests and this machine's processor."""
    base = {"docker.io/library/debian@sha256:<digest>": "localhost/base", "TARGET=x86_64_v3": "TARGET=host"}
    (block,) = printed(origin, "containers", section, base)
    return block.splitlines()


@pytest.fixture(scope="session")
def images(engine: Engine, spack_ready: None, origin: Path) -> Path:
    """The project from which both images were built."""
    project = engine.place / "project"
    git(engine.place, "clone", "--quiet", f"file://{origin}", "project")
    shutil.copytree(ROOT / "containers", project / "containers")
    # Other tests install only some of the runner's packages; the images have all.
    shutil.copy(ROOT / "setup" / "requirements.lock", project / "setup" / "requirements.lock")
    git(project, "add", ".")
    git(project, "commit", "--quiet", "--message", "Add the images' files")
    seed = engine.place / "seed"
    seed.mkdir()
    for name in ("spack", "spack-packages"):
        git(seed, "clone", "--quiet", "--bare", str((STATE / name).resolve()), f"{name}.git")
    run("chown", "-R", "1000", seed)
    settings = {}
    # Not in /etc/ssl/certs, to which the package ca-certificates writes.
    bundle = Path(os.environ.get("PIP_CERT", debian.BUNDLE))
    if bundle.exists():
        shutil.copy(bundle, seed / "ca.crt")
        settings["PIP_CERT"] = "/seed/ca.crt"
    settings |= {
        "ENGINE": "buildah",
        "ENGINE_OPTIONS": " ".join(engine.options),
        "IMAGE_OPTIONS": f"--isolation chroot --format oci --layers --volume {seed}:/seed:ro",
        "PACKAGES": "run gcc",
        "PAGEWISE_SPACK_URL": "file:///seed/spack.git",
        "PAGEWISE_SPACK_PACKAGES_URL": "file:///seed/spack-packages.git",
    }
    make, _ = page(origin, "Container images")
    for stage in ("STAGE=build", ""):
        succeed("bash", "-ec", f"cd {project}\n{make} {stage}", **settings)
    return project


@pytest.mark.systems
def test_the_image_for_running_compares_as_an_ordinary_user(engine: Engine, images: Path) -> None:
    container = engine("from", "localhost/pagewise")
    assert (
        engine.inside(container, "id -u; ! touch /opt/pagewise/file 2>/dev/null && pwd").stdout.split()[0]
        == "1000"
    )
    compare = f"pagewise kernels --kernels {KERNEL} --rounds 3 --no-sweep"
    done = engine.inside(container, f"cd ~ && {compare} && ls results/*/report.html")
    assert done.returncode == 0 and "thp" in done.stdout, done.stdout
    module = f"pagewise-micro/{VERSION}/gcc-12.2.0/thp/hardware-regular"
    load = f"module avail 2>&1; module load {module} pagewise-pages/thp"
    script = f"{load} && pw-{KERNEL} --version"
    done = engine.inside(container, f"pagewise-exec --quiet none -- bash -lc '{script}'")
    assert f"pagewise-micro/{VERSION}" in done.stdout and f"{KERNEL}" in done.stdout, done.stdout
    for package, proof in packages("run"):
        check = f"ls {proof}" if proof.startswith("/") else f"command -v {proof}"
        assert engine.inside(container, check).returncode == 0, package
    for absent in ("gcc", "gfortran", "cmake", "git"):
        assert engine.inside(container, f"command -v {absent}").returncode != 0
    # The scripts of the definition file that Apptainer would run.
    sections = definition()[1]
    for name in ("test", "runscript"):
        done = engine.inside(
            container, f"set -e\n{sections['environment']}\nset -- --version\n{sections[name]}"
        )
        assert done.returncode == 0, done.stdout
    facts = json.loads(engine("inspect", "--type", "image", "localhost/pagewise"))["OCIv1"]["config"]
    assert facts["User"] == "pagewise"
    assert facts["Labels"]["org.opencontainers.image.revision"] == git(images, "rev-parse", "HEAD").strip()
    engine("rm", container)


def volume_for_pagewise(folder: Path) -> Path:
    """A new folder to which the image's user can write."""
    folder.mkdir()
    os.chown(folder, 1000, 1000)
    return folder


@pytest.mark.systems
def test_the_line_of_podman_runs_with_buildah(engine: Engine, images: Path, origin: Path) -> None:
    _, line = page(origin, "Container images")
    folder = volume_for_pagewise(engine.place / "work")
    podman = argparse.ArgumentParser()
    for option in ("-v", "-w"):
        podman.add_argument(option)
    podman.add_argument("--rm", action="store_true")
    podman.add_argument("image")
    podman.add_argument("command", nargs=argparse.REMAINDER)
    name, action, *words = shlex.split(line.replace("$PWD", str(folder)))
    assert (name, action) == ("podman", "run")
    given = podman.parse_args(words)
    container = engine("from", f"localhost/{given.image}")
    options = ("--isolation", "chroot", "--volume", given.v, "--workingdir", given.w)
    engine("run", *options, container, "--", *given.command)
    engine("rm", container)
    assert len(list(folder.glob("results/*/report.html"))) == 1


@pytest.mark.systems
def test_the_lines_of_apptainer_run_with_buildah(engine: Engine, images: Path, origin: Path) -> None:
    save, build, start = map(shlex.split, page(origin, "Apptainer"))
    folder = volume_for_pagewise(engine.place / "saved")
    assert save[:2] == ["podman", "save"]
    engine("push", f"localhost/{save[-1]}", f"oci-archive:{folder / save[save.index('-o') + 1]}")
    assert build == ["apptainer", "build", start[2], str(DEFINITION.relative_to(ROOT))]
    header, sections = definition()
    given = dict(re.findall(r"(\w+)=(\S+)", sections["arguments"]))
    archive = header["From"].replace("{{ ARCHIVE }}", given["ARCHIVE"])
    container = engine("from", "--quiet", f"{header['Bootstrap']}:{folder / archive}")
    assert start[:2] == ["apptainer", "run"]
    script = f"cd ~\n{sections['environment']}\nset -- {shlex.join(start[3:])}\n{sections['runscript']}"
    done = engine.inside(container, script)
    assert done.returncode == 0, done.stdout
    engine("rm", container)


@pytest.mark.release
def test_the_environment_matches_the_host(engine: Engine, images: Path, tmp_path: Path) -> None:
    """The same hashes, which include the commits of the sources, if the host has the same distribution."""
    container = engine("from", "localhost/pagewise-build")
    done = engine.inside(container, "cat /opt/pagewise/envs/release/spack.lock")
    within = json.loads(done.stdout)
    outside = tmp_path / "clone"
    git(tmp_path, "clone", "--quiet", f"file://{images}", "clone")
    succeed(set_up(outside) / "setup" / "lock", "release", "host", tmp_path / "lock")
    lock = lock_of(tmp_path / "lock")

    def externals(lock: dict) -> set[tuple[str, str]]:
        nodes = lock["concrete_specs"].values()
        return {(node["name"], node["version"]) for node in nodes if "external" in node}

    if externals(lock) != externals(within):
        pytest.skip(f"the distribution differs: {externals(lock) ^ externals(within)}")
    assert {root["hash"] for root in lock["roots"]} == {root["hash"] for root in within["roots"]}
    done = engine.inside(container, "cd /opt/pagewise && make stack ENV=release", user="pagewise")
    assert done.returncode == 0 and "install-release.log" not in done.stdout, done.stdout
    engine("rm", container)


@pytest.mark.release
def test_packages_in_a_registry_are_images_that_run(
    engine: Engine, locked: Path, unavailable: Callable[[str], NoReturn], tmp_path: Path
) -> None:
    # What a package takes from the machine is part of the base.
    container = engine("from", "localhost/base")
    for name in ("libpapi.so.?.?*", "libpfm.so.*"):
        for library in Path("/usr/lib").glob(f"*-linux-gnu/{name}"):
            engine("copy", container, library, f"/usr/lib/{library.name}")
    engine("commit", "--quiet", "--rm", container, "localhost/base-papi")
    certificate = registry.make_certificate(tmp_path)
    access = ("--cert-dir", tmp_path)
    with registry.serve(unavailable, tmp_path, certificate) as host:
        engine(
            "push",
            *access,
            "--digestfile",
            tmp_path / "digest",
            "localhost/base-papi",
            f"docker://{host}/base:1",
        )
        digest = (tmp_path / "digest").read_text().strip()
        settings = {"LOCK": str(locked / "lock"), "SSL_CERT_FILE": str(certificate)}
        settings |= {"PAGEWISE_BASE": f"{host}/base@{digest}", "CI_REGISTRY_IMAGE": host}
        settings["CI_COMMIT_SHORT_SHA"] = "all"
        # The lines of the jobs in the template for GitLab; the set-up is complete.
        (line,) = CI_JOBS["image"]["script"]
        make = line.replace("make ", f"make --old-file=setup -C {locked} ")
        succeed("bash", "-c", make, **settings)
        image = Template(CI_JOBS["run-image"]["image"]).substitute(settings)
        container = engine("from", *access, f"docker://{image}").splitlines()[-1]
    # Code 0: it ran, and its result is valid.
    (line,) = CI_JOBS["run-image"]["script"]
    done = engine.inside(container, line, user="nobody")
    assert done.returncode == 0, done.stdout
    engine("rm", container)
