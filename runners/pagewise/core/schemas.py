"""Checks data against the JSON Schemas of this package; every fault is reported, each with its place."""

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

#: Of all schemas.
VERSION = 1
_FOLDER = Path(__file__).parent / "schema"
# 3.0 is an integer for JSON Schema, and no index for Python.
_Validator = extend(  # type: ignore[no-untyped-call]  # types-jsonschema has no types for it
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)
_FORMATS = FormatChecker(formats=())
_UTC = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]{1,9})?Z")


@cache
def validator(name: str) -> Draft202012Validator:
    """The validator of a schema: `record`, `kernel`, `manifest`, `suite`, ..."""
    schema = dict(_file(f"{name}-{VERSION}.json"))
    definitions = schema.pop("$defs", {})
    made: Draft202012Validator = _Validator(_without_references(schema, definitions), format_checker=_FORMATS)
    return made


def faults(name: str, data: Any) -> list[str]:
    """All faults of the data against the schema, as `place: what`, sorted; empty when it is valid."""
    errors = validator(name).iter_errors(data)
    found = sorted(errors, key=lambda error: [str(part) for part in error.absolute_path])
    return [f"{_place(error.absolute_path)}: {error.message[:300]}" for error in found]


def faults_of_file(name: str, data: Any) -> list[str]:
    """The same of data from elsewhere, which names its schema: of another one nothing else is reported."""
    named = data.get("schema") if isinstance(data, Mapping) else None
    wanted = f"pagewise.{name}/{VERSION}"
    if re.fullmatch(rf"pagewise\.{name}/[1-9][0-9]{{0,3}}", str(named)) is None:
        why = "'schema' is a required property" if named is None else f"its schema is {str(named)[:80]}"
        return [f"(top): this is no pagewise.{name}: {why}"]
    if named != wanted:
        return [f"schema: {named} is from another version of pagewise; this one reads {wanted}"]
    return faults(name, data)


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
