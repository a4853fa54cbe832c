"""A page policy as the launcher pagewise-exec applies it to a program, and why it is unavailable."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Annotated, Literal

from pagewise.core.errors import RefusedError, SelectionError, SetupError
from pagewise.core.fields import Natural, OptionalText
from pagewise.core.node_state import ProcessThp
from pagewise.core.record_parts import Failure
from pagewise.core.structure import from_data
from pagewise.core.text import choose_of
from pagewise.core.units import bytes_text
from pagewise.stack.binary import Binary, Elf, NotElfError, read_elf
from pagewise.workloads.program.policy import DEFAULT, PARTS, meaning

# What the launcher may be asked to assume: the options that provide it.
_PROVIDED_BY = {"thp": "--prepare-pages thp", "pool": "--prepare-pages (root)"}
_WRONG_USAGE, _REFUSED = 2, 4


@dataclass(frozen=True)
class PolicyPart:
    """A part of a policy. source: what the system must provide. kinds: of memory on huge pages."""

    name: str
    source: Literal["thp", "shared", "pool"] | None
    size_bytes: Annotated[Natural, "the page size that the policy names for this part, or 0"]
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class PolicySettings:
    """What the launcher sets for the program: variables (null: removed), preloaded libraries, their actions.

    removed: the caller's settings that are page policies. is_advised: whether only programs that ask get
    transparent huge pages.
    """

    environment: Mapping[str, OptionalText] = field(default_factory=dict)
    removed: Mapping[str, str] = field(default_factory=dict)
    preloads: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    is_advised: bool = False


@dataclass(frozen=True)
class PolicyAnswer:
    """What a page policy does for a program (exec --check); after wrong usage only why it is unavailable."""

    schema: Literal["pagewise.check/1"]
    policy: Annotated[str, "its name, with the parts in their order"]
    available: bool
    reason: Annotated[OptionalText, "why it is unavailable"]
    remedy: OptionalText
    missing: Annotated[Literal["thp", "pool"] | None, "the assumption (--assume) that removes this obstacle"]
    thp: Annotated[ProcessThp, "that it leaves to the program"] = "allowed"
    page_size_bytes: Annotated[Natural, "of its huge pages"] = 0
    thp_size_bytes: Annotated[Natural, "of the node's transparent huge pages"] = 0
    parts: tuple[PolicyPart, ...] = ()
    allocator: Annotated[OptionalText, "what serves malloc, null for the C library"] = None
    settings: PolicySettings = PolicySettings()

    @property
    def reached(self) -> tuple[PolicyPart, ...]:
        """The parts that put memory on huge pages."""
        return tuple(part for part in self.parts if part.kinds)

    @property
    def from_pool(self) -> bool:
        """Whether it takes pages of a hugetlb pool."""
        return any(part.source == "pool" for part in self.parts)

    @property
    def by_counter(self) -> bool:
        """Whether a counter of the kernel verifies it, because smaps does not show this size (mTHP)."""
        return bool(self.reached) and not self.from_pool and self.page_size_bytes != self.thp_size_bytes

    @property
    def failure(self) -> Failure | None:
        """Why it is unavailable; the remedy begins with the option that provides what is missing."""
        if self.available:
            return None
        remedies = (_PROVIDED_BY.get(self.missing or ""), self.remedy)
        return Failure(3, self.reason or "", ", or ".join(filter(None, remedies)) or None)


@dataclass(frozen=True)
class PolicyLauncher:
    """The program pagewise-exec. assumed: what will be provided before runs, `thp` and `pool`."""

    file: Path
    assumed: tuple[str, ...] = ()

    def ask(self, policy: str, program: Path, environment: Mapping[str, str], *further: str) -> PolicyAnswer:
        """What a policy does for a program. Raises SelectionError for no policy, RefusedError, SetupError."""
        options = ["--check", "--quiet", *further, *(f"--assume={name}" for name in self.assumed)]
        words = [str(self.file), *options, "+" if policy.startswith("-") else policy, "--", str(program)]
        try:
            done = subprocess.run(words, env=environment, capture_output=True, check=False)
            data = json.loads(os.fsdecode(done.stdout))
            if done.returncode not in (_WRONG_USAGE, _REFUSED):
                return from_data(PolicyAnswer, data, ignored="null")
            reason = str(data["reason"])
        except (OSError, ValueError, KeyError) as fault:
            raise SetupError(f"this launcher does not answer: {fault}", where=self.file) from fault
        if done.returncode == _REFUSED:
            raise RefusedError(reason, remedy=data["remedy"])
        known = choose_of(policy.partition(":")[0], PARTS)
        raise SelectionError(
            f"{policy!r}: {reason}",
            where=f"--policies {policy}",
            remedy=f"{known}; joined as in reuse+thp, with a size as in hugetlbfs:1g",
        )

    def starter(self, policy: str = "none") -> list[str]:
        """The command line that starts a program under a policy, without the program."""
        return [str(self.file), "--quiet", policy, "--"]

    def examine(self, binary: Binary, environment: Mapping[str, str]) -> Binary:
        """The program, with what serves its malloc."""
        answer = self.ask("none", binary.image, environment, "--allocator")
        return replace(binary, allocator=answer.allocator)


@dataclass(frozen=True)
class AppliedPolicy:
    """A page policy with the program that is run under it.

    programs: those that ran when the program was tried, if they are others (a script, a launcher).
    """

    name: str
    launcher: PolicyLauncher
    binary: Binary
    environment: Mapping[str, str]
    programs: tuple[Binary, ...] = ()

    @property
    def answer(self) -> PolicyAnswer:
        """What the launcher does."""
        return self._decided[1]

    @property
    def unavailable(self) -> Failure | None:
        """Why it cannot work for this program on this machine, and what to do; None when nothing is known.

        Of several programs, one that it works for suffices; else the reason is that of the first.
        """
        return self._decided[2]

    @cached_property
    def _decided(self) -> tuple[Binary, PolicyAnswer, Failure | None]:
        decisions = [(binary, *self._of(binary)) for binary in self.programs or (self.binary,)]
        return next((decision for decision in decisions if decision[2] is None), decisions[0])

    def _of(self, binary: Binary) -> tuple[PolicyAnswer, Failure | None]:
        answer = self.launcher.ask(self.name, binary.image, self.environment)
        return answer, answer.failure or _too_small(answer, binary)

    def refusal(self) -> Failure | None:
        """Why the launcher refuses it now: the pages of a pool may be gone."""
        assumed = tuple(name for name in self.launcher.assumed if name != "pool")
        return replace(self, launcher=replace(self.launcher, assumed=assumed)).unavailable

    @property
    def switched_size(self) -> int | None:
        """The size of transparent huge pages to switch on for its runs alone."""
        sizes = (part.size_bytes for part in self.answer.parts if part.source == "thp" and part.size_bytes)
        return next(sizes, None) if "thp" in self.launcher.assumed else None

    @property
    def switches(self) -> set[str]:
        """The policies whose switches must be on for all runs: `thp`, `shared`."""
        sources = {part.source for part in self.answer.parts if not part.size_bytes}
        return {source for source in sources if source and source != "pool"}

    def command(self, arguments: Iterable[str]) -> list[str]:
        """The program's command line."""
        decisive, program = self._decided[0].image, self.binary.program
        first, *rest = self.launcher.starter(self.answer.policy)
        named = [] if decisive == program.resolve() else [f"--for={decisive}"]
        return [first, *named, *rest, str(program), *arguments]

    def to_dict(self) -> dict[str, object]:
        """As the manifest has it."""
        return {
            "name": self.answer.policy,
            "meaning": meaning(self.answer.policy),
            "preloaded": list(self.answer.settings.actions),
            "advised": self.answer.settings.is_advised,
            "unavailable_reason": None if self.unavailable is None else self.unavailable.message,
        }


def default_policies(baseline: AppliedPolicy, *, starts_others: bool) -> Sequence[str]:
    """The policies that are measured by default: without code or static arrays smaller than a huge page.

    Where programs must ask for huge pages and nothing can be preloaded: also `collapse`, if permitted.
    starts_others: it is a script or a launcher, so that other programs have the memory.
    """
    if starts_others:
        return DEFAULT
    every = (replace(baseline, name=name) for name in DEFAULT)
    names = [each.name for each in every if _too_small(each.answer, each.binary) is None]
    settings, outside = baseline.answer.settings, replace(baseline, name="collapse")
    is_reached = settings.preloads or not settings.is_advised
    return names if is_reached or outside.unavailable is not None else [*names, outside.name]


def elf_files(binary: Binary) -> list[Elf]:
    """The program and its libraries."""
    files = [binary.elf]
    for name in binary.libraries:
        with suppress(NotElfError, OSError):
            files.append(read_elf(Path(name)))
    return files


# What a program has of the kinds of memory whose size is known before it runs.
_SIZES: Mapping[tuple[str, ...], tuple[str, Callable[[Elf], int]]] = {
    ("text",): ("the largest machine code of it and its libraries is", attrgetter("text_bytes")),
    ("bss",): ("its zeroed static data (.bss) is", attrgetter("zeroed_bytes")),
    ("bss", "data"): ("its static data (.data, .bss) is", attrgetter("static_bytes")),
}


def _too_small(answer: PolicyAnswer, binary: Binary) -> Failure | None:
    """Why no page of the policy's size fits into the memory that a part is for."""
    for part in answer.parts:
        message, size_of = _SIZES.get(part.kinds, ("", None))
        if size_of is None:
            continue
        files = elf_files(binary) if "text" in part.kinds else [binary.elf]
        page = answer.page_size_bytes if part.source == "pool" else answer.thp_size_bytes
        if any(file.holds(size_of(file), page) for file in files):
            continue
        size = max(map(size_of, files))
        why = f"less than one page of {bytes_text(page)}"
        if size >= page:
            why = f"it has a whole page of {bytes_text(page)} at some addresses only, which differ by run"
        return Failure(3, f"{message} {bytes_text(size)}: {why}")
    return None
