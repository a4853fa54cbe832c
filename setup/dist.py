"""The kernels' source archive of a release, the same bytes from any clone, and in Spack's source mirror.

    dist.py [--version VERSION] [--revision REVISION] [--mirror FOLDER]

The archive holds kernels/ and LICENSE as git has them: neither umask, clock and locale nor git's settings
have a say. It is not compressed, for compressors differ (zlib, zlib-ng), and holds no recipe: these name its
sha256. A release's revision is its tag; a clone without tags is searched for the content that the recipes
name.

Without --version: the newest release that the recipes know. With --revision, for a release in the making:
prints what the recipes need to know of it.
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
#: What goes into the archive, and where kernels/ lies in it: at the top.
PARTS = ("LICENSE", "kernels")
#: The time of every file: no clock's. 1980 is the first year that all archive formats know.
TIME = 315532800


def fail(message: str, remedy: str) -> NoReturn:
    """Say what is wrong and what to do, and end."""
    print(f"dist: error: {message}\n  remedy: {remedy}", file=sys.stderr)
    sys.exit(4)


def git(*arguments: str, check: bool = True) -> bytes:
    """What git prints; empty when it fails and that is no error."""
    done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, check=False)
    if done.returncode and check:
        told = done.stderr.decode(errors="replace").strip()
        fail(f"git {arguments[0]}: {told}", "make releases in a clone of the project, with its history")
    return b"" if done.returncode else done.stdout


def released() -> dict[str, str]:
    """The sha256 of each release that the recipes know."""
    for node in ast.parse((ROOT / RECIPES).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == ["RELEASES"]:
            known: dict[str, str] = ast.literal_eval(node.value)
            return known
    fail(f"{RECIPES} names no RELEASES", "take the file from git again")


def newest(known: dict[str, str]) -> str:
    """The last of the releases, by number."""
    return max(known, key=lambda version: [int(part) for part in version.split(".")])


def files(revision: str) -> Iterator[tuple[str, str, bytes]]:
    """Mode, path and content of the archive's files, by path."""
    listing = git("ls-tree", "-r", "-z", "--full-tree", revision, "--", *PARTS).decode().split("\0")
    entries = sorted(
        (path.removeprefix("kernels/"), mode, name)
        for mode, _, name, path in (re.split(r"[ \t]", line, maxsplit=3) for line in listing if line)
    )
    if not any(path == "CMakeLists.txt" for path, _, _ in entries):
        fail(f"{revision} has no kernels/", "name a revision of the project")
    names = "".join(f"{name}\n" for _, _, name in entries).encode()
    command = ["git", "-C", str(ROOT), "cat-file", "--batch"]
    stream = io.BytesIO(subprocess.run(command, input=names, capture_output=True, check=True).stdout)
    for path, mode, name in entries:
        head, kind, size = stream.readline().split()
        assert (head.decode(), kind) == (name, b"blob"), f"{path} is no file"
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
    """The version that the kernels of a revision give themselves."""
    text = git("show", f"{revision}:kernels/CMakeLists.txt", check=False).decode()
    match = re.search(r"^project\(pagewise VERSION (\S+)", text, re.MULTILINE)
    return match.group(1) if match else ""


def found(version: str, sha256: str) -> bytes:
    """The archive of a release, from its tag, or else from whichever commit has the content."""
    tag = f"v{version}"
    if git("rev-parse", "--quiet", "--verify", f"refs/tags/{tag}^{{commit}}", check=False):
        made = archive(tag, version)
        got = hashlib.sha256(made).hexdigest()
        if got != sha256:
            fail(
                f"{tag} is not release {version}: its archive has sha256 {got}, the recipes say {sha256}",
                "fetch the tag anew from where the recipes come from (git fetch --tags --force)",
            )
        return made
    for commit in git("rev-list", "--all", "--", *PARTS).decode().split():
        if version_of(commit) == version:
            made = archive(commit, version)
            if hashlib.sha256(made).hexdigest() == sha256:
                return made
    fail(
        f"this clone has neither the tag {tag} nor a commit with the content of release {version}",
        "git fetch --tags --unshallow",
    )


def put(made: bytes, sha256: str, version: str, mirror: Path) -> Path:
    """Write the archive where Spack looks for it, and link it under its name."""
    place = mirror / "_source-cache" / "archive" / sha256[:2] / f"{sha256}.tar"
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = place.with_suffix(f".{os.getpid()}")
    aside.write_bytes(made)
    aside.replace(place)
    link = mirror / "pagewise" / f"pagewise-kernels-{version}.tar"
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(place, link.parent))
    return link


def main() -> int:
    """Make, compare, put."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0], prog="dist")
    parser.add_argument("--version", help="the release (default: the newest that the recipes know)")
    parser.add_argument("--revision", help="of a release in the making: the commit, such as HEAD")
    mirror = ROOT / ".pagewise" / "mirror"
    parser.add_argument("--mirror", type=Path, default=mirror, help="Spack's source mirror")
    arguments = parser.parse_args()
    known = released()
    version = arguments.version or (version_of(arguments.revision) if arguments.revision else newest(known))

    if arguments.revision:
        own = version_of(arguments.revision)
        if version != own:
            fail(
                f"the kernels of {arguments.revision} say that they are version {own}, and not {version}",
                "set VERSION in kernels/CMakeLists.txt, and commit it",
            )
        made = archive(arguments.revision, version)
        sha256 = hashlib.sha256(made).hexdigest()
        if known.get(version, sha256) != sha256:
            fail(
                f"{version} is released, with sha256 {known[version]}; {arguments.revision} has {sha256}",
                "give the new release a version of its own",
            )
        if version not in known:
            print(f"dist: to RELEASES in {RECIPES}, then commit and tag v{version}:")
            print(f'    "{version}": "{sha256}",')
    else:
        if version not in known:
            fail(
                f"the recipes know no release {version}",
                f"take one of: {' '.join(known)}; or name its REVISION",
            )
        sha256 = known[version]
        made = found(version, sha256)
    place = put(made, sha256, version, arguments.mirror)
    print(f"dist: {place}\ndist: sha256 {sha256}, {len(made)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
