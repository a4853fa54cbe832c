"""The table of page policies (policies.h): parts, and what each sets. C programs include it."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

FILE = Path(__file__).with_name("policies.h")
#: The kind of what the preloaded library does.
ACTION = "action"


@dataclass(frozen=True)
class Part:
    """A part of a page policy: its meaning, the kinds of memory it is for, whether it takes a page size.

    from_pool: whether its pages are of a hugetlb pool.
    """

    meaning: str
    targets: tuple[str, ...] = ()
    is_sized: bool = False
    from_pool: bool = False


@dataclass(frozen=True)
class Listing:
    """A variable that lists settings of a kind: entries of name, joiner, value."""

    kind: str
    variable: str
    separator: str
    joiner: str

    def entry(self, name: str, value: str) -> str:
        """A setting as an entry."""
        return f"{name}{self.joiner}{value}" if value else name

    def others(self, text: str) -> list[str]:
        """The entries of a value that are no page policies."""
        own = {row.name for row in _SETTINGS if row.kind == self.kind}
        entries = [entry for entry in text.split(self.separator) if entry]
        return [entry for entry in entries if entry.partition(self.joiner)[0] not in own]


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
    name: Part(meaning, tuple(targets.split()), bool(size), size == "pool")
    for name, size, targets, meaning in _rows("PART")
}
#: The parts whose pages are of a hugetlb pool.
POOL_PARTS = {"libhugetlbfs", *(name for name, part in PARTS.items() if part.from_pool)}
LISTINGS = tuple(Listing(*row) for row in _rows("LIST"))
_SETTINGS = tuple(Setting(*row) for row in _rows("SETTING"))
_LISTED = {listing.kind for listing in LISTINGS}


@dataclass(frozen=True)
class Chosen:
    """The settings of a policy: its parts, page size, the conditions that hold (`advised`, `replaced`)."""

    parts: Sequence[str]
    size: int | None
    conditions: Collection[str] = ()

    def rows(self) -> Iterator[Setting]:
        """Those that apply, with their values."""
        met = {"", "unsized" if self.size is None else "sized", *self.conditions}
        for row in _SETTINGS:
            if row.part in self.parts and row.condition in met:
                value = row.value.replace("{size}", str(self.size))
                yield Setting(row.part, row.condition, row.kind, row.name, value)

    @property
    def actions(self) -> list[str]:
        """What the preloaded library does."""
        return list(dict.fromkeys(row.name for row in self.rows() if row.kind == ACTION))

    @property
    def variables(self) -> dict[str, str]:
        """Whole variables."""
        return {row.name: row.value for row in self.rows() if row.kind not in {ACTION, *_LISTED}}

    def entries(self, listing: Listing) -> list[str]:
        """The entries of a variable that lists settings."""
        own = {row.name: row.value for row in self.rows() if row.kind == listing.kind}
        return [listing.entry(name, value) for name, value in own.items()]

    def changes(self, inherited: Mapping[str, str]) -> dict[str, str | None]:
        """Changes to an inherited environment, except preloaded libraries; None: the variable is removed."""
        changed: dict[str, str | None] = {name: None for name in variable_names() if name in inherited}
        for listing in LISTINGS:
            entries = [*listing.others(inherited.get(listing.variable, "")), *self.entries(listing)]
            if entries or listing.variable in inherited:
                changed[listing.variable] = listing.separator.join(entries) or None
        return changed | self.variables


def has_settings(kind: str, part: str) -> bool:
    """Whether an allocator or a library of this kind has settings for a part."""
    return any(row.kind == kind and row.part == part for row in _SETTINGS)


def variable_names() -> tuple[str, ...]:
    """All variables that page policies set as a whole: the caller's own do not reach a program."""
    rows = (row.name for row in _SETTINGS if row.kind not in {ACTION, *_LISTED})
    return tuple(dict.fromkeys(rows))


def removed_variables(inherited: Mapping[str, str]) -> dict[str, str]:
    """What of the caller's environment is a page policy, and therefore never reaches the program."""
    removed = {name: inherited[name] for name in variable_names() if name in inherited}
    for listing in LISTINGS:
        entries = inherited.get(listing.variable, "").split(listing.separator)
        others = listing.others(inherited.get(listing.variable, ""))
        if own := [entry for entry in entries if entry and entry not in others]:
            removed[listing.variable] = listing.separator.join(own)
    return removed
