"""Checks data against the JSON Schemas of this package; every fault is told, each with its place.

A schema that has changed is a file of its own. Data of an older one is checked against that, and then made
into the current one by `migrations`: whoever uses it knows the current one alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import extend

from pagewise.core.cpus import cpu_list
from pagewise.core.migrations import STEPS, newest

_FOLDER = Path(__file__).parent / "schema"
# 3.0 is an integer for JSON Schema, and no index for Python.
_Validator = extend(  # type: ignore[no-untyped-call]  # types-jsonschema has no types for it
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)
_FORMATS = FormatChecker(formats=())
_UTC = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?Z")


def current(name: str) -> int:
    """The version of a schema that is written."""
    return STEPS[name][-1].to if name in STEPS else 1


@cache
def validator(name: str, version: int) -> Draft202012Validator:
    """The validator of a schema: `record`, `kernel`, `manifest` or `suite`."""
    schema = dict(_file(f"{name}-{version}.json"))
    definitions = schema.pop("$defs", {})
    made: Draft202012Validator = _Validator(_without_references(schema, definitions), format_checker=_FORMATS)
    return made


def faults(name: str, data: Any, version: int | None = None) -> list[str]:
    """All faults of the data against the schema, as `place: what`, sorted; empty when it is valid."""
    checked = validator(name, version or current(name))
    found = sorted(checked.iter_errors(data), key=lambda error: [str(part) for part in error.absolute_path])
    return [f"{_place(error.absolute_path)}: {error.message[:300]}" for error in found]


def upgraded(name: str, data: Any) -> tuple[Any, list[str]]:
    """The data as the current version of its schema has it, and no faults; or None and its faults."""
    told = data.get("schema") if isinstance(data, Mapping) else None
    match = re.fullmatch(rf"pagewise\.{name}/([1-9][0-9]{{0,3}})", str(told))
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


@cache
def _file(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((_FOLDER / name).read_text(encoding="utf-8"))
    return schema


@_FORMATS.checks("utc", ValueError)
def _is_utc(value: object) -> bool:
    """Whether it is a moment that exists, as manifests and records write it."""
    match = _UTC.fullmatch(value) if isinstance(value, str) else None
    return not isinstance(value, str) or (match is not None and bool(datetime.fromisoformat(match[1])))


@_FORMATS.checks("cpus", ValueError)
def _is_cpu_list(value: object) -> bool:
    """Whether it is a list of CPUs in the kernel's notation."""
    return not isinstance(value, str) or cpu_list(value) is not None


def _without_references(part: Any, definitions: dict[str, Any]) -> Any:
    """The schema with definitions put in place: following references takes half of the time of a check."""
    if isinstance(part, list):
        return [_without_references(one, definitions) for one in part]
    if not isinstance(part, dict):
        return part
    if "$ref" in part:
        file, _, name = part["$ref"].partition("#/$defs/")
        definitions = _file(file)["$defs"] if file else definitions
        return _without_references(definitions[name], definitions)
    return {key: _without_references(value, definitions) for key, value in part.items()}


def _place(path: Any) -> str:
    return ".".join(str(part) for part in path) or "(top)"
