"""Names and sentences that the views share."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pagewise.analysis.choices import Best, Choice
from pagewise.analysis.comparison import Reason
from pagewise.analysis.ratio import Ratio
from pagewise.analysis.rows import Group, KernelResult, Row
from pagewise.core.benchmark import Benchmark
from pagewise.core.configuration import Configuration
from pagewise.core.dimensions import PAGES, Dimension, dimension_of, dimensions_of, sensitive_dimensions
from pagewise.core.units import bytes_text, percent_text

# Memory that differs by a smaller share is called the same.
_SAME_MEMORY = 0.01
_REASONS: dict[Reason, str] = {
    "too few rounds": "too few rounds",
    "interval": "the interval contains 1",
    "floor": "within the noise floor",
    "correction": "not significant among so many comparisons",
    "bimodal": "run times are bimodal",
    "drift": "the ratio changed over the rounds",
}


def shown_dimensions(result: KernelResult) -> tuple[Dimension, ...]:
    """The dimensions with a column in tables: those always shown, and those in which rows differ."""
    kernel = result.kernel
    configurations = [row.cell.measured for group in result.groups for row in group.rows]

    def is_shown(dimension: Dimension) -> bool:
        differs = dimension.always or len(set(map(dimension.of, configurations))) > 1
        return dimension is PAGES or (kernel.is_sensitive_to(dimension.name) and differs)

    return tuple(filter(is_shown, dimensions_of([kernel])))


def label(kernel: Benchmark, configuration: Configuration) -> str:
    """A configuration in as few words as it needs: `none`, `thp software`, `thp nontemporal x86_64_v3`.

    Defaults are not named, as hardware prefetch and regular stores.
    """
    return named(configuration, sensitive_dimensions(kernel)) or "as built"


def named(configuration: Configuration, dimensions: Iterable[Dimension]) -> str:
    """A configuration's values in these dimensions, without defaults: `thp software`."""
    return " ".join(filter(None, (dimension.brief(configuration) for dimension in dimensions)))


def choice_text(choice: Choice) -> str:
    """A single choice: `Pages: thp`."""
    dimension = dimension_of(choice.factor)
    loop = f" (loop={choice.loop})" if choice.loop else ""
    return f"{dimension.title}: {choice.value or dimension.empty}{loop}"


def label_of(best: Best) -> str:
    """The best configuration in words; the baseline's where nothing is faster."""
    return "" if best.shown is None else label(best.kernel.kernel, best.shown.cell.measured)


def equally_good(best: Best) -> str:
    """The configurations that are as good as the best one."""
    return ", ".join(label(best.kernel.kernel, row.cell.measured) for row in best.as_good)


def capital(text: str) -> str:
    """The text with its first letter capitalized."""
    return text[:1].upper() + text[1:]


def floored_percent(share: float) -> str:
    """A share that is never rounded up: incomplete coverage shows as `99.9 %` at most."""
    return f"{int(1000 * share) / 10:g} %"


def pages_text(row: Row) -> str:
    """The observed page size, with the share of bytes on pages of that size: `2 MiB 100 %`."""
    if row.pages is None:
        return ""
    huge = row.pages.coverage > 0.5
    share = row.pages.coverage if huge else 1.0 - row.pages.coverage
    return f"{bytes_text(row.pages.observed)} {floored_percent(share)}"


def change_text(measured: Ratio | None) -> str:
    """A ratio as a change of time: `13 % less time`, `4.1 % more time`."""
    if measured is None:
        return ""
    return f"{share_text(abs(1.0 - measured.median))} {'less' if measured.median < 1 else 'more'} time"


def speed_up(measured: Ratio | None) -> float | None:
    """The inverse of a time ratio."""
    return None if measured is None else 1.0 / measured.median


def memory_text(memory: Ratio | None) -> str:
    """A ratio of memory after a change of time: ` for 12 % more memory`; empty for a kernel."""
    if memory is None:
        return ""
    share = abs(1.0 - memory.median)
    if share < _SAME_MEMORY:
        return " with the same memory"
    more = memory.median > 1.0
    return f" for {share_text(share)} more memory" if more else f" with {share_text(share)} less memory"


def cost_text(row: Row) -> str:
    """What a program's policy gains and needs: `7 % less time for 12 % more memory`."""
    time = change_text(row.time_ratio) if row.verdict in ("faster", "slower") else "inconclusive"
    return time + memory_text(row.memory)


def share_text(share: float) -> str:
    """A share with two significant figures: `13 %`, `4.1 %`."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else percent_text(share)


def floors_text(groups: Sequence[Group]) -> str:
    """The noise floors of groups."""
    known = [group for group in groups if group.floor is not None]
    if not known:
        return (
            "No noise floor, therefore no verdicts: three rounds with the baseline twice in each are needed."
        )
    floors = ", ".join(f"{group.compiler} {percent_text(group.floor or 0.0)}" for group in known)
    rounds = max(repeated.pairs for group in known for repeated in group.repeated)
    return (
        f"Noise floor, the baseline against itself (A/A) over {rounds} rounds: {floors}. Smaller differences "
        "are inconclusive."
    )


def reason_text(reason: Reason | None) -> str:
    """Why a verdict is inconclusive, in a few words."""
    return "" if reason is None else _REASONS[reason]


def method_text(results: Sequence[KernelResult]) -> str:
    """The number of verdicts and their correction; empty if there are fewer than two."""
    count = results[0].judged if results else 0
    if count < 2:
        return ""
    return (
        f"Verdicts are corrected for {count} comparisons (Benjamini and Hochberg): of the reported "
        "differences at most 5 % are false on average."
    )
