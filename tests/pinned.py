"""pinned FILE...: list the sentences that tests compare with what programs print (exit code 1).

A reworded sentence must not break a test: assert on types, codes, places and values. Texts of other programs
and of a test's own stand-ins are named constants.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

#: Three words in a row, none of which is part of a path, an option or a number.
SENTENCE = re.compile(r"(?<![\w/.=-])[a-z][a-z']+(?: [a-z][a-z']+){2,}(?![\w/=-])", re.IGNORECASE)


def compared(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield what is asserted, and the patterns that an exception's text must match."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            yield node.test
        elif isinstance(node, ast.Call):
            yield from (word.value for word in node.keywords if word.arg == "match")


def main() -> int:
    """Check the files that the command line names."""
    actual = set()
    for file in sys.argv[1:]:
        for part in compared(ast.parse(Path(file).read_text(encoding="utf-8"))):
            for node in ast.walk(part):
                text = node.value if isinstance(node, ast.Constant) else None
                if isinstance(text, str) and SENTENCE.search(text):
                    actual.add((file, node.lineno, text))
    for file, line, text in sorted(actual):
        print(f"{file}:{line}: error: a test compares a sentence: {text[:60]!r}", file=sys.stderr)
    return 1 if actual else 0


if __name__ == "__main__":
    sys.exit(main())
