"""report.html of a result of counting: one file that needs nothing else."""

from __future__ import annotations

from pagewise.analysis.counted import TIME
from pagewise.report.counters import COUNTS, LATEX, RATIOS, VALUES, Counted, heads, ratio_text
from pagewise.report.facts import glance, machine_facts, provenance_facts
from pagewise.report.html import templates


def html(found: Counted) -> str:
    """The report."""
    manifest = found.result.manifest
    return (
        templates()
        .get_template("counters.html.jinja")
        .render(
            title=f"pagewise counters: {manifest['name']} on {manifest['host']['hostname']}",
            headline=headline(found),
            facts=glance(manifest, []),
            files=("records.jsonl", "manifest.json", COUNTS, VALUES, RATIOS, LATEX),
            manifest=manifest,
            file=found.file,
            groups=[
                group
                for group in found.file.groups
                if manifest["counters"]["multiplexed"] or group.name in manifest["counters"]["groups"]
            ],
            notes=found.notes,
            kernels=[one.kernel for one in found.kernels],
            tables=found.tables,
            heads=heads,
            machine=machine_facts(manifest),
            provenance=provenance_facts(manifest),
            skipped=found.result.skipped,
        )
    )


def headline(found: Counted) -> str:
    """The count that huge pages lower most, of those with a verdict, and what the time does."""
    least: tuple[float, str] | None = None
    for one in found.kernels:
        counts = {quantity.name: quantity.title for quantity in one.quantities if quantity.kind == "count"}
        for column in one.by_pages:
            for name, verdict in column.verdicts.items():
                ratio = verdict.ratio
                if name not in counts or ratio is None or verdict.change != "lower":
                    continue
                share = ratio_text(ratio.median)
                text = f"Huge pages lower {counts[name]} most, to {share} of the count without"
                who = f"{one.kernel.title}, {column.cell.compiler}, {column.cell.measured.hugepages}"
                time = column.ratios.get(TIME)
                ending = "" if time is None else f"; time ratio {ratio_text(time.median)}"
                least = min(filter(None, (least, (ratio.median, f"{text}{ending} ({who})."))))
    if least is None:
        return "Huge pages lower no count of events that can be told."
    return least[1]
