"""Prints what there is to measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagewise.core.dimensions import DIMENSIONS
from pagewise.core.kernel import Kernel
from pagewise.stack.catalog import Catalog, Entry


def to_dict(catalog: Catalog, entries: Sequence[Entry], kernels: Sequence[Kernel]) -> dict[str, Any]:
    """Schema pagewise.catalog/1."""
    return {
        "schema": "pagewise.catalog/1",
        "tree": str(catalog.tree),
        "configurations": [entry.configuration.to_dict() for entry in entries],
        "kernels": [kernel.data for kernel in kernels],
        "broken": [asdict(one) for one in catalog.broken],
    }


def print_configurations(console: Console, catalog: Catalog, entries: Sequence[Entry]) -> None:
    """Prints a table of configurations, and the modules of the tree that are broken."""
    table = _table(f"Configurations in {catalog.tree}")
    # The compiler stands in the module's name, which must not be broken: it is what people copy.
    table.add_column("module", overflow="fold")
    configurations = [entry.configuration for entry in entries]
    shown = [one for one in DIMENSIONS if one.always or len({*map(one.of, configurations)}) > 1]
    for name in (*(one.name for one in shown), "builder"):
        table.add_column(name, no_wrap=True, min_width=len(name))
    for one in configurations:
        table.add_row(one.module, *(Text(dimension.cell(one)) for dimension in shown), one.builder)
    console.print(table)
    for broken in catalog.broken:
        console.print(
            Text.assemble(("broken: ", "bold yellow"), f"{broken.module}: {broken.reason}"), soft_wrap=True
        )


def print_kernels(console: Console, kernels: Sequence[Kernel]) -> None:
    """Prints a table of kernels by group; a group's heading is the glob that chooses it."""
    table = _table("Kernels")
    table.add_column("name", no_wrap=True)
    table.add_column("what it is")
    table.add_column("feels")
    table.add_column("compared by default", no_wrap=True)
    groups: dict[str, list[Kernel]] = {}
    for kernel in kernels:
        groups.setdefault(kernel.group, []).append(kernel)
    for group in sorted(groups):
        table.add_row(Text(f"{group}/*", style="bold"))
        for kernel in groups[group]:
            felt, default = ", ".join(kernel.data["feels"]), "yes" if kernel.default else ""
            table.add_row(f"  {kernel.name}", kernel.title, felt, default)
    console.print(table)
    console.print(
        Text("Compare others by name or glob: pagewise compare --kernels NAME,'GROUP/*'"), soft_wrap=True
    )


def _table(title: str) -> Table:
    return Table(
        title=Text(title, style="bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        show_edge=False,
        collapse_padding=True,
        padding=(0, 1),
    )
