"""The faults of the red team's stand-in kernels, one function per value of PW_FAKE_FAULT.

A function gets the record of a correct run and the number of this run of its configuration, from 1. It
returns the record to write, the bytes to write, or None for none. PW_FAKE_STATE is a file that counts the
runs.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Record = dict[str, Any]
PROGRAM, STATE = Path(sys.argv[0]), Path(os.environ.get("PW_FAKE_STATE", "/dev/null"))
# The run in which faults during a session start; earlier runs are correct.
LATER = 4


def changed(record: Record, part: str, **values: object) -> Record:
    return {**record, part: {**record[part], **values}}


def every(part: str, **values: object) -> Callable[[Record, int], Record]:
    """A fault in every run: other values in a part of the record."""
    return lambda record, _: changed(record, part, **values)


def later(fault: Callable[[Record, int], Any]) -> Callable[[Record, int], Any]:
    """The fault in all runs from the middle of the session."""
    return lambda record, number: fault(record, number) if number >= LATER else record


def once(fault: Callable[[Record, int], Any]) -> Callable[[Record, int], Any]:
    """The fault in one run in the middle of the session."""
    return lambda record, number: fault(record, number) if number == LATER else record


def scaled(record: Record, factor: float) -> Record:
    """The same work with another time."""
    metrics = record["metrics"].items()
    figures = {name: value * factor if name.endswith("_ns") else value / factor for name, value in metrics}
    times = [value * factor for value in record["seconds"]["repetitions"]]
    return changed({**record, "metrics": figures}, "seconds", repetitions=times)


def more_bytes(record: Record, _: int) -> Record:
    traffic = {name: 2 * value for name, value in record["traffic"].items()}
    metrics = {name: 2 * value if "band" in name else value for name, value in record["metrics"].items()}
    return {**record, "traffic": traffic, "metrics": metrics}


def many_passes(record: Record, _: int) -> Record:
    """Claim passes that did not run."""
    passes = 1000
    traffic = {name: passes * value for name, value in record["traffic"].items()}
    figures = record["metrics"].items()
    metrics = {name: passes * value if "_per_s" in name else value for name, value in figures}
    return {**record, "passes_per_repetition": passes, "traffic": traffic, "metrics": metrics}


def less_work(record: Record, _: int) -> Record:
    sizes, traffic = record["sizes"], record["traffic"]
    half = {name: value // 2 for name, value in sizes.items() if name in ("elements", "working_set_bytes")}
    moved = {name: value / 2 for name, value in traffic.items()}
    return {**scaled(record, 0.5), "metrics": record["metrics"], "sizes": {**sizes, **half}, "traffic": moved}


def failed(status: str, code: int) -> Callable[[Record, int], Record]:
    failure = {"exit_code": code, "message": "by the red team", "remedy": None}
    kept = ("schema", "kernel", "started", "configuration", "options")
    return lambda record, _: {**{name: record[name] for name in kept}, "status": status, "failure": failure}


def text(old: str, new: str) -> Callable[[Record, int], bytes]:
    """Replace a text in the record's line."""
    return lambda record, _: (json.dumps(record).replace(old, new) + "\n").encode()


def figure(value: str) -> Callable[[Record, int], bytes]:
    """Replace the first repetition, for example by a value that is not finite."""

    def fault(record: Record, _: int) -> bytes:
        first = json.dumps(record["seconds"]["repetitions"][0])
        return (json.dumps(record).replace(f"[{first}", f"[{value}") + "\n").encode()

    return fault


def crashing(record: Record, _: int) -> Record:
    os.abort()


def replaced(file: Path) -> Callable[[Record, int], Record]:
    """Replace the file by another one."""

    def fault(record: Record, _: int) -> Record:
        other = file.with_name(file.name + ".other")
        other.write_bytes(file.read_bytes() + b"\n# another\n")
        other.chmod(file.stat().st_mode)
        other.replace(file)
        return record

    return fault


def edited(file: Path) -> Callable[[Record, int], Record]:
    """Change the file's content in place."""

    def fault(record: Record, _: int) -> Record:
        # A running program's file is write-protected, a mapped one is not.
        with file.open("r+b") as stream:
            stream.seek(0, os.SEEK_END)
            stream.write(b"\n-- changed\n")
        return record

    return fault


def records_edited(record: Record, _: int) -> Record:
    """Change a time in the session's records without changing the file's length."""
    [file] = Path(os.environ["PW_FAKE_RESULTS"]).glob("*/records.jsonl")
    content = file.read_bytes()
    place = content.index(b'"repetitions":[0.0') + len(b'"repetitions":[0.0')
    with file.open("r+b") as stream:
        stream.seek(place)
        stream.write(b"9")
    return record


def earlier_record(record: Record, number: int) -> Record:
    """Repeat the record of the first run, like a file left behind by an earlier program."""
    kept = STATE.with_suffix(".first")
    if not kept.exists():
        kept.write_text(json.dumps({**record, "started": "2026-01-02T03:04:05Z"}))
    return json.loads(kept.read_text()) if number >= LATER else record


def competed(record: Record, _: int) -> Record:
    """Compute for a while as another program on its core does: see `test_red_team.competitor`."""
    marker = Path(os.environ["PW_FAKE_MARKER"])
    marker.write_text(",".join(map(str, sorted(os.sched_getaffinity(0)))))
    ends = time.monotonic() + 0.3
    while time.monotonic() < ends:
        pass
    marker.unlink()
    return record


NOWHERE = {"page_size_observed_bytes": 4096, "huge_coverage": 0.0}
SPLIT = {"huge_coverage": 0.6}
MODULE, LIBRARY = (Path(os.environ.get(f"PW_FAKE_{name}", "/dev/null")) for name in ("MODULE", "LIBRARY"))
FAULTS: dict[str, Callable[[Record, int], Any]] = {
    "nan-time": figure("NaN"),
    "infinite-time": figure("1e400"),
    "negative-time": figure("-0.001"),
    "failed-check": failed("check_failed", 1),
    "failed-check-once": once(failed("check_failed", 1)),
    "check-not-passed": every("validation", passed=False),
    "crash": crashing,
    "crash-once": once(crashing),
    "no-record": lambda record, _: None,
    "cut-record": lambda record, _: json.dumps(record).encode()[:-30],
    "record-of-another-schema": text("pagewise.record/1", "pagewise.record/9"),
    "base-pages": every("pages", **NOWHERE),
    "split-pages": every("pages", **SPLIT),
    "pages-split-later": later(every("pages", **SPLIT)),
    "smaller-pages": every("pages", page_size_observed_bytes=65536),
    "another-policy": every("pages", policy="hugetlbfs"),
    "huge-pages-on-base": every("pages", huge_coverage=0.02),
    "pages-lost": later(failed("pages_unavailable", 3)),
    "another-core": every("placement", cpus=[4095]),
    "pages-migrated": every("placement", node_bytes=[4096, 1 << 30]),
    "another-compiler": every("configuration", compiler="gcc-4.8.5"),
    "another-prefetch": every("configuration", prefetch="block"),
    "another-store": every("configuration", stores="nontemporal"),
    "another-loop": every("configuration", loop="compiler"),
    "without-openmp": every("configuration", openmp=False),
    "dropped-flag": every("configuration", compiler_options="-O0"),
    "another-version": every("configuration", version="0.0.9"),
    "another-library": every("configuration", library="another"),
    "less-work": less_work,
    "more-bytes": more_bytes,
    "wrong-figure": lambda record, _: changed(record, "metrics", bandwidth_stream_gb_per_s=500.0),
    "work-once": many_passes,
    "hoisted-loop": lambda record, _: scaled(record, 1e-6),
    "options-differ": later(every("options", threads=2)),
    "sizes-differ": later(every("sizes", arrays=5)),
    "clock-ahead": lambda record, _: scaled(record, 1e4),
    "clock-back": lambda record, _: {**record, "started": "2026-01-02T03:04:05Z"},
    "earlier-record": earlier_record,
    "program-replaced": once(replaced(PROGRAM)),
    "program-edited": once(edited(PROGRAM)),
    "module-edited": once(edited(MODULE)),
    "library-edited": once(edited(LIBRARY)),
    "records-edited-during-the-session": once(records_edited),
    "competing-load": competed,
    "throttled-core": later(lambda record, _: scaled(record, 1.6)),
}


def written(records: list[Record]) -> bytes:
    """The bytes that a faulty run writes instead of these records."""
    with STATE.open("ab") as stream:
        stream.write(b"1")
    number = STATE.stat().st_size
    changed_record = FAULTS[os.environ["PW_FAKE_FAULT"]](records[0], number)
    if changed_record is None or isinstance(changed_record, bytes):
        return changed_record or b""
    return json.dumps(changed_record).encode() + b"\n"
