"""Runs a program as MPI ranks of one node: its command line, and what each rank had as it started."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pagewise.core.reading import parse_json, read_file
from pagewise.core.record_parts import Failure, RankUse
from pagewise.core.units import count_text
from pagewise.machine import rank
from pagewise.machine.placement import Placement
from pagewise.machine.settings.prefetchers import run_without_prefetchers
from pagewise.stack.binary import files_of
from pagewise.stack.launcher import RankLauncher, find_launcher

#: The program that becomes a rank's.
WRAPPER = str(Path(rank.__file__).resolve())


@dataclass(frozen=True)
class Ranks:
    """The ranks of a run. `folder` is where they report; a new one for each run."""

    launcher: RankLauncher
    placement: Placement
    folder: Path

    @property
    def number(self) -> int:
        """How many there are."""
        return len(self.placement.cpus_by_rank)

    def command(self, command: Sequence[str]) -> list[str]:
        """The command line that starts the ranks; what they reported before is deleted."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        kind = self.launcher.kind
        spec = {
            "variables": kind.variables,
            "cpus": self.placement.cpus_by_rank,
            "folder": str(self.folder),
            "inherits": kind.inherits,
            "memory": asdict(self.placement.memory),
        }
        file = self.folder / "spec.json"
        file.write_text(json.dumps(spec), encoding="utf-8")
        launch = self.launcher.command(self.number, self.placement.threads)
        return [*launch, sys.executable, "-I", "-S", WRAPPER, str(file), *command]

    def processes(self) -> dict[int, int]:
        """The process of each rank that has started on this node."""
        return {number: report["pid"] for number, report in self._reports().items()}

    def rank_uses(self) -> tuple[RankUse, ...]:
        """What the process of each rank had as it started."""
        reports = self._reports().items()
        return tuple(RankUse(number, tuple(report["cpus"]), report["memory"]) for number, report in reports)

    def failure(self) -> Failure | None:
        """Why a run that ended well was not one of all ranks; None if it was."""
        missing = sorted(set(range(self.number)) - self._reports().keys())
        if not missing:
            return None
        text = ", ".join(map(str, missing))
        return Failure(
            4,
            f"rank {text} of {count_text(self.number, 'rank')} did not start on this node",
            f"all ranks of a comparison run on one node: check the options of {self.launcher.program}",
        )

    def _reports(self) -> dict[int, dict[str, Any]]:
        reports = {}
        for number in range(self.number):
            with suppress(OSError, ValueError):
                report = parse_json(read_file(self.folder / str(number)))
                if report["host"] == socket.gethostname():
                    reports[number] = report
        return reports


def run_as_ranks(
    command: Sequence[str],
    environment: Mapping[str, str],
    placement: Placement,
    prefetchers: Sequence[str] = (),
) -> int:
    """Runs a command as ranks, with hardware prefetchers off; its exit code.

    Raises SetupError for a missing launcher, and as run_without_prefetchers.
    """
    launcher = find_launcher(files_of(Path(command[0]), environment), environment)
    with TemporaryDirectory(prefix="pagewise-") as folder, placement.bind():
        ranks = Ranks(launcher, placement, Path(folder) / "ranks")
        variables = {**environment, **placement.environment, **launcher.environment}
        return run_without_prefetchers(prefetchers, ranks.command(command), variables)
