"""Bundles: an ordinary user installs one elsewhere without network; a changed one is refused."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import (
    EXCLUDED,
    KERNEL,
    ROOT,
    VERSION,
    git,
    lock_of,
    pin_only,
    pins,
    printed,
    run,
    set_up,
    succeed,
    write_script,
)

pytestmark = pytest.mark.release

USER, OTHER = "nobody", "daemon"
#: The target that the page has, and whether this machine has one of its instruction sets.
TARGET = "x86_64_v3"
FLAGS = Path("/proc/cpuinfo").read_text().split()


def gpg(home: Path, *arguments: str) -> str:
    """Run GPG with a separate keyring."""
    home.mkdir(mode=0o700, exist_ok=True)
    done = succeed("gpg", "--homedir", home, "--batch", *arguments)
    return done.stdout


def agents(checkout: Path) -> list[str]:
    """The processes that GPG left in the background for a checkout's keys."""
    listed = run("ps", "-e", "-o", "args=").stdout.splitlines()
    return [line for line in listed if f"{checkout}/.pagewise/gpg" in line]


def alone(user: str, home: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command as this user, without network and without the caller's environment."""
    settings = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    words = ["unshare", "--net", "setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}"]
    words += ["--clear-groups", "--no-new-privs", *map(str, command)]
    return subprocess.run(words, env=settings, cwd=home, capture_output=True, text=True, check=False)


def page(origin: Path, section: str, **values: str) -> list[str]:
    """The paragraphs of the page's section, for this machine's processor."""
    target = TARGET if "avx2" in FLAGS else "host"
    return printed(origin, "release", section, {TARGET: target, **values})


@dataclass(frozen=True)
class Media:
    """A bundle, the clone that made it, and the fingerprint of its signer."""

    archive: Path
    maker: Path
    key: str

    @property
    def hashes(self) -> set[str]:
        """The hashes of the bundle's configurations."""
        (lock,) = self.maker.glob(".pagewise/locks/release-*/spack.lock")
        return {root["hash"] for root in json.loads(lock.read_text())["roots"]}


@pytest.fixture(scope="session")
def media(spack_ready: None, origin: Path, tmp_path_factory: pytest.TempPathFactory) -> Media:
    """A bundle with the Python packages for comparing."""
    maker = tmp_path_factory.mktemp("media") / "clone"
    git(origin, "clone", "--quiet", f"file://{origin}", str(maker))
    pin_only(maker, pins().keys() - EXCLUDED)
    git(maker, "commit", "--quiet", "--all", "--message", "Pin the packages for comparing")
    (commands,) = page(set_up(maker), "Make a bundle")
    # The set-up is complete.
    done = run("bash", "-ec", f"cd {maker}\n{commands.replace('make ', 'make --old-file=setup ', 1)}")
    if done.returncode and "PIP_INDEX_URL" in done.stdout and not os.environ.get("CI"):
        pytest.skip("no Python package index")
    assert done.returncode == 0, done.stdout
    assert not agents(maker)
    key = re.search(r"\b([0-9A-F]{40})\b", done.stdout.splitlines()[-1])[1]
    return Media(maker / f"pagewise-{VERSION}.tar", maker, key)


@pytest.fixture(scope="session")
def content(media: Media, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bundle's content, which no test changes."""
    folder = tmp_path_factory.mktemp("content")
    subprocess.run(["tar", "-x", "-C", folder, "-f", media.archive], check=True)
    return folder / media.archive.stem


@pytest.fixture
def unpacked(content: Path, tmp_path: Path) -> Path:
    """The same files, hard-linked, in the test's folders; change them only with `put`."""
    subprocess.run(["cp", "--archive", "--link", content, tmp_path], check=True)
    return tmp_path / content.name


def put(file: Path, content: str | bytes) -> None:
    """Replace a file, leaving its other hard links."""
    file.unlink(missing_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


@dataclass(frozen=True)
class Installation:
    """An installation with its process, and another user: the home, and the commands that the page has."""

    prefix: Path
    done: subprocess.CompletedProcess[str]
    home: Path
    uses: list[str]


@pytest.fixture(scope="session")
def installed(media: Media) -> Iterator[Installation]:
    """A read-only installation by an ordinary user without network."""
    if os.geteuid() != 0 or run("unshare", "--net", "true").returncode != 0:
        pytest.skip("needs root, to run as another user without network")
    # Not below pytest's folders, which only root may enter.
    place = Path(tempfile.mkdtemp(prefix="pagewise-site-", dir="/var/tmp"))
    place.chmod(0o755)
    try:
        for name, user in (("sw", USER), (USER, USER), (OTHER, OTHER)):
            (place / name).mkdir()
            shutil.chown(place / name, user)
        shutil.copy(media.archive, place / USER)
        values = {"/sw": f"{place}/sw", "<fingerprint>": media.key}
        install, verify = page(media.maker, "Install", **values)
        (shared,) = page(media.maker, "Shared, read-only", **values)
        protect, *uses = shared.splitlines()
        done = alone(USER, place / USER, "bash", "-ec", f"{install}\n{protect}\n{verify}")
        prefix = place / "sw" / "pagewise" / VERSION
        yield Installation(prefix, done, place / OTHER, uses)
    finally:
        shutil.rmtree(place)


def test_a_bundle_installs_the_lock_elsewhere_without_network(installed: Installation, media: Media) -> None:
    prefix, done = installed.prefix, installed.done
    assert done.returncode == 0, done.stdout + done.stderr
    assert not agents(prefix)
    wanted = media.hashes
    packages = prefix / ".pagewise" / "opt" / "pagewise-micro"
    assert {folder.name for folder in packages.iterdir()} == {f"{VERSION}-{digest}" for digest in wanted}
    assert prefix.owner() == USER
    log = (prefix / ".pagewise" / "logs" / "install-release.log").read_text()
    assert "Good signature" in log and "Executing phase" not in log
    # Relocation removes the build's prefix; names of source files in Fortran's messages may stay.
    build_prefix = str(media.maker / ".pagewise" / "bundle-opt").encode()
    for program in packages.glob("*/bin/*"):
        content = program.read_bytes()
        assert not any(old in content for old in (build_prefix, b"__spack_path_placeholder__")), program


def test_a_bundle_has_the_sources_of_its_release_in_the_project(content: Path) -> None:
    lock = lock_of(content / "lock")
    specs = [spec for spec in lock["concrete_specs"].values() if spec["namespace"] == "pagewise"]
    (commit,) = {spec["parameters"]["commit"] for spec in specs}
    refs = run("git", "-C", content / "project.git", "for-each-ref", "--points-at", commit, "refs/tags")
    assert refs.stdout, "a clone of the project contains the commit"


def test_other_users_run_the_read_only_installation_with_their_own_results(installed: Installation) -> None:
    prefix, home = installed.prefix, installed.home
    assert alone(OTHER, home, "touch", prefix / "file").returncode != 0
    program = (f"pw-{KERNEL}", "--working-set", "1MB", "--repetitions", "1", "--record", "record.jsonl")
    module = "*/thp/hardware-regular"
    done = alone(OTHER, home, prefix / "pagewise", "run", "--env", "release", module, "--", *program)
    assert done.returncode == 0, done.stdout + done.stderr
    record = home / "record.jsonl"
    assert record.owner() == OTHER and json.loads(record.read_text())["validation"]["passed"]
    compare, load = installed.uses
    done = alone(OTHER, home, "bash", "-ec", compare)
    assert done.returncode == 0, done.stdout + done.stderr
    (report,) = home.glob("results/*/report.html")
    assert report.owner() == OTHER
    listed = alone(OTHER, home, "bash", "-c", load)
    assert f"pagewise-micro/{VERSION}/gcc" in listed.stdout + listed.stderr


def test_the_sources_of_a_bundle_build_the_same_packages(media: Media, content: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", f"file://{media.maker}", "site")
    site = set_up(tmp_path / "site")
    without_network = ("unshare", "--map-root-user", "--net")
    if run(*without_network, "true").returncode != 0:
        pytest.skip("this user may not make a network namespace")
    stack = (site / "setup" / "stack", "release")
    succeed(*without_network, *stack, BUNDLE=str(content), KEY=media.key, FROM="sources")
    log = (site / ".pagewise" / "logs" / "install-release.log").read_text()
    assert "libpagewise: Executing phase: 'build'" in log
    assert not agents(site)
    wanted = media.hashes
    packages = site / ".pagewise" / "opt" / "pagewise-micro"
    assert {folder.name for folder in packages.iterdir()} == {f"{VERSION}-{digest}" for digest in wanted}


def rejection(bundle: Path, key: str) -> str:
    """Verify a changed bundle, and return the error."""
    done = run(ROOT / "setup" / "verify-bundle", bundle, key)
    assert done.returncode == 4, done.stdout
    return done.stdout


def update_checksum(bundle: Path, name: str) -> None:
    """Write a changed file's digest to the checksums."""
    digest = hashlib.sha256((bundle / name).read_bytes()).hexdigest()
    sums = bundle / "SHA256SUMS"
    put(sums, re.sub(rf"^\w+(?=  \./{name}$)", digest, sums.read_text(), flags=re.MULTILINE))


def test_an_unchanged_bundle_is_accepted(media: Media, content: Path) -> None:
    for key in (media.key, media.key.lower(), " ".join(re.findall("....", media.key))):
        done = run(ROOT / "setup" / "verify-bundle", content, key)
        assert (done.returncode, done.stdout) == (0, "")


def test_a_changed_file_is_refused(media: Media, unpacked: Path) -> None:
    blob = max((unpacked / "buildcache").rglob("*"), key=lambda file: file.stat().st_size)
    content = bytearray(blob.read_bytes())
    content[len(content) // 2] ^= 1
    put(blob, bytes(content))
    assert str(blob.relative_to(unpacked)) in rejection(unpacked, media.key)


def test_changed_checksums_are_refused(media: Media, unpacked: Path) -> None:
    put(unpacked / "install", "#!/bin/sh\n")
    update_checksum(unpacked, "install")
    assert "SHA256SUMS.asc" in rejection(unpacked, media.key)


def test_a_bundle_signed_by_another_key_is_refused(media: Media, unpacked: Path, tmp_path: Path) -> None:
    home = tmp_path / "keys"
    gpg(home, "--passphrase", "", "--quick-generate-key", "mallory", "ed25519", "sign")
    put(unpacked / "key.asc", gpg(home, "--armor", "--export"))
    (unpacked / "SHA256SUMS.asc").unlink()
    update_checksum(unpacked, "key.asc")
    gpg(home, "--armor", "--detach-sign", str(unpacked / "SHA256SUMS"))
    other = re.search(r"^fpr:+([0-9A-F]{40}):", gpg(home, "--with-colons", "--list-keys"), re.MULTILINE)[1]
    assert other in rejection(unpacked, media.key)


def test_a_file_without_a_checksum_is_refused(media: Media, unpacked: Path) -> None:
    (unpacked / "project.git" / "hooks").mkdir()
    (unpacked / "project.git" / "hooks" / "post-checkout").write_text("#!/bin/sh\n")
    assert "hooks/post-checkout" in rejection(unpacked, media.key)


def test_a_missing_file_is_refused(media: Media, unpacked: Path) -> None:
    wheel = next((unpacked / "wheels").iterdir())
    wheel.unlink()
    assert wheel.name in rejection(unpacked, media.key)
    (unpacked / "SHA256SUMS.asc").unlink()
    assert "SHA256SUMS.asc" in rejection(unpacked, media.key)


def test_nothing_of_a_damaged_bundle_is_used(
    media: Media, tmp_path: Path, clone: Callable[..., Path]
) -> None:
    site = clone("site")
    bad = tmp_path / "bad.tar"
    content = bytearray(media.archive.read_bytes())
    content[len(content) // 2] ^= 1
    bad.write_bytes(content)
    for bundle, key, cause in (
        (bad, media.key, "sha256sum"),
        (media.archive, "", "KEY"),
        (media.archive, "0" * 40, "0" * 40),
        (tmp_path / "none.tar", media.key, "none.tar"),
    ):
        done = run(site / "setup" / "bootstrap", BUNDLE=str(bundle), KEY=key)
        assert done.returncode == 4 and cause in done.stdout, done.stdout
    bad.write_bytes(content[:5000])
    done = run(site / "setup" / "bootstrap", BUNDLE=str(bad), KEY=media.key)
    assert done.returncode == 4 and str(bad) in done.stdout
    assert not list((site / ".pagewise").glob("spack*")) and not (site / ".pagewise" / "venv").exists()


def test_a_bundle_for_another_python_is_refused(
    media: Media, tmp_path: Path, clone: Callable[..., Path]
) -> None:
    other = tmp_path / "python3"
    write_script(other, "#!/bin/sh\necho 3.99\n")
    settings = {"BUNDLE": str(media.archive), "KEY": media.key, "PAGEWISE_PYTHON": str(other)}
    done = run(clone("site") / "setup" / "bootstrap", **settings)
    assert done.returncode == 4 and str(other) in done.stdout and "3.99" in done.stdout


def test_a_changed_checkout_is_not_bundled(spack_ready: None, clone: Callable[..., Path]) -> None:
    other = set_up(clone("other"))
    with (other / "setup" / "stack").open("a") as file:
        file.write("# edited\n")
    done = run(other / "setup" / "bundle", "release-quick")
    assert done.returncode == 4 and "git status" in done.stdout
