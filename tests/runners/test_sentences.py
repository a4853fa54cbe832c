"""The check of the length of sentences in documents."""

from __future__ import annotations

import pytest
from sentences import LONGEST, long_sentences

LONG = " ".join(["word"] * (LONGEST + 1))
HALF = " ".join(["word"] * (LONGEST // 2 + 1))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"First.\n\n{LONG}.", [3]),
        (f"- {HALF}\n  {HALF}\n", [1]),
        (f"{HALF}. Word {HALF}.", []),
        (f"- {HALF}\n- {HALF}\n", []),
        (f"{HALF}; {HALF}", []),
        (f"{HALF} `{LONG}` [word]({LONG.replace(' ', '-')})", []),
        (f"    {LONG}\n", []),
        (f"# {LONG}\n| {LONG} |\n", []),
        (f"```\n{LONG}\n```\n{LONG}\n", [4]),
    ],
    ids=["paragraph", "item", "sentences", "items", "semicolon", "code", "block", "table", "fence"],
)
def test_long_sentences_of_prose_are_reported(text: str, lines: list[int]):
    assert [line for line, _, _ in long_sentences(text)] == lines
