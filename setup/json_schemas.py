"""JSON Schemas of the documents that pagewise reads and writes, from their types.

What functions check (contradictions, moments that exist, distinct values) is not in them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from math import isfinite
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "runners"))

from pagewise.core.events import EventFile
from pagewise.core.kernel import Kernel
from pagewise.core.manifest import Manifest
from pagewise.core.record import Record
from pagewise.core.structure import OPEN, As, Form, Limits, name_of, types_of
from pagewise.report import documents as outputs
from pagewise.report.verdicts import Verdicts
from pagewise.stack.site import SiteFile
from pagewise.workloads.doctor import FindingsDocument
from pagewise.workloads.program.applied import PolicyAnswer
from pagewise.workloads.program.command import SurveyDocument
from pagewise.workloads.program.production import ExecRecord
from pagewise.workloads.program.suite import SuiteFile
from pagewise.workloads.simulation.geometry import Geometry

FILES = (Manifest, Record, Kernel, SuiteFile, SiteFile, EventFile, Geometry)
_NAMES: Mapping[Any, str] = {
    **{str: "string", Path: "string", int: "integer", float: "number", bool: "boolean"},
    NoneType: "null",
}
#: The keywords for the limits of a type: at least, at most.
_LIMITS: Mapping[type, str] = {str: "Length", list: "Items", dict: "Properties"}


def documents() -> dict[str, dict[str, Any]]:
    """The schemas of all documents, by name as `pagewise.record/1`."""
    further = [kind for kind in vars(outputs).values() if "schema" in getattr(kind, "__annotations__", ())]
    kinds = (*FILES, Verdicts, *further, PolicyAnswer, ExecRecord, FindingsDocument, SurveyDocument)
    return {name_of(kind): schema_of(kind) for kind in kinds}


def schema_of(kind: Any) -> dict[str, Any]:
    """The schema of a document."""
    definitions: dict[str, Any] = {}
    schema = _of_dataclass(kind, kind is outputs.Contents, definitions)
    first = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name_of(kind)}
    return first | schema | ({"$defs": definitions} if definitions else {})


def _schema(kind: Any, is_open: bool, definitions: dict[str, Any]) -> dict[str, Any]:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _of_annotated(parts[0], parts[1:], is_open, definitions)
    if origin is Literal:
        return {"const": parts[0]} if len(parts) == 1 else {"enum": list(parts)}
    if origin is not None:
        kinds = [_schema(part, is_open, definitions) for part in parts if part is not ...]
        if origin in (Union, UnionType):
            return {"anyOf": kinds}
        array, names = {"type": "array", "items": kinds[0]}, {"type": "object", "propertyNames": kinds[0]}
        return array if origin is tuple else {**names, "additionalProperties": kinds[1]}
    if kind is Any or kind in _NAMES:
        return {} if kind is Any else {"type": _NAMES[kind]}
    name = f"{'Open' if is_open else ''}{kind.__qualname__}"
    if name not in definitions:
        definitions[name] = _of_dataclass(kind, is_open, definitions)
    return {"$ref": f"#/$defs/{name}"}


def _of_annotated(
    kind: Any, rules: tuple[Any, ...], is_open: bool, definitions: dict[str, Any]
) -> dict[str, Any]:
    is_open = is_open or OPEN in rules
    kinds = [rule.kind for rule in rules if isinstance(rule, As)]
    schema = _schema(kinds[0] if kinds else kind, is_open, definitions)
    for rule in rules:
        if isinstance(rule, str):
            schema["description"] = rule
        elif isinstance(rule, Form):
            values = rule.pattern.split("|")
            plain = all(re.fullmatch(r"[\w -]+", value) for value in values)
            schema |= {"enum": values} if plain else {"pattern": f"^(?:{rule.pattern})$"}
        elif isinstance(rule, Limits):
            schema |= dict(_limits(rule, kind))
    return schema


def _limits(limits: Limits, kind: Any) -> Iterator[tuple[str, float]]:
    unit = next((_LIMITS[one] for one in types_of(kind) if one in _LIMITS), "imum")
    yield from ((f"min{unit}", limits.least),) if isfinite(limits.least) else ()
    yield from ((f"max{unit}", limits.most),) if isfinite(limits.most) else ()
    yield from (("exclusiveMinimum", limits.above),) if isfinite(limits.above) else ()


def _of_dataclass(kind: Any, is_open: bool, definitions: dict[str, Any]) -> dict[str, Any]:
    kinds = get_type_hints(kind, include_extras=True)
    properties: dict[str, Any] = {name: {} for name in getattr(kind, "IGNORED", ())}
    required = []
    for field in fields(kind):
        of_field = kinds[field.name]
        if (field.default is MISSING and field.default_factory is MISSING) or field.name == "schema":
            required.append(field.name)
        elif field.default is None and get_origin(of_field) in (Union, UnionType):
            parts = [part for part in get_args(of_field) if part is not NoneType]
            of_field = parts[0] if len(parts) == 1 else Union[tuple(parts)]  # noqa: UP007
        properties[field.name] = _schema(of_field, False, definitions)
    return {
        "description": " ".join((kind.__doc__ or "").split()),
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": is_open,
    }


def file_name(name: str) -> str:
    """The file of a document's schema: `record-1.json`."""
    return f"{name.removeprefix('pagewise.').replace('/', '-')}.json"


def write(folder: Path) -> None:
    """Writes the schemas as files."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, schema in documents().items():
        (folder / file_name(name)).write_text(json.dumps(schema, indent=1) + "\n", encoding="utf-8")
