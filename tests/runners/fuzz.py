"""Random changes of a result's manifest and records, and the commands that read them."""

from __future__ import annotations

import copy
import json
import random
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from fault import INTERNAL, Ended, Place

from pagewise.core.manifest import Manifest
from pagewise.core.record import Record
from pagewise.core.structure import faults
from pagewise.core.text import printable
from stage import result_content, write_result

EVIL = "a\x1b[31m\x1b]0;t\x07[/]\u202e$x$';touch x"
VALUES = (
    None, True, False, 0, -1, 1, 2, 7, 0.0, -0.5, 0.3, 5e-324, 1e-9, 1e9, 1e308, -1e308, 2**31, 2**53,
    2**63 - 1, "", "x", "none", "thp", "hugetlbfs:1g", "-", "=", "a=b", "0-3", "/", "\n", EVIL, "é" * 3000,
    "2026-01-02T03:04:05Z",
    [], {}, [None], [0], [""], {"": None}, {"x": 1}, {"a": []},
)  # fmt: skip
# What reads results. `{bad}` is the changed one, `{good}` another, `{all}` the folder with both.
COMMANDS = (
    ("results", "show", "{bad}"),
    ("results", "show", "{bad}", "--json"),
    ("results", "list", "{all}"),
    ("results", "list", "{all}", "--json"),
    ("results", "diff", "{good}", "{bad}"),
    ("results", "diff", "{bad}", "{good}", "--json", "--across-machines", "--of", "time"),
    ("results", "query", "SELECT count(*) FROM runs", "{all}"),
    ("results", "query", "faults", "{all}", "--json"),
    ("report", "{bad}"),
    ("report", "{bad}", "--json"),
    ("report", "{bad}", "--verbose"),
    ("kernels", "--resume", "{bad}"),
)


def change(data: Any, source: random.Random) -> None:
    """Changes data of JSON at a random place."""
    parents = list(_parents(data))
    if not parents:
        return
    parent, key = source.choice(parents)
    kind, before = source.random(), parent[key]
    if kind < 0.1:
        del parent[key]
    elif kind < 0.2:
        parent[key] = copy.deepcopy(source.choice(VALUES))
    elif kind < 0.3 and isinstance(parent, list):
        parent.append(copy.deepcopy(before))
    elif kind < 0.35 and isinstance(parent, dict):
        parent[source.choice(("", "x", EVIL, "y" * 300))] = parent.pop(key)
    elif kind < 0.5:
        parent[key] = source.choice((None, [], {}, ""))
    elif isinstance(before, (int, float)) and not isinstance(before, bool):
        parent[key] = source.choice((0, -before, before * 1000, before + 1, before * 0.3, 1e-300, 2**62))
    else:
        # Another value of the same type passes more checks.
        alike = [above[name] for above, name in parents if type(above[name]) is type(before)]
        parent[key] = copy.deepcopy(source.choice(alike))


def _parents(data: Any) -> Iterator[tuple[Any, Any]]:
    """Each place in the data, as its parent and key."""
    for key in data if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ():
        yield data, key
        yield from _parents(data[key])


def changed(kind: type[Any], data: Any, source: random.Random, *, valid: bool) -> Any:
    """Data with a random change; if `valid`, one that its schema permits, so that it reaches later code."""
    for _ in range(8):
        made = copy.deepcopy(data)
        change(made, source)
        if not valid or not faults(kind, made):
            return made
    return data


def fuzzed(result: Path, to: Path, source: random.Random) -> None:
    """Writes a copy of a result with random changes of its manifest, its records, or both."""
    manifest, lines = result_content(result)
    manifest["id"] = "f" * 16
    kind, valid = source.random(), source.random() < 0.8
    for _ in range(source.choice((1, 1, 2, 4, 8))):
        if kind < 0.6:
            manifest = changed(Manifest, manifest, source, valid=valid)
        if kind > 0.4 and lines:
            # One record, or all of them alike.
            seed, alike = source.random(), source.random() < 0.3
            for at in range(len(lines)) if alike else (source.randrange(len(lines)),):
                lines[at] = changed(Record, lines[at], random.Random(seed), valid=valid)
    shutil.rmtree(to, ignore_errors=True)
    write_result(to, manifest, lines)
    if isinstance(manifest.get("records"), dict) and source.random() < 0.9:
        digest = json.loads((to / "manifest.json").read_text())["records"]
        judged = {name: copy.deepcopy(source.choice((*VALUES, [{}]))) for name in ("cells", "excluded")}
        if source.random() < 0.5:
            judged |= {"schema": "pagewise.analysis/1", "records": digest}
            (to / "analysis.json").write_text(json.dumps(judged))
    else:
        (to / "manifest.json").write_text(json.dumps(manifest))


def read_all(place: Place, commands: Sequence[tuple[str, ...]]) -> Iterator[Ended]:
    """Runs commands on the changed result."""
    for command in commands:
        yield place.run(*place.words(command))


def check(ended: Ended) -> None:
    """Raises AssertionError for an internal error, and for output that is not fit for a terminal."""
    reported = f"exit code {ended.code}\n{ended.output[-1000:]}\n{ended.messages[-6000:]}"
    assert ended.code < INTERNAL and "Traceback" not in ended.messages, reported
    shown = ended.output + ended.messages
    assert printable(shown) == shown, ascii(reported)
