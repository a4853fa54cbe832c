"""Plain data to types and back."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest

from pagewise.core.structure import OPEN, As, Form, Limits, StructureError, faults, from_data, to_data


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


def test_types_survive_a_round_trip() -> None:
    whole = from_data(Whole, DATA)
    assert whole == Whole("n", (Part("a", 1.0),), {"x": None}, Path("/f"), 2)
    assert to_data(whole) == DATA
    assert from_data(Whole, json.loads(json.dumps(to_data(whole)))) == whole


def test_missing_fields_have_their_defaults() -> None:
    bare = {"name": "n", "parts": [], "by_name": {}}
    read = from_data(Whole, {**bare, "unknown": 1, "file": None}, ignored="null")
    assert to_data(read) == {**bare, "count": 1}


def _is_even(number: int) -> None:
    if number % 2:
        raise ValueError("odd")


@dataclass(frozen=True, kw_only=True)
class Limited:
    IGNORED: ClassVar = ("earlier",)
    schema: Literal["pagewise.limited/1"]
    even: Annotated[int, Limits(2, 8), _is_even]
    above: Annotated[float, Limits(above=0)] = 1
    names: Annotated[Mapping[Annotated[str, Form("[a-z]+")], int], Limits(most=2)]
    kept: Annotated[Mapping[str, Any], As(Part), OPEN]
    several: tuple[int | Annotated[str, Limits(1)] | Part, ...] = ()

    def contradictions(self) -> Iterator[tuple[str, str]]:
        if self.even == 8:
            yield "even", "not today"


LIMITED = {
    "schema": "pagewise.limited/1", "even": 4, "names": {"a": 1}, "kept": {"kind": "a", "seconds": 1, "x": 2},
}  # fmt: skip


def test_kept_columns_are_data_and_ignored_ones_are_missing() -> None:
    read = from_data(Limited, {**LIMITED, "earlier": {}, "several": [1, "x", {"kind": "b", "seconds": 0.5}]})
    assert read.kept == LIMITED["kept"] and read.several == (1, "x", Part("b", 0.5))


def _part(**changes: Any) -> dict[str, Any]:
    return {"kind": "a", "seconds": 1, **changes}


@pytest.mark.parametrize(
    ("place", "change"),
    [
        ("name", {"name": 1}),
        *(("count", {"count": count}) for count in (True, "2", 2.0)),
        *(("file", {"file": file}) for file in (1, None)),
        ("parts", {"parts": {}}),
        ("parts.0", {"parts": [{"kind": "a"}]}),
        ("parts.0.kind", {"parts": [_part(kind="c")]}),
        *(("parts.0.seconds", {"parts": [_part(seconds=number)]}) for number in (float("nan"), False)),
        ("by_name.x.seconds", {"by_name": {"x": _part(seconds=None)}}),
        ("(top)", {"unknown": 1}),
    ],
)
def test_other_data_is_refused_with_its_place(place: str, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError) as caught:
        from_data(Whole, {**DATA, **change})
    assert str(caught.value).startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("places", "change"),
    [
        *((["even"], {"even": number}) for number in (1, 3, 8, 10)),
        (["above"], {"above": 0}),
        *((["names"], {"names": names}) for names in ({"A": 1}, {"a": 1, "b": 2, "c": 3})),
        (["names.a"], {"names": {"a": "1"}}),
        (["kept"], {"kept": {"kind": "a"}}),
        (["several.0", "several.1", "several.2.kind"], {"several": ["", None, _part(kind=1)]}),
        (["(top)", "above", "even"], {"even": "", "above": "", "more": 1}),
        (["schema"], {"schema": "pagewise.limited/2"}),
        *((["(top)"], {"schema": schema}) for schema in ("pagewise.other/1", None)),
    ],
)
def test_every_fault_is_reported_with_its_place(places: list[str], change: dict[str, Any]) -> None:
    data = {**LIMITED, **change}
    assert [fault.partition(": ")[0] for fault in faults(Limited, data)] == places
    with pytest.raises(StructureError):
        from_data(Limited, data)
