"""Turns the plain data of a file into dataclasses, checked once, and dataclasses into plain data.

A field with a default may be missing in the data; one whose default is None or empty is not written while
it has that value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_Reader = Callable[[Any], Any]


def structured(kind: type[_T], data: object) -> _T:
    """The data as this type. Raises ValueError, with the place, where it is something else."""
    # For mypy a type is not hashable, and so no argument of what is cached.
    key: Any = kind
    made: _T = _reader(key)(data)
    return made


def unstructured(value: Any) -> Any:
    """A value as data for JSON: dataclasses and mappings become objects, sequences lists, paths texts."""
    if is_dataclass(value):
        return {
            field.name: unstructured(part)
            for field in fields(value)
            if (part := getattr(value, field.name)) or part != field.default or part not in (None, "", ())
        }
    if isinstance(value, Mapping):
        return {name: unstructured(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [unstructured(part) for part in value]
    return str(value) if isinstance(value, Path) else value


@cache
def _reader(kind: Any) -> _Reader:
    """What reads data of a type."""
    if get_origin(kind) is not None:
        return _of_generic(get_origin(kind), get_args(kind))
    if kind is Any:
        return lambda data: data
    if is_dataclass(kind):
        return _of_dataclass(kind)
    if kind is Path:
        return lambda data: Path(_checked(data, str))
    if kind is float:
        return lambda data: _checked(data, (int, float))
    return lambda data: _checked(data, kind)


def _of_generic(origin: Any, parts: tuple[Any, ...]) -> _Reader:
    if origin is Literal:
        return lambda data: data if data in parts else _refuse(data, f"one of {', '.join(map(repr, parts))}")
    if origin in (Union, UnionType):
        return _of_union(parts)
    inner = _reader(parts[1 if issubclass(origin, Mapping) else 0])
    if issubclass(origin, Mapping):
        return lambda data: {name: _placed(inner, name, part) for name, part in _checked(data, dict).items()}
    return lambda data: tuple(_placed(inner, at, part) for at, part in enumerate(_checked(data, list)))


def _of_dataclass(kind: Any) -> _Reader:
    types = get_type_hints(kind)
    readers = {field.name: _reader(types[field.name]) for field in fields(kind) if field.init}
    needed = {
        field.name for field in fields(kind) if field.default is MISSING and field.default_factory is MISSING
    }

    def read(data: Any) -> Any:
        known = {name: part for name, part in _checked(data, dict).items() if name in readers}
        if missing := sorted(needed - known.keys()):
            raise ValueError(f"{missing[0]}: missing")
        return kind(**{name: _placed(readers[name], name, part) for name, part in known.items()})

    return read


def _of_union(kinds: tuple[Any, ...]) -> _Reader:
    """Of None, or of one of several types, according to the data."""
    others = [_reader(kind) for kind in kinds if kind is not NoneType]

    def read(data: Any) -> Any:
        if data is None and len(others) < len(kinds):
            return None
        for reader in others[:-1]:
            try:
                return reader(data)
            except ValueError:
                continue
        return others[-1](data)

    return read


def _placed(reader: _Reader, name: object, data: Any) -> Any:
    try:
        return reader(data)
    except ValueError as fault:
        raise ValueError(f"{name}: {fault}") from fault


def _checked(data: Any, kinds: type | tuple[type, ...]) -> Any:
    # True is an int for Python, and no number of a file.
    if isinstance(data, kinds) and (not isinstance(data, bool) or kinds is bool):
        return data
    names = kinds.__name__ if isinstance(kinds, type) else "number"
    return _refuse(data, f"a {names}")


def _refuse(data: Any, what: str) -> Any:
    raise ValueError(f"{ascii(data)[:40]} is not {what}")
