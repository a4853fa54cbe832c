"""Typed data as a JSON object."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import TypeAlias

from pagewise.report.model import Table

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def render(value: object) -> Json:
    """Data of dataclasses, tables, paths and times; a number that is not finite becomes null."""
    if isinstance(value, Table):
        return [render(row) for row in value.records()]
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return {str(name): render(part) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [render(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, str | int | float):
        return value
    return value.isoformat() if isinstance(value, datetime | date) else str(value)
