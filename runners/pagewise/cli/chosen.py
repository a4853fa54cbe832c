"""From the parameters of a command to its typed options, and to a catalog."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, get_type_hints

if TYPE_CHECKING:
    from pagewise.stack.catalog import Catalog

#: The parameters of a command by name, as click parsed them.
Parameters = Mapping[str, object]
_Options = TypeVar("_Options")


def options_of(kind: type[_Options], parameters: Parameters) -> _Options:
    """The options of a command: each field is the parameter of its name; options in it, alike."""
    values: dict[str, object] = {}
    hints = get_type_hints(kind)
    for item in fields(kind):  # type: ignore[arg-type]
        inner = hints[item.name]
        if isinstance(inner, type) and is_dataclass(inner):
            values[item.name] = options_of(inner, parameters)
        elif item.name in parameters:
            values[item.name] = parameters[item.name]
    make: Callable[..., _Options] = kind
    return make(**values)


def find_catalog(environment: str, modules: Path | None) -> Catalog:
    """The catalog of an environment, or of another module tree."""
    from pagewise.stack import lmod
    from pagewise.stack.catalog import read_catalog
    from pagewise.stack.paths import module_tree
    from pagewise.stack.setup import setup_facts

    return read_catalog(module_tree(environment, modules), lmod.find_init(setup_facts()))
