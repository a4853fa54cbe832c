"""What a result says, in plain sentences; shared by all reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pagewise.analysis.analysis import Group, KernelResult, Row, Versus, X, words_of
from pagewise.analysis.statistics import Ratio
from pagewise.analysis.verdict import Outcome, Reason
from pagewise.core.configuration import Configuration
from pagewise.core.dimensions import BY_NAME, DIMENSIONS, PAGES, Dimension, feels, felt
from pagewise.core.kernel import Kernel, Sweep
from pagewise.core.page_policy import PagePolicy
from pagewise.core.plan import Cell
from pagewise.core.record import Record
from pagewise.core.units import bytes_text, clock_text, count_text, number_text, percent_text
from pagewise.machine.memory import scaled_text
from pagewise.session.processes import left_by, left_text

# A noise floor above this hides most of what page sizes do.
_UNSTEADY = 0.1
_REASONS: dict[Reason, str] = {
    "too few rounds": "too few rounds",
    "interval": "the interval holds 1",
    "floor": "within the noise floor",
    "correction": "not sure enough among so many comparisons",
    "bimodal": "runs have two speeds",
    "drift": "the ratio changed over the rounds",
}


def shown(kernel: Kernel, cell: Cell, dimension: Dimension) -> str:
    """A dimension's value in a cell, or `any` where the kernel does not feel it."""
    return dimension.cell(cell.measured) if feels(kernel, dimension.name) else "any"


def shown_dimensions(result: KernelResult) -> tuple[Dimension, ...]:
    """The dimensions that have a column: those that always have, and those in which something differs.

    Of a program pages alone have one always.
    """
    kernel = result.kernel
    cells = [row.cell for group in result.groups for row in (*group.ranked, *group.unranked)]
    varied = {one.name for one in felt(kernel) if len({one.of(cell.measured) for cell in cells}) > 1}
    return tuple(
        one
        for one in DIMENSIONS
        if one.name in varied or one is PAGES or (one.always and not kernel.is_program)
    )


def label(kernel: Kernel, configuration: Configuration) -> str:
    """A configuration in as few words as it needs: `none`, `thp software`, `thp nontemporal x86_64_v3`.

    What is the rule is not named, as prefetch by the hardware and regular stores.
    """
    return named(configuration, felt(kernel)) or "as built"


def named(configuration: Configuration, dimensions: Iterable[Dimension]) -> str:
    """A configuration's values in these dimensions, without those that are the rule: `thp software`."""
    return " ".join(filter(None, (one.brief(configuration) for one in dimensions)))


def choice_text(factor: str, value: str) -> str:
    """A choice by itself: `Pages: thp`."""
    return f"{BY_NAME[factor].title}: {value or BY_NAME[factor].empty}"


def ratio_text(measured: Ratio | None) -> str:
    """A ratio with three decimals."""
    return "" if measured is None else f"{measured.median:.3f}"


def interval_text(measured: Ratio | None) -> str:
    """The interval of a ratio: `0.905–0.921`."""
    if measured is None or measured.low is None or measured.high is None:
        return ""
    return f"{measured.low:.3f}–{measured.high:.3f}"


def rounds_of(row: Row) -> str:
    """In how many rounds a configuration has a valid run: `58/60`."""
    return f"{row.rounds}/{row.rounds_made}"


def floored_percent(share: float) -> str:
    """A share that is never rounded up: `99.9 %` of what is not quite all."""
    return f"{int(1000 * share) / 10:g} %"


def pages_text(row: Row) -> str:
    """The pages the run was proved to be on, with the share of bytes on pages of that size: `2 MiB 100 %`."""
    if row.pages is None:
        return ""
    huge = row.pages.coverage > 0.5
    share = row.pages.coverage if huge else 1.0 - row.pages.coverage
    return f"{bytes_text(row.pages.observed)} {floored_percent(share)}"


def swept_text(sweep: Sweep, x: X) -> str:
    """A swept value: `256 KiB`, `16`, `fp32`."""
    return bytes_text(x) if sweep.in_bytes and not isinstance(x, str) else words_of(x)


def metric_text(row: Row, field: str) -> str:
    """A metric's median, empty when the kernel did not tell it."""
    value = row.metrics.get(field)
    return "" if value is None else number_text(value)


def change(measured: Ratio) -> str:
    """A ratio as a change of time: `13 % less time`, `4.1 % more time`."""
    return f"{share_text(abs(1.0 - measured.median))} {'less' if measured.median < 1 else 'more'} time"


def share_text(share: float) -> str:
    """A share with two figures: `13 %`, `4.1 %`."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else percent_text(share)


def floor_text(group: Group) -> str:
    """The noise floor of a group, as a sentence."""
    if group.floor is None:
        return "No noise floor, hence no verdicts: that takes three rounds with the baseline twice in them."
    times = "" if len(group.repeated) == 1 else f" {len(group.repeated)} times a round"
    return (
        f"Noise floor {percent_text(group.floor)}: the baseline against itself (A/A){times} over "
        f"{group.repeated[0].pairs} rounds; a smaller difference means nothing."
    )


def reason_text(reason: Reason | None) -> str:
    """Why it cannot be told, in a few words."""
    return "" if reason is None else _REASONS[reason]


def reasons(kernel: Kernel, group: Group) -> list[str]:
    """Which configurations of a group cannot be told, by reason: `Cannot tell, the interval holds 1: thp.`"""
    by_reason: dict[Reason, list[str]] = {}
    for row in group.ranked:
        if row.reason is not None:
            by_reason.setdefault(row.reason, []).append(label(kernel, row.cell.measured))
    return [f"Cannot tell, {_REASONS[why]}: {', '.join(names)}." for why, names in by_reason.items()]


def findings(kernel: Kernel, group: Group) -> list[str]:
    """What the noise of a group was like: two speeds, drift, outliers; a sentence each."""
    told = []
    two = [(row, row.speeds) for row in group.ranked if row.speeds is not None]
    if two:
        names = ", ".join(
            f"{label(kernel, row.cell.measured)} ({100 * speeds.slow_share:.0f} % of the runs take "
            f"{speeds.apart:.2f} times as long)"
            for row, speeds in two
        )
        told.append(f"Two speeds: {names}.")
    base = group.baseline
    if base is not None and base.drift is not None:
        told.append(
            f"Drift: at the end the baseline took {_more(base.drift.change)} than at the beginning; pairing "
            "by round takes out what all have in common."
        )
    changed = [row for row in group.ranked if row.drift is not None and not row.cell.is_baseline]
    if changed:
        names = ", ".join(
            f"{label(kernel, row.cell.measured)} from {row.drift.first:.3f} to {row.drift.last:.3f}"
            for row in changed
            if row.drift is not None
        )
        told.append(f"Ratios that changed over the rounds: {names}.")
    far = [
        f"{'baseline (A/A)' if row.cell.is_baseline else label(kernel, row.cell.measured)} "
        + ", ".join(f"{ratio:.3f} in round {number}" for number, ratio in row.outliers)
        for row in group.ranked
        if row.outliers
    ]
    if far:
        told.append(f"Outliers, kept in all numbers: {'; '.join(far)}.")
    return told


def method_text(results: Sequence[KernelResult]) -> str:
    """How many verdicts there are, and how that is allowed for; empty without any."""
    count = results[0].comparisons if results else 0
    if count < 2:
        return ""
    return (
        f"Verdicts allow for {count} comparisons (Benjamini and Hochberg): of the differences told, at most "
        "5 % are false on average."
    )


def moment_text(utc: str) -> str:
    """`2026-01-02T03:04:05Z` for people: `2026-01-02 03:04 UTC`."""
    day, _, clock = utc.partition("T")
    return f"{day} {clock[:5]} UTC"


def rounds_text(manifest: Mapping[str, Any]) -> str:
    """How many rounds were made: `7 of 7 rounds`, `18 rounds (at least 7)`."""
    done, asked = manifest["rounds_done"], manifest["rounds"]
    return f"{done} rounds (at least {asked})" if done > asked else f"{done} of {asked} rounds"


def until_text(manifest: Mapping[str, Any]) -> str:
    """How adding rounds ended, empty when it was not asked for."""
    until = manifest.get("until")
    if not until or until["ended"] is None:
        return ""
    goal = f"all intervals were narrower than {percent_text(until['width'])}"
    rounds = ", ".join(f"{name} {number}" for name, number in until["rounds"].items())
    if until["ended"] == "narrow":
        return f"Rounds were added until {goal}: {rounds}."
    wide = ", ".join(
        f"{name} {'has no interval' if width is None else percent_text(width)}"
        for name, width in until["widest"].items()
    )
    return (
        f"The budget of {clock_text(until['budget_seconds'])} ended before {goal} (rounds: {rounds}). "
        f"Widest: {wide}. A larger --budget narrows them."
    )


def _more(change: float) -> str:
    return f"{percent_text(abs(change))} {'more' if change > 0 else 'less'} time"


def factor_sentences(result: KernelResult) -> list[tuple[str, str]]:
    """What each choice does to the kernel by itself, all else as in the baseline: (dimension, sentence)."""
    sentences = []
    for one in felt(result.kernel):
        parts = [text for value in values_of(result, one) if (text := _effect(result, one, value))]
        if parts:
            sentences.append((one.title, "; ".join(parts) + "."))
    if result.versus:
        sentences.append(("Compiler", "; ".join(versus_text(one) for one in result.versus) + "."))
    return sentences


def notes(
    manifest: Mapping[str, Any], results: Sequence[KernelResult], records: Sequence[Record] = ()
) -> list[str]:
    """What of the machine and of the run a reader must know before believing a number."""
    told = []
    host = manifest["host"]
    floors = [group.floor for result in results for group in result.groups if group.floor is not None]
    if floors and max(floors) > _UNSTEADY:
        told.append(
            f"The machine was unsteady: noise floors up to {percent_text(max(floors))}. "
            "Compare again with nothing else running, or with more --rounds."
        )
    told += _faults(results)
    told += filter(None, [left_text(left_by(records))])
    if host["virtual_machine"]:
        told.append(
            f"This is a virtual machine ({host['virtual_machine']}): the host's page size bounds "
            "what huge pages can do for the TLB here; a bare machine may gain more."
        )
    if manifest.get("prefetchers"):
        told.append(f"Hardware prefetchers were switched off: {prefetchers_text(manifest)}.")
    if manifest["state"] == "interrupted":
        told.append(
            f"The comparison was interrupted after {manifest['rounds_done']} of {manifest['rounds']} "
            "whole rounds; this is what was measured until then."
        )
    told += map(scaled_text, manifest.get("scaled", []))
    told += breaks(manifest)
    until = manifest.get("until")
    if until and until["ended"] == "budget":
        told.append(until_text(manifest))
    if manifest["state"] in ("failed", "running"):
        told.append("The comparison did not come to its end; this is what was measured until then.")
    if manifest["provenance"]["project_dirty"]:
        told.append("The checkout had changes that are not committed.")
    return told


def _faults(results: Sequence[KernelResult]) -> list[str]:
    """What is wrong and not only missing: a result, pages, a crash; a sentence a kernel, the first reason."""
    told = []
    for one in results:
        rows = [row for group in one.groups for row in group.unranked if row.is_fault]
        if rows:
            number = count_text(len(rows), "configuration")
            why = f"{number} not ranked: {rows[0].invalid}"
            told.append(f"Something is wrong with {one.kernel.title}, {why}.")
    return told


def breaks(manifest: Mapping[str, Any]) -> list[str]:
    """Where the comparison was broken off and gone on with, a sentence each."""
    told = []
    for one in manifest.get("breaks", []):
        how = {"running": "was killed", "failed": "was ended by an error", "interrupted": "was interrupted"}
        again = (
            f", {count_text(one['aside'], 'run')} of an unfinished round made again" if one["aside"] else ""
        )
        told.append(
            f"The comparison {how[one['state']]} at {one['stopped']} after "
            f"{count_text(one['rounds_done'], 'whole round')} ({count_text(one['runs'], 'run')}) "
            f"and went on at {one['resumed']}{again}. Each ratio pairs runs from one side of the break."
        )
    return told


def proof_text(results: Sequence[KernelResult]) -> str:
    """How many configurations ran on the pages asked for, and the lowest share of those on huge pages."""
    rows = [row for one in results for group in one.groups for row in group.ranked if row.pages is not None]
    if not rows:
        return "No configuration told its pages."
    if results[0].kernel.is_program:
        return f"{count_text(len(rows), 'policy', 'policies')} told the pages of the whole process."
    huge = [
        row.pages.coverage
        for row in rows
        if row.pages and not PagePolicy(row.cell.measured.hugepages).is_base
    ]
    text = f"{count_text(len(rows), 'configuration')} ran on the pages asked for"
    least = f"; with huge pages at least {floored_percent(min(huge))} of the bytes" if huge else ""
    return f"{text}{least}."


def missing_texts(result: KernelResult) -> list[str]:
    """Why nothing of a kernel is ranked: each reason once."""
    rows = [row for group in result.groups for row in group.unranked]
    return list(dict.fromkeys(". ".join(filter(None, (row.invalid, row.remedy))) for row in rows))


def prefetchers_text(manifest: Mapping[str, Any]) -> str:
    """Which hardware prefetchers were off, by what, and whether that was read back."""
    done = manifest.get("prefetchers")
    if not done:
        return "as found"
    proof = "read back" if done["read_back"] else "which tells no values to read back"
    return f"{', '.join(done['off'])} (by {done['method']}, {proof})"


def verdict_class(row_verdict: Outcome) -> str:
    """A verdict as a CSS class and style name: faster, slower, unclear."""
    return "unclear" if row_verdict == "inconclusive" else row_verdict


def values_of(result: KernelResult, dimension: Dimension) -> list[str]:
    """A dimension's values other than the baseline's, in the order of rows."""
    cells = [row.cell for group in result.groups for row in (*group.ranked, *group.unranked)]
    cells.sort(key=lambda cell: cell.measured.order()[2:])
    found = dict.fromkeys(dimension.of(cell.measured) for cell in cells)
    baselines = {dimension.of(cell.measured) for cell in cells if cell.is_baseline}
    return [value for value in found if value not in baselines]


def alone(result: KernelResult, dimension: Dimension, value: str) -> list[Row]:
    """The ranked rows that differ from their baseline in this dimension only."""
    return [
        row
        for group in result.groups
        if (base := group.baseline) is not None
        for row in group.ranked
        if dimension.of(row.cell.measured) == value and differs_alone(result, row.cell, base.cell, dimension)
    ]


def differs_alone(result: KernelResult, cell: Cell, base: Cell, dimension: Dimension) -> bool:
    """Whether a cell is as another one in all dimensions that the kernel feels but this one."""
    others = [one for one in felt(result.kernel) if one.name != dimension.name]
    return all(one.of(cell.measured) == one.of(base.measured) for one in others)


def _effect(result: KernelResult, dimension: Dimension, value: str) -> str:
    rows = [row for row in alone(result, dimension, value) if row.time_ratio is not None]
    value = value or dimension.empty
    if not rows:
        return f"{value} was not measured" if dimension is PAGES else ""
    if all(row.verdict == "inconclusive" for row in rows):
        return f"{value}: inconclusive"
    told = []
    for row in rows:
        assert row.time_ratio is not None
        text = "inconclusive" if row.verdict == "inconclusive" else change(row.time_ratio)
        told.append(f"{text} ({row.cell.compiler})")
    return f"{value}: {', '.join(told)}"


def versus_text(versus: Versus) -> str:
    """A compiler against another at the baseline, in a sentence without its full stop."""
    if versus.verdict == "inconclusive":
        text = f"{versus.compiler} against {versus.reference}: inconclusive"
    else:
        text = f"{versus.compiler} takes {change(versus.time_ratio)} than {versus.reference}"
    interval = interval_text(versus.time_ratio)
    told = f"{ratio_text(versus.time_ratio)} [{interval}]" if interval else ratio_text(versus.time_ratio)
    return f"{text} (at the baseline, {told})"
