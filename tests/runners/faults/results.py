"""Files of a result: cut, empty, binary, no files at all, of wrong types, deep, huge, with escapes."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from fault import Ended, Fault, Place, neighbours, query

EVIL = "a\x1b[31m\x1b]0;t\x07[/]\u202e$x$"


def _deep(levels: int) -> Any:
    made: Any = 1
    for _ in range(levels):
        made = [made]
    return made


def _to(*path: str | int, value: Any) -> Callable[[dict[str, Any]], None]:
    """A change of data: the value at a path."""

    def change(data: Any) -> None:
        for part in path[:-1]:
            data = data[part]
        data[path[-1]] = value

    return change


def _edit(*path: str | int, value: Any) -> Callable[[Place], None]:
    """Another value in the manifest."""
    return lambda place: place.edit(_to(*path, value=value))


def _edit_record(*path: str | int, value: Any) -> Callable[[Place], None]:
    """Another value in the first record."""
    return lambda place: place.edit_records(_to(*path, value=value))


def _write(content: bytes, name: str = "manifest.json") -> Callable[[Place], None]:
    return lambda place: (place.bad / name).write_bytes(content) and None


def _instead(make: Callable[[str], Any], name: str) -> Callable[[Place], None]:
    """Something else than a file, of its name."""

    def change(place: Place) -> None:
        (place.bad / name).unlink()
        make(str(place.bad / name))

    return change


def _link(to: str | None) -> Callable[[str], None]:
    """Makes a link; to itself without a name."""
    return lambda file: Path(file).symlink_to(to or file)


def _sparse(file: str) -> None:
    os.truncate(os.open(file, os.O_CREAT | os.O_WRONLY), 1 << 40)


def _texts(place: Place, old: bytes, new: bytes, name: str = "manifest.json") -> None:
    file = place.bad / name
    content = file.read_bytes()
    assert old in content
    file.write_bytes(content.replace(old, new, 1))


# What is wrong with a manifest (wrong types: test_fuzz.py). Its folder is still read by its records alone.
MANIFESTS: dict[str, Callable[[Place], None]] = {
    "empty": _write(b""),
    "cut": lambda place: os.truncate(place.manifest, 1000),
    "binary": _write(bytes(range(256))),
    "null": _write(b"null"),
    "list": _write(b"[]"),
    "number": _write(b"1"),
    "BOM": lambda place: place.manifest.write_bytes(b"\xef\xbb\xbf" + place.manifest.read_bytes()) and None,
    "UTF-16": lambda place: place.manifest.write_bytes(place.manifest.read_text().encode("utf-16")) and None,
    "deep": _edit("host", "more", value=_deep(900)),
    "too deep for a parser": _write(b"[" * 200_000),
    "lone surrogate": _edit("name", value="\ud800"),
    "raw surrogate": lambda place: _texts(place, b'"name": "', b'"name": "\xed\xa0\x80'),
    "huge number": _edit("seed", value=10**100),
    "number of 5000 digits": lambda place: _texts(place, b'"seed": ', b'"seed": ' + b"1" * 5000),
    "NaN": _edit("limit_seconds", value=float("nan")),
    "1e400": lambda place: _texts(place, b'"limit_seconds": ', b'"limit_seconds": 1e400, "x": '),
    "key twice": lambda place: _texts(place, b"{", b'{"seed": 1,'),
    "host is a list": _edit("host", value=[]),
    "no configurations": _edit("configurations", value=[]),
    "schema of another age": _edit("schema", value="pagewise.manifest/" + "9" * 5000),
    "schema is a list": _edit("schema", value=[]),
    "FIFO": _instead(os.mkfifo, "manifest.json"),
    "folder": _instead(os.mkdir, "manifest.json"),
    "link to itself": _instead(_link(None), "manifest.json"),
    "link to a device": _instead(_link("/dev/zero"), "manifest.json"),
    "link to nothing": _instead(_link("nothing"), "manifest.json"),
    "a terabyte": _instead(_sparse, "manifest.json"),
}
# What is wrong with the first record: it is left out, the others are read (wrong types: test_schemas.py).
RECORDS: dict[str, Callable[[Place], None]] = {
    "deep": _edit_record("options", value=_deep(900)),
    "lone surrogate": _edit_record("kernel", value="\ud800"),
    "NaN": _edit_record("metrics", "latency_ns", value=float("nan")),
    "1e400": lambda place: _texts(place, b'"first_touch":', b'"first_touch":1e400,"x":', "records.jsonl"),
    "key twice": lambda place: _texts(place, b"{", b'{"kernel": "x",', "records.jsonl"),
    "host is a text": _edit_record("host", value="h"),
    "blank time": _edit_record("run", "started", value=""),
    "pages of no size": _edit_record("run", "pages", value="thp:"),
    "binary": lambda place: _texts(place, b"{", bytes(range(256)) + b"\n{", "records.jsonl"),
    "CRLF": lambda place: _texts(place, b"}\n", b"}\r\n", "records.jsonl"),
    "a line of 4 MB": lambda place: _texts(place, b"{", b"x" * (4 << 20) + b"\n{", "records.jsonl"),
    "cut in a letter": lambda place: (
        place.records.write_bytes(place.records.read_bytes() + b'{"a": "\xc3') and None
    ),
}
# What replaces the records.
NO_RECORDS: dict[str, Callable[[Place], None]] = {
    "FIFO": _instead(os.mkfifo, "records.jsonl"),
    "folder": _instead(os.mkdir, "records.jsonl"),
    "link to itself": _instead(_link(None), "records.jsonl"),
    "link to a device": _instead(_link("/dev/zero"), "records.jsonl"),
    "a terabyte": _instead(_sparse, "records.jsonl"),
    "nothing": _instead(lambda file: None, "records.jsonl"),
    "empty": _write(b"", "records.jsonl"),
    "nonsense": _write(b"nonsense\n" * 10, "records.jsonl"),
}


def manifest(name: str, make: Callable[[Place], None]) -> Fault:
    def happen(place: Place) -> list[Ended]:
        make(place)
        return [
            place.run("report", str(place.bad)),
            place.run("results", "diff", str(place.good), str(place.bad)),
        ]

    return Fault(f"manifest: {name}", happen, (3,))


def record(name: str, make: Callable[[Place], None]) -> Fault:
    def happen(place: Place) -> list[Ended]:
        make(place)
        shown = place.run("results", "show", str(place.bad), "--json")
        assert name == "CRLF" or len(shown.data()["faults"]) >= 1
        return [shown, place.run("results", "diff", str(place.good), str(place.bad))]

    return Fault(f"record: {name}", happen, (0, 5))


def no_records(name: str, make: Callable[[Place], None]) -> Fault:
    def happen(place: Place) -> list[Ended]:
        make(place)
        return [place.run("results", "diff", str(place.good), str(place.bad))]

    return Fault(f"records: {name}", happen, (3, 4, 5, 6))


def _all_at_once(place: Place) -> list[Ended]:
    """Every bad folder next to a good one, and the commands that go through all of them."""
    made = {**MANIFESTS, **{f"record {key}": one for key, one in RECORDS.items()}}
    made |= {f"records {key}": one for key, one in NO_RECORDS.items()}
    for name, make in made.items():
        folder = place.results / name.replace(" ", "-")
        shutil.copytree(place.bad, folder)
        make(replace(place, bad=folder))
    listed = place.run("results", "list", "--json")
    actual = {Path(one["folder"]).name: one for one in listed.data()["results"]}
    assert len(actual) >= len(made) and actual["good"]["records"] > 0 and "fault" not in actual["good"]
    return [
        listed,
        place.run("results", "list"),
        query(place),
        place.run("kernels", "--plan", "--output", str(place.results)),
    ]


def _evil_names(place: Place) -> list[Ended]:
    """Names with escapes, markup and formulas, in all that is printed and written."""
    place.edit(_to("host", "hostname", value=EVIL))
    place.edit(_to("host", "cpu", value=EVIL))
    place.edit(_to("command", value=["pagewise", EVIL]))
    place.edit(_to("name", value=EVIL))
    place.edit(_to("subjects", 0, "kernel", "title", value=EVIL))
    ended = [
        *neighbours(place),
        place.run("report", str(place.bad)),
        place.run("results", "show", str(place.bad)),
        place.run("results", "diff", str(place.good), str(place.bad), "--across-machines"),
        place.run("cluster", "nodes", str(place.bad), str(place.good)),
        place.run("results", "query", "SELECT hostname FROM results"),
    ]
    for file in place.bad.rglob("*"):
        if file.suffix in (".md", ".csv", ".html", ".svg"):
            text = file.read_text()
            assert "\x1b" not in text and "\u202e" not in text and "\x07" not in text, file
    return ended


def _gone(place: Place) -> list[Ended]:
    shutil.rmtree(place.bad)
    return [place.run("report", str(place.bad)), place.run("results", "show", str(place.bad))]


def _same_id(place: Place) -> list[Ended]:
    place.edit(_to("id", value=json.loads((place.good / "manifest.json").read_text())["id"]))
    place.edit_records(_to("run", "position", value=99))
    return [place.run("results", "query", "SELECT count(*) FROM records")]


FAULTS = [
    *(manifest(*row) for row in MANIFESTS.items()),
    *(record(*row) for row in RECORDS.items()),
    *(no_records(*row) for row in NO_RECORDS.items()),
    Fault("all of these folders next to a good one", _all_at_once, (0, 1)),
    Fault("names with escapes, markup and formulas", _evil_names, (0, 1, 5)),
    Fault("result is gone", _gone, (2, 3)),
    Fault("two results with one id", _same_id, (1,)),
]
