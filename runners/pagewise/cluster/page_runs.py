"""Page policies for the benchmarks of other tools (Ramble, ReFrame): the command, and what its records show.

Imports the standard library only, because these tools bring their Python.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LAUNCHER = "pagewise-exec"
_SCHEMA = "pagewise.exec/1"
#: One file per host, because not all file systems append atomically; %h is the host's name for the launcher.
RECORD, RECORDS = "pagewise-pages.%h.jsonl", "pagewise-pages.*.jsonl"

_QUOTED = r"""'[^']*'|"(?:\\.|[^"\\])*"|\\."""
# Where one command of a line ends and the next one begins, outside of quotation marks and of [[ ]].
_PARTS = re.compile(rf"{_QUOTED}|\[\[\s.*?\]\]|(?P<end>&&|\|\|?|;|\n)", re.DOTALL)
# What precedes the program of a command: assignments, and words of the shell that a command follows.
_BEFORE = re.compile(
    rf"\s*(?:(?:if|elif|while|until|do|then|else|time|exec|command|nohup|!|\{{)\s+|\(\s*"
    rf"|[A-Za-z_]\w*=(?:{_QUOTED}|\S)*\s+)*"
)
_WORD = re.compile(r"[^\s;|&<>()]+")
#: Builtins and keywords of bash, and functions that set up its environment: no programs.
_OF_SHELL = """
    . : [ [[ { } alias bg bind break builtin case cd complete continue declare dirs disown done echo
    enable esac eval exit export false fg fi for function getopts hash history in jobs kill let local
    mapfile ml module popd printf pushd pwd read readarray readonly return select set shift shopt source
    spack suspend test times trap true type typeset ulimit umask unalias unset wait
"""


@dataclass(frozen=True)
class RunPages:
    """What the records of a run show.

    policy: its name, None without a record. problem: why it does not count as met, None if it was met.
    peak_bytes: of the largest process. coverage: the least of the verified processes. kinds: the share on
    huge pages of all memory of a kind, without kinds that fill no huge page.
    """

    policy: str | None
    problem: str | None
    processes: int
    peak_bytes: int
    coverage: float
    kinds: Mapping[str, float]


def find_launcher() -> str:
    """The launcher that `make setup` installed in the checkout of this file, else the one on PATH."""
    own = Path(__file__).resolve().parents[3] / ".pagewise" / "exec" / "bin" / _LAUNCHER
    return str(own) if os.access(own, os.X_OK) else _LAUNCHER


def prefix_programs(line: str, launcher: str) -> str:
    """A line of shell in which `launcher` precedes each program, but not the shell's commands."""
    ends = [match.end() for match in _PARTS.finditer(line) if match["end"]]
    shell = _OF_SHELL.split()
    for start in reversed([0, *ends]):
        before = _BEFORE.match(line, start)
        at = before.end() if before else start
        word = _WORD.match(line, at)
        if word and word[0] not in shell and not word[0].startswith("#"):
            line = f"{line[:at]}{launcher} {line[at:]}"
    return line


def read_pages(folder: Path) -> RunPages:
    """Reads the records that the processes of a run wrote into a folder."""
    records: list[dict[str, Any]] = []
    fault = None
    for file in sorted(folder.glob(RECORDS)):
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            record = _parse(line)
            if record is None:
                fault = fault or f"{file}:{number}: not a record of {_SCHEMA}"
            else:
                records.append(record)
    verified = [record for record in records if record["met"] is not None]
    return RunPages(
        records[0]["policy"] if records else None,
        fault or _problem(records),
        len(records),
        max((record["peak_bytes"] for record in records), default=0),
        min((record["coverage"] for record in verified), default=0.0),
        dict(_shares(records)),
    )


def _parse(line: str) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    return record if isinstance(record, dict) and record.get("schema") == _SCHEMA else None


def _problem(records: list[dict[str, Any]]) -> str | None:
    if not records:
        return (
            "no process recorded its pages: the launcher refused the policy (see the output), the program is "
            "static, or a signal ended it"
        )
    unmet = [record for record in records if record["met"] is False]
    if unmet:
        worst = min(unmet, key=lambda record: record["coverage"])
        return (
            f"{worst['policy']} was not met by {len(unmet)} of {len(records)} processes, for example "
            f"{worst['program']} on {worst['host']}: coverage {worst['coverage']:.0%}"
        )
    if all(record["met"] is None for record in records):
        return f"{records[0]['policy']} was not verified: no process had enough memory of its kinds observed"
    return None


def _shares(records: list[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    for kind in sorted({kind for record in records for kind in record["kinds"]}):
        used = [record["kinds"][kind] for record in records if kind in record["kinds"]]
        resident, huge = (sum(share[f"{name}_bytes"] for share in used) for name in ("resident", "huge"))
        if huge or resident >= records[0]["page_size_bytes"]:
            yield kind, huge / resident
