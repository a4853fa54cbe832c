"""Tables of the installed configurations and kernels."""

from __future__ import annotations

from collections.abc import Sequence

from pagewise.core.dimensions import DIMENSIONS
from pagewise.core.kernel import Kernel
from pagewise.report.model import Column, Table
from pagewise.stack.catalog import Catalog, Entry


def configuration_table(catalog: Catalog, entries: Sequence[Entry]) -> Table:
    """A row per configuration; the module's name contains the compiler."""
    configurations = [entry.configuration for entry in entries]
    shown = [each for each in DIMENSIONS if each.always or len({*map(each.of, configurations)}) > 1]
    columns = (Column("module"), *(Column(each.name, get=each.cell) for each in shown), Column("builder"))
    return Table.of(f"Configurations in {catalog.tree}", columns, configurations)


def kernel_table(kernels: Sequence[Kernel]) -> Table:
    """A row per kernel, by group; the first column has the glob that selects the group."""
    columns = (
        Column("group", get=lambda kernel: f"{kernel.group}/*", merged=True),
        Column("name"),
        Column("description", get="title", wrap=True),
        Column("sensitive_to", get=lambda kernel: ", ".join(kernel.sensitive_to), wrap=True),
        Column("options", get=_options, wrap=True),
        Column("compared by default", get=lambda kernel: "yes" if kernel.compare.default else ""),
    )
    return Table.of("Kernels", columns, sorted(kernels, key=lambda kernel: kernel.group))


def _options(kernel: Kernel) -> str:
    """The options that a comparison can vary: `layout=studies,soa`."""
    return " ".join(f"{name}={','.join(values)}" for name, values in (kernel.options or {}).items())
