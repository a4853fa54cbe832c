"""Facts about the machine, and the findings of doctor."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from fake_root import CPUS, THP, tree
from pagewise.core.host import Cache, Host, PoolState, Thp
from pagewise.core.structure import from_data, to_data
from pagewise.core.text import json_text
from pagewise.core.units import bytes_text, clock_text, number_text, parse_bytes, seconds_text
from pagewise.machine import topology
from pagewise.machine.host import bracketed_word, cpu_list, read_host
from pagewise.stack.commands import output_of
from pagewise.workloads.counters import program
from pagewise.workloads.doctor import measure_spread, noise_finding


def test_a_machine_is_read_from_its_files(tmp_path: Path):
    vendor, product = "QEMU", "Standard PC"
    files = {
        "proc/cpuinfo": "model name\t: Zen 4\nflags\t\t: fpu hypervisor avx\n",
        "proc/meminfo": "MemTotal:        1024 kB\n",
        "sys/class/dmi/id/sys_vendor": f"{vendor}\n",
        "sys/class/dmi/id/product_name": f"{product}\n",
        f"{THP}/enabled": "always [madvise] never\n",
        f"{THP}/defrag": "always defer [defer+madvise] madvise never\n",
        f"{THP}/shmem_enabled": "always within_size advise [never] deny force\n",
        f"{THP}/hugepages-64kB/enabled": "[always] inherit madvise never\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "12\n",
        "sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages": "7\n",
        f"{CPUS}/online": "0-3\n",
        f"{CPUS}/smt/active": "1\n",
        f"{CPUS}/cpu0/cpufreq/scaling_governor": "powersave\n",
        f"{CPUS}/cpu0/cpufreq/scaling_driver": "intel_pstate\n",
        f"{CPUS}/cpu0/cache/index0/type": "Data\n",
        f"{CPUS}/cpu0/cache/index0/size": "32K\n",
        f"{CPUS}/cpu0/cache/index0/level": "1\n",
        f"{CPUS}/cpu0/cache/index0/shared_cpu_list": "0,2\n",
        f"{CPUS}/cpu0/cache/index1/type": "Instruction\n",
        "proc/sys/kernel/perf_event_paranoid": "3\n",
        "sys/bus/event_source/devices/cpu/type": "4\n",
    }
    host = read_host(tree(tmp_path, files))
    assert host.cpu == "Zen 4" and host.memory_bytes == 1024 * 1024 and host.cpus == 4
    assert host.thp == Thp("madvise", "defer+madvise", {"64kB": "always"}, "never")
    assert host.pools == (PoolState(2097152, 12, 7),)
    assert host.governors == ("powersave",) and host.smt is True
    assert (host.scaling_drivers, host.boost) == (("intel_pstate",), None)
    assert host.caches == (Cache(1, 32768, 2),)
    assert host.virtual_machine == f"{vendor} {product}"
    assert host.pmu is True and host.perf_event_paranoid == 3
    assert from_data(Host, json.loads(json_text(to_data(host)))) == host


def test_a_machine_that_reports_little(tmp_path: Path):
    host = read_host(tmp_path)
    assert host.thp is None and host.pools == () and host.virtual_machine is None
    assert host.smt is None and host.governors is None and host.pmu is False
    assert from_data(Host, to_data(host)) == host
    # A bare-metal server of a cloud is not a virtual machine.
    dmi = "sys/class/dmi/id"
    for product, machine in (("c6g.metal", None), ("c6g.large", "Amazon EC2 c6g.large")):
        tree(tmp_path, {f"{dmi}/sys_vendor": "Amazon EC2", f"{dmi}/product_name": product})
        assert read_host(tmp_path).virtual_machine == machine


def test_notations():
    assert cpu_list("0-2,7") == [0, 1, 2, 7] and cpu_list("") == []
    assert bracketed_word("always [never]") == "never" and bracketed_word(None) is None
    assert parse_bytes("256MiB") == 2**28 and parse_bytes("1.5 kB") == 1500 and parse_bytes("4096") == 4096
    for wrong in ("lots", "1XB", "-1", ""):
        with pytest.raises(ValueError, match=re.escape(repr(wrong))):
            parse_bytes(wrong)
    assert [bytes_text(n) for n in (512, 4096, 1.5 * 2**30, 2**41)] == ["512 B", "4 KiB", "1.50 GiB", "2 TiB"]
    assert [seconds_text(s) for s in (2.5, 0.0123, 4.56e-5, 7e-9)] == ["2.50 s", "12.3 ms", "45.6 µs", "7 ns"]
    assert clock_text(67) == "1:07" and clock_text(3723) == "1:02:03"
    assert [number_text(n) for n in (45.0, 23_100_000, 4.5e9)] == ["45.0", "23.1e6", "4.50e9"]


def test_noise_is_measured_and_judged():
    times = measure_spread(0.1)
    assert len(times) > 3 and min(times) > 0
    assert noise_finding([1.0] * 50).state == "good"
    shaky = noise_finding([1.0, 1.5] * 25)
    assert shaky.state == "note" and "40.0 %" in shaky.detail and shaky.remedy


def test_tools_are_started_without_a_language(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("LC_ALL", "de_DE.utf8")
    for environment in (None, {"PATH": os.defpath}, {"PATH": os.defpath, "LC_ALL": "de_DE.utf8"}):
        assert output_of(["/bin/sh", "-c", "echo $LC_ALL"], environment) == "C"
    started: list[str] = []

    def start(command: object, env: dict[str, str], **_: object) -> subprocess.CompletedProcess[str]:
        started.append(env["LC_ALL"])
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(subprocess, "run", start)
    monkeypatch.setattr(topology, "parse", lambda text: text)
    topology.read_topology.__wrapped__()
    program._fault(program.PerfStat("perf"), ["perf::PAGE-FAULTS"])
    assert started == ["C", "C"]
