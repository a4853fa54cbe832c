"""What the launcher answers about page policies, on nodes of synthetic files, and what the runner does."""

from __future__ import annotations

import json
import os
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from conftest import Once
from json_schema import faults
from own_program import build
from pagewise.core.errors import SelectionError
from pagewise.stack.binary import examine
from pagewise.workloads.program.applied import AppliedPolicy, PolicyAnswer, PolicyLauncher, default_policies
from pagewise.workloads.program.policy import DEFAULT, FILE, PARTS
from scripts import called

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
THP, POOLS = Path("mm/transparent_hugepage"), Path("mm/hugepages")
NO_CHANGE: tuple[dict, dict] = ({}, {})
TUNABLES = (b"glibc.malloc.hugetlb", b"glibc.malloc.trim_threshold")


@pytest.fixture(scope="session")
def synthetic(installed: Path) -> Path:
    """A launcher that reads the huge pages of the current folder's node."""
    options = (f"-I{FILE.parent}", '-DMM_FOLDER="mm"')
    return build(
        str(FILE.with_name("exec.c")), installed.with_name(f"pagewise-exec-synthetic-{os.getpid()}"), *options
    )


@pytest.fixture(scope="session")
def kinds(once: Once, programs: Path) -> dict[str, Path]:
    """Programs of all kinds. Their loaders are files of the current folder, because nothing is started."""

    def make(folder: Path) -> dict[str, Path]:
        plain, static = programs / "memory", programs / "memory-static"
        made = {"plain": plain, "static": static, "small": Path("/bin/true")}
        for name in ("old", "musl"):
            made[name] = build("memory.c", folder / name, f"-Wl,--dynamic-linker={name}.so")
        contents = {
            "foreign": plain.read_bytes()[:18] + b"\xb7\0" + plain.read_bytes()[20:],
            "own": static.read_bytes().replace(TUNABLES[0], b"x" * 20).replace(TUNABLES[1], b"x" * 27),
            "inside": static.read_bytes().replace(b"this went wrong", b"\0\0\0\0\0TCMALLOC_\0"),
            "32": b"\x7fELF\1\1\1" + bytes(9)
            + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, 0, 52, 0, 0, 52, 32, 1, 40, 0, 0)
            + struct.pack("<IIIIIIII", 3, 84, 0, 0, 7, 7, 4, 1) + b"new.so\0",
        }  # fmt: skip
        for name, content in contents.items():
            made[name] = folder / name
            made[name].write_bytes(content)
            made[name].chmod(0o755)
        return made

    return once("kinds", make)


@pytest.fixture
def node(synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PolicyLauncher:
    """A node that gives pages of 2 MiB to programs that ask, with 100 such pages in the pool."""
    monkeypatch.chdir(tmp_path)
    for name in ("old.so", "new.so", "musl.so"):
        Path(name).write_bytes({"old.so": b"GLIBC_2.17", "new.so": TUNABLES[0], "musl.so": b""}[name])
    switch({"enabled": "madvise", "64": "never", "2048": "inherit", "shmem": "never"})
    reserve({2 * KIB: 100, MIB: 0})
    return PolicyLauncher(synthetic)


def switch(modes: dict[str, str]) -> None:
    """Set the modes of transparent huge pages: of all, of shared memory, of a size in KiB."""
    files = {"enabled": "enabled", "shmem": "shmem_enabled"}
    for name, mode in modes.items():
        file = THP / files.get(name, f"hugepages-{name}kB/enabled")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"x [{mode}] y\n")
    (THP / "hpage_pmd_size").write_text(f"{2 * MIB}\n")


def reserve(free: dict[int, int]) -> None:
    """Set the free pages of pools by page size in KiB."""
    for size, number in free.items():
        file = POOLS / f"hugepages-{size}kB/free_hugepages"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{number}\n")


def ask(
    launcher: PolicyLauncher, policy: str, program: Path = Path("/bin/true"), **environment: str
) -> PolicyAnswer:
    return launcher.ask(policy, program, {"PATH": os.environ["PATH"], **environment})


@pytest.mark.parametrize(
    ("policy", "program", "state", "named"),
    [
        ("thp", "plain", ({"enabled": "never"}, {}), "2048 KiB|transparent_hugepage/enabled"),
        ("advised", "plain", ({"enabled": "never"}, {}), "never"),
        ("thp:64k", "plain", NO_CHANGE, "64 KiB|hugepages-64kB/enabled|--prepare-pages thp"),
        ("thp:64k", "plain", ({"64": "madvise"}, {}), "2048 KiB"),
        ("thp:128k", "plain", NO_CHANGE, "128 KiB"),
        ("thp", "static", NO_CHANGE, "collapse|malloc"),
        ("text", "static", NO_CHANGE, "collapse"),
        ("bss", "musl", NO_CHANGE, "glibc"),
        ("bss", "foreign", NO_CHANGE, "architecture"),
        ("bss", "32", NO_CHANGE, "architecture"),
        ("malloc", "inside", NO_CHANGE, "tcmalloc (inside)|malloc"),
        ("shared", "plain", NO_CHANGE, "shmem_enabled"),
        ("shared", "plain", ({"shmem": "deny"}, {}), "shmem_enabled"),
        ("shared", "static", ({"shmem": "advise"}, {}), "collapse"),
        ("hugetlbfs-data", "static", NO_CHANGE, "collapse"),
        ("hugetlbfs-shared", "plain", ({}, {2 * KIB: 0}), "2048 KiB|hugepages-2048kB"),
        ("thp+hugetlbfs-shared:1g", "plain", ({}, {MIB: 1}), "2048 KiB|1048576 KiB"),
        ("reuse", "own", NO_CHANGE, "collapse|reuse"),
        ("malloc", "own", NO_CHANGE, "collapse|malloc"),
        ("malloc", "old", NO_CHANGE, "glibc.malloc.hugetlb"),
        ("thp", "old", NO_CHANGE, "2.35|collapse"),
        ("hugetlbfs:1g", "plain", NO_CHANGE, "1048576 KiB|--prepare-pages (root)"),
        ("hugetlbfs:16m", "plain", NO_CHANGE, "16384 KiB"),
        ("libhugetlbfs", "plain", NO_CHANGE, "2.34|hugetlbfs"),
        ("libhugetlbfs", "old", NO_CHANGE, "apt-get install libhugetlbfs0"),
    ],
)
def test_why_a_policy_is_unavailable(node: PolicyLauncher, kinds, *, policy, program, state, named):
    """By the data that the reason and its remedy name. state: modes of huge pages, free pages of pools."""
    switch(state[0])
    reserve(state[1])
    answer = ask(node, policy, kinds[program])
    failure = answer.failure
    assert failure is not None and failure.exit_code == 3
    # The remedy begins with the option that provides missing parts.
    assert (answer.missing is not None) == (failure.remedy or "").startswith("--prepare-pages")
    assert all(word in f"{failure.message}\n{failure.remedy}" for word in named.split("|"))


@pytest.mark.parametrize(
    ("policy", "program", "modes", "assumed"),
    [
        *((policy, "plain", {}, ()) for policy in DEFAULT),
        ("thp", "plain", {"enabled": "never"}, ("thp",)),
        ("thp:64k", "plain", {"64": "madvise", "2048": "madvise"}, ("thp",)),
        ("thp:64k", "plain", {"64": "madvise", "2048": "never"}, ()),
        ("thp", "static", {"enabled": "always"}, ()),
        ("malloc", "static", {}, ()),
        ("malloc", "32", {}, ()),
        ("shared", "plain", {"shmem": "within_size"}, ()),
        ("shared", "plain", {}, ("thp",)),
        ("hugetlbfs-data+hugetlbfs-shared", "plain", {}, ()),
        ("thp+hugetlbfs-shared", "plain", {}, ()),
        ("hugetlbfs:1g", "plain", {}, ("pool",)),
        ("none", "foreign", {}, ()),
    ],
)
def test_available_policies(node: PolicyLauncher, kinds, *, policy, program, modes, assumed):
    switch(modes)
    answer = ask(replace(node, assumed=assumed), policy, kinds[program])
    assert answer.failure is None and answer.policy == policy


@pytest.mark.parametrize(
    ("policy", "library", "is_available"),
    [("reuse", "libtbbmalloc_proxy.so.2", False), ("malloc", "libtbbmalloc_proxy.so.2", True),
     ("reuse", "libmimalloc.so", True), ("hugetlbfs", "libtcmalloc.so.4", True),
     ("malloc", "libasan.so.8", False), ("reuse", "libasan.so.8", False), ("none", "libasan.so.8", True)],
)  # fmt: skip
def test_the_allocator_decides(node: PolicyLauncher, policy: str, library: str, is_available: bool):
    answer = ask(node, policy, LD_PRELOAD=f"/nowhere/{library}")
    assert answer.allocator and answer.available == is_available
    assert is_available or answer.allocator in answer.reason or library in answer.reason


def test_facts_missing_in_sys_are_unknown(synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    launcher = PolicyLauncher(synthetic)
    for policy in ("thp", "malloc", "hugetlbfs", "shared", "advised", "thp:64k"):
        assert "mount -t sysfs" in ask(launcher, policy).failure.remedy
    assert ask(launcher, "none").available and ask(launcher, "reuse").available


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("thp:64K+reuse", "reuse+thp:64k"),
        ("hugetlbfs:1g+hugetlbfs-data", "hugetlbfs-data+hugetlbfs:1g"),
        ("hugetlbfs-data:1024m+hugetlbfs:1g", "hugetlbfs-data+hugetlbfs:1g"),
        ("thp+advised+reuse", "reuse+advised+thp"),
    ],
)
def test_policies_have_one_name(node: PolicyLauncher, text: str, name: str):
    assert ask(node, text).policy == ask(node, name).policy == name


@pytest.mark.parametrize(
    "text",
    ["huge", "", "-x", "thp:big", "malloc:64k", "none+reuse", "none+advised", "thp+hugetlbfs", "reuse+reuse",
     "glibc", "hugetlbfs:1g+hugetlbfs-data:2m"],
)  # fmt: skip
def test_unknown_policies_are_refused(node: PolicyLauncher, text: str):
    with pytest.raises(SelectionError) as fault:
        ask(node, text)
    assert str(fault.value.where).endswith(f" {text}") and all(part in fault.value.remedy for part in PARTS)


def test_the_callers_page_policies_are_removed_and_other_settings_kept(node: PolicyLauncher):
    caller = {
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=2:glibc.malloc.arena_max=1",
        "MALLOC_CONF": "narenas:4,thp:never,dirty_decay_ms:1000",
        "JAVA_TOOL_OPTIONS": '-Dname="ü\\ö" -XX:-UseTransparentHugePages',
        "HUGETLB_MORECORE": "yes",
        "MALLOC_ARENA_MAX": "1",
    }
    none, both = ask(node, "none", **caller).settings, ask(node, "reuse+malloc", **caller).settings
    assert none.removed == both.removed == {
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=2",
        "MALLOC_CONF": "thp:never,dirty_decay_ms:1000",
        "JAVA_TOOL_OPTIONS": "-XX:-UseTransparentHugePages",
        "HUGETLB_MORECORE": "yes",
    }  # fmt: skip
    assert none.environment.items() >= {
        "GLIBC_TUNABLES": "glibc.malloc.arena_max=1",
        "MALLOC_CONF": "narenas:4",
        "JAVA_TOOL_OPTIONS": '-Dname="ü\\ö"',
        "HUGETLB_MORECORE": None,
    }.items()  # fmt: skip
    assert both.environment["MALLOC_CONF"] == "narenas:4,dirty_decay_ms:-1,muzzy_decay_ms:-1,thp:always"
    assert "glibc.malloc.mmap_max=0" in both.environment["GLIBC_TUNABLES"].split(":")
    assert "MALLOC_ARENA_MAX" not in {**none.environment, **both.environment}


def test_advice_is_only_given_if_the_system_needs_it(node: PolicyLauncher):
    assert ask(node, "thp").settings.actions == ("advise", "bss")
    switch({"enabled": "always"})
    assert ask(node, "thp").settings.actions == () and not ask(node, "thp").settings.is_advised
    assert ask(node, "text+malloc").settings.actions == ("text", "advise-malloc")
    assert ask(node, "thp").settings.preloads and ask(node, "none").settings.actions == ("refuse",)


def test_the_answer_fits_its_schema(node: PolicyLauncher):
    for policy, code in {"reuse+thp": 0, "thp:64k": 3, "huge": 2}.items():
        done = called([node.file, "--check", policy, "--", "/bin/true"])
        assert faults("check", json.loads(done.stdout)) == [] and done.returncode == code


def applied(launcher: PolicyLauncher, policy: str, program: Path) -> AppliedPolicy:
    return AppliedPolicy(policy, launcher, examine(str(program), os.environ), os.environ)


def test_requested_pages_and_switches_of_the_machine(node: PolicyLauncher, kinds: dict[str, Path]):
    """By policy: glibc's tunable, and the switches."""
    expected = {
        "none": (None, set()),
        "advised": (None, {"thp"}),
        "thp": ("glibc.malloc.hugetlb=1", {"thp"}),
        "thp:64k": ("glibc.malloc.hugetlb=1", set()),
        "text+malloc": ("glibc.malloc.hugetlb=1", {"thp"}),
        "text+thp:64k": ("glibc.malloc.hugetlb=1", {"thp"}),
        "shared": (None, {"shared"}),
        "text+hugetlbfs-shared": (None, {"thp"}),
        "hugetlbfs": ("glibc.malloc.hugetlb=2", set()),
        "hugetlbfs:1g": (f"glibc.malloc.hugetlb={GIB}", set()),
    }
    every = {
        policy: applied(replace(node, assumed=("thp", "pool")), policy, kinds["plain"]) for policy in expected
    }
    answers = {policy: one.answer for policy, one in every.items()}
    assert {
        policy: (one.answer.settings.environment.get("GLIBC_TUNABLES"), one.switches)
        for policy, one in every.items()
    } == expected
    assert every["thp:64k"].switched_size == 64 * KIB and every["thp"].switched_size is None
    assert answers["none"].reached == answers["advised"].reached == ()
    assert (answers["none"].thp, answers["advised"].thp) == ("refused", "advised")
    assert [part.kinds for part in answers["text+malloc"].reached] == [("text",), ("heap", "anonymous")]
    assert answers["text+malloc"].page_size_bytes == 2 * MIB and not answers["text+malloc"].by_counter
    assert answers["thp:64k"].by_counter and answers["thp:64k"].page_size_bytes == 64 * KIB
    assert [part.source for part in answers["text+hugetlbfs-shared"].reached] == ["thp", "pool"]
    assert answers["hugetlbfs:1g"].page_size_bytes == GIB and answers["hugetlbfs:1g"].from_pool


def test_origins_smaller_than_a_huge_page_are_not_measured(node: PolicyLauncher, kinds: dict[str, Path]):
    for policy in ("text", "bss", "hugetlbfs-data"):
        assert "2 MiB" in applied(node, policy, kinds["small"]).unavailable.message
    plain, small, static = (applied(node, "none", kinds[name]) for name in ("plain", "small", "static"))
    assert applied(node, "bss", kinds["plain"]).unavailable is None
    assert set(DEFAULT) - set(default_policies(plain, starts_others=False)) == {"text"}
    assert set(DEFAULT) - set(default_policies(small, starts_others=False)) == {"text", "bss"}
    assert tuple(default_policies(small, starts_others=True)) == DEFAULT
    may_collapse = os.geteuid() == 0
    assert ("collapse" in default_policies(static, starts_others=False)) == may_collapse
    switch({"enabled": "always"})
    assert "collapse" not in default_policies(replace(static), starts_others=False)


def test_the_programs_that_ran_decide_instead_of_the_named_one(node: PolicyLauncher, kinds):
    shell = applied(node, "malloc+bss", kinds["small"])
    plain = examine(str(kinds["plain"]), os.environ)
    assert shell.unavailable is not None
    ran = replace(shell, programs=(shell.binary, plain))
    assert ran.unavailable is None
    words = [str(node.file), f"--for={plain.image}", "--quiet", "bss+malloc", "--", str(kinds["small"])]
    assert ran.command(["-n", "5"]) == [*words, "-n", "5"]
    assert replace(shell, programs=(shell.binary,)).unavailable == shell.unavailable
