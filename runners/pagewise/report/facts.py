"""Facts about a result as lists of names and values: at a glance, the machine, where it comes from."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from pagewise.analysis.analysis import KernelResult
from pagewise.core.units import bytes_text, count_text, percent_text
from pagewise.report import words

_TO_UNRANKED = Markup('<a href="#unranked">{}, and why</a>')


def glance(
    manifest: Mapping[str, Any], kernels: Sequence[KernelResult], *, linked: bool = True
) -> list[tuple[str, str]]:
    """What stands below the verdict: node, when, how much was measured, how steady, on what pages.

    `linked`: for a page, with a link to what is not ranked.
    """
    host = manifest["host"]
    told = [
        ("Node", host["hostname"]),
        ("CPU", host["cpu"] or host["architecture"]),
        ("Threads", ", ".join(map(str, _threads(manifest)))),
        ("Measured", f"{words.moment_text(manifest['created'])}, {words.rounds_text(manifest)}"),
    ]
    targets = dict.fromkeys(one["target"] for one in manifest["configurations"] if one["builder"] != "own")
    if targets:
        told.append(("Built for", ", ".join(targets)))
    floors = [group.floor for one in kernels for group in one.groups if group.floor is not None]
    if floors:
        ends = [percent_text(end) for end in (min(floors), max(floors))]
        told.append(("Noise floor", ends[0] if ends[0] == ends[1] else " to ".join(ends)))
    rows = [row for one in kernels for group in one.groups for row in group.ranked]
    out = sum(len(group.unranked) for one in kernels for group in one.groups)
    if rows:
        proved = sum(row.pages is not None for row in rows)
        told.append(("Pages", f"proved for {proved} of {count_text(len(rows), 'configuration')}"))
    if out:
        text = count_text(out, "configuration")
        told.append(("Not ranked", _TO_UNRANKED.format(text) if linked else text))
    return told


def _threads(manifest: Mapping[str, Any]) -> list[int]:
    """The numbers of threads, of each placement."""
    told = [one["threads"] for one in manifest.get("placements", ())]
    return list(dict.fromkeys(told)) or [manifest["threads"]]


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
        *_placements(manifest),
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


def _placements(manifest: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Threads, the CPU of each, and the policy of memory, by placement where there are several."""
    found = manifest.get("placements") or [{**manifest["placement"], "threads": manifest["threads"]}]
    return [
        (
            "Threads" if len(found) == 1 else f"Placement {one['name']}",
            f"{one['threads']}, on CPU {', '.join(map(str, one['cpus']))}"
            + (f"; memory {one['memory']}" if one.get("memory", "default") != "default" else ""),
        )
        for one in found
    ]


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
