"""Documents against their JSON Schemas by jsonschema, which reads them independently of pagewise."""

from __future__ import annotations

import sys
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from stage import ROOT

sys.path.insert(0, str(ROOT / "setup"))

import json_schemas

SCHEMAS = json_schemas.documents()


@cache
def validator(name: str) -> Draft202012Validator:
    (schema,) = (each for full, each in SCHEMAS.items() if full.partition("/")[0] == f"pagewise.{name}")
    return Draft202012Validator(schema)


def faults(name: str, data: Any) -> list[str]:
    """All faults of the data against the schema, as `place: what`."""
    return [
        f"{'.'.join(map(str, error.absolute_path)) or '(top)'}: {error.message[:300]}"
        for error in validator(name).iter_errors(data)
    ]
