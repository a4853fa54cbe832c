"""Further tables of a comparison: each module in this folder is one, with a function `sections`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pkgutil import iter_modules

from pagewise.analysis.rows import KernelResult
from pagewise.core.result import Result
from pagewise.report.model import Section


def sections(result: Result, kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """The sections of all modules, by their names."""
    for name in sorted(module.name for module in iter_modules(__path__)):
        of_module: Callable[[Result, Sequence[KernelResult]], Sequence[Section]]
        of_module = import_module(f"{__name__}.{name}").sections
        yield from of_module(result, kernels)
