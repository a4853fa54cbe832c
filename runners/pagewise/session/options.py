"""The options of a session, whatever it runs: one type per panel of `pagewise compare --help`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pagewise.machine.placement import NOWHERE, Where

_Options = TypeVar("_Options", bound="SessionOptions")


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How often runs are made, in which order, and how long each may take.

    until: the relative width of intervals to reach within the budget; None: the given number of rounds.
    limit: seconds per run. aa: additional runs of each baseline per round.
    """

    rounds: int = 1
    until: float | None = None
    budget: float = 600.0
    aa: int = 1
    seed: int = 1
    limit: float = 300.0
    end_leftovers: bool = False


@dataclass(frozen=True, kw_only=True)
class MachineOptions:
    """Settings of the machine that the session changes and restores.

    pool_memory: bytes to reserve for a program; None: by its trial run. prefetchers, clocks: one setting for
    all runs, or several to compare, each of its parts.
    """

    reserve: bool = False
    set_thp_sizes: bool = False
    pool_memory: int | None = None
    node_states: tuple[str, ...] = ()
    prefetchers: tuple[tuple[str, ...], ...] = ()
    clocks: tuple[tuple[str, ...], ...] = ()

    @property
    def changes(self) -> bool:
        """Whether a setting is changed."""
        return bool(self.reserve or self.set_thp_sizes or self.node_states or self.prefetchers or self.clocks)


@dataclass(frozen=True, kw_only=True)
class ResultOptions:
    """Where the result goes: a new folder below `results`, or that of an interrupted session."""

    results: Path = Path("results")
    name: str = ""
    resume: Path | None = None


@dataclass(frozen=True, kw_only=True)
class SessionOptions:
    """The options of every session; workloads add what they run.

    environment, modules: where modules are looked up. settings: values of environment variables to compare.
    """

    environment: str | None = None
    modules: Path | None = None
    baseline: str = ""
    settings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    runs: RunOptions = RunOptions()
    where: Where = NOWHERE
    machine: MachineOptions = MachineOptions()
    result: ResultOptions = ResultOptions()

    def named(self: _Options, name: str) -> _Options:
        """The options with this name of the result, unless the user named it."""
        return replace(self, result=replace(self.result, name=self.result.name or name))
