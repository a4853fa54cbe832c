"""Fresh Debian systems: the base of container images in tests, and a new user's machine."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

STATE = Path(__file__).parents[1] / ".pagewise"
USER = "newcomer"
UID = 1000
#: Variables that package managers need to reach their servers, passed on to the user in a root.
NETWORK_VARIABLES = (
    "PIP_",
    "SSL_CERT_",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
)
#: This machine's certificates; only the user in a root sees them, because packages write to this folder.
CERTIFICATES = Path("/etc/ssl/certs")
BUNDLE = CERTIFICATES / "ca-certificates.crt"
#: Files of this machine, if they exist, that a root sees read-only.
SHOWN = (Path("/etc/resolv.conf"), Path("/etc/pip.conf"))
OWN_MOUNTS = ("unshare", "--mount", "--pid", "--fork", "--kill-child")
#: bash -c ENTER ROOT FILE... -- COMMAND...: mounts in a namespace, so that they end with its processes.
ENTER = """
set -e
root=$0
mount --rbind /dev "$root/dev"
mount --rbind /sys "$root/sys"
mount -t proc proc "$root/proc"
while [ "$1" != -- ]; do
    if [ -d "$1" ]; then mkdir -p "$root$1"; else mkdir -p "$(dirname "$root$1")"; touch "$root$1"; fi
    mount --bind "$1" "$root$1"
    mount -o remount,bind,ro "$root$1"
    shift
done
shift
exec chroot "$@"
"""


def needed(unavailable: Callable[[str], NoReturn]) -> None:
    """End the test if a root cannot be created."""
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        unavailable("needs root and debootstrap (setup/bootstrap container)")


def codename() -> str:
    """The codename of this machine's Debian release."""
    release = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in release if "=" in line)["VERSION_CODENAME"]


def succeed(*command: str | Path) -> str:
    """Run a command that must succeed, and return its output."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def sources(release: str) -> list[tuple[str, str, str]]:
    """Server, suite and component of a release's packages, on the servers that this machine uses."""
    here = codename()
    ask = ("apt-get", "indextargets", "--format", "$(REPO_URI) $(RELEASE) $(COMPONENT)")
    ask += ("Created-By: Packages", "Origin: Debian")
    # apt needs its package lists to answer.
    listed = succeed(*ask) or (succeed("apt-get", "update") and succeed(*ask))
    rows = [tuple(line.split()) for line in listed.splitlines()]
    return [(uri, suite.replace(here, release), component) for uri, suite, component in rows]


def base(release: str) -> Path:
    """The archive of a minimal system, with updates and this machine's network settings; created once."""
    kept = STATE / "debian" / f"{release}.tar"
    kept.parent.mkdir(parents=True, exist_ok=True)
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            with tempfile.TemporaryDirectory(prefix="pagewise-debian-", dir="/var/tmp") as folder:
                make_base(release, Path(folder, "root"))
                succeed("tar", "-C", Path(folder, "root"), "-cf", f"{kept}.new", ".")
            Path(f"{kept}.new").replace(kept)
    return kept


def make_base(release: str, root: Path) -> None:
    """Create a minimal system in a folder."""
    servers = sources(release)
    mirror = next(uri for uri, suite, _ in servers if suite == release)
    succeed("debootstrap", "--variant=minbase", release, root, mirror)
    lines = (f"deb {uri} {suite} {component}\n" for uri, suite, component in servers)
    (root / "etc/apt/sources.list").write_text("".join(lines), encoding="utf-8")
    settings = succeed("apt-config", "dump", "Acquire").splitlines(keepends=True)
    settings = [line for line in settings if not line.startswith("Acquire::IndexTargets")]
    settings.append('APT::Keep-Downloaded-Packages "false";\n')
    if BUNDLE.exists():
        shutil.copy(BUNDLE, root / "etc/apt/ca.crt")
        settings.insert(0, 'Acquire::https::CaInfo "/etc/apt/ca.crt";\n')
    (root / "etc/apt/apt.conf.d/90this-machine").write_text("".join(settings), encoding="utf-8")


@dataclass(frozen=True)
class Root:
    """A Debian system in a folder."""

    folder: Path

    @property
    def home(self) -> Path:
        """The user's home, seen from outside."""
        return self.folder / "home" / USER

    def administer(self, script: str) -> subprocess.CompletedProcess[str]:
        """Run a script as root."""
        words = (str(self.folder), "env", "DEBIAN_FRONTEND=noninteractive", "bash", "-ec", script)
        return self._enter([], words)

    def use(self, script: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a script as the ordinary user in the user's home, with these settings."""
        network = {name: value for name, value in os.environ.items() if name.startswith(NETWORK_VARIABLES)}
        environment = {
            **network,
            "HOME": f"/home/{USER}",
            "USER": USER,
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            **settings,
        }
        shown = [
            CERTIFICATES,
            *(Path(value) for value in (network.get("PIP_FIND_LINKS", ""),) if value[:1] == "/"),
        ]
        given = [f"{name}={value}" for name, value in environment.items()]
        user = (f"--userspec={UID}:{UID}", "--groups=", str(self.folder))
        return self._enter(shown, (*user, "env", "-i", *given, "bash", "-ec", f"cd; {script}"))

    def _enter(self, shown: list[Path], words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
        files = [str(file) for file in (*SHOWN, *shown) if file.exists()]
        return subprocess.run(
            [*OWN_MOUNTS, "bash", "-c", ENTER, str(self.folder), *files, "--", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )


def unpack(release: str, folder: Path) -> Root:
    """Create a root with an ordinary user in a new folder."""
    folder.mkdir()
    succeed("tar", "-C", folder, "--numeric-owner", "-xf", base(release))
    root = Root(folder)
    done = root.administer(f"useradd --create-home --shell /bin/bash --uid {UID} {USER}")
    assert done.returncode == 0, done.stdout
    return root
