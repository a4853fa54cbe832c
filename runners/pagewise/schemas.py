"""Checks data against the JSON Schemas of this package; every fault is told, each with its place."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

_FOLDER = Path(__file__).parent / "schema"


@cache
def validator(name: str) -> Draft202012Validator:
    """The validator of a schema: `record`, `kernel`, `manifest` or `suite`."""
    schema = json.loads((_FOLDER / f"{name}-1.json").read_text(encoding="utf-8"))
    return Draft202012Validator(_without_references(schema, schema.pop("$defs", {})))


def faults(name: str, data: Any) -> list[str]:
    """All faults of the data against the schema, as `place: what`, sorted; empty when it is valid."""
    found = sorted(
        validator(name).iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path]
    )
    return [f"{_place(error.absolute_path)}: {error.message[:300]}" for error in found]


def _without_references(part: Any, definitions: dict[str, Any]) -> Any:
    """The schema with its `$defs` put in place: following references takes half of the time of a check."""
    if isinstance(part, list):
        return [_without_references(one, definitions) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        return definitions[part["$ref"].removeprefix("#/$defs/")]
    return {key: _without_references(value, definitions) for key, value in part.items()}


def _place(path: Any) -> str:
    return ".".join(str(part) for part in path) or "(top)"
