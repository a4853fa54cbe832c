"""Comparisons with peers as a workload of a session: finding programs, and a subject for each match."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.kernel import SCHEMA as KERNEL_SCHEMA
from pagewise.core.kernel import Kernel
from pagewise.core.manifest_parts import PeersPart
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
from pagewise.stack.catalog import read_catalog
from pagewise.stack.files import sha256
from pagewise.stack.paths import module_tree
from pagewise.stack.provenance import software
from pagewise.stack.setup import setup_facts
from pagewise.workloads.peers import plan
from pagewise.workloads.peers.bench import PeerLauncher
from pagewise.workloads.peers.candidates import OwnRun, Run, called_libraries, candidates, family, providers
from pagewise.workloads.peers.known import PEERS
from pagewise.workloads.peers.peer import Program, UnableError, find
from pagewise.workloads.peers.plan import Match
from pagewise.workloads.peers.planner import Comparison, PeerPlanner

DOCS = "docs/how-to/peers.md"


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
        runs = (item for comparison in self.comparisons for item in comparison.runs.items())
        return {label: tuple(run.files(self.tree)) for label, run in runs}

    def launcher(self, scratch: Path) -> PeerLauncher:
        """Launches candidates of both sides."""
        stopwatch = Stopwatch(self.hyperfine, self.options.limit, scratch, self.options.end_leftovers)
        by_name = {comparison.name: comparison for comparison in self.comparisons}
        return PeerLauncher(by_name, stopwatch, self.places)

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
            f"no peer is called {', '.join(unknown)}", where="--peers", remedy=choose_of(unknown[0], PEERS)
        )
    facts, hyperfine, host = setup_facts(), find_hyperfine(), read_host()
    init = lmod.find_init(facts)
    catalog = read_catalog(module_tree(options.environment, options.modules), init)
    compilers = sorted({family(entry) for entry in catalog.entries})
    programs = _find_programs(options, compilers, console)
    size = plan.sizes(host)
    known = plan.matches(size, compilers, _cores(options.where), providers(catalog))
    chosen = plan.select(known, options.kernels, options.peers or None, options.quick)
    libraries = called_libraries(chosen, catalog, options.peer_path)
    comparisons, missing = [], {}
    for match in chosen:
        try:
            comparisons.append(_comparison(match, candidates(match, catalog, programs, libraries)))
        except UnableError as fault:
            missing[match.name] = str(fault)
    places = {n: _placed(n, options.where) for n in sorted({match.threads for match in chosen})}
    count = sum(len(comparison.runs) for comparison in comparisons)
    text = f"To measure: {count_text(len(comparisons), 'comparison')} of {count_text(count, 'candidate')}"
    text += f" in {count_text(options.rounds, 'round')}.{goal_text(options)}"
    console.print(text, highlight=False, soft_wrap=True)
    runs = {label: run for comparison in comparisons for label, run in comparison.runs.items()}
    manifest = new_manifest(
        options,
        "peers",
        entries=[run.as_entry() for run in runs.values()],
        subjects=[comparison.subject for comparison in comparisons],
        placements=list(places.values()),
        tree=catalog.tree,
        environment=options.environment if options.modules is None else None,
        host=host,
        facts=facts,
        software=software(hyperfine, init),
        broken=catalog.broken,
        peers=PeersPart(
            unstructured(size),
            {
                name: [{**unstructured(program), "sha256": sha256(Path(program.path))} for program in of_peer]
                for name, of_peer in programs.items()
            },
            libraries,
            tuple(
                {"name": match.name, "missing": missing.get(match.name), **plan.match_data(match)}
                for match in chosen
            ),
        ),
    )
    workload = Peers(options, console, comparisons, places, hyperfine, catalog.tree)
    return Session.of(options, workload, manifest, console, began)


def _comparison(match: Match, runs: Sequence[Run]) -> Comparison:
    """A match as a subject whose configurations are the candidates."""
    measured = [run.as_entry().configuration for run in runs]
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
    cells = tuple(Cell(configuration, (configuration,), False) for configuration in measured)
    subject = Subject(Kernel.from_dict(kernel, match.name), cells)
    return Comparison(match, subject, {run.candidate.label: run for run in runs})


def _cores(where: Where) -> int:
    """Two where two threads can be placed so, else one."""
    try:
        placements(2, where)
    except SelectionError:
        placements(1, where)
        return 1
    return 2


def _placed(threads: int, where: Where) -> Placement:
    """Where so many threads are. Raises SelectionError for several placements, which have no name here."""
    places = placements(threads, where)
    if len(places) > 1:
        raise SelectionError(
            f"peers are compared in one placement, not in {len(places)}",
            where="--placement, --smt, --memory",
            remedy="name one of each, and compare again for the other",
        )
    return places[0]


def _find_programs(
    options: PeerOptions, compilers: Sequence[str], console: Console
) -> dict[str, list[Program]]:
    """The installed programs of all peers; those of the chosen peers are printed.

    Raises SetupError when a peer that the user named is missing.
    """
    programs = {name: find(peer, options.peer_path, compilers) for name, peer in PEERS.items()}
    for name in options.peers or PEERS:
        if programs[name]:
            where = ", ".join(program.path for program in programs[name])
            console.print(f"found:   {name:<14} {where}", highlight=False, soft_wrap=True)
            continue
        missing, source = PEERS[name].missing(compilers), PEERS[name].source
        if options.peers:
            raise SetupError(
                f"the peer {name} is not installed: {missing}",
                where="--peer-path, PAGEWISE_PEERS, PATH",
                remedy=f"{DOCS} describes how to get and build it ({source})",
            )
        text = f" {name:<14} {missing}; {DOCS} describes how to get it ({source})"
        console.print(Text.assemble(("missing:", "yellow"), text), soft_wrap=True)
    return programs
