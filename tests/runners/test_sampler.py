"""Sampling: memory that processes share counts once, and which programs ran is the kernel's answer."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from own_program import Own
from pagewise.core.errors import SelectionError
from pagewise.session.launch import SCRIPT
from pagewise.stack.binary import examine
from pagewise.workloads.program import sampler as module
from pagewise.workloads.program.memory import Memory, observed_memory
from pagewise.workloads.program.sampler import SHORTEST, Sample, Sampler
from pagewise.workloads.program.smaps import Account, Mapped, Usage, by_kind, parse, parse_rollup
from scripts import write_script

MIB, HUGE = 1 << 20, 2 << 20
SIZE, CHILDREN = 64 * MIB, 4
# Shares anonymous memory, or a mapping of a file, with its children.
FORKING = f"""
import mmap, os, sys
flags = mmap.MAP_PRIVATE if sys.argv[1] == "private" else mmap.MAP_SHARED
memory = mmap.mmap(-1, {SIZE}, flags=flags | mmap.MAP_ANONYMOUS)
for at in range(0, {SIZE}, 4096):
    memory[at] = 1
reader, writer = os.pipe()
for _ in range({CHILDREN}):
    if os.fork() == 0:
        sum(memory[at] for at in range(0, {SIZE}, 4096))
        os.write(writer, b"x")
        sys.stdin.read()
        os._exit(0)
for _ in range({CHILDREN}):
    os.read(reader, 1)
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def forked(kind: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-SE", "-c", FORKING, kind]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout.readline() == b"ready\n"
        yield program
        program.stdin.close()


def sampled(pid: int) -> Memory:
    sampler = Sampler(HUGE, 0.01, ())
    sampler.watch(pid, itself=True)
    for _ in range(1000):
        if len(sampler._samples.samples) < 3:
            sampler._over.wait(0.01)
    memory = observed_memory(sampler.finish(), [])
    assert memory is not None and memory.processes == CHILDREN + 1
    return memory


@pytest.mark.parametrize(("kind", "named"), [("private", "anonymous"), ("shared", "shared")])
def test_shared_memory_counts_once(kind: str, named: str):
    with forked(kind) as program:
        memory = sampled(program.pid)
    for usage in (memory.total.peak, memory.total.mean, memory.kinds[named].peak):
        assert 0.98 * SIZE < usage.resident < 2 * SIZE
    assert "PSS" in memory.method and "RSS" not in memory.method


def test_of_hidden_processes_the_rss_counts_and_is_named(monkeypatch: pytest.MonkeyPatch):
    text = module._text
    monkeypatch.setattr(module, "_text", lambda pid, name: "" if "smaps" in name else text(pid, name))
    with forked("private") as program:
        assert len(module.descendants(os.getpid())) >= CHILDREN + 1
        memory = sampled(program.pid)
    assert memory.total.peak.resident > CHILDREN * SIZE and memory.kinds == {}
    assert "RSS" in memory.method


SHARED = """7f0000000000-7f0004000000 rw-p 00000000 00:00 0
Rss:               40960 kB
Pss:               10240 kB
Shared_Hugetlb:        0 kB
AnonHugePages:     40960 kB
VmFlags: rd wr hg
7f0008000000-7f000c000000 rw-p 00000000 00:0f 1 /anon_hugepage (deleted)
Rss:                   0 kB
Pss:                   0 kB
Shared_Hugetlb:    40960 kB
Private_Hugetlb:    2048 kB
VmFlags: rd wr ht
"""


def test_huge_pages_count_in_part_and_shared_ones_of_a_pool_once():
    usage = by_kind(parse(SHARED), HUGE)
    pool = 42 * MIB
    one = Usage(10 * MIB + pool, 10 * MIB + pool, 10 * MIB + pool, 0, pool, 40 * MIB)
    assert usage == {"anonymous": one} and one.coverage == 1.0
    four = sum([one] * 4, Usage()).shared_by(4)
    assert four.resident == four.huge == four.eligible == 4 * 10 * MIB + 40 * MIB + 4 * 2 * MIB
    assert four.pool == 48 * MIB and one.shared_by(1) == one and Usage().shared_by(0) == Usage()
    account = Account(high_water=MIB, page_tables=4096, refuses_thp=True)
    sample = Sampler(HUGE, None, ())._sum(0.0, [Sample(0.0, one, usage, 1, account=account)] * 4, True)
    assert sample.total == sample.kinds["anonymous"] == four
    assert sample.account == Account(high_water=MIB, page_tables=4 * 4096, refuses_thp=True)


def test_sums_of_a_process_match_its_mappings():
    rollup = "Rss: 40960 kB\nPss: 10240 kB\nAnonHugePages: 40960 kB\nShared_Hugetlb: 2048 kB\n"
    total = parse_rollup(rollup)
    assert (total.resident, total.huge, total.shared_pool) == (12 * MIB, 12 * MIB, 2 * MIB)
    without = parse_rollup(rollup.replace("Pss", "Other"))
    assert (without.resident, without.huge) == (42 * MIB, 42 * MIB) and parse_rollup("nothing") is None


@pytest.mark.parametrize("resident", [0, 4 * MIB])
def test_a_mapping_without_pss_counts_whole(resident: int):
    mapped = Mapped(0, 4 * MIB, "rw-p", 0, "", {"Rss": resident})
    assert (mapped.usage(HUGE).resident, mapped.usage(HUGE).eligible) == (resident, resident)


@pytest.mark.parametrize(("name", "is_sampled"), [(SCRIPT, False), ("own.sh", True)])
def test_the_script_that_starts_a_run_is_not_its_program(tmp_path: Path, name: str, is_sampled: bool):
    script = tmp_path / name
    script.write_text("echo ready\nread line\n")
    command = ["/bin/sh", str(script)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as shell:
        assert shell.stdout.readline() == b"ready\n"
        assert len(list(Sampler(HUGE, None, ())._running([shell.pid]))) == is_sampled
        shell.stdin.close()


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


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="the kernel does not count queues")
def test_a_program_that_shares_its_cpu_queues_for_it(tmp_path: Path):
    cpu = min(os.sched_getaffinity(0))
    busy = ["taskset", "-c", str(cpu), sys.executable, "-S", "-c", "while True: pass"]
    with subprocess.Popen(busy) as own, subprocess.Popen(busy) as other:
        sampler = Sampler(2 << 20, 60, [], identify=True)
        with sampler.watching(own.pid):
            time.sleep(0.2)
        own.kill()
        other.kill()
    assert sum(sampler.finish().queued.values()) > 0.02


def test_memory_of_a_process_counts_for_the_program_that_it_executes(monkeypatch: pytest.MonkeyPatch):
    command = ["/bin/sh", "-c", f"echo ready; read line; exec {sys.executable} -S -c 'input()'"]
    observe = Sampler._observe_process

    def observe_late(sampler: Sampler, pid: int, full: bool) -> Sample | None:
        process.stdin.write(b"line\n")
        process.stdin.flush()
        while Path(f"/proc/{pid}/exe").resolve() != Path(sys.executable).resolve():
            time.sleep(SHORTEST)
        return observe(sampler, pid, full)

    monkeypatch.setattr(Sampler, "_observe_process", observe_late)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        sampler = Sampler(HUGE, None, ())
        sampler._observe([process.pid], True)
        process.stdin.close()
    assert sampler.finish().images.keys() == {str(Path(sys.executable).resolve())}


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_program_that_may_not_be_read(tmp_path: Path):
    program = tmp_path / "program"
    program.write_bytes(Path("/bin/true").read_bytes())
    program.chmod(0o111)
    with pytest.raises(SelectionError):
        examine(str(program), os.environ)


@pytest.mark.long
def test_a_program_that_cannot_be_examined_ends_no_session(own: Own):
    # It is not a program any more when it is examined.
    script = write_script(
        own.folder / "run.sh",
        f"#!/bin/sh\nrm -f p\ncp {own.programs / 'memory'} p\n./p large 0.3 &\n"
        'until [ "$(readlink /proc/$!/exe)" = "$PWD/p" ]; do kill -0 $! || exit; sleep 0.01; done\n'
        "chmod 644 p\nwait $!\n",
    )
    own.stage.run(
        *("compare", "--output", str(own.stage.results), "--policies", "none,reuse", "--rounds", "1"),
        *("--", str(script)),
        code=0,
    )
