"""Which programs ran is the kernel's answer, whatever files a program maps."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from own_program import Own
from pagewise.core.errors import SelectionError
from pagewise.core.result import read_result
from pagewise.stack.binary import examine
from pagewise.workloads.program.sampler import SHORTEST, Sampler, Samples

# Maps a file below all programs and libraries, and waits.
_MAPS = """
import ctypes, sys, time
library = ctypes.CDLL(None)
library.mmap.restype = ctypes.c_void_p
library.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + 3 * [ctypes.c_int] + [ctypes.c_long]
file = open(sys.argv[1], "rb")
print(library.mmap(1 << 20, 4096, 1, 2, file.fileno(), 0) == 1 << 20, flush=True)
sys.stdin.read()
"""


def test_a_mapped_data_file_is_not_the_program(tmp_path: Path):
    data = tmp_path / "classes"
    data.write_bytes(b"data" * 1024)
    with subprocess.Popen(
        [sys.executable, "-S", "-c", _MAPS, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"True\n"
        sampler = Sampler(2 << 20, 60, [], identify=True)
        with sampler.watching(process.pid):
            time.sleep(10 * SHORTEST)
        process.stdin.close()
    images = sampler.finish().images
    assert images.keys() == {str(Path(sys.executable).resolve())}


def test_memory_of_a_process_that_was_not_identified_has_no_program():
    samples = Samples(programs={1: "/bin/a", 2: ""})
    for pid in (1, 2, 3):
        samples.note(pid, 4096)
    assert samples.images == {"/bin/a": 4096}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_program_that_may_not_be_read(tmp_path: Path):
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o111)
    with pytest.raises(SelectionError):
        examine(str(program), os.environ)


@pytest.mark.long
@pytest.mark.parametrize("is_elf", [False, True])
def test_a_data_file_below_the_image(own: Own, is_elf: bool):
    data = own.folder / "data"
    data.write_bytes(Path(sys.executable).read_bytes() if is_elf else b"data" * 1024)
    done = own.run("--policies", "none,reuse", "--rounds", "1", way=f"below {data}")
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {"none": {"ok"}, "reuse": {"ok"}}
    assert "programs" not in (read_result(own.stage.result()).manifest.program or {})
    counted = own.stage.run(
        *("counters", "--output", str(own.stage.results), "--policies", "none", "--rounds", "1"),
        *("--", str(own.programs / "memory"), "below", str(data)),
    )
    assert counted.returncode == 0, counted.stderr


@pytest.mark.long
def test_a_program_that_cannot_be_examined_ends_no_session(own: Own):
    # It is no program any more when it is examined.
    script = own.folder / "run.sh"
    script.write_text(
        f"#!/bin/sh\nrm -f p\ncp {own.programs / 'memory'} p\n./p large 0.3 &\n"
        'until [ "$(readlink /proc/$!/exe)" = "$PWD/p" ]; do kill -0 $! || exit; sleep 0.01; done\n'
        "chmod 644 p\nwait $!\n"
    )
    script.chmod(0o755)
    done = own.stage.run(
        *("compare", "--output", str(own.stage.results), "--policies", "none,reuse", "--rounds", "1"),
        *("--", str(script)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
