"""Files of a result: cut, empty, binary, no files at all, of wrong types, deep, huge, with escapes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

from fault import Ended, Fault, Place, neighbours

Change = Callable[[Place], object]
DEEP: Any = reduce(lambda made, _: [made], range(900), 1)
EVIL = "a\x1b[31m\x1b]0;t\x07[/]\u202e$x$"


def _to(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of data: the value at a path."""

    def change(data: Any) -> None:
        for part in path[:-1]:
            data = data[part]
        data[path[-1]] = value

    return change


def _edit(*path: str | int, value: Any) -> Change:
    """Another value in the manifest."""
    return lambda place: place.edit(_to(*path, value=value))


def _edit_record(*path: str | int, value: Any) -> Change:
    """Another value in the first record."""
    return lambda place: place.edit_records(_to(*path, value=value))


def _write(content: bytes, name: str = "manifest.json") -> Change:
    return lambda place: (place.bad / name).write_bytes(content)


def _instead(make: Callable[[str], object], name: str) -> Change:
    """Something else than a file, of its name."""

    def change(place: Place) -> None:
        (place.bad / name).unlink()
        make(str(place.bad / name))

    return change


def _link(to: str | None) -> Callable[[str], None]:
    """Makes a link; to itself without a name."""
    return lambda file: Path(file).symlink_to(to or file)


NO_FILES: dict[str, Callable[[str], object]] = {
    "FIFO": os.mkfifo,
    "folder": os.mkdir,
    "link to itself": _link(None),
    "link to a device": _link("/dev/zero"),
    "link to nothing": _link("nothing"),
    "nothing": lambda file: None,
    "a terabyte": lambda file: os.truncate(os.open(file, os.O_CREAT | os.O_WRONLY), 1 << 40),
}


def _text(old: bytes, new: bytes, name: str = "manifest.json") -> Change:
    def change(place: Place) -> None:
        content = (place.bad / name).read_bytes()
        assert old in content
        (place.bad / name).write_bytes(content.replace(old, new, 1))

    return change


# What is wrong with a manifest (wrong types: test_fuzz.py). Its folder is still read by its records alone.
MANIFESTS: dict[str, Change] = {
    "empty": _write(b""),
    "cut": lambda place: os.truncate(place.manifest, 1000),
    "binary": _write(bytes(range(256))),
    "null": _write(b"null"),
    "list": _write(b"[]"),
    "number": _write(b"1"),
    "BOM": lambda place: place.manifest.write_bytes(b"\xef\xbb\xbf" + place.manifest.read_bytes()),
    "UTF-16": lambda place: place.manifest.write_bytes(place.manifest.read_text().encode("utf-16")),
    "deep": _edit("host", "more", value=DEEP),
    "too deep for a parser": _write(b"[" * 200_000),
    "lone surrogate": _edit("name", value="\ud800"),
    "raw surrogate": _text(b'"name": "', b'"name": "\xed\xa0\x80'),
    "huge number": _edit("seed", value=10**100),
    "number of 5000 digits": _text(b'"seed": ', b'"seed": ' + b"1" * 5000),
    "NaN": _edit("limit_seconds", value=float("nan")),
    "1e400": _text(b'"limit_seconds": ', b'"limit_seconds": 1e400, "x": '),
    "key twice": _text(b"{", b'{"seed": 1,'),
    "host is a list": _edit("host", value=[]),
    "no configurations": _edit("configurations", value=[]),
    "schema of another age": _edit("schema", value="pagewise.manifest/" + "9" * 5000),
    "schema is a list": _edit("schema", value=[]),
    **{name: _instead(make, "manifest.json") for name, make in NO_FILES.items()},
}
# What is wrong with the first record: it is left out, the others are read (wrong types: test_schemas.py).
RECORDS: dict[str, Change] = {
    "deep": _edit_record("options", value=DEEP),
    "lone surrogate": _edit_record("kernel", value="\ud800"),
    "NaN": _edit_record("metrics", "latency_ns", value=float("nan")),
    "1e400": _text(b'"first_touch":', b'"first_touch":1e400,"x":', "records.jsonl"),
    "key twice": _text(b"{", b'{"kernel": "x",', "records.jsonl"),
    "host is a text": _edit_record("host", value="h"),
    "blank time": _edit_record("run", "started", value=""),
    "pages of no size": _edit_record("run", "pages", value="thp:"),
    "binary": _text(b"{", bytes(range(256)) + b"\n{", "records.jsonl"),
    "CRLF": _text(b"}\n", b"}\r\n", "records.jsonl"),
    "a line of 4 MB": _text(b"{", b"x" * (4 << 20) + b"\n{", "records.jsonl"),
    "cut in a letter": lambda place: place.records.write_bytes(place.records.read_bytes() + b'{"a": "\xc3'),
}
# What replaces the records.
NO_RECORDS: dict[str, Change] = {
    **{name: _instead(make, "records.jsonl") for name, make in NO_FILES.items()},
    "empty": _write(b"", "records.jsonl"),
    "nonsense": _write(b"nonsense\n" * 10, "records.jsonl"),
}


# The faults, exit codes and commands.
DIFF = "results diff {good} {bad}"
KINDS = {
    "manifest": (MANIFESTS, (3,), ["report {bad}", DIFF]),
    "record": (RECORDS, (0, 5), ["results show {bad} --json", DIFF]),
    "records": (NO_RECORDS, (3, 4, 5, 6), [DIFF]),
}


def _damaged(kind: str, name: str) -> Fault:
    faults, codes, commands = KINDS[kind]

    def happen(place: Place) -> list[Ended]:
        faults[name](place)
        ended = place.run_all(*commands)
        assert kind != "record" or name == "CRLF" or len(ended[0].data()["faults"]) >= 1
        return ended

    return Fault(f"{kind}: {name}", happen, codes)


def _all_at_once(place: Place) -> list[Ended]:
    """Every bad folder next to a good one, and the commands that go through all of them."""
    made = {f"{kind} {name}": make for kind, (faults, *_) in KINDS.items() for name, make in faults.items()}
    for name, make in made.items():
        folder = place.results / name.replace(" ", "-")
        shutil.copytree(place.bad, folder)
        make(replace(place, bad=folder))
    ended = neighbours(place)
    assert len(ended[0].data()["results"]) >= len(made)
    return [*ended, *place.run_all("results list", "kernels --plan --output {all}")]


def _evil_names(place: Place) -> list[Ended]:
    """Names with escapes, markup and formulas, in all that is printed and written."""
    for path in [("host", "hostname"), ("host", "cpu"), ("name",), ("subjects", 0, "kernel", "title")]:
        place.edit(_to(*path, value=EVIL))
    place.edit(_to("command", value=["pagewise", EVIL]))
    ended = [
        *neighbours(place),
        *place.run_all("report {bad}", "results show {bad}"),
        *place.run_all(f"{DIFF} --across-machines", "cluster nodes {bad} {good}"),
        place.run("results", "query", "SELECT hostname FROM results"),
    ]
    for file in place.bad.rglob("*"):
        if file.suffix in (".md", ".csv", ".html", ".svg"):
            text = file.read_text()
            assert "\x1b" not in text and "\u202e" not in text and "\x07" not in text, file
    return ended


def _gone(place: Place) -> list[Ended]:
    shutil.rmtree(place.bad)
    return place.run_all("report {bad}", "results show {bad}")


def _same_id(place: Place) -> Ended:
    place.edit(_to("id", value=json.loads((place.good / "manifest.json").read_text())["id"]))
    place.edit_records(_to("run", "position", value=99))
    return place.run("results", "query", "SELECT count(*) FROM records")


FAULTS = [
    *(_damaged(kind, name) for kind, (faults, *_) in KINDS.items() for name in faults),
    Fault("all of these folders next to a good one", _all_at_once, (0, 1)),
    Fault("names with escapes, markup and formulas", _evil_names, (0, 1, 5)),
    Fault("result is gone", _gone, (2, 3)),
    Fault("two results with one id", _same_id, (1,)),
]
