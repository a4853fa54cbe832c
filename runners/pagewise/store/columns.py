"""Rows of tables from the fields of typed data and of manifests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pagewise.core.structure import unstructured

#: A row of a table, for the store and for JSON.
TableRow = dict[str, Any]
#: The path of a column's field, by column.
Columns = Mapping[str, tuple[str, ...]]


def columns(fields: Mapping[str, str]) -> Columns:
    """The columns of the fields listed by part, as `{"host": "hostname kernel_release=kernel"}`.

    A column has its field's name unless it stands before it.
    """
    paths = {}
    for part, names in fields.items():
        for name in names.split():
            column, _, field = name.rpartition("=")
            paths[column or field] = (*filter(None, part.split(".")), field)
    return paths


def field_at(value: Any, path: tuple[str, ...]) -> Any:
    """The field of an object or mapping at a path, as plain data; None if a part of it is missing."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return unstructured(value)


def row_of(value: Any, table: Columns) -> TableRow:
    """The row of an object or mapping."""
    return {column: field_at(value, path) for column, path in table.items()}
