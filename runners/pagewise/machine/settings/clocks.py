"""Clocks of the processor: governor and boost during a session, if the user requests them, then restored.

Sources: Linux, Documentation/admin-guide/pm/cpufreq.rst and intel_pstate.rst.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.manifest import Switched
from pagewise.core.text import choose_of
from pagewise.machine.host import read
from pagewise.machine.settings.kinds import Word
from pagewise.machine.settings.session import keep_journal, switch

_OPTION = "--vary clocks"
_CPUS = Path("sys/devices/system/cpu")
_BOOSTS = {"on": True, "off": False}
NAMES = ("governor", "boost")


def find_clocks(requested: Sequence[str], root: Path = Path("/")) -> list[tuple[Word, str]]:
    """The files of the requested settings, as `governor=performance` and `boost=off`, and their words.

    Changes nothing. Raises SelectionError for a malformed or repeated setting or an unknown value,
    RefusedError for a setting that this machine does not have. `root` stands for / (tests pass another).
    """
    given: dict[str, str] = {}
    for text in requested:
        name, _, value = text.partition("=")
        if name not in NAMES or not value or name in given:
            raise SelectionError(
                f"{text!r} is not a setting of clocks, or is given twice",
                where=_OPTION,
                remedy=f"write each of {', '.join(NAMES)} once, as governor=performance,boost=off",
            )
        given[name] = value
    find = {"governor": _governors, "boost": _boost}
    return [pair for name, value in given.items() for pair in find[name](value, root / _CPUS)]


@contextmanager
def clocks_set(requested: Sequence[str], root: Path = Path("/")) -> Iterator[list[Switched]]:
    """Sets clocks during the block; yields each file with its values. Raises as find_clocks does."""
    files = find_clocks(requested, root)
    with keep_journal(root) as journal:
        journal.keep(also for word, _ in files for also in _changed_with(word))
        yield switch(journal, files)


def _changed_with(word: Word) -> list[Word]:
    """What a driver may change with a governor: a frequency set by hand, the preference of amd-pstate."""
    if word.file.name != "scaling_governor":
        return []
    names = ["energy_performance_preference", *(["scaling_setspeed"] if word.get() == "userspace" else [])]
    return [Word(file) for name in names if (file := word.file.with_name(name)).exists()]


def _governors(value: str, cpus: Path) -> list[tuple[Word, str]]:
    """One file for each group of CPUs that have one clock."""
    files = sorted((cpus / "cpufreq").glob("policy[0-9]*/scaling_governor"))
    if not files:
        raise RefusedError(
            "Linux does not choose the clocks of this machine",
            where=cpus / "cpufreq",
            remedy=f"a hypervisor or the firmware does; omit {_OPTION} governor",
        )
    for file in files:
        known = (read(file.with_name("scaling_available_governors")) or "").split()
        if known and value not in known:
            raise SelectionError(
                f"{value!r} is not a governor of this machine",
                where=f"{_OPTION} governor={value}",
                remedy=choose_of(value, known),
            )
    return [(Word(file), value) for file in files]


def _boost(value: str, cpus: Path) -> list[tuple[Word, str]]:
    """Of intel_pstate, where 1 means off, or of the other drivers."""
    if value not in _BOOSTS:
        raise SelectionError(
            f"boost is on or off, not {value!r}", where=_OPTION, remedy="write boost=on or boost=off"
        )
    for name, on in (("intel_pstate/no_turbo", "0"), ("cpufreq/boost", "1")):
        if (cpus / name).exists():
            return [(Word(cpus / name), on if _BOOSTS[value] else "10"[int(on)])]
    raise RefusedError(
        "the driver of this machine's clocks has no switch for boost",
        where=cpus / "cpufreq/boost",
        remedy=f"change it in the firmware's setup, or omit {_OPTION} boost",
    )
