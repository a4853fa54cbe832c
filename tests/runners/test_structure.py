"""Plain data to types and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Literal

import pytest

import pagewise.core.schemas
from pagewise.core.host import Cache, Host, NumaNode, PoolState, Thp
from pagewise.core.structure import structured, unstructured


@dataclass(frozen=True)
class Part:
    kind: Literal["a", "b"]
    seconds: float


@dataclass(frozen=True)
class Whole:
    name: str
    parts: tuple[Part, ...]
    by_name: Mapping[str, Part | None]
    file: Path | None = None
    count: int = 1
    rest: Any = None


DATA = {"name": "n", "parts": [{"kind": "a", "seconds": 1}], "by_name": {"x": None}, "file": "/f", "count": 2}


def test_types_go_there_and_back() -> None:
    whole = structured(Whole, DATA)
    assert whole == Whole("n", (Part("a", 1.0),), {"x": None}, Path("/f"), 2)
    assert unstructured(whole) == DATA
    assert structured(Whole, json.loads(json.dumps(unstructured(whole)))) == whole


def test_what_is_not_there_has_its_default() -> None:
    bare = {"name": "n", "parts": [], "by_name": {}, "unknown": 1}
    assert unstructured(structured(Whole, bare)) == {"name": "n", "parts": [], "by_name": {}, "count": 1}


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("name", {"name": 1}),
        ("count", {"count": True}),
        ("count", {"count": "2"}),
        ("parts: 0: kind", {"parts": [{"kind": "c", "seconds": 1}]}),
        ("parts: 0: seconds", {"parts": [{"kind": "a"}]}),
        ("parts", {"parts": {}}),
        ("by_name: x: seconds", {"by_name": {"x": {"kind": "a", "seconds": None}}}),
        ("file", {"file": 1}),
    ],
)
def test_other_data_is_refused_with_its_place(place: str, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as caught:
        structured(Whole, {**DATA, **change})
    assert str(caught.value).startswith(f"{place}: ")


def _at(schema: Any, *path: str) -> Any:
    for name in path:
        schema = schema[name]
        schema = next((part for part in schema.get("anyOf", ()) if part.get("type") != "null"), schema)
    return schema


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (Host, ()),
        (NumaNode, ("properties", "numa_nodes", "items")),
        (Cache, ("properties", "caches", "items")),
        (Thp, ("properties", "thp")),
        (PoolState, ("properties", "pools", "items")),
    ],
)
def test_types_are_those_of_the_schema(kind: Any, path: tuple[str, ...]) -> None:
    file = Path(pagewise.core.schemas.__file__).parent / "schema" / "manifest-1.json"
    schema = _at(json.loads(file.read_text()), "$defs", "host", *path)
    needed = {field.name for field in fields(kind) if field.default is MISSING}
    assert (set(schema["properties"]), set(schema["required"])) == ({f.name for f in fields(kind)}, needed)
