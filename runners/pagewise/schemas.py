"""Checks data against the JSON Schemas of this package; every fault is told, each with its place.

A schema that has changed is a file of its own. Data of an older one is checked against that, and then made
into the current one by `migrations`: whoever uses it knows the current one alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from pagewise.migrations import STEPS, newest

_FOLDER = Path(__file__).parent / "schema"


def current(name: str) -> int:
    """The version of a schema that is written."""
    return STEPS[name][-1].to if name in STEPS else 1


@cache
def validator(name: str, version: int) -> Draft202012Validator:
    """The validator of a schema: `record`, `kernel`, `manifest` or `suite`."""
    schema = json.loads((_FOLDER / f"{name}-{version}.json").read_text(encoding="utf-8"))
    return Draft202012Validator(_without_references(schema, schema.pop("$defs", {})))


def faults(name: str, data: Any, version: int | None = None) -> list[str]:
    """All faults of the data against the schema, as `place: what`, sorted; empty when it is valid."""
    checked = validator(name, version or current(name))
    found = sorted(checked.iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path])
    return [f"{_place(error.absolute_path)}: {error.message[:300]}" for error in found]


def upgraded(name: str, data: Any) -> tuple[Any, list[str]]:
    """The data as the current version of its schema has it, and no faults; or None and its faults."""
    told = data.get("schema") if isinstance(data, Mapping) else None
    match = re.fullmatch(rf"pagewise\.{name}/([1-9]\d*)", str(told))
    if match is None:
        why = "'schema' is a required property" if told is None else f"its schema is {str(told)[:80]}"
        return None, [f"(top): this is no pagewise.{name}: {why}"]
    version = int(match[1])
    if version > current(name):
        return None, [
            f"schema: {told} is from a newer pagewise; this one knows up to pagewise.{name}/{current(name)}"
        ]
    found = faults(name, data, version)
    if found:
        return None, found
    return newest(name, data), []


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
