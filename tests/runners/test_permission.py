"""Which events a user may count, and how to permit more."""

from __future__ import annotations

import errno
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from builders import a_host
from fake_root import tree
from pagewise.core.events import GENERIC
from pagewise.core.findings import Finding
from pagewise.core.host import Host
from pagewise.workloads.counters.machine import (
    DESCRIBE,
    hardware_counters,
    has_capability,
    open_error,
    permissions,
)
from pagewise.workloads.doctor import counter_findings
from stage import CHASE, EVENTS, Stage

BARE = a_host(virtual_machine=None, container=False, perf_event_paranoid=2)
VIRTUAL, CLOSED = replace(BARE, virtual_machine="QEMU"), replace(BARE, perf_event_paranoid=4)
ZEN4 = "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n"


def kernel(hardware: int = 0, hardware_in_kernel: int = 0, software: int = 0, software_in_kernel: int = 0):
    """A Linux kernel that returns these errors."""

    def opens(kind: int, event: int, user_only: bool) -> int:
        errors = (hardware, hardware_in_kernel) if kind == 0 else (software, software_in_kernel)
        return errors[0] if user_only else errors[1]

    return opens


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tree(tmp_path, {"proc/cpuinfo": ZEN4, "proc/self/status": "Name:\tx\nCapEff:\t0000000000000000"})


def findings(root: Path, host=BARE, modules=None, **errors: int):
    return {finding.name: finding for finding in permissions(host, modules, root, kernel(**errors))}


def words(finding: Finding) -> set[str]:
    return set(re.findall(r"\w+", finding.detail))


def test_all_is_permitted_or_user_mode_alone(root: Path):
    rows = findings(root)
    assert rows["hardware counters"].state == rows["software events"].state == "good"
    assert {"user", "kernel", "2"} <= words(rows["hardware counters"])
    rows = findings(root, hardware_in_kernel=errno.EACCES, software_in_kernel=errno.EACCES)
    hardware, software = rows["hardware counters"], rows["software events"]
    assert hardware.state == "good" and {"user", "kernel"} & words(hardware) == {"user"}
    assert software.state == "note" and "perf_event_paranoid=1" in software.remedy
    none = findings(root, software=errno.EPERM, software_in_kernel=errno.EPERM)["software events"]
    assert "getrusage" in none.detail


@pytest.mark.parametrize(
    ("refused", "host", "remedy"),
    [
        *((number, VIRTUAL, "PMU") for number in (errno.ENOENT, errno.ENODEV, errno.EOPNOTSUPP)),
        (errno.ENOENT, BARE, "kernel"),
        *((number, CLOSED, "cap_perfmon") for number in (errno.EACCES, errno.EPERM)),
        (errno.EPERM, CLOSED, "sysctl kernel.perf_event_paranoid=2"),
        (errno.EPERM, replace(BARE, container=True), "--cap-add PERFMON"),
        (errno.EINVAL, BARE, None),
    ],
)
def test_refused_counters_have_a_reason_and_a_remedy(
    root: Path, refused: int, host: Host, remedy: str | None
):
    finding = hardware_counters(host, root, kernel(hardware=refused))
    assert finding.state == "note" and (
        finding.remedy is None if remedy is None else remedy in finding.remedy
    )
    known = "unavailable" in finding.detail or os.strerror(refused) in finding.detail
    assert known and (host is not VIRTUAL or "QEMU" in finding.detail)


def test_the_capability_is_not_proposed_if_present(root: Path):
    tree(root, {"proc/self/status": "CapEff:\t0000004000000000"})
    finding = hardware_counters(CLOSED, root, kernel(hardware=errno.EPERM))
    assert has_capability(root) and "cap_perfmon" not in finding.remedy


def test_the_watchdog_takes_a_counter(root: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    assert "counters taken" not in findings(root)
    tree(root, {"proc/sys/kernel/nmi_watchdog": 1})
    assert "nmi_watchdog=0" in findings(root)["counters taken"].remedy
    assert "counters taken" not in findings(root, hardware=errno.ENOENT)


@pytest.mark.long
def test_events_and_papi_of_a_module_tree(root: Path, stage: Stage):
    assert findings(root)["events"].state == "note" and "PAPI" not in findings(root)
    stage.add("gcc-12.2.0", ("none", "hardware", "regular"), [CHASE], papi="on")
    rows = findings(root, modules=stage.modules)
    assert rows["events"].detail.count("AMD Zen 4") == 1 and "tlb" in words(rows["events"])
    assert rows["PAPI"].state == "good" and "1" in words(rows["PAPI"])
    stage.add("gcc-12.2.0", ("thp", "hardware", "regular"), [CHASE])
    rows = findings(root, modules=stage.modules)
    assert {"1", "2"} <= words(rows["PAPI"]) and "+papi" in rows["PAPI"].remedy
    (root / "proc/cpuinfo").write_text("vendor_id\t: Other\n")
    unknown = findings(root, modules=stage.modules)["events"]
    assert unknown.state == "note" and GENERIC in words(unknown) and unknown.remedy == DESCRIBE
    for link in stage.folder.glob("opt/*/share/pagewise/events"):
        link.unlink()
        shutil.copytree(EVENTS, link)
        (link / "zen4.yaml").write_text("name: zen4\n")
    broken = findings(root, modules=stage.modules)["events"]
    assert broken.state == "note" and "zen4.yaml" in broken.detail


def test_doctor_has_them_without_a_module_tree(tmp_path: Path):
    host = replace(BARE, perf_event_paranoid=None)
    rows = list(counter_findings(host, "default", tmp_path / "none"))
    assert {finding.name for finding in rows} >= {"hardware counters", "software events", "events"}
    assert not any(finding.is_missing for finding in rows)
    # Of the real kernel.
    assert open_error(77, 2, True) != 0
