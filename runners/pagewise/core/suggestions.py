"""Suggestions for unknown names."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(text: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that are similar to the text, the most similar first."""
    return get_close_matches(text, list(known), most, 0.5)


def choose_of(text: str, known: Iterable[str]) -> str:
    """A remedy: `did you mean thp? There are: none, thp`; only the known names if none is similar."""
    names = list(known)
    listed = ", ".join(names) or "none"
    similar = nearest(text, names, 1)
    return f"did you mean {similar[0]}? There are: {listed}" if similar else f"there are: {listed}"
