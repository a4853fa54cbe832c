"""The table of page policies (policies.h): parts, and what each sets. C programs include it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("policies.h")


@dataclass(frozen=True)
class Part:
    """A part of a page policy: its meaning, the kinds of memory it is for, whether it takes a page size."""

    meaning: str
    targets: tuple[str, ...] = ()
    is_sized: bool = False


@dataclass(frozen=True)
class Setting:
    """What a part sets (columns: policies.h)."""

    part: str
    condition: str
    kind: str
    name: str
    value: str


def _rows(macro: str) -> Iterator[list[str]]:
    text = FILE.read_text(encoding="utf-8")
    for row in re.finditer(rf"^{macro}\((\".*\")\)$", text, re.MULTILINE):
        yield json.loads(f"[{row[1]}]")


#: In the order of a policy's name: a part that may have a size comes last.
PARTS: Mapping[str, Part] = {
    name: Part(meaning, tuple(targets.split()), size == "sized")
    for name, size, targets, meaning in _rows("PART")
}
_SETTINGS = tuple(Setting(*row) for row in _rows("SETTING"))


def settings(kind: str, parts: Sequence[str], size: int | None, *, advised: bool) -> dict[str, str]:
    """The settings of this kind by name. advised: whether programs must ask for transparent huge pages."""
    met = {"", "unsized" if size is None else "sized", *(["advised"] if advised else [])}
    return {
        row.name: row.value.replace("{size}", str(size))
        for row in _SETTINGS
        if row.kind == kind and row.part in parts and row.condition in met
    }


def names(kind: str) -> tuple[str, ...]:
    """The names of all settings of this kind: the caller's own do not reach a program."""
    return tuple(dict.fromkeys(row.name for row in _SETTINGS if row.kind == kind))
