"""Compares results of several sessions: what changed in them, and on the machines that measured them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, Literal, get_args

from pagewise.analysis.nodes import host_facts
from pagewise.analysis.sessions import Change, ComparedQuantity, changes, session
from pagewise.analysis.validity import excluding
from pagewise.core.errors import SelectionError
from pagewise.core.result import Result, check_unaltered, read_result
from pagewise.core.structure import to_data
from pagewise.core.units import bytes_text

REGRESSION: Final = 1
INCOMPLETE: Final = 5
INCOMPARABLE: Final = 6
UNCLEAR: Final = 7
#: In the order of reports.
DifferencePart = Literal["machine", "asked", "node", "system", "compiler", "build", "source"]
# The facts of a host that determine times, in addition to its caches.
_MACHINE = {
    *("CPU", "architecture", "CPUs online", "SMT", "NUMA nodes"),
    *("memory", "base page size", "virtual machine"),
}
# The memory that firmware and kernel reserve differs a little from boot to boot.
_SAME_MEMORY = 0.05
_SHOWN = 3


@dataclass(frozen=True)
class Difference:
    """A fact that differs in NEW. A difference of `machine` or of what was `asked` forbids judging."""

    part: DifferencePart
    name: str
    old: str
    new: str
    forbids: Annotated[bool, "times of both cannot be compared"]


@dataclass(frozen=True)
class Diff:
    """What changed from the earlier results to the new one."""

    olds: tuple[Result, ...]
    new: Result
    quantity: ComparedQuantity
    threshold: float
    differing: tuple[Difference, ...]
    judged: bool
    changes: tuple[Change, ...]

    def count(self, status: str) -> int:
        """The number of cells with this status."""
        return sum(change.status == status for change in self.changes)

    def exit_code(self, strict: bool) -> Literal[0, 1, 5, 6, 7]:
        """0, or the code of the worst change; docs/reference/results.md has the list."""
        if not self.judged:
            return INCOMPARABLE
        if self.count("regression"):
            return REGRESSION
        if self.count("invalid") or self.count("missing"):
            return INCOMPLETE
        return UNCLEAR if strict and (self.count("inconclusive") or self.count("other")) else 0


def compare(
    folders: Sequence[Path], quantity: ComparedQuantity, threshold: float, across_machines: bool, seed: int
) -> Diff:
    """Reads the results and judges. Raises FormatError, SelectionError."""
    *olds, new = [_readable(folder) for folder in folders]
    differing = tuple(dict.fromkeys(item for old in olds for item in differences(old, new)))
    judged = across_machines or not any(item.forbids for item in differing)
    sessions = [
        session(item.subjects, item.records, seed, excluding(item), item.manifest.last_rounds)
        for item in (*olds, new)
    ]
    judgements = changes(sessions[:-1], sessions[-1], quantity, threshold, judged)
    return Diff(tuple(olds), new, quantity, threshold, differing, judged, tuple(judgements))


def _readable(folder: Path) -> Result:
    result = check_unaltered(read_result(folder))
    if result.manifest.kind in ("counters", "simulation"):
        raise SelectionError(
            "this result contains counts of events, not timed runs",
            where=folder,
            remedy="name results of compare",
        )
    return result


def differences(old: Result, new: Result) -> list[Difference]:
    """All differences, those of the machine first."""
    hosts = [host_facts(result.manifest.host) for result in (old, new)]
    values: list[tuple[DifferencePart, str, Any, Any]] = [
        (_part(name), name, hosts[0].get(name), hosts[1].get(name))
        for name in dict.fromkeys((*hosts[0], *hosts[1]))
    ]
    for part, name, fact in _FACTS:
        before, after = (_at(r, fact) if isinstance(fact, str) else fact(r) for r in (old, new))
        values.append((part, name, before, after))
    items = [
        Difference(part, name, *_texts(before, after), forbids=part in ("machine", "asked"))
        for part, name, before, after in values
        if not _same(name, before, after)
    ]
    return sorted(items, key=lambda item: get_args(DifferencePart).index(item.part))


def _part(fact: str) -> DifferencePart:
    return "machine" if fact in _MACHINE or fact.endswith(" cache") else "system"


def _at(result: Result, path: str) -> Any:
    value: Any = result.manifest
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
    return to_data(value)


def _compilers(result: Result) -> list[str]:
    """Compilers by the programs' own report, which is more precise than the module's name."""
    versions = {record.configuration.compiler_version for record in result.records}
    modules = {entry.compiler for entry in result.manifest.configurations}
    return sorted(modules | set(filter(None, versions)))


def _options(result: Result) -> list[str]:
    builds = [record.configuration for record in result.records]
    return sorted({f"{build.compiler} {option}" for build in builds for option in build.code_options})


def _builds(result: Result) -> dict[str, str]:
    return {entry.module: entry.hash for entry in result.manifest.configurations}


def _of_programs(result: Result, name: str) -> Any:
    """A fact of the user's programs by their names; of a single one the fact itself, None without any."""
    facts = {key: described.get(name) for key, described in result.manifest.programs.items()}
    return next(iter(facts.values()), None) if len(facts) < 2 else facts


def _environment(result: Result) -> dict[str, str] | None:
    """The caller's variables that reached the programs, which are the same for all; None for kernels."""
    described = [each.get("environment") for each in result.manifest.programs.values()]
    return dict(described[0]["passed"]) if described and described[0] else None


_FACTS: tuple[tuple[DifferencePart, str, str | Callable[[Result], Any]], ...] = (
    ("asked", "threads", "threads"),
    ("asked", "ranks", "placement.ranks"),
    ("asked", "program's arguments", lambda result: _of_programs(result, "command")),
    ("node", "host name", "host.hostname"),
    ("system", "prefetchers off", "prefetchers.off"),
    ("system", "prefetchers adjusted", "prefetchers.adjusted"),
    ("system", "clocks set", lambda result: {each.file: each.now for each in result.manifest.clocks or ()}),
    ("system", "CPUs used", "placement.cpus"),
    ("compiler", "compilers", _compilers),
    ("compiler", "options", _options),
    ("system", "program's environment", _environment),
    ("build", "builds", _builds),
    ("build", "program", lambda result: _of_programs(result, "sha256")),
    ("source", "project", "provenance.project_commit"),
    ("source", "lockfile", "provenance.lockfile_sha256"),
    ("source", "Spack packages", "provenance.packages_commit"),
    ("source", "pagewise", "software.pagewise"),
)


def _same(name: str, old: Any, new: Any) -> bool:
    if name == "memory" and isinstance(old, float) and isinstance(new, float):
        return abs(old / new - 1.0) <= _SAME_MEMORY
    if name == "builds":
        # Modules of one result only are reported as missing or new.
        return all(old[module] == new[module] for module in old.keys() & new.keys())
    return bool(old == new)


def _texts(old: Any, new: Any) -> tuple[str, str]:
    """Both values as text; of lists and mappings only what differs."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        before, after = ({name: item[name] for name in names if name in item} for item in (old, new))
        return _text(before), _text(after)
    if isinstance(old, list) and isinstance(new, list):
        return _text([item for item in old if item not in new]), _text(
            [item for item in new if item not in old]
        )
    return _text(old), _text(new)


def _text(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, float):
        return bytes_text(value)
    if isinstance(value, Mapping):
        value = [f"{name} {_text(item)}" for name, item in value.items()]
    if isinstance(value, list):
        more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
        return ", ".join(map(str, value[:_SHOWN])) + more
    # Digests and commits are shown by their first characters.
    return value[:12] if isinstance(value, str) and re.fullmatch(r"[0-9a-z]{32,}", value) else str(value)
