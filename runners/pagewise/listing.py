"""Prints what there is to measure."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pagewise.catalog import Catalog

# The compiler stands in the module's name, which must not be broken: it is what people copy.
_COLUMNS = ("hugepages", "prefetch", "stores", "builder")


def print_catalog(console: Console, catalog: Catalog) -> None:
    """Tables of the configurations and kernels of a module tree, and the modules that are broken."""
    table = _table(f"Configurations in {catalog.tree}")
    table.add_column("module", overflow="fold")
    for name in _COLUMNS:
        table.add_column(name, no_wrap=True, min_width=len(name))
    for entry in catalog.entries:
        one = entry.configuration
        table.add_row(one.module, *(Text(getattr(one, name)) for name in _COLUMNS))
    console.print(table)
    kernels = _table("Kernels")
    for name in ("name", "group", "summary", "feels"):
        kernels.add_column(name, no_wrap=name in ("name", "group"))
    for kernel in catalog.kernels.values():
        kernels.add_row(kernel.name, kernel.group, kernel.summary, ", ".join(kernel.feels))
    console.print(kernels)
    for broken in catalog.broken:
        console.print(
            Text.assemble(("broken: ", "bold yellow"), f"{broken.module}: {broken.reason}"), soft_wrap=True
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
