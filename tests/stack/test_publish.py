"""Binary caches that `make publish` fills: a signed folder, an OCI registry; another clone installs them."""

from __future__ import annotations

import platform
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from registry import serve

from conftest import ROOT, VERSION, lock_of, run, set_up, succeed

pytestmark = pytest.mark.release


@pytest.fixture(scope="session")
def cache(unavailable: Callable[[str], NoReturn], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an empty cache in a registry on this machine."""
    with serve(unavailable, tmp_path_factory.mktemp("registry")) as host:
        yield f"oci+http://{host}/pagewise"


def publish(
    locked: Path, cache: str | Path, *, target: str = "host", **settings: str
) -> subprocess.CompletedProcess[str]:
    """Push the quick release to a cache, as `make --jobs 2` does: with MAKEFLAGS but without its pipe."""
    settings |= {"LOCK": str(lock_for(locked, target)), "MAKEFLAGS": " -j2 --jobserver-auth=3,4"}
    return run(*(locked / "setup" / "publish", "release-quick", target, cache), **settings)


def lock_for(locked: Path, target: str) -> Path:
    """The folder with the lock for a target, which is made if it does not exist."""
    folder = locked / ("lock" if target == "host" else f"lock-{target}")
    if not folder.exists():
        succeed(locked / "setup" / "lock", "release-quick", target, folder)
    return folder


def targets() -> list[str]:
    """This machine, and the levels of x86-64 that it runs."""
    levels = {"x86_64_v3": "avx2", "x86_64_v4": "avx512vl"}
    flags = Path("/proc/cpuinfo").read_text().split() if platform.machine() == "x86_64" else []
    return ["host", *(level for level, flag in levels.items() if flag in flags)]


def install(lock: Path, site: Path, **settings: str) -> None:
    """Install a published lock in another clone, and check that nothing was built."""
    succeed(set_up(site) / "setup" / "stack", "release-quick", LOCK=str(lock), **settings)
    log = (site / ".pagewise" / "logs" / "install-release-quick.log").read_text()
    assert "Executing phase" not in log
    wanted = {root["hash"] for root in lock_of(lock)["roots"]}
    packages = site / ".pagewise" / "opt" / "pagewise-micro"
    assert {folder.name for folder in packages.iterdir()} == {f"{VERSION}-{digest}" for digest in wanted}
    for program in packages.glob("*/bin/*"):
        assert b"__spack_path_placeholder__" not in program.read_bytes()


def test_a_folder_of_several_targets_is_signed_and_installs_elsewhere(
    locked: Path, clone: Callable[..., Path], tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    for target in targets():
        done = publish(locked, cache, target=target)
        assert done.returncode == 0, done.stdout
    key = done.stdout.split()[-1]
    gpg = (
        "gpg",
        "--homedir",
        locked / ".pagewise" / "gpg",
        "--batch",
        "--armor",
        "--output",
        tmp_path / "key.asc",
    )
    assert run(*gpg, "--export", key).returncode == 0
    trusted = {"PAGEWISE_CACHE": f"file://{cache}", "PAGEWISE_CACHE_KEY": str(tmp_path / "key.asc")}
    for target in targets():
        site = clone(f"site-{target}")
        install(lock_for(locked, target), site, **trusted)
    assert "Good signature" in (site / ".pagewise" / "logs" / "install-release-quick.log").read_text()


def test_a_registry_installs_elsewhere(locked: Path, cache: str, clone: Callable[..., Path]) -> None:
    for _ in range(2):  # The second time everything is in the registry.
        done = publish(locked, cache, TAG="release-quick")
        assert done.returncode == 0, done.stdout
    install(locked / "lock", clone("site"), PAGEWISE_CACHE=cache)


def test_missing_and_contradictory_settings_are_refused(tmp_path: Path) -> None:
    command = (ROOT / "setup" / "publish", "release-quick", "host")
    for cache, settings in (
        ("", {}),
        (str(tmp_path), {"BASE": "debian@sha256:0"}),
        (str(tmp_path), {"TAG": "x"}),
    ):
        done = run(*command, cache, **settings)
        assert done.returncode == 4, done.stdout
    assert not any(tmp_path.iterdir())
