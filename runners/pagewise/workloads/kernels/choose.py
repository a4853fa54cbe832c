"""Which kernels and configurations are compared: by names, globs and the baseline."""

from __future__ import annotations

from collections.abc import Sequence

from pagewise.core.configuration import Configuration
from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.kernel import Kernel
from pagewise.core.page_policy import policy_kind, policy_size
from pagewise.core.plan import Subject, baselines, fitting, subject
from pagewise.stack.catalog import Catalog, Entry
from pagewise.workloads.kernels.options import KernelOptions


def choose(catalog: Catalog, options: KernelOptions) -> list[Subject]:
    """The kernels and their distinct configurations. A baseline is always among them: ratios need it.

    Raises SelectionError when a name, filter or baseline fits nothing, SetupError when no module brings a
    kernel.
    """
    kernels = catalog.select_kernels(options.kernels)
    if not kernels:
        raise SetupError(
            "no module here brings a kernel", where=catalog.tree, remedy="build the environment again"
        )
    chosen = catalog.select_entries(options.configurations)
    compared = {
        configuration.module
        for kernel in kernels
        for configuration in _baselines(kernel, catalog, options.baseline)
    }
    compilers = {entry.configuration.compiler for entry in chosen}
    needed = [
        entry
        for entry in catalog.entries
        if entry in chosen
        or (entry.configuration.compiler in compilers and entry.configuration.module in compared)
    ]
    _check_policies(options.pages)
    subjects = [_subject(kernel, needed, options.baseline, options.pages) for kernel in kernels]
    subjects = [subject for subject in subjects if subject.cells]
    if not subjects:
        raise SelectionError(
            "the chosen configurations bring none of these kernels",
            where="--kernels, --configurations",
            remedy="`pagewise list` shows both; other kernels may be in another environment: --env",
        )
    used = {cell.pages for subject in subjects for cell in subject.cells}
    for policy in options.pages:
        if policy not in used:
            raise SelectionError(
                f"{policy} needs a configuration built with hugepages={policy_kind(policy)}",
                where="--policies",
                remedy="choose such configurations, and kernels sensitive to hugepages; see `pagewise list`",
            )
    return subjects


def _baselines(kernel: Kernel, catalog: Catalog, pattern: str) -> list[Configuration]:
    """A kernel's baselines, one per compiler: of several libraries, widths or targets the first in order.

    Raises SelectionError.
    """
    built = [e.configuration for e in catalog.entries if kernel.name in e.kernels]
    fits = fitting(built, pattern)
    if len({configuration.plain for configuration in fits}) == 1:
        return list(baselines(built, pattern))
    labels = ", ".join(sorted({configuration.label for configuration in fits})) or "none"
    raise SelectionError(
        f"one configuration of {kernel.name} must match the baseline {pattern!r}; these do: {labels}",
        where="--baseline",
        remedy="name one as in `pagewise list`: none/hardware-regular",
    )


def _check_policies(policies: Sequence[str]) -> None:
    for policy in policies:
        try:
            size = policy_size(policy)
        except ValueError:
            size = None
        if size is None:
            raise SelectionError(
                f"{policy!r} is not a page policy with a size",
                where="--policies",
                remedy="name it like thp:64k or hugetlbfs:1g; built policies are measured anyway",
            )


def _subject(kernel: Kernel, entries: Sequence[Entry], baseline: str, pages: Sequence[str]) -> Subject:
    return subject(kernel, (e.configuration for e in entries if kernel.name in e.kernels), baseline, pages)
