"""Page policies of the user's program: names, settings, and why they are unavailable."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pagewise.core.environment import ENV
from pagewise.core.errors import SelectionError
from pagewise.stack.binary import Binary
from pagewise.stack.elf import Elf, Segment
from pagewise.workloads.program.applied import AppliedPolicy, default_policies
from pagewise.workloads.program.environment import Libraries, command_of_run
from pagewise.workloads.program.machine import Machine
from pagewise.workloads.program.policy import DEFAULT, parse_policy

MIB, GIB = 1 << 20, 1 << 30
X86 = 62
REASON = "a reason given by the test"
MACHINE = Machine(
    base=4096,
    pmd=2 * MIB,
    default_pool=2 * MIB,
    modes={64 << 10: "never", 2 * MIB: "madvise"},
    free={2 * MIB: 100, GIB: 0},
    settable=False,
    reserving=False,
    compiler=True,
    hugetlbfs_library=None,
    elf_machine=X86,
    limits_to_advised=True,
)
ELF = Elf(
    Path("/opt/app"),
    64,
    X86,
    True,
    True,
    "/lib64/ld.so",
    (Segment(0, 0, 8 * MIB, 8 * MIB, True, False), Segment(8 * MIB, 8 * MIB, 4096, 64 * MIB, False, True)),
)
BINARY = Binary(
    program=Path("/opt/app"),
    image=Path("/opt/app"),
    elf=ELF,
    sha256="0" * 64,
    script=False,
    libraries=(),
    c_library="glibc",
    version=(2, 36),
    tunable=True,
    allocator=None,
    beside=None,
    go=False,
    secured=None,
)
STATIC = replace(BINARY, elf=replace(ELF, interpreter=None))
SMALL = replace(BINARY, elf=replace(ELF, segments=(Segment(0, 0, 4096, 4096, True, False),)))


def applied(policy: str, machine: Machine = MACHINE, binary: Binary = BINARY) -> AppliedPolicy:
    return AppliedPolicy(parse_policy(policy), binary, machine)


@pytest.mark.parametrize("reserving", [False, True])
def test_a_limit_that_leaves_no_page_of_the_pool_is_the_cause(reserving: bool):
    machine = replace(MACHINE, reserving=reserving)
    for left in (None, 1, 0):
        limited = replace(machine, allowed={} if left is None else {2 * MIB: left})
        unavailable = applied("hugetlbfs", limited).unavailable
        assert (unavailable is not None) == (left == 0)
        assert unavailable is None or "hugetlb.*.max" in unavailable.remedy
        assert applied("malloc", limited).unavailable is None


def test_what_sys_does_not_show_is_unknown():
    hidden = replace(MACHINE, modes={}, free={}, hidden=True)
    for policy in ("thp", "malloc", "hugetlbfs", "shared", "advised", "thp:64k"):
        unavailable = applied(policy, hidden).unavailable
        assert unavailable is not None and "/sys" in unavailable.remedy
    assert applied("none", hidden).unavailable is None and applied("reuse", hidden).unavailable is None


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("none", "none"),
        ("thp+reuse", "reuse+thp"),
        ("thp:64k+reuse", "reuse+thp:64k"),
        ("hugetlbfs:1g", "hugetlbfs:1g"),
        ("malloc+bss+text", "text+bss+malloc"),
        ("hugetlbfs:1g+hugetlbfs-data", "hugetlbfs-data+hugetlbfs:1g"),
        ("hugetlbfs-data:1g+hugetlbfs:1g", "hugetlbfs-data+hugetlbfs:1g"),
        ("hugetlbfs-shared:1g+text", "text+hugetlbfs-shared:1g"),
        ("thp+advised+reuse", "reuse+advised+thp"),
    ],
)
def test_policies_have_one_name(text: str, name: str):
    assert parse_policy(text).name == name
    assert parse_policy(name).name == name


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("huge", "'huge'"),
        ("", "''"),
        ("thp:big", "'thp:big'"),
        ("malloc:64k", "malloc"),
        ("none+reuse", "none"),
        ("none+advised", "none"),
        ("thp+hugetlbfs", r"^[^\n]*thp\b[^\n]*hugetlbfs"),
        ("reuse+reuse", "--policies reuse"),
        ("glibc", "malloc"),
        ("hugetlbfs:1g+hugetlbfs-data:2m", "--policies hugetlbfs:1g"),
    ],
)
def test_unknown_policies_are_refused(text: str, named: str):
    with pytest.raises(SelectionError, match=named):
        parse_policy(text)


@pytest.mark.parametrize("name", DEFAULT)
def test_the_default_policies_are_available_for_a_plain_program(name: str):
    assert applied(name).unavailable is None


@pytest.mark.parametrize(
    ("policy", "tunables"),
    [
        ("none", None),
        ("bss", None),
        ("malloc", "glibc.malloc.hugetlb=1"),
        ("thp", "glibc.malloc.hugetlb=1"),
        ("hugetlbfs", "glibc.malloc.hugetlb=2"),
        ("hugetlbfs:1g", "glibc.malloc.hugetlb=1073741824"),
    ],
)
def test_tunables(policy: str, tunables: str | None):
    assert applied(policy).chosen.changes({}).get("GLIBC_TUNABLES") == tunables


def test_reuse_keeps_freed_memory():
    tunables = applied("reuse+malloc").chosen.changes({})["GLIBC_TUNABLES"].split(":")
    assert "glibc.malloc.mmap_max=0" in tunables and "glibc.malloc.hugetlb=1" in tunables
    assert any(text.startswith("glibc.malloc.trim_threshold=9223372036854775807") for text in tunables)


def test_the_users_page_policies_are_removed_and_other_tunables_kept():
    inherited = {
        "GLIBC_TUNABLES": "glibc.malloc.hugetlb=2:glibc.malloc.arena_max=1",
        "HUGETLB_MORECORE": "yes",
        "MALLOC_TOP_PAD_": "1",
    }
    variables = applied("none").chosen.changes(inherited)
    assert variables == {
        "GLIBC_TUNABLES": "glibc.malloc.arena_max=1",
        "HUGETLB_MORECORE": None,
        "MALLOC_TOP_PAD_": None,
    }
    assert applied("none").chosen.changes({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}) == {
        "GLIBC_TUNABLES": None
    }


def test_lists_of_other_allocators_and_languages_keep_the_callers_other_settings():
    inherited = {
        "MALLOC_CONF": "narenas:4,thp:never,dirty_decay_ms:1000",
        "JAVA_TOOL_OPTIONS": "-Xmx1g -XX:-UseTransparentHugePages",
        "MIMALLOC_PURGE_DELAY": "5",
    }
    changed = applied("reuse+malloc").chosen.changes(inherited)
    assert changed["MALLOC_CONF"] == "narenas:4,dirty_decay_ms:-1,muzzy_decay_ms:-1,thp:always"
    assert changed["JAVA_TOOL_OPTIONS"] == "-Xmx1g -XX:+UseTransparentHugePages"
    assert changed["MIMALLOC_PURGE_DELAY"] == "-1"
    none = applied("none").chosen.changes(inherited)
    assert (none["MALLOC_CONF"], none["JAVA_TOOL_OPTIONS"]) == ("narenas:4", "-Xmx1g")
    assert none["MIMALLOC_PURGE_DELAY"] is None
    pool = applied("hugetlbfs:1g").chosen.changes({})
    assert pool["JAVA_TOOL_OPTIONS"] == f"-XX:+UseLargePages -XX:LargePageSizeInBytes={GIB}"


def test_the_preloaded_library_serves_allocators_that_replace_malloc():
    replaced = replace(BINARY, allocator="tcmalloc")
    assert applied("malloc").chosen.actions == []
    assert applied("malloc", binary=replaced).chosen.actions == ["advise-malloc"]
    assert applied("hugetlbfs", binary=replaced).chosen.actions == ["pool-malloc"]
    launched = replace(applied("malloc", binary=SMALL), programs=(SMALL, replaced))
    assert launched.chosen.actions == ["advise-malloc"]


def test_advice_is_only_given_if_the_system_needs_it():
    always = replace(MACHINE, modes={2 * MIB: "always"})
    assert applied("thp", MACHINE).chosen.actions == ["advise", "bss"]
    assert applied("thp", always).chosen.actions == []
    assert applied("thp", always).chosen.changes({}) == {}
    assert applied("text+malloc", always).chosen.actions == ["text"]
    assert applied("thp", always, STATIC).unavailable is None
    assert applied("advised+thp", always).chosen.actions == ["advise", "bss"]


def test_policies_without_huge_pages_refuse_them():
    expected = {"none": "refused", "reuse": "refused", "reuse+thp": "allowed", "advised": "advised"}
    assert {name: parse_policy(name).thp for name in expected} == expected
    assert parse_policy("reuse+advised").thp == parse_policy("advised+thp").thp == "advised"


def test_requested_pages():
    assert applied("none").request(0.8).targets == ()
    both = applied("text+malloc").request(0.8)
    assert both.targets == (("text",), ("heap", "anonymous")) and both.page == 2 * MIB
    small = applied("thp:64k").request(0.8)
    assert small.by_counter and small.page == 64 << 10
    assert applied("hugetlbfs:1g").request(0.8).page == GIB


@pytest.mark.parametrize(
    ("policy", "binary", "machine", "why"),
    [
        ("thp", BINARY, {"modes": {2 * MIB: "never"}}, "2 MiB|transparent_hugepage/enabled"),
        ("malloc", BINARY, {"modes": {}}, "2 MiB"),
        ("thp:64k", BINARY, {}, "64 KiB|hugepages-64kB/enabled"),
        (
            "thp:64k",
            BINARY,
            {"modes": {64 << 10: "madvise", 2 * MIB: "madvise"}},
            "2 MiB|--set-thp-sizes",
        ),
        ("thp", STATIC, {}, "collapse|malloc"),
        ("text", STATIC, {}, "collapse"),
        ("text", SMALL, {}, "4 KiB|2 MiB"),
        ("bss", SMALL, {}, "0 B|2 MiB"),
        ("bss", BINARY, {"compiler": False}, "CC="),
        ("bss", replace(BINARY, c_library="musl", tunable=False), {}, "musl"),
        ("bss", replace(BINARY, elf=replace(ELF, machine=183)), {}, "_preloading"),
        ("malloc", replace(STATIC, allocator="tcmalloc (inside)"), {}, "tcmalloc (inside)|malloc"),
        ("hugetlbfs", replace(BINARY, allocator="snmalloc"), {"compiler": False}, "snmalloc|hugetlbfs"),
        ("reuse", replace(BINARY, allocator="TBB malloc"), {}, "TBB malloc|reuse"),
        ("shared", BINARY, {}, "shmem_enabled"),
        ("shared", BINARY, {"shmem": "deny"}, "deny|shmem_enabled"),
        ("shared", STATIC, {"shmem": "advise"}, "collapse"),
        ("collapse", BINARY, {"collapses": REASON}, REASON),
        ("collapse", BINARY, {"compiler": False}, "CC="),
        ("hugetlbfs-data", SMALL, {}, "0 B|2 MiB"),
        ("hugetlbfs-data", STATIC, {}, "collapse"),
        ("hugetlbfs-data:1g", BINARY, {"free": {GIB: 1}}, "64 MiB|1 GiB"),
        ("hugetlbfs-shared", BINARY, {"free": {2 * MIB: 0}}, "2 MiB|hugepages-2048kB"),
        ("thp+hugetlbfs-shared:1g", BINARY, {"free": {GIB: 1}}, "thp|2 MiB|1 GiB"),
        ("bss+hugetlbfs-shared", BINARY, {"free": {GIB: 1}, "default_pool": GIB}, "bss|2 MiB|1 GiB"),
        ("reuse", replace(STATIC, c_library=None, tunable=False), {}, "collapse|reuse"),
        ("malloc", replace(STATIC, c_library=None, tunable=False, go=True), {}, "Go|malloc"),
        (
            "malloc",
            replace(BINARY, version=(2, 31), tunable=False),
            {},
            "2.31|glibc.malloc.hugetlb",
        ),
        ("thp", replace(BINARY, version=(2, 31), tunable=False), {}, "2.35|collapse"),
        ("hugetlbfs", BINARY, {"free": {2 * MIB: 0}}, "2 MiB"),
        ("hugetlbfs:1g", BINARY, {}, "1 GiB"),
        ("hugetlbfs:1g", BINARY, {"free": {2 * MIB: 1}}, "1 GiB"),
        ("libhugetlbfs", BINARY, {}, "2.36|hugetlbfs"),
        ("libhugetlbfs", replace(BINARY, version=(2, 31)), {}, "apt-get install libhugetlbfs0"),
        ("libhugetlbfs", replace(STATIC, version=(2, 31)), {"hugetlbfs_library": "/x.so"}, "_libhugetlbfs"),
        ("malloc", replace(BINARY, secured=REASON), {}, REASON),
        ("advised", BINARY, {"limits_to_advised": False}, "PR_THP_DISABLE_EXCEPT_ADVISED"),
        ("advised", BINARY, {"modes": {2 * MIB: "never"}}, "never"),
    ],
)
def test_why_a_policy_is_unavailable(policy: str, binary: Binary, machine: dict, why: str):
    """By the data that the reason and its remedy name, or by the check that gives it."""
    refused = applied(policy, replace(MACHINE, **machine), binary)
    failure = refused.unavailable
    assert failure is not None and failure.exit_code == 3
    if why.startswith("_"):
        assert list(getattr(refused, why)()) == [failure]
    else:
        assert all(named in f"{failure.message}\n{failure.remedy}" for named in why.split("|"))


@pytest.mark.parametrize(
    ("policy", "binary", "machine"),
    [
        ("thp", BINARY, {"modes": {2 * MIB: "never"}, "settable": True}),
        ("thp:64k", BINARY, {"settable": True}),
        ("thp:64k", BINARY, {"modes": {64 << 10: "madvise", 2 * MIB: "never"}}),
        ("malloc", STATIC, {}),
        ("malloc", replace(BINARY, allocator="tcmalloc"), {}),
        ("malloc", replace(STATIC, allocator="jemalloc (inside)", tunable=False), {}),
        ("hugetlbfs", replace(BINARY, allocator="mimalloc"), {}),
        ("reuse", replace(BINARY, allocator="mimalloc"), {}),
        ("malloc", replace(BINARY, beside="pymalloc"), {}),
        ("shared", BINARY, {"shmem": "within_size"}),
        ("shared", BINARY, {"shmem": "never", "settable": True}),
        ("collapse", replace(STATIC, c_library=None, go=True), {}),
        ("collapse", BINARY, {"modes": {2 * MIB: "never"}}),
        ("hugetlbfs-data", BINARY, {}),
        ("hugetlbfs-shared+hugetlbfs-data", BINARY, {}),
        ("thp+hugetlbfs-shared", BINARY, {}),
        ("reuse+hugetlbfs-shared:1g", BINARY, {"free": {GIB: 1}}),
        ("thp", replace(BINARY, allocator="jemalloc"), {}),
        ("hugetlbfs:1g", BINARY, {"reserving": True}),
        ("libhugetlbfs", replace(BINARY, version=(2, 31)), {"hugetlbfs_library": "/usr/lib/libhugetlbfs.so"}),
        ("none", replace(BINARY, secured=REASON), {}),
        ("advised", replace(BINARY, secured=REASON), {}),
        ("advised", STATIC, {}),
    ],
)
def test_available_policies(policy: str, binary: Binary, machine: dict):
    assert applied(policy, replace(MACHINE, **machine), binary).unavailable is None


def test_the_default_excludes_text_and_bss_of_a_small_program():
    assert default_policies(BINARY, MACHINE, starts_others=False) == DEFAULT
    assert set(DEFAULT) - set(default_policies(SMALL, MACHINE, starts_others=False)) == {"text", "bss"}
    assert default_policies(SMALL, MACHINE, starts_others=True) == DEFAULT
    assert default_policies(STATIC, MACHINE, starts_others=False) == (*DEFAULT, "collapse")
    assert "collapse" not in default_policies(STATIC, replace(MACHINE, collapses="no"), starts_others=False)
    always = replace(MACHINE, modes={2 * MIB: "always"})
    assert "collapse" not in default_policies(STATIC, always, starts_others=False)


def test_the_programs_that_ran_decide_instead_of_the_one_that_was_named():
    shell = applied("text+bss+malloc", binary=SMALL)
    assert shell.unavailable is not None
    assert replace(shell, programs=(SMALL, BINARY)).unavailable is None
    served = replace(BINARY, secured=REASON)
    assert REASON in replace(shell, programs=(served, SMALL)).unavailable.message


def command(policy: AppliedPolicy, inherited: dict[str, str], *, trial: bool = False) -> list[str]:
    libraries = Libraries(Path("/lib/remap.so"), Path("/lib/snapshot.so"), Path("/lib/collapse"))
    snapshots = Path("/tmp/snapshots") if trial else None
    return command_of_run(
        policy, ("-n", "5"), inherited, libraries, log=Path("/tmp/log"), snapshots=snapshots
    )


def test_the_command_sets_and_removes_variables_of_the_policy():
    inherited = {"LD_PRELOAD": "/lib/mine.so", "HUGETLB_SHM": "yes", "PATH": "/bin"}
    words = command(applied("bss"), inherited)
    assert words[0] == ENV and words[-3:] == ["/opt/app", "-n", "5"]
    assert "--unset=HUGETLB_SHM" in words and not any(word.startswith("PATH=") for word in words)
    assert {
        "PAGEWISE_PRELOAD=bss",
        f"PAGEWISE_PRELOAD_POOL={2 * MIB}",
        f"PAGEWISE_PRELOAD_SIZE={2 * MIB}",
        "LD_PRELOAD=/lib/remap.so:/lib/mine.so",
    } <= set(words)


def test_the_memory_of_a_run_is_moved_from_outside():
    assert command(applied("collapse"), {}) == [ENV, "/lib/collapse", "/opt/app", "-n", "5"]


def test_sizes_of_the_pool_and_of_transparent_pages_are_apart():
    both = applied("text+hugetlbfs:1g")
    assert (both.pool_size, both.transparent_size) == (GIB, 2 * MIB)
    assert applied("thp:64k").transparent_size == 64 << 10


def test_only_trial_runs_of_programs_that_can_preload_write_snapshots():
    assert command(applied("none"), {}) == [ENV, "/opt/app", "-n", "5"]
    words = command(applied("none"), {}, trial=True)
    assert {"LD_PRELOAD=/lib/snapshot.so", "PAGEWISE_SNAPSHOT=/tmp/snapshots/smaps"} <= set(words)
    assert command(applied("none", binary=STATIC), {}, trial=True) == [ENV, "/opt/app", "-n", "5"]
