"""Write the source archive of a release's kernels to Spack's source mirror, the same bytes from any clone.

    dist.py [--version VERSION] [--revision REVISION] [--mirror FOLDER]

The archive holds kernels/ and LICENSE as they are in git, independent of umask, clock, locale and git's
settings. It is not compressed, because compressors differ (zlib, zlib-ng). It holds no recipes, because
these name its sha256. A release's revision is its tag; in a clone without tags, the commit with the content
that the recipes name.

Default version: the newest release in the recipes. With --revision, for a release in preparation: prints the
line to add to the recipes.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[1]
RECIPES = Path("repos/spack_repo/pagewise/build_systems/kernels.py")
#: The parts of the archive; the content of kernels/ is at its top.
PARTS = ("LICENSE", "kernels")
#: The time of every file. 1980 is the first year that all archive formats support.
TIME = 315532800


def fail(message: str, remedy: str) -> NoReturn:
    """Print an error with its remedy, and exit with code 4."""
    print(f"dist: error: {message}\n  remedy: {remedy}", file=sys.stderr)
    sys.exit(4)


def git(*arguments: str, check: bool = True) -> bytes:
    """The output of git; empty if it fails and `check` is false."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
    if done.returncode and check:
        reason = done.stderr.decode(errors="replace").strip()
        fail(f"git {arguments[0]}: {reason}", "run make dist in a clone of the project with its history")
    return b"" if done.returncode else done.stdout


def released() -> dict[str, str]:
    """The sha256 of each release in the recipes."""
    for node in ast.parse((ROOT / RECIPES).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["RELEASES"]:
            known: dict[str, str] = ast.literal_eval(node.value)
            return known
    fail(f"{RECIPES} does not define RELEASES", f"git checkout {RECIPES}")


def newest(known: dict[str, str]) -> str:
    """The highest release."""
    return max(known, key=lambda version: [int(part) for part in version.split(".")])


def files(revision: str) -> Iterator[tuple[str, str, bytes]]:
    """Mode, path and content of the archive's files, in the order of their paths."""
    listing = git("ls-tree", "-r", "-z", "--full-tree", revision, "--", *PARTS).decode().split("\0")
    entries = sorted(
        (path.removeprefix("kernels/"), mode, name)
        for mode, _, name, path in (re.split(r"[ \t]", line, maxsplit=3) for line in listing if line)
    )
    if not any(path == "CMakeLists.txt" for path, _, _ in entries):
        fail(f"{revision} has no kernels/", "name another revision of the project")
    names = "".join(f"{name}\n" for _, _, name in entries).encode()
    command = ["git", "-C", str(ROOT), "cat-file", "--batch"]
    stream = io.BytesIO(subprocess.run(command, input=names, capture_output=True, check=True).stdout)
    for path, mode, name in entries:
        head, kind, size = stream.readline().split()
        assert (head.decode(), kind) == (name, b"blob"), f"{path} is not a file"
        yield mode, path, stream.read(int(size))
        stream.read(1)


def archive(revision: str, version: str) -> bytes:
    """The archive of a revision."""
    top = f"pagewise-kernels-{version}"
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for mode, path, content in files(revision):
            member = tarfile.TarInfo(f"{top}/{path}")
            member.mtime = TIME
            if mode == "120000":
                member.type, member.linkname, member.mode = tarfile.SYMTYPE, content.decode(), 0o777
                tar.addfile(member)
            else:
                member.size = len(content)
                member.mode = 0o755 if mode == "100755" else 0o644
                tar.addfile(member, io.BytesIO(content))
    return target.getvalue()


def version_of(revision: str) -> str:
    """The version in the kernels' CMakeLists.txt of a revision; empty if there is none."""
    text = git("show", f"{revision}:kernels/CMakeLists.txt", check=False).decode()
    match = re.search(r"^project\(pagewise VERSION (\S+)", text, re.MULTILINE)
    return match.group(1) if match else ""


def release_archive(version: str, sha256: str) -> bytes:
    """The archive of a release, from its tag, or from any commit with the same content."""
    tag = f"v{version}"
    if git("rev-parse", "--quiet", "--verify", f"refs/tags/{tag}^{{commit}}", check=False):
        content = archive(tag, version)
        got = hashlib.sha256(content).hexdigest()
        if got != sha256:
            fail(
                f"{tag} is not release {version}: its archive has sha256 {got} instead of {sha256}",
                "fetch the tag again from the origin of the recipes (git fetch --tags --force)",
            )
        return content
    for commit in git("rev-list", "--all", "--", *PARTS).decode().split():
        if version_of(commit) == version:
            content = archive(commit, version)
            if hashlib.sha256(content).hexdigest() == sha256:
                return content
    fail(
        f"this clone has neither the tag {tag} nor a commit with the content of release {version}",
        "git fetch --tags --unshallow",
    )


def store(content: bytes, sha256: str, version: str, mirror: Path) -> Path:
    """Write the archive to Spack's mirror, and return a link to it by its name."""
    place = mirror / "_source-cache" / "archive" / sha256[:2] / f"{sha256}.tar"
    place.parent.mkdir(parents=True, exist_ok=True)
    temporary = place.with_suffix(f".{os.getpid()}")
    temporary.write_bytes(content)
    temporary.replace(place)
    link = mirror / "pagewise" / f"pagewise-kernels-{version}.tar"
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(place, link.parent))
    return link


def main() -> int:
    """Create the archive, compare its digest, store it; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0], prog="dist")
    parser.add_argument("--version", help="release (default: the newest in the recipes)")
    parser.add_argument("--revision", help="commit of a release in preparation, such as HEAD")
    mirror = ROOT / ".pagewise" / "mirror"
    parser.add_argument(
        "--mirror", type=Path, default=mirror, help="Spack's source mirror (default: %(default)s)"
    )
    arguments = parser.parse_args()
    known = released()
    version = arguments.version or (version_of(arguments.revision) if arguments.revision else newest(known))

    if arguments.revision:
        own = version_of(arguments.revision)
        if version != own:
            fail(
                f"the kernels of {arguments.revision} have version {own}, not {version}",
                "set VERSION in kernels/CMakeLists.txt, and commit it",
            )
        content = archive(arguments.revision, version)
        sha256 = hashlib.sha256(content).hexdigest()
        if known.get(version, sha256) != sha256:
            fail(
                f"{version} is released with sha256 {known[version]}; {arguments.revision} has {sha256}",
                "set another VERSION in kernels/CMakeLists.txt",
            )
        if version not in known:
            print(f"dist: add this line to RELEASES in {RECIPES}, commit it and tag the commit v{version}:")
            print(f'    "{version}": "{sha256}",')
    else:
        if version not in known:
            fail(
                f"the recipes have no release {version}",
                f"use one of: {' '.join(known)}; or name the commit of a new one: REVISION=<commit>",
            )
        sha256 = known[version]
        content = release_archive(version, sha256)
    link = store(content, sha256, version, arguments.mirror)
    print(f"dist: {link}\ndist: sha256 {sha256}, {len(content)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
