"""Turns the plain data of a file into dataclasses, checked once, and dataclasses into plain data.

The types of the fields are the rules: `Annotated` restricts values by Limits, Form and functions that raise
ValueError, and describes fields by texts. A field with a default may be missing in the data. One whose
default is None or empty is not written while it has that value, and null is refused for it.

Imports the standard library only: the guardian runs without packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache, reduce
from itertools import count, repeat
from math import inf, isfinite
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_T = TypeVar("_T")
_Reader = Callable[[Any], Any]
# Names and numbers that lead to a place in the data, and what is wrong there.
_Fault = tuple[tuple[str, ...], str]
_Ignored = Literal["", "unknown", "null"]
_NAMES = {str: "text", int: "integer", float: "number", bool: "truth value", dict: "mapping", list: "list"}
#: In `Annotated`: unknown fields are ignored, but not further inside.
OPEN = object()


@dataclass(frozen=True)
class Limits:
    """In `Annotated`: a number, or so many parts of a text, list or mapping, from `least` to `most`.

    above: the number is larger.
    """

    least: float = -inf
    most: float = inf
    above: float = -inf

    def __call__(self, value: Any) -> None:
        """Raises ValueError for another value."""
        number = value if type(value) in (int, float) else len(value)
        if not self.least <= number <= self.most or number <= self.above:
            limits = {"at least": self.least, "more than": self.above, "at most": self.most}
            texts = " and ".join(f"{text} {limit}" for text, limit in limits.items() if isfinite(limit))
            raise ValueError(f"{number}{' parts are' if number is not value else ' is'} not {texts}")


@dataclass(frozen=True)
class Form:
    """In `Annotated`: a text of this form, a regular expression."""

    pattern: str

    def __call__(self, value: Any) -> None:
        """Raises ValueError for another text."""
        if re.fullmatch(self.pattern, value) is None:
            raise ValueError(f"{ascii(value)[:40]} is not of the form {self.pattern}")


@dataclass(frozen=True)
class As:
    """In `Annotated`: data that follows this type, and is kept as it is."""

    kind: Any


class StructureError(ValueError):
    """Data that is not of a type, with all faults."""

    def __init__(self, faults: list[_Fault]) -> None:
        self.faults = faults
        super().__init__("; ".join(self.texts))

    @property
    def texts(self) -> list[str]:
        """Each fault as `a.b.3.c: what`, sorted by place."""
        return [f"{'.'.join(place) or '(top)'}: {fault}" for place, fault in sorted(self.faults)]


def from_data(kind: type[_T], data: object, *, ignored: _Ignored = "") -> _T:
    """The data as this type. Raises StructureError.

    ignored: unknown fields; null: these, and null for fields with a default.
    """
    # For mypy a type is not hashable, and so not an argument of what is cached.
    key: Any = kind
    made: _T = _reader(key, ignored)(data)
    return made


def document(kind: type[_T], data: object) -> _T:
    """The data of a file from elsewhere, which names its schema. Raises StructureError."""
    key: Any = kind
    wanted = name_of(key)
    named = data.get("schema") if isinstance(data, Mapping) else None
    if named == wanted:
        return from_data(kind, data)
    name, _, version = wanted.partition("/")
    if re.fullmatch(rf"{re.escape(name)}/[1-9][0-9]{{0,3}}", str(named)):
        fault = f"{named} is from another version of pagewise; this one reads version {version}"
        raise StructureError([(("schema",), fault)])
    why = "the field 'schema' is missing" if named is None else f"its schema is {str(named)[:80]}"
    raise StructureError([((), f"this is not a {name}: {why}")])


@cache
def name_of(kind: Any) -> str:
    """The name of a document, which its field `schema` has: `pagewise.record/1`."""
    return str(get_args(get_type_hints(kind)["schema"])[0])


def faults(kind: type[Any], data: object) -> list[str]:
    """All faults of the data of a file as `place: what`; empty if it has none."""
    try:
        document(kind, data)
    except StructureError as error:
        return error.texts
    return []


def to_data(value: Any) -> Any:
    """A value as data for JSON: dataclasses and mappings become objects, sequences lists, paths texts."""
    if is_dataclass(value):
        return {
            field.name: to_data(part)
            for field in fields(value)
            if (part := getattr(value, field.name)) or part != field.default or isinstance(part, (int, float))
        }
    if isinstance(value, Mapping):
        return {name: to_data(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_data(part) for part in value]
    return str(value) if isinstance(value, Path) else value


@cache
def _reader(kind: Any, ignored: _Ignored) -> _Reader:
    """What reads data of a type."""
    if get_origin(kind) is not None:
        return _of_generic(kind, get_origin(kind), get_args(kind), ignored)
    if is_dataclass(kind):
        return _of_dataclass(kind, ignored)
    if kind is Path:
        return lambda data: Path(_check_type(data, str))
    expected = f"a {_NAMES.get(kind, 'null')}"
    return _PLAIN.get(kind) or (lambda data: data if type(data) is kind else _refuse(data, expected))


def _of_generic(kind: Any, origin: Any, parts: tuple[Any, ...], ignored: _Ignored) -> _Reader:
    if origin is Annotated:
        return _of_annotated(parts[0], parts[1:], ignored)
    if origin is Literal:
        kinds, known = types_of(kind), f"one of {', '.join(map(repr, parts))}"
        return lambda data: data if type(data) in kinds and data in parts else _refuse(data, known)
    if origin in (Union, UnionType):
        return _of_union(parts, ignored)
    if issubclass(origin, Mapping):
        return _of_mapping(parts[0], parts[1], ignored)
    inner = _reader(parts[0], ignored)
    return lambda data: tuple(_read_each(count(), repeat(inner), _check_type(data, list)))


def types_of(kind: Any) -> tuple[type, ...]:
    """The types that data of a type can have."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return types_of(parts[0])
    if origin is Literal:
        return tuple({type(part) for part in parts})
    if origin in (Union, UnionType):
        return tuple({one for part in parts for one in types_of(part)})
    if origin is tuple:
        return (list,)
    if origin is not None or is_dataclass(kind):
        return (dict,)
    return (int, float) if kind is float else (str,) if kind is Path else (kind,)


def _of_annotated(kind: Any, rules: tuple[Any, ...], ignored: _Ignored) -> _Reader:
    ignored = ignored or ("unknown" if OPEN in rules else "")
    reader = _reader(kind, ignored)
    of_data = [_reader(rule.kind, ignored) for rule in rules if isinstance(rule, As)]
    checks = [*(rule for rule in rules if callable(rule)), *of_data]

    def read(data: Any) -> Any:
        value = reader(data)
        try:
            for check in checks:
                check(value)
        except ValueError as fault:
            raise (
                fault if isinstance(fault, StructureError) else StructureError([((), str(fault))])
            ) from fault
        return value

    if kind in (int, float) and len(checks) == 1 and isinstance(limits := checks[0], Limits):
        # Most values of a record are such numbers. What is not finite is read by `read`.
        kinds, least, most, above = types_of(kind), limits.least, min(limits.most, 1e308), limits.above
        return lambda data: (
            data if type(data) in kinds and above < data and least <= data <= most else read(data)
        )
    return read if checks else reader


def _of_mapping(names: Any, kind: Any, ignored: _Ignored) -> _Reader:
    name_of, inner = _reader(names, ignored), _reader(kind, ignored)

    def read(data: Any) -> Any:
        for name in _check_type(data, dict) if names is not str else ():
            name_of(name)
        parts = _check_type(data, dict)
        return dict(zip(parts, _read_each(parts, repeat(inner), parts.values()), strict=True))

    return read


def _of_dataclass(kind: Any, ignored: _Ignored) -> _Reader:
    kinds = get_type_hints(kind, include_extras=True)
    inside: _Ignored = "" if ignored == "unknown" else ignored
    needed, readers = set(), {}
    for field in fields(kind):
        if field.init:
            of_field = kinds[field.name]
            if field.default is MISSING and field.default_factory is MISSING:
                needed.add(field.name)
            elif not inside and field.default is None and get_origin(of_field) in (Union, UnionType):
                of_field = reduce(or_, (part for part in get_args(of_field) if part is not NoneType))
            readers[field.name] = _reader(of_field, inside)
    earlier = getattr(kind, "IGNORED", ())
    contradictions = getattr(kind, "contradictions", None)

    def read(data: Any) -> Any:
        known, wrong = _check_type(data, dict), []
        if not data.keys() <= readers.keys():
            known = {name: part for name, part in data.items() if name in readers}
            further = [name for name in data if not ignored and name not in {*readers, *earlier}]
            wrong += [((), f"{ascii(name)[:40]} is not a known field") for name in further]
        wrong += [((), f"{name!r} is missing") for name in needed - known.keys()]
        parts = _read_each(known, map(readers.__getitem__, known), known.values(), wrong)
        made = kind(**dict(zip(known, parts, strict=True)))
        if contradictions is not None and (violations := list(contradictions(made))):
            raise StructureError([((place,) if place else (), fault) for place, fault in violations])
        return made

    return read


def _of_union(kinds: tuple[Any, ...], ignored: _Ignored) -> _Reader:
    """Of one of several types, according to the data."""
    by_type: dict[type, list[_Reader]] = {}
    for kind in kinds:
        for each in types_of(kind):
            by_type.setdefault(each, []).append(_reader(kind, ignored))
    text = " or ".join(_NAMES.get(each, "null") for each in by_type)

    def read(data: Any) -> Any:
        readers = by_type.get(type(data)) or _refuse(data, f"a {text}")
        for reader in readers[:-1]:
            try:
                return reader(data)
            except StructureError:
                continue
        return readers[-1](data)

    return read


def _read_each(
    names: Iterable[object], readers: Iterable[_Reader], parts: Iterable[Any], wrong: Iterable[_Fault] = ()
) -> list[Any]:
    """The values of parts. Raises StructureError for all that are wrong."""
    values, wrong = [], list(wrong)
    for name, reader, part in zip(names, readers, parts, strict=False):
        try:
            values.append(reader(part))
        except StructureError as error:
            wrong += [((str(name), *place), fault) for place, fault in error.faults]
    if wrong:
        raise StructureError(wrong)
    return values


def _number(data: Any) -> Any:
    return (
        data if type(data) is int or (type(data) is float and isfinite(data)) else _refuse(data, "a number")
    )


_PLAIN: Mapping[Any, _Reader] = {float: _number, Any: lambda data: data}


def _check_type(data: Any, kind: type) -> Any:
    # True is an int for Python, and not a number of a file; 3.0 is not an index.
    return data if type(data) is kind else _refuse(data, f"a {_NAMES.get(kind, 'null')}")


def _refuse(data: Any, expected: str) -> Any:
    raise StructureError([((), f"{ascii(data)[:40]} is not {expected}")])
