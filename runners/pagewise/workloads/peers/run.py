"""A comparison with peers from beginning to end: finding, a trial round, the rounds, the result's folder."""

from __future__ import annotations

import hashlib
import random
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pagewise.core.errors import Interrupted, PagewiseError, SelectionError, SetupError
from pagewise.core.result import create_folder, utc_text
from pagewise.core.signals import interruptible
from pagewise.core.structure import unstructured
from pagewise.core.suggestions import choose_of
from pagewise.core.units import clock_text
from pagewise.machine.host import read_host
from pagewise.machine.placement import NOWHERE, Placement, Where, placements
from pagewise.session.launch import find_hyperfine
from pagewise.session.processes import Left
from pagewise.stack import lmod
from pagewise.stack.catalog import Catalog, Entry, read_catalog
from pagewise.stack.files import Watch
from pagewise.stack.paths import module_tree, project_root
from pagewise.stack.provenance import provenance, software
from pagewise.stack.setup import setup_facts
from pagewise.workloads.peers import plan
from pagewise.workloads.peers.analysis import Row, carried_on, judged, rows
from pagewise.workloads.peers.bench import Bench, Run, called_file, candidates, family, watched
from pagewise.workloads.peers.known import PEERS
from pagewise.workloads.peers.peer import Program, find, find_library
from pagewise.workloads.peers.plan import Match, Theirs
from pagewise.workloads.peers.sample import Candidate, Sample, Series

DOCS = "docs/peers.md"


@dataclass(frozen=True)
class Options:
    """What the user asked for; see `pagewise peers --help`."""

    environment: str
    modules: Path | None
    rounds: int | None
    peers: tuple[str, ...]
    kernels: tuple[str, ...]
    quick: bool
    peer_path: tuple[Path, ...]
    seed: int
    results: Path
    limit: float
    where: Where = NOWHERE
    end_leftovers: bool = False


@dataclass
class PeerComparison:
    """A comparison under way."""

    options: Options
    console: Console
    rounds: int
    matches: list[Match]
    runs: dict[str, list[Run]]
    missing: dict[str, str]
    hyperfine: str
    facts: dict[str, Any]
    folder: Path
    placements: Mapping[int, Placement]
    samples: list[Sample] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    rounds_done: int = 0
    ending: PagewiseError | Interrupted | None = None
    watch: Watch = field(default_factory=lambda: Watch({}))
    changed: dict[str, str] = field(default_factory=dict)

    def measure(self) -> list[Row]:
        """Runs the trial round and all rounds. What ends them early is kept in `ending`, not raised."""
        runs = [run for found in self.runs.values() for run in found]
        self.watch = Watch({run.candidate.label: tuple(watched(run)) for run in runs})
        with tempfile.TemporaryDirectory(prefix="pagewise-peers-") as scratch:
            bench = Bench(
                self.hyperfine,
                self.placements,
                self.options.limit,
                Path(scratch),
                self.options.end_leftovers,
                self.left,
            )
            try:
                with interruptible():
                    self._run_all(bench)
            except (PagewiseError, Interrupted) as ending:
                self.ending = ending
        for label, files in self.watch.verify().items():
            self._note_changed(label, files)
        return self.rows()

    def rows(self) -> list[Row]:
        """The table of what was measured so far."""
        return judged(
            [
                row
                for match in self.matches
                for row in rows(
                    match,
                    [self._trusted(sample) for sample in self.samples if sample.match == match.name],
                    self.missing.get(match.name),
                    self.options.seed,
                )
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """All there is, for peers.json."""
        state = {Interrupted: "interrupted", type(None): "complete"}.get(type(self.ending), "failed")
        return {
            "schema": "pagewise.peers/1",
            "state": state,
            "rounds": self.rounds,
            "rounds_done": self.rounds_done,
            **self.facts,
            "matches": [
                {"name": match.name, **asdict(match), "missing": self.missing.get(match.name)}
                for match in self.matches
            ],
            "files": self.watch.digests(),
            "changed_files": self.changed,
            "samples": [self._trusted(sample).to_dict() for sample in self.samples],
            "left_behind": [asdict(one) for one in self.left],
        }

    @property
    def faults(self) -> list[str]:
        """What could not run as asked: programs that changed, and matches with a side that has no figure."""
        return [f"{label}: {reason}" for label, reason in self.changed.items()] + [
            f"{row.match.name} ({row.scope}): {row.missing}"
            for row in self.rows()
            if row.missing and row.match.name not in self.missing and self.ending is None
        ]

    def _run_all(self, bench: Bench) -> None:
        started = time.monotonic()
        self._tell("trial round: each candidate once; the best of each side are carried on")
        self._try(bench)
        first = time.monotonic()
        for number in range(1, self.rounds + 1):
            passed = time.monotonic()
            left = (passed - first) / (number - 1) * (self.rounds - number + 1) if number > 1 else None
            told = f", about {clock_text(left)} left" if left is not None else ""
            self._tell(f"round {number}/{self.rounds}: {clock_text(passed - started)} passed{told}")
            self._round(bench, self.matches, number, "compare")
            self.rounds_done = number

    def _try(self, bench: Bench) -> None:
        """The trial round. On two cores only what did well on one is tried, and then all of it is kept.

        There the machine's mode decides a single run.
        """
        single = [match for match in self.matches if match.threads == 1]
        self._round(bench, single, 0, "trial")
        kept = {match: self._carried_on(match) for match in single}
        for match in single:
            self.runs[match.name] = [r for r in self.runs[match.name] if r.candidate in kept[match]]
        several = [match for match in self.matches if match.threads > 1]
        for match in several:
            alike = kept.get(replace(match, threads=1))
            if alike:
                self.runs[match.name] = [r for r in self.runs[match.name] if r.candidate in alike]
        self._round(bench, several, 0, "trial")
        for match in several:
            failed = {s.candidate for s in self.samples if s.match == match.name and s.value is None}
            self.runs[match.name] = [r for r in self.runs[match.name] if r.candidate not in failed]

    def _carried_on(self, match: Match) -> set[Candidate]:
        return carried_on([sample for sample in self.samples if sample.match == match.name], match)

    def _round(self, bench: Bench, matches: Sequence[Match], number: int, series: Series) -> None:
        """Matches in shuffled order, and in each of them both sides' candidates, and ours again (A/A)."""
        shuffle = random.Random(f"peers:{self.options.seed}:{number}")
        position = 0
        for match in shuffle.sample(matches, len(matches)):
            planned: list[tuple[Run, Series]] = [(run, series) for run in self.runs[match.name]]
            twin = self._twin(match) if series == "compare" else None
            planned += [(twin, "aa")] if twin is not None else []
            shuffle.shuffle(planned)
            for run, kind in planned:
                position += 1
                self.samples.append(bench.run(match, run, kind, number, position))
                if changed := self.watch.look(run.candidate.label):
                    self._note_changed(run.candidate.label, changed)

    def _note_changed(self, label: str, files: Sequence[Path]) -> None:
        self.changed[label] = f"changed during the session: {', '.join(map(str, files))}"

    def _trusted(self, sample: Sample) -> Sample:
        """The sample, without a figure where its program did not stay the same."""
        reason = self.changed.get(sample.candidate.label)
        return sample if reason is None else replace(sample, value=None, reason=reason)

    def _twin(self, match: Match) -> Run | None:
        """The candidate of ours that runs twice a round: the best of the trial round."""
        tried = {
            s.candidate: s.value
            for s in self.samples
            if s.match == match.name and s.series == "trial" and s.value is not None
        }
        ours = [r for r in self.runs[match.name] if r.candidate.side == "ours" and r.candidate in tried]
        choose = max if match.better == "higher" else min
        return choose(ours, key=lambda run: tried[run.candidate]) if ours else None

    def _tell(self, text: str) -> None:
        self.console.print(text, highlight=False, soft_wrap=True)


def prepare(options: Options, console: Console) -> PeerComparison:
    """Finds modules, peers and tools, says which peers are missing, and makes the result's folder.

    Raises SetupError, SelectionError, FormatError or RefusedError, each before the first run.
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
    tree = module_tree(options.environment, options.modules)
    catalog = read_catalog(tree, init)
    compilers = sorted({family(entry) for entry in catalog.entries})
    programs = _programs(options, compilers, console)
    host = read_host()
    size = plan.sizes(host)
    known = plan.matches(size, compilers, _cores(options.where), _providers(catalog))
    chosen = plan.select(known, options.kernels, options.peers or None, options.quick)
    libraries = _libraries(chosen, catalog, options.peer_path)
    runs, missing = _runs(chosen, catalog, programs, libraries)
    placed = {n: _placed(n, options.where) for n in sorted({match.threads for match in chosen})}
    now = datetime.now(timezone.utc)
    environment = options.environment if options.modules is None else None
    told = {
        "created": utc_text(now),
        "command": ["pagewise", *sys.argv[1:]],
        "seed": options.seed,
        "sizes": asdict(size),
        "peers": {name: [_told(program) for program in found] for name, found in programs.items()},
        "libraries": libraries,
        "modules": str(tree),
        "software": software(hyperfine, init),
        "provenance": unstructured(provenance(project_root(), environment, facts)),
        "host": unstructured(host),
        "placement": {n: one.to_dict() for n, one in placed.items()},
    }
    rounds = options.rounds or (plan.QUICK_ROUNDS if options.quick else 9)
    return PeerComparison(
        options,
        console,
        rounds,
        chosen,
        runs,
        missing,
        hyperfine,
        told,
        create_folder(options.results, "peers", now),
        placed,
    )


def _told(program: Program) -> dict[str, str | None]:
    """A program with its digest: which build of it was measured."""
    try:
        digest = hashlib.sha256(Path(program.path).read_bytes()).hexdigest()
    except OSError:
        digest = None
    return asdict(program) | {"sha256": digest}


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


def _programs(options: Options, compilers: Sequence[str], console: Console) -> dict[str, list[Program]]:
    """The programs of the peers that are asked for; those that are not here are told, named ones refused."""
    found = {name: find(peer, options.peer_path, compilers) for name, peer in PEERS.items()}
    for name, peer in PEERS.items():
        if options.peers and name not in options.peers:
            continue
        if found[name]:
            where = ", ".join(program.path for program in found[name])
            console.print(f"found:   {name:<14} {where}", highlight=False, soft_wrap=True)
            continue
        lacking = peer.lacking(compilers)
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
