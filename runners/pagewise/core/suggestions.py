"""What may have been meant by a name that is not known."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(text: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that look like the text, the nearest first."""
    return get_close_matches(text, list(known), most, 0.5)


def choose_of(text: str, known: Iterable[str]) -> str:
    """A remedy: `did you mean thp? There are: none, thp`; all of the known names where none is near."""
    names = list(known)
    near = nearest(text, names, 1)
    all_of_them = f"there are: {', '.join(names) or 'none'}"
    return f"did you mean {near[0]}? There are: {', '.join(names)}" if near else all_of_them
