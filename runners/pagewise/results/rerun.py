"""Repeats a result: what it ran, as it was begun, with the same modules and programs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pagewise.errors import RefusedError, SelectionError
from pagewise.result import read_manifest
from pagewise.resume import machine_differences, program_differences

# Options that change settings of the machine: whoever repeats a result asks for them anew.
_CHANGING = {
    "reserve": "--reserve-hugepages",
    "set_thp_sizes": "--set-thp-sizes",
    "prefetchers": "--hardware-prefetchers",
}


def begun(folder: Path) -> tuple[dict[str, Any], str, list[str]]:
    """The manifest of the result, and the command and the arguments that it was begun with.

    From here on the working folder is the one that it was begun in: arguments may name files there. Raises
    FormatError, SelectionError.
    """
    manifest = read_manifest(folder)
    command = manifest["command"][1:]
    if not command:
        raise SelectionError(
            "this result does not tell the command that began it",
            where=folder,
            remedy="give the command yourself: pagewise results show tells what was measured",
        )
    if manifest["started_in"] is not None:
        try:
            os.chdir(manifest["started_in"])
        except OSError as fault:
            raise SelectionError(
                f"the folder in which it was begun is gone: {fault.strerror}",
                where=manifest["started_in"],
                remedy="make it again, with the files that the command names: " + " ".join(command),
            ) from fault
    return manifest, command[0], command[1:]


def same_choice(chosen: dict[str, Any], manifest: Mapping[str, Any]) -> None:
    """Chooses the very kernels and modules of the result: patterns may fit others by now."""
    if "program" in manifest:
        chosen["policies"] = tuple(one["name"] for one in manifest["program"]["policies"])
        return
    cells = [cell for one in manifest["subjects"] for cell in one["cells"]]
    chosen["configurations"] = tuple(sorted({module for cell in cells for module in cell["stands_for"]}))
    chosen["kernels"] = tuple(one["kernel"]["name"] for one in manifest["subjects"])
    if chosen["modules"] is None and Path(manifest["modules"]["tree"]).is_dir():
        os.environ["PAGEWISE_MODULES"] = manifest["modules"]["tree"]


def check_changes(chosen: Mapping[str, Any], allowed: bool, folder: Path) -> None:
    """Raises SelectionError when the machine's settings would be changed without being asked for."""
    asked = [option for name, option in _CHANGING.items() if chosen.get(name)]
    if asked and not allowed:
        raise SelectionError(
            f"this result was measured with settings of the machine changed meanwhile: {', '.join(asked)}",
            where=folder,
            remedy="allow that again: --change-settings",
        )


def check_same(before: Mapping[str, Any], now: dict[str, Any], folder: Path, anyway: bool) -> list[str]:
    """What is another now, a line each, noted in the new manifest as well.

    Raises RefusedError when modules, programs or what is measured changed, unless it shall go on anyway.
    """
    changed = list(program_differences(before, now))
    if changed and not anyway:
        raise RefusedError(
            "this is not what was measured then:\n    " + "\n    ".join(changed),
            where=folder,
            remedy="put it back as it was, or measure what is there now: --anyway",
        )
    found = [*changed, *machine_differences(before, now)]
    now["rerun_of"] = {"id": before["id"], "folder": str(folder), "differences": found}
    now["command"] = list(before["command"])
    return found
