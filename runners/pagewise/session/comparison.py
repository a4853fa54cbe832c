"""A comparison from beginning to end: what to measure, measuring, and the result's folder."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from pagewise.analysis.analysis import analyse
from pagewise.analysis.until import too_wide
from pagewise.core.configuration import Configuration
from pagewise.core.errors import Interrupted, PagewiseError, SelectionError, SetupError
from pagewise.core.kernel import Kernel
from pagewise.core.page_policy import policy_kind, policy_size
from pagewise.core.plan import (
    Step,
    Subject,
    baselines,
    fitting,
    order_of_round,
    order_of_sweeps,
    placed,
    subject,
)
from pagewise.core.record import Record, RecordWriter, Skipped
from pagewise.core.result import RECORDS, Result, altered, create_folder, keep_log, utc_text, write_manifest
from pagewise.core.signals import interruptible, postponed
from pagewise.core.units import clock_text, count_text, percent_text
from pagewise.machine import memory
from pagewise.machine.host import read_host
from pagewise.machine.placement import Placement, placements
from pagewise.machine.settings import hugepages, prefetchers, thp
from pagewise.machine.settings.kinds import Pool
from pagewise.session.launch import Launcher, Outcome, find_hyperfine
from pagewise.session.manifest import new_manifest
from pagewise.session.options import Options
from pagewise.session.origin import seal
from pagewise.session.progress import Teller
from pagewise.session.resume import Earlier, continued, set_aside
from pagewise.stack import lmod
from pagewise.stack.binary import files_of
from pagewise.stack.catalog import Catalog, Entry, read_catalog
from pagewise.stack.files import Watch
from pagewise.stack.paths import module_tree
from pagewise.stack.provenance import software
from pagewise.stack.setup import SetupFacts, setup_facts


@dataclass
class Comparison:
    """A comparison, prepared and then under way. `began` is the clock's reading when the program started.

    `manifest` and `folder` are those of the result: from `begin` on they are on the disk.
    """

    options: Options
    console: Console
    began: float
    entries: dict[str, Entry]
    subjects: list[Subject]
    placements: list[Placement]
    hyperfine: str
    manifest: dict[str, Any]
    control: prefetchers.Control | None
    folder: Path = Path()
    earlier: Earlier = field(default_factory=Earlier)
    records: list[Record] = field(default_factory=list)
    skipped: list[Skipped] = field(default_factory=list)
    runs: int = 0
    kernel_seconds: float = 0.0
    stopped: set[tuple[Any, ...]] = field(default_factory=set)
    ending: PagewiseError | Interrupted | None = None
    watch: Watch = field(default_factory=lambda: Watch({}))

    def begin(self) -> None:
        """Makes the result's folder, or takes up the one of a comparison that was broken off.

        Raises RefusedError, SelectionError or FormatError.
        """
        self.watch = Watch(self.watched_files())
        self.manifest["files"] = self.watch.digests()
        if self.options.resume is None:
            now = datetime.now(timezone.utc)
            self.folder = create_folder(self.options.results, self.options.name, now)
            self.manifest["created"] = utc_text(now)
            if "seal" not in self.manifest:
                self.manifest["seal"] = seal(self.manifest)
        else:
            self.folder = self.options.resume
            self.manifest, self.earlier = continued(self.folder, self.manifest)
            self._take_up()
        write_manifest(self.folder, self.manifest)

    def watched_files(self) -> dict[str, tuple[Path, ...]]:
        """By module, the files whose change makes what was measured before and after incomparable."""
        tree = Path(self.manifest["modules"]["tree"])
        found: dict[str, list[Path]] = {}
        for one in self.subjects:
            for module in {cell.measured.module for cell in one.cells}:
                entry = self.entries[module]
                files = found.setdefault(module, [tree / f"{module}.lua"])
                if (program := entry.program(one.kernel.executable)) is not None:
                    files += files_of(Path(program), entry.environment)
        return {module: tuple(dict.fromkeys(files)) for module, files in found.items()}

    def _take_up(self) -> None:
        """Takes over what was measured before the break, and sets aside what is measured again."""
        rounds = [self.steps_of_round(number) for number in range(1, self.earlier.rounds + 1)]
        for step, records in self.earlier.failed(chain(*rounds, self.sweeps())):
            self.stop(step, Outcome(records, None, "", []))
        again = [step for steps in rounds for step in self.earlier.broken(steps, self.is_stopped)]
        set_aside(self.folder / RECORDS, again, self._announce_records)
        before, self.earlier = self.earlier.done.total(), self.earlier.without(again)
        self.manifest["breaks"][-1]["aside"] = before - self.earlier.done.total()
        self.records, self.skipped = list(self.earlier.records), list(self.earlier.skipped)
        self.runs, self.kernel_seconds = self.earlier.done.total(), self.earlier.run_seconds

    def _announce_records(self, digest: dict[str, Any]) -> None:
        """Puts the digest of records on disk that are about to replace others."""
        known = self.manifest.get("records", digest)
        before = {name: known[name] for name in digest}
        self.manifest["records"] = {**digest, "replaced": before}
        write_manifest(self.folder, self.manifest)

    def measure(self) -> Result:
        """Runs all rounds and sweeps. What ends them early is kept in `ending`, not raised.

        Whatever ends it, the records so far are in the folder and in the result, and the machine's settings
        are put back.
        """
        with tempfile.TemporaryDirectory(prefix="pagewise-") as scratch:
            launcher = self._launcher(Path(scratch))
            try:
                with interruptible(), self._settings(), RecordWriter(self.folder / RECORDS) as writer:
                    self.manifest["records"] = writer.digest
                    self._run_all(launcher, writer)
            except (PagewiseError, Interrupted) as ending:
                self.ending = ending
        self._note_changed(self.watch.verify())
        found = altered(self.folder, {**self.manifest, "state": "complete"})
        return Result(self.folder, self.manifest, self.subjects, self.records, self.skipped, found)

    def close(self) -> None:
        """Writes how it ended and what share of the time so far was the runner's own. Raises RefusedError.

        May be called again, after more of the runner's own work.
        """
        state = {Interrupted: "interrupted", type(None): "complete"}.get(type(self.ending), "failed")
        wall = self.earlier.wall_seconds + time.monotonic() - self.began
        self.manifest |= {
            "state": state,
            "finished": self.manifest["finished"] or utc_text(),
            "timing": {
                "wall_seconds": round(wall, 3),
                "kernel_seconds": round(self.kernel_seconds, 3),
                "own_share": round((wall - self.kernel_seconds) / wall, 4),
                "runs": self.runs,
            },
        }
        write_manifest(self.folder, self.manifest)

    def _launcher(self, scratch: Path) -> Any:
        prefix = self.control.program if self.control else ()
        return Launcher(
            self.hyperfine,
            self.places,
            self.options.limit,
            scratch,
            prefix,
            self.options.end_leftovers,
        )

    @property
    def places(self) -> dict[str | None, Placement]:
        """The placements by the names that cells have; by None the first, for cells without."""
        return {None: self.placements[0], **{one.name: one for one in self.placements}}

    def pools(self, size: int) -> list[Pool]:
        """The pools of pages of such a size that runs take pages from."""
        return hugepages.pools_of({node for one in self.placements for node in one.nodes}, page_bytes=size)

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """The machine's settings that the user asked to be changed meanwhile, told in the manifest."""
        with ExitStack() as stack:
            if self.options.set_thp_sizes:
                switched = stack.enter_context(thp.switched_on(self.switched_policies()))
                self.manifest["switches"] = [asdict(one) for one in switched]
            if self.options.reserve:
                self.manifest["pool"] = []
                # The largest pages first: they need the most memory in one piece.
                for size, pages in sorted(self.pool_pages().items(), reverse=True):
                    reservation = stack.enter_context(hugepages.reserved(self.pools(size), pages))
                    self.manifest["pool"].append(asdict(reservation))
            if self.control is not None:
                self.manifest["prefetchers"] = stack.enter_context(prefetchers.switched_off(self.control))
            write_manifest(self.folder, self.manifest)
            yield

    def switched_policies(self) -> set[str]:
        """The policies whose sizes of transparent huge pages are switched on when that was asked for."""
        return {cell.measured.hugepages for one in self.subjects for cell in one.cells}

    def pool_pages(self) -> dict[int, int]:
        """By page size: the pages to be reserved in each pool when that was asked for."""
        found: dict[int, list[tuple[str, ...]]] = {}
        for one in self.subjects:
            policies = {cell.measured.hugepages for cell in one.cells}
            for policy in (policy for policy in policies if policy_kind(policy) == "hugetlbfs"):
                arguments = found.setdefault(policy_size(policy) or hugepages.PAGE_BYTES, [])
                arguments.append(one.kernel.arguments)
                if self.options.sweep:
                    arguments += [sweep.arguments for sweep in one.kernel.sweeps]
        return {size: hugepages.pages_needed(arguments, size) for size, arguments in found.items()}

    def _run_all(self, launcher: Launcher, writer: RecordWriter) -> None:
        began = time.monotonic() - self.earlier.wall_seconds
        rounds = [self._left_of(number) for number in range(1, self.options.rounds + 1)]
        sweeps = self.earlier.left(self.sweeps(), self.is_stopped)
        with Teller(self.console, self.options.rounds, [*chain(*rounds), *sweeps]) as teller:
            for number in range(1, max(self.options.rounds, self.earlier.rounds) + 1):
                teller.learn(self.earlier.took(self.steps_of_round(number)))
            for number, steps in enumerate(rounds, start=1):
                self._run_steps(steps, launcher, writer, teller)
                self._end_round(number)
            if self.options.until is not None and not self.earlier.until_ended:
                self._run_until(self.options.until, began, launcher, writer, teller)
            self._run_steps(sweeps, launcher, writer, teller)

    def _left_of(self, number: int) -> list[Step]:
        return self.earlier.left(self.steps_of_round(number), self.is_stopped)

    def sweeps(self) -> list[Step]:
        """The curves to be measured, in order."""
        return order_of_sweeps(self.subjects, self.options.seed) if self.options.sweep else []

    def _note_changed(self, found: Mapping[str, Sequence[Path]]) -> None:
        """Notes files that are not what they were when the session began."""
        noted = self.manifest.setdefault("changed_files", [])
        known = {(one["module"], one["file"]) for one in noted}
        for module, files in found.items():
            for file in map(str, files):
                if (module, file) not in known:
                    noted.append({"module": module, "file": file, "round": self.manifest["rounds_done"] + 1})

    def _end_round(self, number: int) -> None:
        self.manifest["rounds_done"] = max(number, self.manifest["rounds_done"])
        write_manifest(self.folder, self.manifest)

    def _run_until(
        self, width: float, began: float, launcher: Launcher, writer: RecordWriter, teller: Teller
    ) -> None:
        """Further rounds of the kernels whose intervals are still wider, as the budget allows.

        Whether to go on depends on widths alone, never on what the intervals say. After a break it is decided
        again round by round, by what was measured up to each: the same rounds come about.
        """
        subjects, number = self.subjects, self.options.rounds
        told = self.manifest["until"] = {
            "width": width,
            "budget_seconds": self.options.budget,
            "ended": None,
            "rounds": {one.kernel.name: number for one in subjects},
            "widest": {},
        }
        while told["ended"] is None:
            known = [one for one in self.records if "run" not in one or one["run"]["round"] <= number]
            wide = too_wide(analyse(subjects, known, self.options.seed), width)
            subjects = [one for one in subjects if one.kernel.name in wide]
            told["widest"] = wide
            steps = [step for step in self.steps_of_round(number + 1) if step.kernel.name in wide]
            left = self.earlier.left(steps, self.is_stopped)
            over = time.monotonic() - began + (teller.expect(left) or 0.0) > self.options.budget
            if not subjects:
                told["ended"] = "narrow"
            elif all(map(self.is_stopped, steps)) or (left and over):
                told["ended"] = "budget"
            else:
                number += 1
                told["rounds"] |= {one.kernel.name: number for one in subjects}
                teller.add(left, until_text(wide, width))
                self._run_steps(left, launcher, writer, teller)
                self._end_round(number)
        write_manifest(self.folder, self.manifest)

    def steps_of_round(self, number: int) -> list[Step]:
        """The runs of one round, in order."""
        return order_of_round(self.subjects, number, self.options.seed, self.options.aa)

    def can_run(self, step: Step) -> bool:
        """Whether such a run is started at all: what lacks something is told and not run."""
        return True

    def is_stopped(self, step: Step) -> bool:
        """Whether such a run was tried in vain."""
        return (step.kernel.name, step.cell.key) in self.stopped

    def stop(self, step: Step, outcome: Outcome) -> None:
        """Pages that are not there and programs that crash do so again: once is told, not every round."""
        self.stopped.add((step.kernel.name, step.cell.key))

    def _run_steps(
        self, steps: Sequence[Step], launcher: Launcher, writer: RecordWriter, teller: Teller
    ) -> None:
        for step in steps:
            if self.is_stopped(step):
                teller.skip(step)
                continue
            teller.begin(step)
            started = time.monotonic()
            module = step.cell.measured.module
            changed = self.watch.look(module)
            outcome = launcher.run(step, self.entries[module])
            changed = changed or self.watch.look(module)
            self._note_changed({module: changed})
            self._keep(step, outcome, writer)
            if outcome.failed or changed:
                self.stop(step, outcome)
            teller.end(step, time.monotonic() - started)

    def _keep(self, step: Step, outcome: Outcome, writer: RecordWriter) -> None:
        log = None
        if outcome.failed or outcome.skipped:
            name = f"{step.kernel.name}-{step.group or step.series}-{step.round}-{step.position}.txt"
            log = keep_log(self.folder, name, outcome.output)
        self.runs += 1
        self.kernel_seconds += outcome.wall_seconds or 0.0
        self.skipped += outcome.skipped
        if log is not None:
            for record in outcome.records:
                record["run"] = {**record["run"], "log": log}
        self.records += outcome.records
        with postponed():
            writer.append(*outcome.records)
            self.manifest["records"] = writer.digest


@dataclass(frozen=True)
class Arrangement:
    """What a comparison is made with: tools, modules, what is measured and where."""

    facts: SetupFacts | None
    hyperfine: str
    init: Path
    catalog: Catalog
    placements: list[Placement]
    control: prefetchers.Control | None
    subjects: list[Subject]
    scaled: list[memory.Scaled]

    @property
    def entries(self) -> dict[str, Entry]:
        """The configurations that are measured or stood for, by module."""
        cells = [cell for one in self.subjects for cell in one.cells]
        measured = {configuration.module for cell in cells for configuration in cell.stands_for}
        by_module = {entry.configuration.module: entry for entry in self.catalog.entries}
        return {module: entry for module, entry in by_module.items() if module in measured}

    def parts(
        self, options: Options, **more: Any
    ) -> tuple[
        dict[str, Entry], list[Subject], list[Placement], str, dict[str, Any], prefetchers.Control | None
    ]:
        """What a Comparison is made of beside its options; `more` stands in its manifest."""
        environment = options.environment if options.modules is None else None
        manifest = new_manifest(
            options,
            entries=self.entries.values(),
            subjects=self.subjects,
            placements=self.placements,
            tree=self.catalog.tree,
            environment=environment,
            host=read_host(),
            facts=self.facts,
            software=software(self.hyperfine, self.init),
            broken=self.catalog.broken,
            scaled=[asdict(one) for one in self.scaled],
            **more,
        )
        return self.entries, self.subjects, self.placements, self.hyperfine, manifest, self.control


def arrange(options: Options, console: Console) -> Arrangement:
    """Finds modules, kernels and tools; nothing is measured or written yet.

    Raises SetupError, SelectionError or FormatError.
    """
    facts = setup_facts()
    hyperfine = find_hyperfine()
    init = lmod.find_init(facts)
    catalog = read_catalog(module_tree(options.environment, options.modules), init)
    for broken in catalog.broken:
        told = f" {broken.module}: {broken.reason}"
        console.print(Text.assemble(("left out:", "yellow"), told), soft_wrap=True)
    found = placements(options.threads, options.where)
    tell_placements(console, found)
    cpus = tuple(sorted({cpu for one in found for cpu in one.cpus}))
    control = prefetchers.find_control(options.prefetchers, cpus) if options.prefetchers else None
    chosen = placed(choose(catalog, options), [one.name for one in found])
    subjects, scaled = fit(chosen, options, room_for(found))
    for one in scaled:
        told = f" {memory.scaled_text(asdict(one))}"
        console.print(Text.assemble(("smaller:", "yellow"), told), soft_wrap=True)
    _check_programs(catalog, subjects)
    return Arrangement(facts, hyperfine, init, catalog, found, control, subjects, scaled)


def room_for(found: Iterable[Placement]) -> int | None:
    """Bytes of memory that a run of each of these placements can have; None where it is not told."""
    bound = {one.memory.nodes for one in found if one.memory.binds}
    known = [memory.available(), *map(memory.available_on, bound)]
    return min((one for one in known if one is not None), default=None)


def tell_placements(console: Console, found: Sequence[Placement]) -> None:
    """Tells each of several placements, and what was asked for and is the same here."""
    for one in found if len(found) > 1 or found[0].also else ():
        also = f"; here the same as {', '.join(one.also)}, which is not measured" if one.also else ""
        console.print(f"Placement {one.text}{also}.", highlight=False, soft_wrap=True)


def fit(
    subjects: Sequence[Subject], options: Options, room: int | None
) -> tuple[list[Subject], list[memory.Scaled]]:
    """The same with kernels that fit into so many bytes of memory, and which were made smaller for that.

    A reserved pool holds the working set while other runs need it too. Raises RefusedError.
    """
    found, scaled = [], []
    for one in subjects:
        pooled = any(policy_kind(cell.measured.hugepages) == "hugetlbfs" for cell in one.cells)
        kernel, told = memory.fitted(one.kernel, room, 2 if options.reserve and pooled else 1)
        found.append(replace(one, kernel=kernel))
        scaled += [told] if told is not None else []
    return found, scaled


def prepare(options: Options, console: Console, began: float) -> Comparison:
    """Arranges a comparison; nothing is measured or written yet.

    Raises SetupError, SelectionError or FormatError.
    """
    found = arrange(options, console)
    console.print(intended(found.catalog, found.subjects, options), highlight=False, soft_wrap=True)
    return Comparison(options, console, began, *found.parts(options))


def intended(catalog: Catalog, subjects: Sequence[Subject], options: Options) -> str:
    """How much will be run, and how many kernels were not chosen."""
    names = ", ".join(one.kernel.name for one in subjects)
    a_round = len(order_of_round(subjects, 1, options.seed, options.aa))
    sweeps = len(order_of_sweeps(subjects, options.seed)) if options.sweep else 0
    runs = f"{count_text(options.rounds, 'round')} of {count_text(a_round, 'run')}"
    if sweeps:
        runs += f" and {count_text(sweeps, 'sweep')}"
    told = f"To measure: {names}. {runs}: {count_text(options.rounds * a_round + sweeps, 'run')}."
    if options.until is not None:
        told += (
            f"\nThen further rounds until all intervals are narrower than {percent_text(options.until)}, "
            f"all rounds within {clock_text(options.budget)}."
        )
    left = len(catalog.kernels) - len(subjects)
    if left and not options.kernels:
        told += f"\n{count_text(left, 'more kernel')} can be chosen with --kernels"
        told += "; `pagewise list` lists them."
    return told


def until_text(wide: Mapping[str, float | None], width: float) -> str:
    """How wide the intervals still are: `intervals up to 3.4 %, to be 2.5 %`."""
    known = [value for value in wide.values() if value is not None]
    now = f"intervals up to {percent_text(max(known))}" if len(known) == len(wide) else "intervals lacking"
    return f"{now}, to be {percent_text(width)}"


def _check_programs(catalog: Catalog, subjects: Sequence[Subject]) -> None:
    entries = {entry.configuration.module: entry for entry in catalog.entries}
    for one in subjects:
        for cell in one.cells:
            if entries[cell.measured.module].program(one.kernel.executable) is None:
                raise SetupError(
                    f"the module tells of {one.kernel.name} but brings no {one.kernel.executable}",
                    where=cell.measured.module,
                    remedy="build the environment again",
                )


def choose(catalog: Catalog, options: Options) -> list[Subject]:
    """The kernels and their distinct configurations. A baseline is always among them: ratios need it.

    Raises SelectionError when a name, filter or baseline fits nothing, SetupError when no module brings a
    kernel.
    """
    kernels = catalog.select_kernels(options.kernels)
    if not kernels:
        raise SetupError(
            "no module here brings a kernel", where=catalog.tree, remedy="build the environment again"
        )
    chosen = catalog.select_entries(options.configurations)
    compared = {one.module for kernel in kernels for one in _baselines(kernel, catalog, options.baseline)}
    compilers = {entry.configuration.compiler for entry in chosen}
    needed = [
        entry
        for entry in catalog.entries
        if entry in chosen
        or (entry.configuration.compiler in compilers and entry.configuration.module in compared)
    ]
    _check_policies(options.pages)
    subjects = [_subject(kernel, needed, options.baseline, options.pages) for kernel in kernels]
    found = [one for one in subjects if one.cells]
    if not found:
        raise SelectionError(
            "the chosen configurations bring none of these kernels",
            where="--kernels, --configurations",
            remedy="`pagewise list` tells both; other kernels may be in another environment: --env",
        )
    told = {cell.pages for one in found for cell in one.cells}
    for policy in options.pages:
        if policy not in told:
            raise SelectionError(
                f"no chosen configuration has hugepages={policy_kind(policy)}, to be told {policy}",
                where="--policies",
                remedy="choose such configurations, and kernels that feel hugepages; see `pagewise list`",
            )
    return found


def _baselines(kernel: Kernel, catalog: Catalog, pattern: str) -> list[Configuration]:
    """A kernel's baselines, one a compiler: of several libraries, widths or targets the first in order.

    Raises SelectionError.
    """
    built = [e.configuration for e in catalog.entries if kernel.name in e.kernels]
    fits = fitting(built, pattern)
    if len({one.plain for one in fits}) == 1:
        return list(baselines(built, pattern))
    found = ", ".join(sorted({one.label for one in fits})) or "none does"
    raise SelectionError(
        f"one configuration of {kernel.name} must fit the baseline {pattern!r}; these do: {found}",
        where="--baseline",
        remedy="name one as in `pagewise list`: none/hardware-regular",
    )


def _check_policies(policies: Sequence[str]) -> None:
    for policy in policies:
        try:
            size = policy_size(policy)
        except ValueError:
            size = None
        if size is None:
            raise SelectionError(
                f"{policy!r} is no page policy with a size",
                where="--policies",
                remedy="name it like thp:64k or hugetlbfs:1g; what was built is measured without being named",
            )


def _subject(kernel: Kernel, entries: Sequence[Entry], baseline: str, pages: Sequence[str]) -> Subject:
    return subject(kernel, (e.configuration for e in entries if kernel.name in e.kernels), baseline, pages)
