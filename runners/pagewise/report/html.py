"""report.html: one file that needs nothing else, no network and no scripts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from pagewise.compare.analysis import KernelResult
from pagewise.report import words
from pagewise.report.figures import COLOUR_ROLES, Picture, colour
from pagewise.report.policies import tables
from pagewise.report.program import for_page
from pagewise.result import Result
from pagewise.units import bytes_text, number_text, seconds_text


def write_html(
    file: Path, result: Result, kernels: Sequence[KernelResult], pictures: Mapping[str, Sequence[Picture]]
) -> None:
    """Writes the report. Raises OSError."""
    text = templates().get_template("report.html.jinja").render(
        title=f"pagewise: {result.manifest['name']} on {result.manifest['host']['hostname']}",
        headline=words.headline(kernels),
        notes=words.notes(result.manifest, kernels),
        manifest=result.manifest,
        kernels=kernels,
        pictures={name: [_inline(picture) for picture in found] for name, found in pictures.items()},
        sweeps=_sweeps(kernels),
        policies=tables(kernels),
        proofs=_proofs(result, kernels),
        program=for_page(result),
        machine=machine_facts(result.manifest),
        provenance=provenance_facts(result.manifest),
        skipped=result.skipped,
        words=words,
    )
    file.write_text(text, encoding="utf-8")


def templates() -> jinja2.Environment:
    """The templates beside this file."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": bytes_text,
        "seconds": seconds_text,
        "role": lambda policy: COLOUR_ROLES[colour(policy)],
    }
    return environment


def _inline(picture: Picture) -> dict[str, Any]:
    """The picture in the page's colours, with a description for those who cannot see it."""
    svg = picture.svg
    for ink, role in COLOUR_ROLES.items():
        svg = svg.replace(ink, f"var(--{role})")
    name = f"{picture.stem}-words"
    opening = f'<svg role="img" aria-labelledby="{name}" '
    svg = svg.replace("<svg ", opening, 1).replace(
        ">", f'><desc id="{name}">{_escaped(picture.alternative)}</desc>', 1
    )
    return {"svg": Markup(svg), "caption": picture.caption, "stem": picture.stem}


def _sweeps(kernels: Sequence[KernelResult]) -> dict[str, dict[str, Any]]:
    """The curves as tables, by kernel: a line for each swept value, a column for each configuration."""
    tables = {}
    for one in kernels:
        sweep, curves = one.kernel.sweep, [curve for curve in one.curves if curve.points]
        if sweep is None or one.kernel.sweep_metric is None or not curves:
            continue
        values = list(dict.fromkeys(x for curve in curves for x, _ in curve.points))
        if not any(isinstance(x, str) for x in values):
            values.sort()
        found = [dict(curve.points) for curve in curves]
        tables[one.kernel.name] = {
            "label": sweep.label,
            "metric": one.kernel.sweep_metric.title,
            "columns": [
                (curve.cell.compiler, words.label(one.kernel, curve.cell.measured)) for curve in curves
            ],
            "lines": [
                (words.swept_text(sweep, x), [number_text(at[x]) if x in at else "" for at in found])
                for x in values
            ],
        }
    return tables


def _escaped(text: str) -> str:
    return str(Markup.escape(text))


def _proofs(result: Result, kernels: Sequence[KernelResult]) -> list[dict[str, str]]:
    """A line for each cell that told its pages: asked, seen, lowest coverage, how it was read."""
    methods = {
        (run.get("kernel", record["kernel"]), run["module"], run.get("pages")): record["pages"].get(
            "method", ""
        )
        for record in result.records
        if "pages" in record and (run := record.get("run")) is not None
    }
    return [
        {
            "kernel": one.kernel.name,
            "compiler": group.compiler,
            "configuration": words.label(one.kernel, row.cell.measured),
            "requested": bytes_text(row.pages.requested),
            "observed": bytes_text(row.pages.observed),
            "coverage": f"{row.pages.coverage:.2%}".replace("%", " %"),
            "method": methods.get((one.kernel.name, *row.cell.key), ""),
            "runs": str(row.runs),
        }
        for one in kernels
        for group in one.groups
        for row in (*group.ranked, *group.unranked)
        if row.pages is not None
    ]


def machine_facts(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The machine, as a list of names and values."""
    host = manifest["host"]
    thp = host["thp"]
    pools = [f"{bytes_text(pool['page_bytes'])}: {pool['total']} pages" for pool in host["pools"]]
    caches = [f"L{cache['level']} {bytes_text(cache['bytes'])}" for cache in host["caches"]]
    nodes = [f"node {node['node']}: {len(node['cpus'])} CPUs" for node in host["numa_nodes"]]
    told = [
        ("Host", host["hostname"]),
        ("CPU", f"{host['cpu'] or 'unnamed'} ({host['architecture']}), {host['cpus']} CPUs"),
        ("Caches", ", ".join(caches) or "not told"),
        ("Memory", "not told" if host["memory_bytes"] is None else bytes_text(host["memory_bytes"])),
        ("NUMA", ", ".join(nodes) or "none told"),
        ("SMT", {True: "on", False: "off", None: "not told"}[host["smt"]]),
        ("Kernel", host["kernel"]),
        ("Virtual machine", host["virtual_machine"] or "no"),
        (
            "Transparent huge pages",
            "not in this kernel" if thp is None else f"{thp['enabled']}, defrag {thp['defrag']}",
        ),
        ("Reserved pools", "; ".join(pools) or "none"),
        ("Governor", ", ".join(host["governors"] or []) or "not told"),
        ("Hardware counters", "yes" if host["pmu"] else "no"),
        ("Threads", f"{manifest['threads']}, on CPU {', '.join(map(str, manifest['placement']['cpus']))}"),
    ]
    if manifest.get("prefetchers"):
        told.append(("Hardware prefetchers off", words.prefetchers_text(manifest)))
    if manifest["pool"]:
        pages = [f"{pool['needed']} pages of {bytes_text(pool['page_bytes'])}" for pool in manifest["pool"]]
        told.append(("Reserved for this", f"{', '.join(pages)}, then put back"))
    if manifest.get("switches"):
        changes = [f"{one['file']} from {one['before']} to {one['now']}" for one in manifest["switches"]]
        told.append(("Switched for this", f"{', '.join(changes)}, then put back"))
    return told


def provenance_facts(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """When, how and from what sources it was measured, as a list of names and values."""
    sources, software, timing = manifest["provenance"], manifest["software"], manifest["timing"]
    dirty = " with uncommitted changes" if sources["project_dirty"] else ""
    told = [
        (
            "Measured",
            f"{manifest['created']} to {manifest['finished'] or 'not finished'}, {manifest['state']}",
        ),
        ("Command", shlex.join(manifest["command"])),
        (
            "Rounds",
            f"{words.rounds_text(manifest)}, seed {manifest['seed']}. {words.until_text(manifest)}".rstrip(),
        ),
        ("Project commit", (sources["project_commit"] or "not known") + dirty),
        ("Spack", f"{sources['spack_version'] or 'not known'}, tree {sources['spack_tree'] or 'not known'}"),
        ("Spack packages", sources["packages_commit"] or "not known"),
        ("Lockfile", f"{sources['lockfile'] or 'none found'} {sources['lockfile_sha256'] or ''}"),
        ("Software", ", ".join(f"{name} {value or 'not known'}" for name, value in software.items())),
    ]
    if timing:
        told.append(("Runs", str(timing["runs"])))
    return told
