"""Reads files from outside and checks their data, so that later code can rely on it.

Results are copied between machines and edited by hand, and a shared folder can contain anything.
"""

from __future__ import annotations

import errno
import json
import math
import os
import stat
from collections import Counter
from collections.abc import Hashable, MutableMapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import yaml

from pagewise.core.errors import FormatError
from pagewise.core.structure import StructureError, document, name_of

#: The largest file that is read into memory, in bytes.
LARGEST = 64 << 20
_PIECE = 1 << 20
#: Limits on the nesting and the number of parts of a file's data. YAML's aliases multiply parts.
DEEPEST, MOST_PARTS = 64, 2_000_000
_MOST_INTEGER = 1 << 63
_Name = TypeVar("_Name")
_Document = TypeVar("_Document")


def open_file(file: Path) -> BinaryIO:
    """Opens a regular file for reading. Never blocks, as a pipe could. Raises OSError."""
    descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", str(file))
    return open(descriptor, "rb")  # noqa: PTH123 a descriptor has no path


def read_file(file: Path, largest: int = LARGEST) -> bytes:
    """The content of a regular file. Raises OSError."""
    with open_file(file) as stream:
        status = os.fstat(stream.fileno())
        # In pieces: the file may grow while it is read, and asking for the limit would take that much memory.
        parts, size = [], 0
        while max(status.st_size, size) <= largest and (part := stream.read(_PIECE)):
            parts.append(part)
            size += len(part)
    if max(status.st_size, size) > largest:
        raise OSError(errno.EFBIG, f"larger than {largest >> 20} MiB", str(file))
    return b"".join(parts)


def read_end(file: Path, most: int) -> str:
    """The text at the end of a regular file, of at most this many bytes; empty if it cannot be read."""
    try:
        with open_file(file) as stream:
            size = os.fstat(stream.fileno()).st_size
            stream.seek(max(0, size - most))
            return stream.read(min(size, most)).decode("utf-8", errors="replace")
    except OSError:
        return ""


def read_document(
    kind: type[_Document],
    file: Path,
    remedy: str = "correct this file",
    known: MutableMapping[bytes, _Document] | None = None,
) -> _Document:
    """The content of a YAML or JSON file, checked; `known` gets it by the file's bytes, which are read once.

    Raises FormatError with the file and every fault.
    """
    try:
        content = read_file(file)
        if known is not None and content in known:
            return known[content]
        data = parse_yaml(content)
    except (OSError, ValueError) as fault:
        raise FormatError(f"this file cannot be read: {fault}", where=file, remedy=remedy) from fault
    read = checked_document(kind, data, file, remedy)
    if known is not None:
        known[content] = read
    return read


def checked_document(kind: type[_Document], data: object, where: object, remedy: str) -> _Document:
    """The data of a file as its type. Raises FormatError that lists every fault."""
    try:
        return document(kind, data)
    except StructureError as error:
        key: Any = kind
        text = "\n    ".join((f"this file does not follow {name_of(key)}:", *error.texts))
        raise FormatError(text, where=where, remedy=remedy) from error


def parse_json(content: bytes) -> Any:
    """The data of a JSON text in UTF-8. Raises ValueError for data that is not plain (see `plain`)."""
    try:
        return plain(json.loads(content.decode("utf-8"), object_pairs_hook=_distinct, parse_constant=_refuse))
    except RecursionError as fault:
        raise ValueError(f"nested deeper than {DEEPEST} levels") from fault


def parse_yaml(content: bytes) -> Any:
    """The data of a YAML text in UTF-8. Raises ValueError for data that is not plain (see `plain`)."""
    try:
        return plain(yaml.load(content.decode("utf-8"), _Loader))
    except RecursionError as fault:
        raise ValueError(f"nested deeper than {DEEPEST} levels") from fault
    except yaml.YAMLError as fault:
        raise ValueError(str(fault)) from fault


def plain(data: Any) -> Any:
    """The same data, if it is plain: objects with texts as keys, lists, texts, numbers, true, false, null.

    Raises ValueError for data at which later code could fail: deep nesting, lone surrogates, numbers that are
    not finite or do not fit into 64 bits. Surrogates that stand for bytes of arguments and names of files are
    kept (PEP 383).
    """
    parts, left = [(data, 1)], MOST_PARTS
    while parts:
        part, depth = parts.pop()
        left -= 1
        if left < 0:
            raise ValueError(f"more than {MOST_PARTS} parts")
        if isinstance(part, (dict, list)):
            if depth > DEEPEST:
                raise ValueError(f"nested deeper than {DEEPEST} levels")
            if isinstance(part, dict):
                for key in part:
                    if not isinstance(key, str):
                        raise ValueError(f"the key {_short(key)} is not a text")
                    _check(key)
                part = part.values()
            parts += [(inner, depth + 1) for inner in part]
        else:
            _check(part)
    return data


def _check(value: Any) -> None:
    """Raises ValueError unless it is a plain text, number, true, false or null."""
    if isinstance(value, str):
        try:
            value.encode(errors="surrogateescape")
        except UnicodeEncodeError as fault:
            raise ValueError(f"invalid Unicode in {_short(value)}") from fault
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a finite number")
    elif isinstance(value, int):
        if not -_MOST_INTEGER <= value < _MOST_INTEGER:
            raise ValueError("a number that does not fit into 64 bits")
    elif value is not None:
        raise ValueError(f"{_short(value)} is a {type(value).__name__}, write it as a text")


def _short(value: object) -> str:
    return ascii(value)[:40]


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, object]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise ValueError(f"the key {_short(_repeated_name([name for name, _ in pairs]))} occurs twice")
    return data


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not a number of JSON")


def _repeated_name(names: Sequence[_Name]) -> _Name:
    return Counter(names).most_common(1)[0][0]


class _Loader(yaml.SafeLoader):
    """Loads YAML's plain types; refuses repeated keys, and merging (`<<`), which multiplies data."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        """The mapping. Raises ConstructorError."""
        names = [(key.tag, key.value) for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        if len(set(names)) < len(names):
            name = _short(_repeated_name(names)[1])
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {name} occurs twice", node.start_mark
            )
        return super().construct_mapping(node, deep)

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        """Refuses merging. Raises ConstructorError."""
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                raise yaml.constructor.ConstructorError(None, None, "<< is not supported", key.start_mark)
        super().flatten_mapping(node)
