"""Bundles: installed elsewhere without network by an ordinary user, refused when tampered with."""

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
from pathlib import Path

import pytest

from conftest import KERNEL, ROOT, VERSION, run, set_up

USER, OTHER = "nobody", "daemon"


def gpg(home: Path, *arguments: str) -> str:
    """GPG with a keyring of its own."""
    home.mkdir(mode=0o700, exist_ok=True)
    done = run("gpg", "--homedir", home, "--batch", *arguments)
    assert done.returncode == 0, done.stdout
    return done.stdout


def alone(user: str, home: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command as this user, without network and without anything of the environment."""
    settings = {"HOME": str(home), "PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
    words = ["unshare", "--net", "setpriv", f"--reuid={user}", f"--regid={pwd.getpwnam(user).pw_gid}"]
    words += ["--clear-groups", "--no-new-privs", *map(str, command)]
    return subprocess.run(words, env=settings, cwd=home, capture_output=True, text=True, check=False)


@pytest.fixture(scope="session")
def media(locked: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A bundle, and the fingerprint of who signed it."""
    archive = tmp_path_factory.mktemp("media") / "pagewise.tar"
    done = run(locked / "setup" / "bundle", "release-quick", "host", archive, LOCK=str(locked / "lock"))
    if "the Python packages cannot be had" in done.stdout and not os.environ.get("CI"):
        pytest.skip("no Python package index")
    assert done.returncode == 0, done.stdout
    return archive, re.search(r"signed by ([0-9A-F]{40}):", done.stdout)[1]


@pytest.fixture(scope="session")
def content(media: tuple[Path, str]) -> Path:
    """The bundle's content, which stays as it was made."""
    subprocess.run(["tar", "-x", "-C", media[0].parent, "-f", media[0]], check=True)
    return media[0].parent / "pagewise"


@pytest.fixture
def unpacked(content: Path, tmp_path: Path) -> Path:
    """The same files in folders of a test's own, to be tampered with by `put` alone."""
    subprocess.run(["cp", "--archive", "--link", content, tmp_path], check=True)
    return tmp_path / content.name


def put(file: Path, told: str | bytes) -> None:
    """Another file in the place of one."""
    file.unlink(missing_ok=True)
    file.write_bytes(told.encode() if isinstance(told, str) else told)


@pytest.fixture(scope="session")
def installed(media: tuple[Path, str]) -> Iterator[tuple[Path, subprocess.CompletedProcess[str], Path]]:
    """Where an ordinary user without network installed the bundle, read-only; how that went; a home."""
    if os.geteuid() != 0 or run("unshare", "--net", "true").returncode != 0:
        pytest.skip("taking another user's part without network needs root")
    # Not below pytest's folders, which are root's alone.
    place = Path(tempfile.mkdtemp(prefix="pagewise-site-", dir="/var/tmp"))
    place.chmod(0o755)
    try:
        for name, user in (("sw", USER), (USER, USER), (OTHER, OTHER)):
            (place / name).mkdir()
            shutil.chown(place / name, user)
        shutil.copy(media[0], place / "pagewise.tar")
        alone(USER, place / USER, "tar", "--no-same-owner", "-x", "-f", place / "pagewise.tar")
        prefix = place / "sw" / VERSION
        done = alone(USER, place / USER, place / USER / "pagewise" / "install", prefix, media[1])
        subprocess.run(["chmod", "-R", "a-w", prefix], check=False)
        yield prefix, done, place / OTHER
    finally:
        shutil.rmtree(place)


def test_a_bundle_installs_the_lock_elsewhere_without_network(
    installed: tuple[Path, subprocess.CompletedProcess[str], Path], locked: Path
) -> None:
    prefix, done, _ = installed
    assert done.returncode == 0, done.stdout + done.stderr
    wanted = {root["hash"] for root in json.loads((locked / "lock" / "spack.lock").read_text())["roots"]}
    packages = prefix / ".pagewise" / "opt" / "pagewise-micro"
    assert {folder.name for folder in packages.iterdir()} == {f"{VERSION}-{one}" for one in wanted}
    assert prefix.owner() == USER
    log = (prefix / ".pagewise" / "logs" / "install-release-quick.log").read_text()
    assert "Good signature" in log and "Executing phase" not in log
    # Where it was built is gone from programs; names of source files in Fortran's messages may stay.
    there = str(locked / ".pagewise" / "bundle-opt").encode()
    for program in packages.glob("*/bin/*"):
        content = program.read_bytes()
        assert not any(old in content for old in (there, b"__spack_path_placeholder__")), program


def test_others_run_the_read_only_installation_with_results_of_their_own(
    installed: tuple[Path, subprocess.CompletedProcess[str], Path],
) -> None:
    prefix, _, home = installed
    assert alone(OTHER, home, "touch", prefix / "file").returncode != 0
    program = (f"pw-{KERNEL}", "--working-set", "1MB", "--repetitions", "1", "--record", "record.jsonl")
    module = "*/thp/hardware-regular"
    done = alone(OTHER, home, prefix / "pagewise", "run", "--env", "release-quick", module, "--", *program)
    assert done.returncode == 0, done.stdout + done.stderr
    record = home / "record.jsonl"
    assert record.owner() == OTHER and json.loads(record.read_text())["validation"]["passed"]
    listed = alone(OTHER, home, "bash", "-c", f". {prefix}/setup/activate.sh && module avail")
    assert f"pagewise-micro/{VERSION}/gcc" in listed.stdout + listed.stderr


def test_the_sources_of_a_bundle_build_the_same(
    media: tuple[Path, str], content: Path, locked: Path, clone: Callable[..., Path]
) -> None:
    site = set_up(clone("site"))
    without_network = ("unshare", "--map-root-user", "--net")
    if run(*without_network, "true").returncode != 0:
        pytest.skip("this user may not make a network namespace")
    stack = (site / "setup" / "stack", "release-quick")
    done = run(*without_network, *stack, BUNDLE=str(content), KEY=media[1], FROM="sources")
    assert done.returncode == 0, done.stdout
    log = (site / ".pagewise" / "logs" / "install-release-quick.log").read_text()
    assert "libpagewise: Executing phase: 'build'" in log
    wanted = {root["hash"] for root in json.loads((locked / "lock" / "spack.lock").read_text())["roots"]}
    packages = site / ".pagewise" / "opt" / "pagewise-micro"
    assert {folder.name for folder in packages.iterdir()} == {f"{VERSION}-{one}" for one in wanted}


def told_by_verifying(bundle: Path, key: str) -> str:
    """What is said of a bundle that is not as it was made."""
    done = run(ROOT / "setup" / "verify-bundle", bundle, key)
    assert done.returncode == 4 and "remedy:" in done.stdout, done.stdout
    return done.stdout


def name_anew(bundle: Path, name: str) -> None:
    """Make the checksums tell of a file as it is."""
    digest = hashlib.sha256((bundle / name).read_bytes()).hexdigest()
    sums = bundle / "SHA256SUMS"
    put(sums, re.sub(rf"^\w+(?=  \./{name}$)", digest, sums.read_text(), flags=re.MULTILINE))


def test_a_bundle_as_it_was_made_is_accepted(media: tuple[Path, str], content: Path) -> None:
    for key in (media[1], media[1].lower(), " ".join(re.findall("....", media[1]))):
        done = run(ROOT / "setup" / "verify-bundle", content, key)
        assert (done.returncode, done.stdout) == (0, "")


def test_a_changed_file_is_refused(media: tuple[Path, str], unpacked: Path) -> None:
    blob = max((unpacked / "buildcache").rglob("*"), key=lambda file: file.stat().st_size)
    told = bytearray(blob.read_bytes())
    told[len(told) // 2] ^= 1
    put(blob, bytes(told))
    assert f"./{blob.relative_to(unpacked)}: FAILED" in told_by_verifying(unpacked, media[1])


def test_changed_checksums_are_refused(media: tuple[Path, str], unpacked: Path) -> None:
    put(unpacked / "install", "#!/bin/sh\n")
    name_anew(unpacked, "install")
    assert "the signature of the bundle's checksums is wrong" in told_by_verifying(unpacked, media[1])


def test_a_bundle_signed_by_another_key_is_refused(
    media: tuple[Path, str], unpacked: Path, tmp_path: Path
) -> None:
    home = tmp_path / "keys"
    gpg(home, "--passphrase", "", "--quick-generate-key", "mallory", "ed25519", "sign")
    put(unpacked / "key.asc", gpg(home, "--armor", "--export"))
    (unpacked / "SHA256SUMS.asc").unlink()
    name_anew(unpacked, "key.asc")
    gpg(home, "--armor", "--detach-sign", str(unpacked / "SHA256SUMS"))
    assert "is signed by another key" in told_by_verifying(unpacked, media[1])


def test_what_the_checksums_do_not_name_is_refused(media: tuple[Path, str], unpacked: Path) -> None:
    (unpacked / "project.git" / "hooks").mkdir()
    (unpacked / "project.git" / "hooks" / "post-checkout").write_text("#!/bin/sh\n")
    assert "hooks/post-checkout" in told_by_verifying(unpacked, media[1])


def test_a_missing_file_is_refused(media: tuple[Path, str], unpacked: Path) -> None:
    next((unpacked / "wheels").iterdir()).unlink()
    assert "No such file" in told_by_verifying(unpacked, media[1])
    (unpacked / "SHA256SUMS.asc").unlink()
    assert "it has no SHA256SUMS.asc" in told_by_verifying(unpacked, media[1])


def test_nothing_of_a_bad_bundle_is_used(
    media: tuple[Path, str], tmp_path: Path, clone: Callable[..., Path]
) -> None:
    site = clone("site")
    bad = tmp_path / "bad.tar"
    content = bytearray(media[0].read_bytes())
    content[len(content) // 2] ^= 1
    bad.write_bytes(content)
    for bundle, key, told in (
        (bad, media[1], "damaged"),
        (media[0], "", "fingerprint of the signing key"),
        (media[0], "0" * 40, "signed by another key"),
        (tmp_path / "none.tar", media[1], "there is no bundle"),
    ):
        done = run(site / "setup" / "bootstrap", BUNDLE=str(bundle), KEY=key)
        assert done.returncode == 4 and told in done.stdout, done.stdout
    bad.write_bytes(content[:5000])
    done = run(site / "setup" / "bootstrap", BUNDLE=str(bad), KEY=media[1])
    assert done.returncode == 4 and "cannot be unpacked" in done.stdout
    assert not list((site / ".pagewise").glob("spack*")) and not (site / ".pagewise" / "venv").exists()


def test_a_bundle_for_another_python_is_refused(
    media: tuple[Path, str], tmp_path: Path, clone: Callable[..., Path]
) -> None:
    other = tmp_path / "python3"
    other.write_text("#!/bin/sh\necho 3.99\n")
    other.chmod(0o755)
    settings = {"BUNDLE": str(media[0]), "KEY": media[1], "PAGEWISE_PYTHON": str(other)}
    done = run(clone("site") / "setup" / "bootstrap", **settings)
    assert done.returncode == 4 and f"{other} is 3.99" in done.stdout


def test_a_changed_checkout_is_not_bundled(locked: Path, clone: Callable[..., Path]) -> None:
    other = set_up(clone("other"))
    with (other / "setup" / "stack").open("a") as file:
        file.write("# edited\n")
    done = run(other / "setup" / "bundle", "release-quick", LOCK=str(locked / "lock"))
    assert done.returncode == 4 and "a bundle holds a commit" in done.stdout
