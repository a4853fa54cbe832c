"""List sentences of Markdown files with more than LONGEST words, and exit with 1 if there are any.

sentences.py FILE...

Headings, tables and code are not checked. Inline code is one word.
Links count their text; symbols of formulas do not count.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 40
#: A new paragraph: a list item, a heading, a table row, or an empty line.
BEGINS = re.compile(r"\s*(?:[-*] |\d+\. |#|\||$)")
CODE = re.compile(r"`[^`]*`")
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
END = re.compile(r"(?<=[.!?])[)*_\"]* +(?=[(*_\"]*[A-Z0-9`])|; ")
#: Words of at least two letters: symbols of formulas do not make a sentence long.
WORD = re.compile(r"[A-Za-z][A-Za-z'’-]+")


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Paragraphs and list items of prose, with the number of their first line."""
    first, lines, fenced, in_list = 0, list[str](), False, False
    for number, line in enumerate([*text.splitlines(), ""], start=1):
        fenced ^= line.lstrip().startswith("```")
        is_item = re.match(r"\s*(?:[-*]|\d+\.) ", line) is not None
        in_list = is_item or (in_list and (not line or line.startswith(" ")))
        is_code = fenced or line.lstrip().startswith("```") or (line.startswith("    ") and not in_list)
        if lines and (is_code or BEGINS.match(line)):
            yield first, " ".join(lines)
            lines = []
        if not is_code and line.strip() and not line.lstrip().startswith(("#", "|")):
            first = first if lines else number
            lines.append(line.strip())


def long_sentences(text: str) -> Iterator[tuple[int, int, str]]:
    """Line of the paragraph, number of words, and text of each sentence that is too long."""
    for line, paragraph in paragraphs(text):
        for sentence in END.split(LINK.sub(r"\1", CODE.sub("Code", paragraph))):
            if (words := len(WORD.findall(sentence))) > LONGEST:
                yield line, words, sentence


def main() -> int:
    """Check the files of the command line."""
    actual = 0
    for file in map(Path, sys.argv[1:]):
        for line, words, sentence in long_sentences(file.read_text(encoding="utf-8")):
            actual += 1
            print(f"{file}:{line}: a sentence of {words} words: {sentence[:70]}...", file=sys.stderr)
    if actual:
        print(f"sentences: error: split {actual} sentences of more than {LONGEST} words", file=sys.stderr)
    return int(actual > 0)


if __name__ == "__main__":
    sys.exit(main())
