"""report.html: one file that needs nothing else, no network and no scripts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from pagewise.analysis.analysis import Curve, KernelResult
from pagewise.analysis.counts import counts_by_cell
from pagewise.analysis.result import trusted_records
from pagewise.core.dimensions import PAGES, feels
from pagewise.core.kernel import Kernel, Sweep
from pagewise.core.plan import key_of
from pagewise.core.result import Result
from pagewise.core.units import bytes_text, number_text, percent_text, seconds_text
from pagewise.report import advice, words
from pagewise.report.facts import glance, machine_facts, provenance_facts
from pagewise.report.figures import COLOUR_ROLES, Drawn, colour
from pagewise.report.forest import Axis
from pagewise.report.matrix import matrix
from pagewise.report.policies import tables
from pagewise.report.program import for_page

_FILES = ("records.jsonl", "manifest.json")
_NUMBER = re.compile(r"-?\d+\.\d{2,}")
# A table with more lines is closed at first, where something else shows the same.
_MANY = 30
# What matplotlib gives every text, path and group: a browser has it anyway, ids would be there twice.
_NEEDLESS = re.compile(
    r' transform="rotate\(-0 [^"]*\)"|; stroke-linejoin: miter|; stroke-linecap: square|(?<=<g) id="[^"]*"'
)


def html(
    result: Result,
    kernels: Sequence[KernelResult],
    pictures: Mapping[str, Sequence[Drawn]],
    files: Sequence[str],
) -> str:
    """The report. `pictures` by kernel, those of all under an empty name; `files` lie beside it."""
    bests = advice.bests(kernels)
    several = len(bests) > 1
    return (
        templates()
        .get_template("report.html.jinja")
        .render(
            title=f"pagewise: {result.manifest['name']} on {result.manifest['host']['hostname']}",
            headline=advice.headline(kernels),
            largest=advice.largest(kernels) if several else "",
            answers=advice.answers(kernels)[1:],
            facts=glance(result.manifest, kernels),
            notes=words.notes(result.manifest, kernels, result.records),
            manifest=result.manifest,
            kernels=kernels,
            choices=_choices(kernels) if several else [],
            bests=bests if several else [],
            best_axis=Axis.over(best.row.time_ratio for best in bests if best.row is not None),
            label_of=advice.label_of,
            matrix=matrix(kernels) if several else None,
            matrix_pictures=[picture.stem for picture in pictures.get("", ())],
            pages=[
                _kernel_page(one, bests, pictures.get(one.kernel.name, ()), len(kernels) == 1)
                for one in kernels
            ],
            unranked=[line for one in kernels for line in _unranked(one)],
            policies=tables(kernels),
            policy_pictures=_of_kind(pictures, "policies"),
            counters=_counters(result, kernels),
            proofs=_proofs(result, kernels),
            proof_sentence=words.proof_text(kernels),
            program=for_page(result),
            machine=machine_facts(result.manifest),
            provenance=provenance_facts(result.manifest),
            files=[*_FILES, *files],
            skipped=result.skipped,
            words=words,
            many=_MANY,
        )
    )


def templates() -> jinja2.Environment:
    """The templates beside this file."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": bytes_text,
        "seconds": seconds_text,
        "percent": percent_text,
        "role": lambda policy: COLOUR_ROLES[colour(policy)],
    }
    return environment


def _choices(kernels: Sequence[KernelResult]) -> list[dict[str, Any]]:
    """Choices as the page shows them: counts, texts, and the shares of a bar as (kind, start, width)."""
    lines = []
    for one in advice.choices(kernels):
        counts = {
            "faster": len(one.told("faster")),
            "unclear": len(one.told("inconclusive")),
            "slower": len(one.told("slower")),
            "missing": one.missing,
        }
        whole, start, shares = sum(counts.values()) or 1, 0.0, []
        for kind, count in counts.items():
            if count:
                shares.append((kind, round(start, 1), round(100 * count / whole, 1)))
            start += 100 * count / whole
        ratios = [effect.ratio.median for effect in one.effects]
        texts = [f"{value:.2f}" for value in (min(ratios), max(ratios))] if ratios else ["", ""]
        middle = "" if one.middle is None else f"{one.middle:.2f}"
        mean = "" if one.mean is None else f"{one.mean.median:.3f}"
        lines.append(
            {
                "name": words.choice_text(one.factor, one.value),
                "shares": shares,
                **counts,
                "middle": middle,
                "mean": mean,
                "interval": words.interval_text(one.mean),
                "smallest": texts[0],
                "largest": texts[1],
            }
        )
    return lines


def _kernel_page(
    one: KernelResult, bests: Sequence[advice.Best], pictures: Sequence[Drawn], alone: bool
) -> dict[str, Any]:
    """What a kernel's part of the page needs. `columns`: the dimensions it feels, none without ranks."""
    ranked = [row for group in one.groups for row in group.ranked]
    felt = [dimension for dimension in words.shown_dimensions(one) if feels(one.kernel, dimension.name)]
    return {
        "result": one,
        "level": "h2" if alone else "h3",
        "answers": [best for best in bests if best.kernel is one],
        "sentences": words.factor_sentences(one),
        "columns": (felt or [PAGES]) if ranked else [],
        "axis": Axis.over(row.time_ratio for row in ranked),
        "missing": words.missing_texts(one) if not ranked else [],
        "ratio_pictures": [picture.stem for picture in pictures if picture.kind == "ratios"],
        "sweeps": [
            (_inline(picture), _sweep_table(one, *swept))
            for picture, swept in zip((p for p in pictures if p.kind == "sweep"), one.by_sweep, strict=True)
        ],
    }


def _of_kind(pictures: Mapping[str, Sequence[Drawn]], kind: str) -> list[dict[str, str]]:
    return [
        {"stem": picture.stem, "name": picture.name}
        for found in pictures.values()
        for picture in found
        if picture.kind == kind
    ]


def _inline(picture: Drawn) -> dict[str, Any]:
    """The picture in the page's colours, with a description for those who cannot see it."""
    svg = _NEEDLESS.sub("", picture.svg)
    # A tenth of a point is finer than any screen.
    svg = _NUMBER.sub(lambda found: f"{float(found[0]):.1f}".removesuffix(".0"), svg)
    for ink, role in COLOUR_ROLES.items():
        svg = svg.replace(ink, f"var(--{role})")
    name = f"{picture.stem}-words"
    opening = f'<svg role="img" aria-labelledby="{name}" '
    svg = svg.replace("<svg ", opening, 1).replace(
        ">", f'><desc id="{name}">{Markup.escape(picture.alternative)}</desc>', 1
    )
    return {"svg": Markup(svg), "caption": picture.caption, "stem": picture.stem, "name": picture.name}


def _sweep_table(one: KernelResult, sweep: Sweep, curves: Sequence[Curve]) -> dict[str, Any]:
    """Curves as a table: a line for each swept value, a column for each configuration."""
    values = list(dict.fromkeys(x for curve in curves for x, _ in curve.points))
    if not any(isinstance(x, str) for x in values):
        values.sort()
    found = [dict(curve.points) for curve in curves]
    return {
        "label": sweep.label,
        "metric": sweep.y.title,
        "columns": [_head(one.kernel, curve) for curve in curves],
        "lines": [
            (words.swept_text(sweep, x), [number_text(at[x]) if x in at else "" for at in found])
            for x in values
        ],
    }


def _head(kernel: Kernel, curve: Curve) -> tuple[str, str]:
    return curve.cell.compiler, words.label(kernel, curve.cell.measured)


def _unranked(one: KernelResult) -> list[dict[str, str]]:
    """What of a kernel is not ranked; what has one reason and remedy in one line."""
    together: dict[tuple[str, str], dict[str, list[str]]] = {}
    for group in one.groups:
        for row in group.unranked:
            compilers = together.setdefault((row.invalid or "", row.remedy or ""), {})
            compilers.setdefault(group.compiler, []).append(words.label(one.kernel, row.cell.measured))
    return [
        {
            "kernel": one.kernel.title,
            "reason": reason,
            "remedy": remedy,
            "configurations": "; ".join(f"{name}: {', '.join(those)}" for name, those in compilers.items()),
        }
        for (reason, remedy), compilers in together.items()
    ]


def _counters(result: Result, kernels: Sequence[KernelResult]) -> dict[str, Any]:
    """Counts of a pass by cell, and why there are no hardware counters where there are none."""
    found = counts_by_cell(trusted_records(result))
    names = list(dict.fromkeys(name for counts in found.values() for name in counts))
    lines = []
    for one in kernels:
        for row in (row for group in one.groups for row in group.ranked):
            counts = found.get((one.kernel.name, *row.cell.key))
            if counts:
                texts = [number_text(counts[name]) if name in counts else "" for name in names]
                lines.append(
                    {
                        "kernel": one.kernel.title,
                        "compiler": row.cell.compiler,
                        "configuration": words.label(one.kernel, row.cell.measured),
                        "figures": texts,
                    }
                )
    reasons = dict.fromkeys(
        record["counters"]["unavailable"]
        for record in trusted_records(result)
        if "unavailable" in record.get("counters", {})
    )
    return {"names": names, "lines": lines, "reasons": list(reasons)}


def _proofs(result: Result, kernels: Sequence[KernelResult]) -> list[dict[str, str]]:
    """A line for each cell that told its pages: asked, seen, lowest coverage, how it was read."""
    methods = {
        (run.get("kernel", record["kernel"]), *key_of(run)): record["pages"].get("method", "")
        for record in trusted_records(result)
        if "pages" in record and (run := record.get("run")) is not None
    }
    return [
        {
            "kernel": one.kernel.title,
            "compiler": group.compiler,
            "configuration": words.label(one.kernel, row.cell.measured),
            "requested": bytes_text(row.pages.requested),
            "observed": bytes_text(row.pages.observed),
            "coverage": words.floored_percent(row.pages.coverage),
            "share": f"{100 * row.pages.coverage:.1f}",
            "role": COLOUR_ROLES[colour(row.cell.measured.hugepages)],
            "method": methods.get((one.kernel.name, *row.cell.key), ""),
            "runs": str(row.runs),
        }
        for one in kernels
        for group in one.groups
        for row in (*group.ranked, *group.unranked)
        if row.pages is not None
    ]
