"""A comparison of configurations: kernels, or the user's program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pagewise.analysis.analysis import KernelResult, analyse_result
from pagewise.analysis.choices import Best, bests, choices
from pagewise.analysis.judgement import judgement
from pagewise.core.result import Result
from pagewise.core.units import count_text, percent_text
from pagewise.report.model import (
    Cell,
    Column,
    Getter,
    Report,
    Section,
    Table,
    Text,
    value_of,
)
from pagewise.report.views import (
    advice,
    applying,
    brief,
    data,
    energy,
    evidence,
    kernel,
    node_state,
    program,
    ratios,
    session,
    structures,
)
from pagewise.report.views.wording import (
    change_text,
    choice_text,
    equally_good,
    label_of,
    method_text,
    speed_up,
)

# A noise floor above this hides most of what page sizes do.
_UNSTEADY = 0.1
_VERSUS: dict[str, Getter] = {
    "compiler": "compiler",
    "reference": "reference",
    "loop": "loop",
    **data.ratio_fields("time_ratio"),
    "noise_floor": "floor",
    "verdict": "verdict",
    "reason": "reason",
}
_POLICIES: dict[str, Getter] = {
    "quantity": "quantity",
    "compiler": "compiler",
    "hugepages": "policy",
    "reference": "reference",
    **data.ratio_fields(),
}
_CHOICES = (
    Column("choice", get=choice_text),
    Column("faster", kind="integer", get=lambda choice: len(choice.having("faster"))),
    Column("inconclusive", kind="integer", get=lambda choice: len(choice.having("inconclusive"))),
    Column("slower", kind="integer", get=lambda choice: len(choice.having("slower"))),
    Column("excluded", kind="integer", get="missing"),
    Column("time ratio", unit="median of all", kind="factor", get="middle"),
    Column("geometric mean", unit="95 % interval", kind="ratio", get="mean"),
    Column("smallest", kind="factor", get=lambda choice: choice.ends and choice.ends[0]),
    Column("largest", kind="factor", get=lambda choice: choice.ends and choice.ends[1]),
)
_EXCLUDED = (
    Column("kernel", merged=True),
    Column("configurations", wrap=True),
    Column("rounds"),
    *(Column(name, wrap=True) for name in ("reason", "remedy")),
)


def _best_change(best: Best) -> Cell:
    if best.row is None:
        return Cell("nothing is faster", "inconclusive")
    return Cell(change_text(best.row.time_ratio), "faster")


def _best_ratio(best: Best) -> Cell | None:
    return Cell(best.row.time_ratio, "faster", floor=best.group.floor) if best.row else None


# During a comparison: what fits into a window.
_SO_FAR = (
    Column("kernel", merged=True, get="kernel.kernel.name"),
    Column("compiler", get="group.compiler"),
    Column("best so far", get=lambda best: Cell(label_of(best), "strong" if best.row else "")),
    Column("time ratio", unit="95 % interval", kind="ratio", get=_best_ratio),
)
_BESTS = (
    Column("kernel", merged=True, get="kernel.kernel.title"),
    Column("compiler", get="group.compiler"),
    Column("best", get=lambda best: Cell(label_of(best), "strong" if best.row else "")),
    Column("against the baseline", get=_best_change),
    Column("speed-up", kind="quotient", get=lambda best: speed_up(best.row.time_ratio) if best.row else None),
    Column("time ratio", unit="95 % interval", kind="ratio", get=_best_ratio),
    Column("time", kind="seconds", get=lambda best: value_of(best.row or best.group.baseline, "seconds")),
    Column("equally good", wrap=True, get=equally_good),
)


def view(result: Result) -> Report:
    """The report of a comparison."""
    kernels = analyse_result(result)
    programs = program.Programs.of(result, kernels)
    of_program = program.tables(programs)
    several = sum(len(of_kernel.groups) for of_kernel in kernels) > 1
    whole = [*_choices(kernels), *_bests(kernels), *_matrix(kernels)] if several else []
    pages = [kernel.section(of_kernel, result.manifest) for of_kernel in kernels]
    notes = [*notes_of(kernels), *node_state.notes(result, kernels), *session.notes(result)]
    return Report(
        session.title(result.manifest),
        advice.headline(kernels),
        (
            *whole,
            *(pages if len(kernels) == 1 else [Section("Kernels", tuple(pages))]),
            *structures.sections(kernels),
            *ratios.by_policy(kernels),
            *ratios.loops(kernels),
            *_excluded(kernels),
            *program.sections(programs),
            *evidence.sections(result, kernels),
            *energy.sections(result, kernels),
            *node_state.sections(result, kernels),
            *session.sections(result),
        ),
        tuple(_answers(kernels, several)),
        (*session.facts(result), *_facts(kernels)),
        tuple(notes),
        "kernels",
        {
            "summary.csv": data.summary(kernels),
            "policies.csv": data.policies(kernels),
            "data.csv": data.medians(kernels, result.manifest),
            **of_program,
        },
        _data(programs, notes, of_program),
        bool(data.faults(kernels)) or program.misses_target(programs),
        method_text(kernels),
        session.condition(result.manifest),
        tuple(applying.recommendations(result, kernels)),
        (*brief.blocks(kernels), *program.brief(programs)),
        judgement(result, kernels),
    )


def verdicts(result: Result) -> tuple[str, Table]:
    """Headline and table of the best configurations, during the comparison."""
    kernels = analyse_result(result)
    title = f"After {count_text(result.manifest.rounds_done, 'round')}"
    return advice.headline(kernels), Table.of(title, _SO_FAR, bests(kernels))


def _answers(kernels: Sequence[KernelResult], several: bool) -> Iterator[Text]:
    if several and (text := advice.largest(kernels)):
        yield Text(text)
    yield from structures.answer(kernels)
    yield from node_state.answers(kernels)


def _floors(kernels: Sequence[KernelResult]) -> list[float]:
    return [group.floor for result in kernels for group in result.groups if group.floor is not None]


def _facts(kernels: Sequence[KernelResult]) -> Iterator[tuple[str, str]]:
    if floors := _floors(kernels):
        ends = [percent_text(end) for end in (min(floors), max(floors))]
        yield "Noise floor", " to ".join(dict.fromkeys(ends))
    if ranked := data.ranked(kernels):
        observed = sum(entry.row.pages is not None for entry in ranked)
        yield "Pages", f"verified for {observed} of {count_text(len(ranked), 'configuration')}"
    if excluded := data.excluded(kernels):
        yield "Excluded", count_text(len(excluded), "configuration")


def notes_of(kernels: Sequence[KernelResult]) -> Iterator[str]:
    """What a reader must know about noise and faults."""
    highest = max(_floors(kernels), default=0.0)
    if highest > _UNSTEADY:
        yield (
            f"The machine was unsteady: noise floors up to {percent_text(highest)}. Compare again with "
            "nothing else running, or with more --rounds."
        )
    migrated = [entry for entry in data.ranked(kernels) if entry.row.migration is not None]
    if migrated:
        runs = sum(entry.row.migration.runs for entry in migrated if entry.row.migration)
        yield (
            f"Threads migrated to another CPU in {count_text(runs, 'run')} of "
            f"{count_text(len(migrated), 'configuration')}: bind them (--threads, --cpus)."
        )
    for result in kernels:
        if faults := data.faults([result]):
            count = count_text(len(faults), "configuration")
            first = faults[0].row
            yield (
                f"{result.kernel.title}: {count} excluded because of a fault, the first with "
                f"{data.rounds_share(first)}: {first.invalid}."
            )


def _choices(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    table = Table.of("Single choices", _CHOICES, choices(kernels))
    if table.rows:
        text = (
            "Each row changes one thing and leaves all else as in the baseline. Counted are comparisons, one "
            "per kernel and compiler."
        )
        yield Section("Choices", (Text(text, style="dim"), table), only="files")


def _bests(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    table = Table.of("Best configurations by kernel and compiler", _BESTS, bests(kernels), chart=True)
    if len(table.rows) > 1:
        text = (
            "The fastest configuration of each kernel and compiler; those whose intervals overlap its "
            "interval are equally good."
        )
        yield Section("Best configurations", (Text(text), table), only="page")


def _matrix(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    table = ratios.matrix(kernels)
    legend = (
        "▼ faster, ▲ slower, ? inconclusive, × excluded; bold or framed: the best of a kernel and compiler; "
        "–: the kernel is not sensitive to it, or it was not planned."
    )
    yield Section("Matrix", (table, Text(legend, style="dim")), only="files")


def _excluded(kernels: Sequence[KernelResult]) -> Iterator[Section]:
    """Excluded configurations; those of a kernel with one share of rounds, reason and remedy share a row."""
    together: dict[tuple[str, str, str, str], dict[str, list[str]]] = {}
    for entry in data.excluded(kernels):
        key = (
            entry.kernel.title,
            data.rounds_share(entry.row),
            entry.row.invalid or "",
            entry.row.remedy or "",
        )
        together.setdefault(key, {}).setdefault(entry.group.compiler, []).append(entry.label)
    rows = tuple(
        (title, "; ".join(f"{name}: {', '.join(labels)}" for name, labels in compilers.items()), *why)
        for (title, *why), compilers in together.items()
    )
    if rows:
        kinds = "; ".join(f"{count}: {reason}" for count, reason, _ in brief.exclusions(kernels))
        total = count_text(len(data.excluded(kernels)), "configuration")
        table = Table("Excluded configurations, by reason", _EXCLUDED, rows)
        details = Section("Which, why, and what to do", (table,), folded=True)
        yield Section("Excluded", (Text(f"{total}. {kinds}."), details))


def _data(
    programs: program.Programs, notes: Sequence[str], of_program: Mapping[str, Table]
) -> dict[str, object]:
    """Schema pagewise.verdicts/1."""
    result, kernels = programs.result, programs.kernels
    return {
        "schema": "pagewise.verdicts/1",
        **session.data(result),
        "altered": result.altered,
        "headline": advice.headline(kernels),
        "findings": advice.findings(kernels),
        "condition": session.condition(result.manifest),
        "answers": applying.data(result, kernels),
        "notes": notes,
        "kernels": [
            {
                "name": of_kernel.kernel.name,
                "title": of_kernel.kernel.title,
                "metrics": of_kernel.kernel.metrics,
                "best": [_best_data(result, best) for best in bests([of_kernel])],
                "configurations": data.summary([of_kernel]),
                "compilers": Table.of_fields(_VERSUS, of_kernel.versus),
                "policies": Table.of_fields(_POLICIES, of_kernel.by_policy),
                "structures": structures.table_of(of_kernel),
            }
            for of_kernel in kernels
        ],
        "energy": energy.table_of(result, kernels),
        "node_state": node_state.table_of(result, kernels),
        "node_states": node_state.verdicts_of(kernels),
        **program.data(programs, of_program),
    }


def _best_data(result: Result, best: Best) -> dict[str, object]:
    """The best configuration of a compiler, and how kernels get it."""
    row = best.row or best.group.baseline
    return {
        "compiler": best.group.compiler,
        "hugepages": None if row is None else row.cell.measured.hugepages,
        "is_baseline": best.row is None,
        "equally_good": [other.cell.measured.module for other in best.as_good],
        "apply": applying.best_build(result, best),
    }
