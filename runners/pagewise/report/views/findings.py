"""What went wrong in a comparison: configurations that are excluded because of a fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pagewise.analysis.analysis import KernelResult
from pagewise.analysis.validity import Code
from pagewise.core.dimensions import PAGES
from pagewise.report.views import wording


@dataclass(frozen=True)
class Finding:
    """A configuration excluded because of a fault, with valid runs in `rounds` of `rounds_made`."""

    code: Code
    kernel: str
    title: str
    compiler: str
    module: str
    configuration: str
    hugepages: str
    rounds: int
    rounds_made: int
    reason: str


def findings(kernels: Sequence[KernelResult]) -> list[Finding]:
    """All of them, in the order of the tables."""
    return [
        Finding(
            row.code,
            one.kernel.name,
            one.kernel.title,
            group.compiler,
            row.cell.measured.module,
            wording.label(one.kernel, row.cell.measured),
            row.cell.measured.hugepages,
            row.rounds,
            row.rounds_made,
            row.invalid,
        )
        for one in kernels
        for group in one.groups
        for row in group.unranked
        if row.is_fault and row.code is not None and row.invalid is not None
    ]


def sentences(found: Sequence[Finding]) -> list[str]:
    """What a reader must know before any advice: altered records, page policies that could not be kept."""
    altered = next((one.reason for one in found if one.code == "records_altered"), None)
    if altered is not None:
        return [f"No verdict: {altered}."]
    lost: dict[str, list[Finding]] = {}
    for one in found:
        if one.code == "policy_not_kept":
            lost.setdefault(one.hugepages, []).append(one)
    texts = {wording.capital(PAGES.text(policy)): _rounds(those) for policy, those in lost.items()}
    return [f"{policy} could not be kept: {rounds}." for policy, rounds in texts.items()]


def _rounds(found: Sequence[Finding]) -> str:
    fewest = min(found, key=lambda one: one.rounds / one.rounds_made if one.rounds_made else 0.0)
    more = f", and in {len(found) - 1} more" if len(found) > 1 else ""
    return f"{fewest.rounds} of {fewest.rounds_made} rounds in {fewest.title} ({fewest.configuration}){more}"
