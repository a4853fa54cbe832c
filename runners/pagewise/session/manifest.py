"""What a manifest says before anything is measured: what is asked, of which programs, on what machine."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pagewise.core.host import Host
from pagewise.core.plan import Subject
from pagewise.core.result import SCHEMA, Kind, utc_text
from pagewise.core.structure import unstructured
from pagewise.machine.placement import Placement
from pagewise.stack.catalog import Broken, Entry
from pagewise.stack.paths import project_root
from pagewise.stack.provenance import programs, provenance
from pagewise.stack.setup import SetupFacts

if TYPE_CHECKING:
    from pagewise.session.options import SessionOptions


def new_manifest(
    options: SessionOptions,
    kind: Kind,
    *,
    entries: Collection[Entry],
    subjects: Sequence[Subject],
    placements: Sequence[Placement],
    tree: Path,
    environment: str | None,
    host: Host,
    facts: SetupFacts | None,
    software: Mapping[str, str | None],
    broken: Iterable[Broken] = (),
    **more: Any,
) -> dict[str, Any]:
    """The manifest of a session that begins; `more` adds entries or replaces them."""
    return {
        "schema": SCHEMA,
        "kind": kind,
        "id": secrets.token_hex(8),
        "name": options.name,
        "created": utc_text(),
        "finished": None,
        "state": "running",
        "command": ["pagewise", *sys.argv[1:]],
        "started_in": str(Path.cwd()),
        "rerun_of": None,
        "seed": options.seed,
        "rounds": options.rounds,
        "rounds_done": 0,
        "aa": options.aa,
        "until": None,
        "breaks": [],
        "threads": placements[0].threads,
        "baseline": options.baseline,
        "sweep": False,
        "limit_seconds": options.limit,
        "placement": placements[0].to_dict(),
        "placements": [one.to_dict() for one in placements],
        "pool": None,
        "prefetchers": None,
        "software": dict(software),
        "provenance": unstructured(provenance(project_root(), environment, facts)),
        "modules": {"environment": environment, "tree": str(tree)},
        "configurations": [entry.configuration.to_dict() for entry in entries],
        "programs": unstructured(programs(entries, subjects)),
        "subjects": [one.to_dict() for one in subjects],
        "broken_modules": [asdict(one) for one in broken],
        "timing": None,
        "host": unstructured(host),
        **more,
    }
