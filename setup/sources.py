"""Run by `spack --env-dir ENVIRONMENT python`: list the sources of an environment, by URL and checksum.

Prints one line per source with package, version, kind (archive, resource, patch, git), URL and sha256 or
commit, separated by tabs. Files that come with Spack and its packages (wrappers, patches) are not listed. A
comment names packages whose build fetches more sources, without Spack or a mirror.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import spack.environment
import spack.fetch_strategy
import spack.patch
import spack.spec

Row = tuple[str, str, str, str, str]
#: Build systems that fetch sources during the build.
FETCHING = {"cargo": "crates", "go": "modules"}


def fetcher_row(spec: spack.spec.Spec, kind: str, fetcher: Any) -> Row:
    """The row of one Spack fetcher."""
    if isinstance(fetcher, spack.fetch_strategy.GitFetchStrategy):
        revision = fetcher.commit or fetcher.tag or fetcher.branch
        return spec.name, str(spec.version), "git", fetcher.url, revision
    return spec.name, str(spec.version), kind, fetcher.url, fetcher.digest or ""


def rows(spec: spack.spec.Spec) -> Iterator[Row]:
    """The rows of a package."""
    package = spec.package
    if package.has_code:
        yield fetcher_row(spec, "archive", package.fetcher)
        for resource in package._get_needed_resources():
            yield fetcher_row(spec, "resource", resource.fetcher)
    for patch in spec.patches:
        if isinstance(patch, spack.patch.UrlPatch):
            yield spec.name, str(spec.version), "patch", patch.url, patch.archive_sha256 or patch.sha256


def main() -> None:
    """Print the rows, each source once."""
    environment = spack.environment.active_environment()
    specs = [spec for spec in environment.all_specs() if not spec.external]
    for row in sorted({row for spec in specs for row in rows(spec)}):
        if not row[3].startswith("file:"):
            print("\t".join(row))
    for spec in sorted(specs):
        if kind := FETCHING.get(spec.variants["build_system"].value):
            print(f"# {spec.name}\t{spec.version}\tits {kind} are not listed: its build fetches them")


if __name__ == "__main__":
    main()
