"""Comparisons with peers as a workload of a session: finding programs, and a subject for each match."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pagewise.core.configuration import Configuration
from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.kernel import SCHEMA as KERNEL_SCHEMA
from pagewise.core.kernel import Kernel
from pagewise.core.plan import Cell, Subject
from pagewise.core.structure import unstructured
from pagewise.core.suggestions import choose_of
from pagewise.core.units import count_text
from pagewise.machine.host import read_host
from pagewise.machine.placement import Placement, Where, placements
from pagewise.session.launch import Stopwatch, find_hyperfine
from pagewise.session.manifest import new_manifest
from pagewise.session.options import SessionOptions
from pagewise.session.session import Session, goal_text
from pagewise.session.workload import Trials
from pagewise.stack import lmod
from pagewise.stack.catalog import Catalog, Entry, read_catalog
from pagewise.stack.files import sha256
from pagewise.stack.paths import module_tree
from pagewise.stack.provenance import software
from pagewise.stack.setup import setup_facts
from pagewise.workloads.peers import plan
from pagewise.workloads.peers.bench import OwnRun, PeerLauncher, Run, called_file, candidates, family, watched
from pagewise.workloads.peers.known import PEERS
from pagewise.workloads.peers.peer import Program, find, find_library
from pagewise.workloads.peers.plan import Match, Theirs
from pagewise.workloads.peers.planner import Comparison, PeerPlanner

DOCS = "docs/peers.md"


@dataclass(frozen=True, kw_only=True)
class PeerOptions(SessionOptions):
    """Which peers and matches are compared; see `pagewise peers --help`."""

    environment: str
    peers: tuple[str, ...]
    kernels: tuple[str, ...]
    quick: bool
    peer_path: tuple[Path, ...]


@dataclass(frozen=True)
class Peers:
    """The matches that can be run. `places` are by the number of threads; `tree` has our modules."""

    options: PeerOptions
    console: Console
    comparisons: Sequence[Comparison]
    runs: Mapping[tuple[str, str], tuple[Match, Run]]
    places: Mapping[int, Placement]
    hyperfine: str
    tree: Path

    @property
    def subjects(self) -> list[Subject]:
        """The matches with their candidates."""
        return [comparison.subject for comparison in self.comparisons]

    @property
    def placements(self) -> list[Placement]:
        """The placement of one core and of two."""
        return list(self.places.values())

    @property
    def planner(self) -> PeerPlanner:
        """Plans trial runs and rounds."""
        return PeerPlanner(self.comparisons, self.options.seed)

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """By candidate, its program with libraries, and of ours the module file."""
        files = {}
        for (_, label), (_, run) in self.runs.items():
            module = run.entry.configuration.module if isinstance(run, OwnRun) else None
            files[label] = (*([self.tree / f"{module}.lua"] if module else []), *watched(run))
        return files

    def launcher(self, scratch: Path) -> PeerLauncher:
        """Launches candidates of both sides."""
        stopwatch = Stopwatch(self.hyperfine, self.options.limit, scratch, self.options.end_leftovers)
        return PeerLauncher(self.runs, stopwatch, self.places)

    @contextmanager
    def prepared(self, session: Trials) -> Iterator[None]:
        """Trial runs of all candidates. No setting of the machine is changed."""
        while steps := self.planner.trials(session.recorder.records):
            text = f"{count_text(len(steps), 'trial run')}: the best candidates of each side continue"
            self.console.print(text, highlight=False, soft_wrap=True)
            for step in steps:
                session.run(step)
        yield


def prepare(options: PeerOptions, console: Console, began: float) -> Session:
    """Finds modules, peers and tools, and prints which peers are missing; nothing is run or written yet.

    Raises SetupError, SelectionError or FormatError.
    """
    unknown = [name for name in options.peers if name not in PEERS]
    if unknown:
        raise SelectionError(
            f"no peer is called {', '.join(unknown)}",
            where="--peers",
            remedy=choose_of(unknown[0], PEERS),
        )
    facts = setup_facts()
    hyperfine = find_hyperfine()
    init = lmod.find_init(facts)
    catalog = read_catalog(module_tree(options.environment, options.modules), init)
    compilers = sorted({family(entry) for entry in catalog.entries})
    programs = _programs(options, compilers, console)
    host = read_host()
    size = plan.sizes(host)
    known = plan.matches(size, compilers, _cores(options.where), _providers(catalog))
    chosen = plan.select(known, options.kernels, options.peers or None, options.quick)
    libraries = _libraries(chosen, catalog, options.peer_path)
    runs, missing = _runs(chosen, catalog, programs, libraries)
    places = {n: _placed(n, options.where) for n in sorted({match.threads for match in chosen})}
    entries: dict[str, Entry] = {}
    comparisons = [_comparison(match, runs[match.name], entries) for match in chosen if runs[match.name]]
    count = sum(len(comparison.candidates) for comparison in comparisons)
    text = f"To measure: {count_text(len(comparisons), 'comparison')} of {count_text(count, 'candidate')}"
    text += f" in {count_text(options.rounds, 'round')}.{goal_text(options)}"
    console.print(text, highlight=False, soft_wrap=True)
    manifest = new_manifest(
        options,
        "peers",
        entries=entries.values(),
        subjects=[comparison.subject for comparison in comparisons],
        placements=list(places.values()),
        tree=catalog.tree,
        environment=options.environment if options.modules is None else None,
        host=host,
        facts=facts,
        software=software(hyperfine, init),
        broken=catalog.broken,
        peers={
            "sizes": unstructured(size),
            "programs": {
                name: [{**unstructured(one), "sha256": sha256(Path(one.path))} for one in found]
                for name, found in programs.items()
            },
            "libraries": libraries,
            "matches": [
                {"name": match.name, "missing": missing.get(match.name), **plan.match_data(match)}
                for match in chosen
            ],
        },
    )
    by_step = {
        (comparison.subject.kernel.name, run.candidate.label): (comparison.match, run)
        for comparison in comparisons
        for run in runs[comparison.match.name]
    }
    workload = Peers(options, console, comparisons, by_step, places, hyperfine, catalog.tree)
    return Session.of(options, workload, manifest, console, began)


def _comparison(match: Match, runs: Sequence[Run], entries: dict[str, Entry]) -> Comparison:
    """A match as a subject whose configurations are the candidates; their entries are added."""
    cells = []
    for run in runs:
        entry = _entry(run)
        entries[entry.configuration.module] = entry
        cells.append(Cell(entry.configuration, (entry.configuration,), False))
    kernel: dict[str, Any] = {
        "schema": KERNEL_SCHEMA,
        "name": re.sub(r"[^a-z0-9]+", "_", match.name.lower()),
        "group": "peers",
        "title": match.name,
        "summary": f"{match.ours.kernel} against {match.against}.",
        "executable": next(run.kernel.executable for run in runs if isinstance(run, OwnRun)),
        "sensitive_to": ["compiler", "hugepages"],
        "metrics": [
            {"field": match.ours.field, "label": "Figure", "unit": match.unit, "better": match.better}
        ],
        "compare": {"arguments": ["--working-set", str(match.working_set), "--threads", str(match.threads)]},
    }
    subject = Subject(Kernel.from_dict(kernel, match.name), tuple(cells))
    return Comparison(match, subject, {run.candidate.label: run.candidate for run in runs})


def _entry(run: Run) -> Entry:
    """A candidate as a module: ours as it is installed, a peer's program by its digest."""
    if isinstance(run, OwnRun):
        configuration = replace(run.entry.configuration, module=run.candidate.label)
        return replace(run.entry, configuration=configuration)
    configuration = Configuration.of_program(
        Path(run.program.path),
        sha256(Path(run.program.path)) or "",
        module=run.candidate.label,
        package=run.peer.name,
        compiler=run.program.compiler or "unknown",
        hugepages=run.ask.pages,
    )
    return Entry(configuration, {}, {})


def _cores(where: Where) -> int:
    """Two where two threads can be placed so, else one."""
    try:
        placements(2, where)
    except SelectionError:
        placements(1, where)
        return 1
    return 2


def _placed(threads: int, where: Where) -> Placement:
    """Where so many threads are; of several placements none can be told from the figures."""
    found = placements(threads, where)
    if len(found) > 1:
        raise SelectionError(
            f"peers are compared in one placement, not in {len(found)}",
            where="--placement, --smt, --memory",
            remedy="name one of each, and compare again for the other",
        )
    return found[0]


def _programs(options: PeerOptions, compilers: Sequence[str], console: Console) -> dict[str, list[Program]]:
    """The programs of the peers that are asked for; those that are not here are told, named ones refused."""
    found = {name: find(peer, options.peer_path, compilers) for name, peer in PEERS.items()}
    for name, peer in PEERS.items():
        if options.peers and name not in options.peers:
            continue
        if found[name]:
            where = ", ".join(program.path for program in found[name])
            console.print(f"found:   {name:<14} {where}", highlight=False, soft_wrap=True)
            continue
        lacking = peer.missing(compilers)
        if options.peers:
            raise SetupError(
                f"the peer {name} is not here: {lacking}",
                where="--peer-path, PAGEWISE_PEERS, PATH",
                remedy=f"{DOCS} says how to get and build it ({peer.source})",
            )
        told = f" {name:<14} {lacking}; {DOCS} says how to get it ({peer.source})"
        console.print(Text.assemble(("missing:", "yellow"), told), soft_wrap=True)
    return found


def _providers(catalog: Catalog) -> Mapping[str, Sequence[str]]:
    """The libraries that builds of ours have, by what they are for."""
    kernels = {"blas": "dgemm", "fftw": "fft"}
    found = {kind: sorted(_called_by(kernel, catalog)) for kind, kernel in kernels.items()}
    return {kind: names or plan.PROVIDERS[kind] for kind, names in found.items()}


def _called_by(kernel: str, catalog: Catalog) -> dict[str, Entry]:
    """A build for each library that a kernel calls in some build."""
    return {e.configuration.library: e for e in catalog.entries if kernel in e.kernels}


def _libraries(chosen: Sequence[Match], catalog: Catalog, folders: Sequence[Path]) -> dict[str, str | None]:
    """The files of the libraries that peers shall call: those that our builds call, else as found by name."""
    names = {match.other.library for match in chosen if isinstance(match.other, Theirs)} - {""}
    ours = {**_called_by("dgemm", catalog), **_called_by("fft", catalog)}
    return {
        name: (called_file(ours[name]) if name in ours else None) or find_library(name, folders)
        for name in sorted(names)
    }


def _runs(
    chosen: Sequence[Match],
    catalog: Catalog,
    programs: Mapping[str, Sequence[Program]],
    libraries: Mapping[str, str | None],
) -> tuple[dict[str, list[Run]], dict[str, str]]:
    runs: dict[str, list[Run]] = {}
    missing: dict[str, str] = {}
    for match in chosen:
        runs[match.name], lacks = candidates(match, catalog, programs, libraries)
        if lacks is not None:
            missing[match.name] = lacks
    return runs, missing
