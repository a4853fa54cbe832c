"""names: list identifiers that the glossary excludes, and types that two files define (exit code 1).

tests/identifiers.txt lists words that no identifier, option and file name contains, with the term to use. A
function's name is a verb or a noun: in runners, setup and studies, a participle alone is refused.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

_WORDS = Path("tests/identifiers.txt")
# Comments and strings of C and Fortran.
_OTHER = {
    "c": r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"',
    "f90": r"'[^'\n]*'|\"[^\"\n]*\"|![^\n]*",
}
_OTHER |= {"F90": _OTHER["f90"], "h": _OTHER["c"]}
_PARTICIPLES = re.compile(
    r"_*(\w*[^e]ed|chosen|drawn|found|given|kept|known|left|made|seen|shown|taken|written)"
)
_NO_PARTICIPLES = ("embed", "seed", "speed")
# Names of Linux.
_OF_LINUX = re.compile(r"_?(MADV|MAP)_[A-Z_]+")
_DECORATORS = {"property", "cached_property"}


def main() -> int:
    """Check the tracked files."""
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split(
        "\n"
    )
    files = [Path(name) for name in listed if name and Path(name).is_file()]
    faults = [*_excluded_words(files), *_participles(files), *_types_defined_twice()]
    for fault in faults:
        print(f"names: error: {fault}")
    return 1 if faults else 0


def _excluded_words(files: list[Path]) -> Iterator[str]:
    rows = [line.split(maxsplit=1) for line in _WORDS.read_text(encoding="utf-8").splitlines() if line]
    terms = {word: term for word, term in rows}
    pattern = re.compile(rf"(?:^|(?<!not)_)({'|'.join(terms)})(?=_|$)")
    for file in files:
        for name in {file.stem, *_identifiers(file)}:
            if _OF_LINUX.fullmatch(name):
                continue
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.replace("-", "_"))
            if match := pattern.search(words.lower()):
                yield f"{file}: {name}: instead of {match[1]!r}: {terms[match[1]]}"


def _identifiers(file: Path) -> Iterator[str]:
    kind = file.suffix[1:]
    if kind in ("py", "yaml", "md", *_OTHER):
        # Options, in code and on pages.
        yield from re.findall(r"(?<![\w-])--([a-z][a-z-]*[a-z])", file.read_text(encoding="utf-8"))
    if kind == "py":
        with file.open("rb") as stream:
            yield from (
                token.string for token in tokenize.tokenize(stream.readline) if token.type == tokenize.NAME
            )
    elif kind in _OTHER:
        code = re.sub(_OTHER[kind], " ", file.read_text(encoding="utf-8"), flags=re.DOTALL)
        yield from re.findall(r"[A-Za-z_]\w*", code)


def _participles(files: list[Path]) -> Iterator[str]:
    for file in files:
        if file.suffix != ".py" or file.parts[0] not in ("runners", "setup", "studies"):
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef) or node.name in _NO_PARTICIPLES:
                continue
            decorators = {getattr(each, "id", getattr(each, "attr", "")) for each in node.decorator_list}
            if (
                _PARTICIPLES.fullmatch(node.name)
                and "_" not in node.name.strip("_")
                and not decorators & _DECORATORS
            ):
                yield f"{file}:{node.lineno}: {node.name}: a function's name is a verb or a noun"


def _types_defined_twice() -> Iterator[str]:
    """Classes and aliases are types; names in capitals are constants, those with an underscore private."""
    places: dict[str, list[Path]] = defaultdict(list)
    for file in sorted(Path("runners/pagewise").rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", node)
            name = getattr(target, "id", getattr(target, "name", ""))
            if name[:1].isupper() and not name.isupper():
                places[name].append(file)
    for name, files in places.items():
        if len(files) > 1:
            yield f"the type {name} is defined more than once: {', '.join(map(str, files))}"


if __name__ == "__main__":
    sys.exit(main())
