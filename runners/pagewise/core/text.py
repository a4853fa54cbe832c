"""Text: from outside, made harmless for terminals and files; names that are similar."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# Control characters except tabs and line ends, line separators, and marks that reorder text.
_UNPRINTABLE = "\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_REMOVED, _SURROGATES = re.compile(f"[{_UNPRINTABLE}]"), re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile(f"[{_UNPRINTABLE}\ud800-\udfff]")


def printable(text: str) -> str:
    """The text without control characters and marks that reorder it; invalid Unicode becomes U+FFFD."""
    return _SURROGATES.sub("\ufffd", _REMOVED.sub("", text))


def command_text(words: Iterable[str]) -> str:
    """The words as one line for a shell: quoted, with bytes that a terminal does not print escaped."""
    return " ".join(map(_shell_word, words))


def _shell_word(word: str) -> str:
    if word.isprintable():
        return shlex.quote(word)
    signs = (
        ("\\" + sign if sign in "'\\" else sign)
        if sign.isprintable()
        else "".join(f"\\{byte:03o}" for byte in sign.encode(errors="surrogateescape"))
        for sign in word
    )
    return f"$'{''.join(signs)}'"


def identifier(text: str) -> str:
    """The text as the name of a kernel: lower-case letters, digits and underscores, a letter first."""
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return name if re.match(r"[a-z]", name) else f"program_{name}"


def json_text(data: Any, indent: int | None = 2) -> str:
    """Data as readable JSON; escapes characters that `printable` changes. Raises ValueError for NaN."""
    text = json.dumps(data, indent=indent, ensure_ascii=False, allow_nan=False)
    return _ESCAPED.sub(lambda match: f"\\u{ord(match[0]):04x}", text) + "\n"


def nearest(text: str, known: Iterable[str], most: int = 3) -> list[str]:
    """The known names that are similar to the text, the most similar first."""
    return get_close_matches(text, list(known), most, 0.5)


def choose_of(text: str, known: Iterable[str]) -> str:
    """A remedy: `did you mean thp? There are: none, thp`; only the known names if none is similar."""
    names = list(known)
    listed = ", ".join(names) or "none"
    similar = nearest(text, names, 1)
    return f"did you mean {similar[0]}? There are: {listed}" if similar else f"there are: {listed}"
