"""Binary caches that `make publish` fills: a signed folder, an OCI registry; another clone installs them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from registry import serve

from conftest import ROOT, VERSION, run, set_up


@pytest.fixture(scope="session")
def cache(unavailable: Callable[[str], NoReturn], tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of an empty cache in a registry on this machine."""
    with serve(unavailable, tmp_path_factory.mktemp("registry")) as host:
        yield f"oci+http://{host}/pagewise"


def publish(locked: Path, cache: str | Path, **settings: str) -> subprocess.CompletedProcess[str]:
    """Push the quick release to a cache, as `make --jobs 2` does: with MAKEFLAGS but without its pipe."""
    settings |= {"LOCK": str(locked / "lock"), "MAKEFLAGS": " -j2 --jobserver-auth=3,4"}
    return run(*(locked / "setup" / "publish", "release-quick", "host", cache), **settings)


def install(locked: Path, site: Path, **settings: str) -> None:
    """Install the same lock in another clone, and check that nothing was built."""
    done = run(set_up(site) / "setup" / "stack", "release-quick", LOCK=str(locked / "lock"), **settings)
    assert done.returncode == 0, done.stdout
    log = (site / ".pagewise" / "logs" / "install-release-quick.log").read_text()
    assert "Executing phase" not in log
    wanted = {root["hash"] for root in json.loads((locked / "lock" / "spack.lock").read_text())["roots"]}
    packages = site / ".pagewise" / "opt" / "pagewise-micro"
    assert {folder.name for folder in packages.iterdir()} == {f"{VERSION}-{digest}" for digest in wanted}
    for program in packages.glob("*/bin/*"):
        assert b"__spack_path_placeholder__" not in program.read_bytes()


def test_a_folder_is_signed_and_installs_elsewhere(
    locked: Path, clone: Callable[..., Path], tmp_path: Path
) -> None:
    cache = tmp_path / "cache"
    done = publish(locked, cache)
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
    site = clone("site")
    trusted = {"PAGEWISE_CACHE": f"file://{cache}", "PAGEWISE_CACHE_KEY": str(tmp_path / "key.asc")}
    install(locked, site, **trusted)
    assert "Good signature" in (site / ".pagewise" / "logs" / "install-release-quick.log").read_text()


def test_a_registry_installs_elsewhere(locked: Path, cache: str, clone: Callable[..., Path]) -> None:
    for _ in range(2):  # The second time everything is in the registry.
        done = publish(locked, cache, TAG="release-quick")
        assert done.returncode == 0, done.stdout
    install(locked, clone("site"), PAGEWISE_CACHE=cache)


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
