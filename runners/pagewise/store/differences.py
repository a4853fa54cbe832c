"""What is another in a result than in one before: machine, its settings, compilers, builds, sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pagewise.core.result import Result
from pagewise.core.units import bytes_text

Part = Literal["machine", "node", "system", "asked", "compiler", "build", "source"]
# Memory that firmware and kernel keep for themselves differs a little from boot to boot.
_SAME_MEMORY = 0.05
_SHOWN = 3
Manifest = Mapping[str, Any]


@dataclass(frozen=True)
class Difference:
    """Something that is another in NEW. A difference of `machine` or of what was `asked` forbids judging."""

    part: Part
    name: str
    old: str
    new: str

    @property
    def forbids(self) -> bool:
        """Whether times of the two say nothing of each other."""
        return self.part in ("machine", "asked")


def differences(old: Result, new: Result) -> list[Difference]:
    """All differences, those of the machine first."""
    return [
        Difference(part, name, *_texts(before, now))
        for part, name, get in _FACTS
        if not _same(name, before := get(old), now := get(new))
    ]


def _host(name: str) -> Callable[[Result], Any]:
    return lambda result: result.manifest["host"].get(name)


def _asked(name: str) -> Callable[[Result], Any]:
    return lambda result: result.manifest.get(name)


def _source(name: str) -> Callable[[Result], Any]:
    return lambda result: result.manifest["provenance"].get(name)


def _pools(result: Result) -> dict[str, int]:
    pools = result.manifest["host"].get("pools") or []
    return {bytes_text(one["page_bytes"]): one["total"] for one in pools}


def _thp(result: Result) -> Any:
    return {name: value for name, value in (result.manifest["host"].get("thp") or {}).items() if value}


def _caches(result: Result) -> list[str]:
    caches = result.manifest["host"].get("caches") or []
    return [f"L{one['level']} {bytes_text(one['bytes'])}" for one in caches]


def _compilers(result: Result) -> list[str]:
    """Compilers as the programs themselves tell, which says more than the module's name."""
    told = {record.configuration.compiler_version for record in result.records}
    named = {one["compiler"] for one in result.manifest["configurations"]}
    return sorted(named | {version for version in told if version is not None})


def _options(result: Result) -> list[str]:
    """The compilers' options but for paths, which are those of a build."""
    found = set()
    for record in result.records:
        built = record.configuration
        words = (built.compiler_options or "").split()
        found |= {f"{built.compiler} {word}" for word in words if re.match(r"-[Omf][^/]*$", word)}
    return sorted(found)


def _builds(result: Result) -> dict[str, str]:
    return {one["module"]: one["hash"] for one in result.manifest["configurations"]}


def _program(result: Result) -> Any:
    return (result.manifest.get("program") or {}).get("sha256")


def _environment(result: Result) -> Any:
    """The caller's variables that reached the program; None for kernels."""
    return (result.manifest.get("program") or {}).get("environment", {}).get("passed")


def _command(result: Result) -> Any:
    return (result.manifest.get("program") or {}).get("command")


_FACTS: tuple[tuple[Part, str, Callable[[Result], Any]], ...] = (
    ("machine", "CPU", _host("cpu")),
    ("machine", "architecture", _host("architecture")),
    ("machine", "CPUs", _host("cpus")),
    ("machine", "SMT", _host("smt")),
    ("machine", "caches", _caches),
    ("machine", "memory", _host("memory_bytes")),
    ("machine", "NUMA nodes", lambda result: len(result.manifest["host"].get("numa_nodes") or [])),
    ("machine", "base page size", _host("base_page_size_bytes")),
    ("machine", "virtual machine", _host("virtual_machine")),
    ("asked", "threads", _asked("threads")),
    ("asked", "program's arguments", lambda result: (_command(result) or [None])[1:]),
    ("node", "host name", _host("hostname")),
    ("system", "kernel", _host("kernel")),
    ("system", "transparent huge pages", _thp),
    ("system", "pools of huge pages", _pools),
    ("system", "governors", _host("governors")),
    ("system", "container", _host("container")),
    ("system", "prefetchers off", lambda result: (result.manifest.get("prefetchers") or {}).get("off")),
    ("system", "CPUs used", lambda result: result.manifest["placement"]["cpus"]),
    ("compiler", "compilers", _compilers),
    ("compiler", "options", _options),
    ("system", "program's environment", _environment),
    ("build", "builds", _builds),
    ("build", "program", _program),
    ("source", "project", _source("project_commit")),
    ("source", "lockfile", _source("lockfile_sha256")),
    ("source", "Spack packages", _source("packages_commit")),
    ("source", "pagewise", lambda result: result.manifest["software"].get("pagewise")),
)


def _same(name: str, old: Any, new: Any) -> bool:
    if name == "memory" and old and new:
        return bool(abs(old / new - 1.0) <= _SAME_MEMORY)
    if name == "builds":
        # Modules that only one has are told as missing or new.
        return all(old[module] == new[module] for module in old.keys() & new.keys())
    return bool(old == new)


def _texts(old: Any, new: Any) -> tuple[str, str]:
    """Both, of lists and mappings only what differs."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        before, after = ({name: one[name] for name in names if name in one} for one in (old, new))
        return _text(before), _text(after)
    if isinstance(old, list) and isinstance(new, list):
        return _text([one for one in old if one not in new]), _text([one for one in new if one not in old])
    return _text(old), _text(new)


def _text(value: Any) -> str:
    if value is None or value in ([], {}):
        return "none"
    if isinstance(value, Mapping):
        value = [f"{name} {_text(one)}" for name, one in value.items()]
    if isinstance(value, list):
        more = f" and {len(value) - _SHOWN} more" if len(value) > _SHOWN else ""
        return ", ".join(map(str, value[:_SHOWN])) + more
    # Digests and commits are known by their first characters.
    return value[:12] if isinstance(value, str) and re.fullmatch(r"[0-9a-z]{32,}", value) else str(value)
