"""report.html of a result of counting: one file that needs nothing else."""

from __future__ import annotations

from pathlib import Path

from pagewise.report.counters import COUNTS, LATEX, RATIOS, VALUES, Counted, heads
from pagewise.report.facts import glance, machine_facts, provenance_facts
from pagewise.report.html import templates


def write_html(file: Path, found: Counted) -> None:
    """Writes the report. Raises OSError."""
    manifest = found.result.manifest
    text = (
        templates()
        .get_template("counters.html.jinja")
        .render(
            title=f"pagewise counters: {manifest['name']} on {manifest['host']['hostname']}",
            headline=f"{found.file.title}: what huge pages and compilers change in the counters",
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
    file.write_text(text, encoding="utf-8")
