"""The selection file of `pagewise exec --where`: origins of memory that a program gets on huge pages.

The library selected.c reads it; docs/explanation/origins.md describes its lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pagewise.core.manifest_parts import Origin

#: The file in a result folder.
SELECTION = "selection.txt"
_HEAD = "# pagewise.selection/1: memory on transparent huge pages (pagewise exec --where)\n"
_KINDS = ("allocation", "static")


def is_selectable(origin: Origin) -> bool:
    """Whether the memory of this origin can be put on huge pages without other memory.

    A module without a build ID is named in its place; a name with spaces does not fit into the lines.
    """
    words = (*origin.identity, *origin.wrappers)
    return (
        origin.kind in _KINDS
        and bool(origin.identity)
        and len("".join(words).split()) == 1
        and all(_module(word) in origin.modules for word in words if origin.kind == "allocation")
        and (origin.kind == "allocation" or len(origin.identity) == 2)
    )


def selection_text(origins: Sequence[Origin]) -> str:
    """The file's text: modules, wrappers and the origins that can be selected, in their order."""
    selected = [origin for origin in origins if is_selectable(origin)]
    modules = {module: path for origin in selected for module, path in origin.modules.items()}
    wrappers = dict.fromkeys(wrapper for origin in selected for wrapper in origin.wrappers)
    lines = [f"module {module} {path}" for module, path in modules.items()]
    lines += [f"wrapper {wrapper}" for wrapper in wrappers]
    lines += [f"{origin.kind} {' '.join(origin.identity)}  # {_name(origin)}" for origin in selected]
    return _HEAD + "".join(f"{line}\n" for line in lines)


def write_selection(path: Path, origins: Sequence[Origin]) -> None:
    """Writes the selection of these origins, without those that cannot be selected. Raises OSError."""
    path.write_text(selection_text(origins), encoding="utf-8")


def _module(address: str) -> str:
    return address.rpartition("+")[0]


def _name(origin: Origin) -> str:
    """The name for people, on one line."""
    called = f"called from {origin.caller}" if origin.caller else None
    return " ".join(" ".join(filter(None, (origin.name, origin.place, called))).split())
