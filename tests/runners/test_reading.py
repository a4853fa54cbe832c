"""What files of others may hold, and what is refused before any other code sees it."""

from __future__ import annotations

import os
import socket
import tracemalloc
from pathlib import Path

import pytest

from pagewise.core.fields import cpu_list
from pagewise.core.reading import DEEPEST, parse_json, parse_yaml, read_file


def nested(depth: int) -> str:
    return "[" * depth + "]" * depth


@pytest.mark.parametrize(
    "text",
    [
        '{"a": NaN}', '{"a": -Infinity}', '{"a": 1e400}', '{"a": -1e400}', '{"a": 1' + "0" * 30 + "}",
        '{"a": ' + "1" * 5000 + "}", '"\\ud800"', '{"\\udfff": 1}', '{"a": 1, "a": 2}', nested(DEEPEST + 1),
        nested(100_000), '{"a":' * 5000, "", "\ufeff{}", "[1,]",
    ],
)  # fmt: skip
def test_json_that_is_not_plain_is_refused(text: str):
    with pytest.raises(ValueError):
        parse_json(text.encode())


@pytest.mark.long
@pytest.mark.parametrize(
    "text",
    [
        "a: .nan", "a: .inf", "a: 1e400\nb: 1" + "0" * 30, "a: 1\na: 2", "1: a", "a: 2026-11-22",
        "a: 2026-99-99", "<<: {a: 1}", "a: &a [*a]", nested(DEEPEST + 1), "[" * 1500, "? [a]\n: b",
        "a: !!python/name:os.system",
        "a: !!binary QQ==", "a: !!set {b}", "\x00",
        "a: &a [x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n"
        "d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\n"
        "g: &g [*f,*f,*f,*f,*f,*f,*f,*f]\nh: [*g,*g,*g,*g,*g,*g,*g,*g]",
    ],
)  # fmt: skip
def test_yaml_that_is_not_plain_is_refused(text: str):
    with pytest.raises(ValueError):
        parse_yaml(text.encode())


def test_plain_values_are_read_unchanged():
    assert parse_json(nested(DEEPEST).encode()) is not None
    assert parse_json('{"µ": [1, -2.5, true, null, "\\u00e9"]}'.encode()) == {"µ": [1, -2.5, True, None, "é"]}
    expected = {"a": [1, -2.5, True, None, "text"], "b": {"c": "d"}}
    assert parse_yaml(b"a: [1, -2.5, on, ~, text]\nb: {c: d}") == expected


def test_only_regular_files_of_a_limited_size_are_read(tmp_path: Path):
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "sparse").touch()
    os.truncate(tmp_path / "sparse", 1 << 40)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        for name in ("fifo", "loop", "sparse", "socket", "absent", "."):
            with pytest.raises(OSError):
                read_file(tmp_path / name)
    for device in ("/dev/zero", "/dev/tty"):
        with pytest.raises(OSError):
            read_file(Path(device))
    (tmp_path / "good").write_bytes(b"content")
    assert read_file(tmp_path / "good", 7) == b"content"
    # It has no size.
    assert read_file(Path("/proc/self/status"))
    with pytest.raises(OSError):
        read_file(tmp_path / "good", 6)
    # Memory is taken for the file and not for the limit.
    tracemalloc.start()
    assert read_file(tmp_path / "good", 1 << 40) == b"content"
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 8 << 20


@pytest.mark.parametrize(
    "text", ["abc", "0-400000000", "1-", "-1", "3-1", "0-5,3", "0,0", "٣", "1-2-3", "0x1"]
)
def test_cpus_that_the_kernel_does_not_write_are_refused(text: str):
    with pytest.raises(ValueError):
        cpu_list(text)
