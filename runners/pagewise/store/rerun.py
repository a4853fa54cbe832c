"""Repeats a result with the command, modules and programs that it was started with."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.manifest import Manifest, Rerun
from pagewise.core.result import read_manifest
from pagewise.session.origin import is_own
from pagewise.session.resume import machine_differences, program_differences
from pagewise.session.session import Session
from pagewise.stack.catalog import module_files
from pagewise.stack.paths import checkout, module_tree

REMEDY = "restore it, or name its module tree with --modules, or measure what is there now: --anyway"
#: The kinds whose configurations are modules; those of others are policies or candidates.
MODULE_KINDS = ("kernels", "counters")
#: Options that change settings of the machine; to repeat a result with them, name them again.
CHANGING = {
    "reserve": "--reserve-hugepages",
    "set_thp_sizes": "--set-thp-sizes",
    "node_states": "--node-state",
    "prefetchers": "--hardware-prefetchers",
    "clocks": "--clocks",
}


@dataclass(frozen=True)
class Begun:
    """A result's manifest, the command that started it, its arguments, and whether this user started it."""

    folder: Path
    manifest: Manifest
    name: str
    arguments: list[str]
    is_own: bool


def begun(folder: Path) -> Begun:
    """How a result was started.

    Changes the working folder to the one that it was started in, because arguments may name files there.
    Raises FormatError, SelectionError.
    """
    manifest = read_manifest(folder)
    command = manifest.command[1:]
    if not command:
        raise SelectionError(
            "this result does not contain the command that started it",
            where=folder,
            remedy="enter the command yourself: pagewise results show prints what was measured",
        )
    own = is_own(manifest)
    if manifest.started_in is not None:
        _keep_places()
        try:
            os.chdir(manifest.started_in)
        except OSError as fault:
            raise SelectionError(
                f"the folder in which it was started is missing: {fault.strerror}",
                where=manifest.started_in,
                remedy="create it again, with the files that the command names: " + shlex.join(command),
            ) from fault
    return Begun(folder, manifest, command[0], list(command[1:]), own)


def _keep_places() -> None:
    """Makes the installation independent of the working folder."""
    root = checkout()
    os.environ["PAGEWISE_ROOT"] = str(root.absolute()) if root else ""
    if named := os.environ.get("PAGEWISE_MODULES"):
        os.environ["PAGEWISE_MODULES"] = str(Path(named).absolute())


def choose_modules(chosen: dict[str, Any], result: Begun, named: Path | None = None) -> None:
    """Chooses the module tree: the one named now; for this user's result its own; else the installation's.

    A module is Lua code that is executed: a result from elsewhere never decides where it is.
    """
    if "modules" not in chosen:
        # The command loads none; the kind in the manifest may be a lie.
        return
    modules = result.manifest.modules
    if result.is_own and modules.environment:
        # PAGEWISE_ENV may have changed since.
        chosen["environment"] = modules.environment
    if named is not None or not result.is_own:
        chosen["modules"] = named
    elif not _is_of_program(result.manifest) and chosen["modules"] is None and Path(modules.tree).is_dir():
        os.environ["PAGEWISE_MODULES"] = modules.tree


def changed_modules(chosen: Mapping[str, Any], result: Begun) -> Iterator[str]:
    """The modules that differ from those of the result, a line each. Their files are read, not executed."""
    measured = _measured_modules(result.manifest)
    if not measured:
        return
    tree = module_tree(chosen["environment"], chosen["modules"])
    files = module_files(tree)
    for module, digest in measured.items():
        if module not in files:
            yield f"the module {module} is not in {tree}"
        elif hashlib.sha256(files[module].read_bytes()).hexdigest() != digest:
            yield f"the module {module} was built again or replaced"


def _measured_modules(manifest: Manifest) -> dict[str, str | None]:
    """The digests of the module files that were loaded, by module."""
    if manifest.kind in MODULE_KINDS and not _is_of_program(manifest):
        return {entry.module: entry.digest for entry in manifest.configurations}
    # Configurations of other kinds are not modules; the module files are among the watched files.
    tree, files = Path(manifest.modules.tree), manifest.files
    return {
        str(Path(file).relative_to(tree)).removesuffix(".lua"): digest
        for file, digest in files.items()
        if manifest.kind == "peers" and file.endswith(".lua") and Path(file).is_relative_to(tree)
    }


def check_unchanged(changed: Sequence[str], result: Begun, remedy: str) -> None:
    """Raises RefusedError if something has changed since the result was measured."""
    if changed:
        raise RefusedError(
            "this differs from what was measured:\n    " + "\n    ".join(changed),
            where=result.folder,
            remedy=remedy,
        )


def same_choice(chosen: dict[str, Any], manifest: Manifest) -> None:
    """Chooses the same kernels and modules as the result: its patterns may match others now."""
    # Of several programs each has its own policies; the command names codes and builds.
    if manifest.kind in ("peers", "simulation", "programs"):
        return
    if _is_of_program(manifest):
        chosen["policies"] = tuple(policy["name"] for policy in (manifest.program or {})["policies"])
        return
    cells = [cell for subject in manifest.subjects for cell in subject.cells]
    chosen["configurations"] = tuple(sorted({module for cell in cells for module in cell.stands_for}))
    chosen["kernels"] = tuple(subject.kernel["name"] for subject in manifest.subjects)


def _is_of_program(manifest: Manifest) -> bool:
    """Whether the user's programs were measured, whose configurations are page policies."""
    return manifest.program is not None or manifest.suites is not None


def check_changes(chosen: Mapping[str, Any], allowed: bool, folder: Path) -> None:
    """Raises SelectionError if the machine's settings would be changed without permission."""
    options = [option for name, option in CHANGING.items() if chosen.get(name)]
    if options and not allowed:
        raise SelectionError(
            f"this result was measured with changed settings of the machine: {', '.join(options)}",
            where=folder,
            remedy="allow that again: --change-settings",
        )


def check_same(result: Begun, session: Session, anyway: bool) -> list[str]:
    """The differences from the result, a line each, also noted in the new manifest.

    Raises RefusedError if modules, programs or what is measured have changed, unless `anyway` is set.
    """
    before, now = result.manifest, session.manifest
    changed = list(program_differences(before, now))
    if not anyway:
        check_unchanged(changed, result, REMEDY)
    differing = [*changed, *machine_differences(before.host, now.host)]
    rerun_of = Rerun(before.id, str(result.folder), tuple(differing))
    session.recorder.note(rerun_of=rerun_of, command=before.command)
    # A command that this user did not type stays untrusted, however often it is repeated.
    session.recorder.is_own = result.is_own
    return differing
