"""The manifest of a session before anything is measured."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pagewise.core.manifest import BrokenModule, Manifest, Modules, RecordsDigest, ResultKind
from pagewise.core.plan import Subject
from pagewise.core.record import digest_of
from pagewise.core.result import utc_text
from pagewise.machine.energy import find_meter
from pagewise.machine.host import read_host
from pagewise.machine.placement import Placement
from pagewise.session.options import SessionOptions
from pagewise.session.resume import command_of
from pagewise.stack.catalog import Entry
from pagewise.stack.paths import checkout
from pagewise.stack.provenance import provenance
from pagewise.stack.setup import setup_facts


def new_manifest(
    options: SessionOptions,
    kind: ResultKind,
    *,
    entries: Collection[Entry],
    subjects: Sequence[Subject],
    placements: Sequence[Placement],
    tree: Path,
    software: Mapping[str, str | None],
    environment: str | None = None,
    broken: Iterable[BrokenModule] = (),
    sweep: bool = False,
    **more: Any,
) -> Manifest:
    """The manifest of a session that begins; `more` are further fields."""
    planned = tuple(placement.planned() for placement in placements)
    empty = digest_of(b"")
    return Manifest(
        kind=kind,
        id=secrets.token_hex(8),
        name=options.result.name,
        created=utc_text(),
        finished=None,
        state="running",
        command=command_of(sys.argv[1:]),
        started_in=str(Path.cwd()),
        seed=options.runs.seed,
        rounds=options.runs.rounds,
        rounds_done=0,
        aa=options.runs.aa,
        until=None,
        breaks=(),
        threads=placements[0].threads,
        baseline=options.baseline,
        sweep=sweep,
        limit_seconds=options.runs.limit,
        placement=planned[0],
        placements=planned,
        pool=None,
        prefetchers=None,
        software=dict(software),
        provenance=provenance(checkout(), environment, setup_facts()),
        modules=Modules(environment, str(tree)),
        configurations=tuple(entry.configuration for entry in entries),
        records=RecordsDigest(empty.lines, empty.sha256),
        files={},
        subjects=tuple(subject.planned() for subject in subjects),
        broken_modules=tuple(broken),
        timing=None,
        energy=find_meter().part,
        host=read_host(),
        **more,
    )
