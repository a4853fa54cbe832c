"""pagewise exec: the report comes last, raises no signal, waits for nobody, and is never silently missing."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from launched import Launcher
from own_program import build
from scripts import HANGS_AFTER

OUTPUT = "output\ndestroyed\n"


@pytest.fixture(scope="session")
def endings(programs: Path) -> Path:
    return build("endings.c", programs / "endings")


def end(launcher: Launcher, *words: str | Path, errors: Any, **more: Any) -> None:
    """Run the launcher, whose standard error is this file; the program must end as it does."""
    words = (launcher.program, *words)
    more |= {"stdout": subprocess.PIPE, "stderr": errors, "timeout": HANGS_AFTER, "text": True}
    done = subprocess.run(words, cwd=launcher.folder, check=False, **more)
    assert (done.returncode, done.stdout) == (5, OUTPUT)
    assert (launcher.folder / "data").read_text() == "kept\n"


@pytest.mark.parametrize("is_full", [False, True])
def test_a_full_or_closed_pipe_does_not_hold_the_program_back(launcher: Launcher, endings: Path, is_full):
    reader, writer = os.pipe()
    with os.fdopen(reader) as reading, os.fdopen(writer, "w") as errors:
        if is_full:
            os.set_blocking(writer, False)
            with pytest.raises(BlockingIOError):
                while True:
                    os.write(writer, b"x" * 4096)
            os.set_blocking(writer, True)
        else:
            reading.close()
        end(launcher, "--record", "pages.jsonl", "none", "--", endings, "", "data", errors=errors)
    assert len(launcher.records()) == 1


def test_a_limit_on_the_size_of_files_ends_no_program(launcher: Launcher, endings: Path):
    record = launcher.folder / "pages.jsonl"
    record.write_bytes(b"\n" * 8000)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, 8192))

    with (launcher.folder / "errors").open("w") as errors:
        words = ("--quiet", f"--record={record}", "none", "--", endings, "", "data")
        end(launcher, *words, errors=errors, preexec_fn=limit)
    assert record.read_bytes() == b"\n" * 8000
    assert str(record) in (launcher.folder / "errors").read_text()


# From glibc 2.41 on (bug 15142), exit waits for streams that a thread has locked, with or without us.
waits_for_no_lock = pytest.mark.skipif(
    [int(part) for part in (os.confstr("CS_GNU_LIBC_VERSION") or "0 0").split()[1].split(".")] >= [2, 41],
    reason="this program does not end",
)


@pytest.mark.parametrize(
    ("way", "code", "output"),
    [
        ("", 5, OUTPUT),
        ("cleared", 5, OUTPUT),
        ("titled", 5, OUTPUT),
        ("at once", 6, ""),
        ("quickly", 7, ""),
        pytest.param("locked", 5, "output\nlocked\n", marks=waits_for_no_lock),
    ],
)
def test_every_way_to_end_is_recorded_after_the_output(launcher: Launcher, endings: Path, way, code, output):
    words = [launcher.program, "--record", "pages.jsonl", "none", "--", endings, way]
    more = {"cwd": launcher.folder, "env": os.environ | {"OMPI_COMM_WORLD_RANK": "3"}, "text": True}
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)
    (record,) = launcher.records()
    assert done.returncode == code and record["rank"] == 3
    lines = done.stdout.splitlines(keepends=True)
    # The output that a thread has locked is written at the very end.
    report = lines.pop(0 if way == "locked" else -1)
    assert report.startswith("pagewise") and "warning" not in report and "".join(lines) == output


def test_a_record_that_cannot_be_written_is_reported_even_if_quiet(launcher: Launcher, endings: Path):
    done = launcher.run("--quiet", "--record", "/dev/full", "none", "--", endings, "")
    assert (done.returncode, done.stdout) == (5, OUTPUT)
    assert "/dev/full" in done.stderr and len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give up its rights")
def test_rights_that_were_dropped(launcher: Launcher, endings: Path):
    done = launcher.run("--quiet", "--record", "pages.jsonl", "none", "--", endings, "dropped")
    assert (done.returncode, done.stdout) == (5, OUTPUT)
    assert launcher.records() == [] and str(launcher.folder / "pages.jsonl") in done.stderr


RUN = "import subprocess, sys; sys.exit(subprocess.run(sys.argv[1:], env={}).returncode)"
SPAWN = "import os, sys; at = os.{}(sys.argv[1], sys.argv[1:], {{}}); sys.exit(os.waitpid(at, 0)[1] >> 8)"
CODES = (RUN, SPAWN.format("posix_spawn"), SPAWN.format("posix_spawnp"))
COMMANDS = [("env", "-i"), ("env", "-i", "A=1"), ("sh", "-c", 'exec env -i "$0"')]


@pytest.mark.parametrize("command", COMMANDS + [(sys.executable, "-c", code) for code in CODES])
def test_a_program_without_our_environment_is_reported(launcher: Launcher, endings: Path, command):
    done = launcher.run("--quiet", "--record", "pages.jsonl", "none", "--", *command, endings)
    assert (done.returncode, done.stdout) == (5, OUTPUT)
    assert all(Path(record["program"]) != endings for record in launcher.records())
    assert len(done.stderr.splitlines()) == 1 and str(endings) in done.stderr
    assert launcher.run("--quiet", "none", "--", *command, endings).stderr == ""


def test_a_record_in_a_pipe_needs_a_reader(launcher: Launcher, endings: Path):
    os.mkfifo(launcher.folder / "pipe")
    words = ("--quiet", "--record", "pipe", "none", "--", endings, "", "data")
    assert launcher.run(*words).returncode == 4 and not (launcher.folder / "data").exists()
    reader = os.open(launcher.folder / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert launcher.run(*words).returncode == 5
    assert os.read(reader, 1 << 16).startswith(b"{")
    os.close(reader)
