"""Repeats a result: what it ran, as it was begun, with the same modules and programs."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.result import read_manifest
from pagewise.session.origin import is_own
from pagewise.session.resume import machine_differences, program_differences
from pagewise.stack.catalog import module_files
from pagewise.stack.paths import module_tree, project_root

REMEDY = "restore it, or name its module tree with --modules, or measure what is there now: --anyway"
#: The kinds whose configurations are modules; those of others are policies, or candidates of both sides.
MODULE_KINDS = ("kernels", "counters")
#: Options that change settings of the machine; whoever repeats a result asks for them anew.
CHANGING = {
    "reserve": "--reserve-hugepages",
    "set_thp_sizes": "--set-thp-sizes",
    "prefetchers": "--hardware-prefetchers",
}


@dataclass(frozen=True)
class Begun:
    """A result's manifest, the command that began it, its arguments, and whether this user began it here."""

    folder: Path
    manifest: dict[str, Any]
    name: str
    arguments: list[str]
    is_own: bool


def begun(folder: Path) -> Begun:
    """How a result was begun.

    From here on the working folder is the one that it was begun in: arguments may name files there. Raises
    FormatError, SelectionError.
    """
    manifest = read_manifest(folder)
    command = manifest["command"][1:]
    if not command:
        raise SelectionError(
            "this result does not tell the command that began it",
            where=folder,
            remedy="give the command yourself: pagewise results show prints what was measured",
        )
    own = is_own(manifest)
    if manifest["started_in"] is not None:
        _keep_places()
        try:
            os.chdir(manifest["started_in"])
        except OSError as fault:
            raise SelectionError(
                f"the folder in which it was begun is gone: {fault.strerror}",
                where=manifest["started_in"],
                remedy="make it again, with the files that the command names: " + shlex.join(command),
            ) from fault
    return Begun(folder, manifest, command[0], command[1:], own)


def _keep_places() -> None:
    """Lets the installation not depend on the working folder: a result may name any."""
    os.environ["PAGEWISE_ROOT"] = str(project_root().absolute())
    if named := os.environ.get("PAGEWISE_MODULES"):
        os.environ["PAGEWISE_MODULES"] = str(Path(named).absolute())


def choose_modules(chosen: dict[str, Any], result: Begun, named: Path | None = None) -> None:
    """Chooses the module tree: the one named now; of a result of this user its own; else the installation's.

    A module is Lua that is executed: a result from elsewhere never decides where it lies.
    """
    if result.manifest["kind"] == "simulation":
        return
    modules = result.manifest["modules"]
    if result.is_own and modules["environment"]:
        # PAGEWISE_ENV may name another by now.
        chosen["environment"] = modules["environment"]
    if named is not None or not result.is_own:
        chosen["modules"] = named
    elif not _is_of_program(result.manifest) and chosen["modules"] is None and Path(modules["tree"]).is_dir():
        os.environ["PAGEWISE_MODULES"] = modules["tree"]


def changed_modules(chosen: Mapping[str, Any], result: Begun) -> Iterator[str]:
    """The modules that are not those of the result, a line each. Their files are read, not executed."""
    measured = _measured_modules(result.manifest)
    if not measured:
        return
    tree = module_tree(chosen["environment"], chosen["modules"])
    files = module_files(tree)
    for module, digest in measured.items():
        if module not in files:
            yield f"the module {module} is not in {tree}"
        elif hashlib.sha256(files[module].read_bytes()).hexdigest() != digest:
            yield f"the module {module} was built again, or is another file"


def _measured_modules(manifest: Mapping[str, Any]) -> dict[str, str | None]:
    """The digests of the module files that were loaded, by module."""
    if manifest["kind"] in MODULE_KINDS and not _is_of_program(manifest):
        return {entry["module"]: entry["digest"] for entry in manifest["configurations"]}
    # Of other kinds, configurations are no modules; the module files are among those that were watched.
    tree, files = Path(manifest["modules"]["tree"]), manifest.get("files", {})
    return {
        str(Path(file).relative_to(tree)).removesuffix(".lua"): digest
        for file, digest in files.items()
        if manifest["kind"] == "peers" and file.endswith(".lua") and Path(file).is_relative_to(tree)
    }


def check_unchanged(changed: Sequence[str], result: Begun, remedy: str) -> None:
    """Raises RefusedError when something is not as it was measured."""
    if changed:
        raise RefusedError(
            "this is not what was measured then:\n    " + "\n    ".join(changed),
            where=result.folder,
            remedy=remedy,
        )


def same_choice(chosen: dict[str, Any], manifest: Mapping[str, Any]) -> None:
    """Chooses the very kernels and modules of the result: patterns may fit others by now."""
    if manifest["kind"] in ("peers", "simulation"):
        return
    if _is_of_program(manifest):
        chosen["policies"] = tuple(one["name"] for one in manifest["program"]["policies"])
        return
    cells = [cell for one in manifest["subjects"] for cell in one["cells"]]
    chosen["configurations"] = tuple(sorted({module for cell in cells for module in cell["stands_for"]}))
    chosen["kernels"] = tuple(one["kernel"]["name"] for one in manifest["subjects"])


def _is_of_program(manifest: Mapping[str, Any]) -> bool:
    """Whether it is of the user's program, whose configurations are page policies."""
    return manifest.get("program") is not None


def check_changes(chosen: Mapping[str, Any], allowed: bool, folder: Path) -> None:
    """Raises SelectionError when the machine's settings would be changed without being asked for."""
    asked = [option for name, option in CHANGING.items() if chosen.get(name)]
    if asked and not allowed:
        raise SelectionError(
            f"this result was measured with settings of the machine changed meanwhile: {', '.join(asked)}",
            where=folder,
            remedy="allow that again: --change-settings",
        )


def check_same(result: Begun, now: dict[str, Any], anyway: bool) -> list[str]:
    """What is another now, a line each, noted in the new manifest as well.

    Raises RefusedError when modules, programs or what is measured changed, unless it shall go on anyway.
    """
    before = result.manifest
    changed = list(program_differences(before, now))
    if not anyway:
        check_unchanged(changed, result, REMEDY)
    found = [*changed, *machine_differences(before, now)]
    now["rerun_of"] = {"id": before["id"], "folder": str(result.folder), "differences": found}
    now["command"] = list(before["command"])
    if not result.is_own:
        # What this user did not type stays from elsewhere, however often it is repeated.
        now["seal"] = None
    return found
