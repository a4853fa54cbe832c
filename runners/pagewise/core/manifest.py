"""What a manifest says, as types."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Provenance:
    """From which sources the programs come: Spack, its recipes, the project's commit, the lockfile."""

    spack_version: str | None
    spack_tree: str | None
    packages_commit: str | None
    project_commit: str | None
    project_dirty: bool | None
    lockfile: str | None
    lockfile_sha256: str | None


@dataclass(frozen=True)
class ProgramDigest:
    """The SHA-256 of a program of a module, None where it could not be read."""

    module: str
    program: str
    sha256: str | None
