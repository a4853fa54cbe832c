"""Environment, file systems, standard streams, processes, the machine, and other programs at work."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from fault import Ended, Fault, Place

from pagewise.core.structure import to_data
from pagewise.machine.host import read_host
from scripts import write_script

LONG = "x" * 5000
# Variables with odd values; `list` is run with each.
VARIABLES = [
    ("COLUMNS", ""), ("COLUMNS", "-1"), ("COLUMNS", "x"), ("COLUMNS", "1"), ("COLUMNS", "9" * 30),
    ("TERM", ""), ("TERM", "\x1b[31m"), ("TERM", LONG), ("NO_COLOR", "1"), ("FORCE_COLOR", "x"),
    ("HOME", ""), ("HOME", "/nonexistent"), ("HOME", "/dev/null"), ("TMPDIR", "/nonexistent"),
    ("TMPDIR", "/dev/null"), ("XDG_CACHE_HOME", "/dev/null"), ("LMOD_PKG", "/nonexistent"),
    ("PAGEWISE_ROOT", ""), ("PAGEWISE_ROOT", "/dev/null"), ("BASH_ENV", "/dev/zero"), ("LD_PRELOAD", ""),
    ("MODULEPATH", LONG), ("LANG", "xx_YY.UTF-99"), ("LC_ALL", "tlh"), ("PYTHONIOENCODING", "ascii"),
]  # fmt: skip


def variable(name: str, value: str, codes: tuple[int, ...], *commands: str) -> Fault:
    def happen(place: Place) -> list[Ended]:
        place.environment[name] = value
        return place.run_all(*commands)

    return Fault(f"variable {name}={value[:12]!a}", happen, codes)


def _check_complete(place: Place, ended: Ended) -> Ended:
    """Everything was measured, saved and reported."""
    made = max(place.results.glob("2*"), key=lambda folder: folder.name)
    assert json.loads((made / "manifest.json").read_text())["state"] == "complete"
    assert (made / "report.html").exists()
    return ended


def process(name: str, code: str) -> Fault:
    """A comparison of a program that misbehaves; it is ended and reported as failed."""

    def happen(place: Place) -> Ended:
        program = write_script(
            place.folder / "program.py", f"#!{sys.executable} -SE\nimport os, signal, sys, time\n{code}\n"
        )
        options = ["--rounds", "1", "--policies", "none", "--timeout", "1", "--end-leftovers"]
        options += ["--output", str(place.results), "--json"]
        return _check_complete(place, place.fork("compare", *options, "--", str(program)))

    return Fault(f"process: {name}", happen, (0, 1))


def stream(name: str, shell: str, codes: tuple[int, ...], *, is_silent: bool = False) -> Fault:
    """A comparison with odd standard streams."""

    def happen(place: Place) -> Ended:
        return _check_complete(place, place.compare(shell=shell))

    return Fault(f"stream: {name}", happen, codes, is_silent)


def host(name: str, files: dict[str, str]) -> Fault:
    """A machine whose files say little, or nonsense."""

    def happen(place: Place) -> list[Ended]:
        root = place.folder / "root"
        for file, text in files.items():
            (root / file).parent.mkdir(parents=True, exist_ok=True)
            (root / file).write_text(text)
        assert json.loads(json.dumps(to_data(read_host(root))))["hostname"]
        return []

    return Fault(f"machine: {name}", happen, ())


def _limited(limit: int, most: int) -> Callable[[Place], Ended]:
    """A comparison that may use so much; what was measured up to then is kept."""

    def happen(place: Place) -> Ended:
        # Python would cut the compiled modules that all tests share.
        place.environment["PYTHONDONTWRITEBYTECODE"] = "1"
        return place.compare(preexec_fn=lambda: resource.setrlimit(limit, (most, most)))

    return happen


def _full_disk(place: Place) -> list[Ended]:
    """A file system of 64 KiB that fills up during the comparison."""
    small = place.folder / "small"
    small.mkdir()
    options = "size=64k,nr_inodes=12"
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", small], check=False)
    if mounted.returncode != 0:
        return []
    try:
        return [place.start("kernels", "--rounds", "3", "--output", str(small / "r"))]
    finally:
        subprocess.run(["umount", "-l", small], check=True)


def _no_permission(place: Place) -> list[Ended]:
    """Root may read everything; everybody else is refused."""
    place.manifest.chmod(0)
    return place.run_all("report {bad}", "results list")


def _folder_vanishes(place: Place) -> Ended:
    """The folder in which a command works is gone."""
    gone = place.folder / "gone"
    gone.mkdir()
    command = ("compare", "--policies", "none", "--", "true")
    return place.start(*command, shell='rmdir "$PWD"; exec "$@"', cwd=gone)


def _interrupted(number: int) -> Callable[[Place], Ended]:
    def happen(place: Place) -> Ended:
        ended = place.start(
            *["kernels", "--rounds", "200", "--output", str(place.results), "--timeout", "5"],
            # Not ignored, as nohup and a shell's background jobs inherit it.
            shell=f'env --default-signal "$@" & pid=$!; sleep 2; kill -{number} $pid; wait $pid',
        )
        made = max(place.results.glob("2*"), key=lambda folder: folder.name, default=None)
        if made is not None and (made / "manifest.json").exists():
            listed = place.run("results", "list", "--json").data()["results"]
            assert all("fault" not in one for one in listed)
        return ended

    return happen


def _at_once(*commands: str) -> Callable[[Place], list[Ended]]:
    """Commands at the same time."""

    def happen(place: Place) -> list[Ended]:
        with ThreadPoolExecutor() as pool:
            return [*pool.map(lambda command: place.start(*place.words(command.split())), commands)]

    return happen


FAULTS = [
    *(variable(*row, (0, 3, 4), "list") for row in VARIABLES),
    *(
        variable("PAGEWISE_MODULES", value, (3, 4), "list", "kernels --plan")
        for value in (LONG, "/nonexistent", "/dev/null", "\x1b[31m[/]", "a:b")
    ),
    process("is killed", "os.kill(os.getpid(), signal.SIGKILL)"),
    process("kills its parent", "os.kill(os.getppid(), signal.SIGKILL); time.sleep(60)"),
    process("says escapes and bytes", 'sys.stdout.buffer.write(b"\\x1b[31m\\xff\\x00[/]\\n"); sys.exit(3)'),
    process("says a lot", 'sys.stdout.write("x" * 5_000_000); sys.exit(3)'),
    process("closes its streams", "os.close(0); os.close(1); os.close(2)"),
    process("changes its folder's rights", "os.chmod('.', 0o700)"),
    stream("output closed", 'exec "$@" >&-', (1, 4)),
    stream("all closed", 'exec "$@" <&- >&- 2>&-', (1, 4), is_silent=True),
    stream("output full", 'exec "$@" >/dev/full', (1, 4)),
    stream("messages full", 'exec "$@" 2>/dev/full', (0, 1)),
    stream("reader gone", '"$@" | :', (0, 1)),
    stream("no terminal", 'exec setsid "$@"', (0, 1)),
    stream("input full of zeros", 'exec "$@" </dev/zero', (0, 1)),
    # As on a full disk.
    Fault("disk: files of 20 kB", _limited(resource.RLIMIT_FSIZE, 20_000), (4,)),
    Fault("disk: full, without inodes", _full_disk, (4,)),
    Fault("disk: few descriptors", _limited(resource.RLIMIT_NOFILE, 12), (0, 3, 4)),
    Fault("disk: no permission", _no_permission, (0, 3, 4)),
    Fault("disk: folder is gone", _folder_vanishes, (4,)),
    Fault("signal: SIGTERM", _interrupted(signal.SIGTERM), (143,)),
    Fault("signal: SIGHUP", _interrupted(signal.SIGHUP), (129,)),
    Fault("signal: SIGKILL", _interrupted(signal.SIGKILL), (137,)),
    Fault("report and query at once", _at_once("report {good}", "results query slow-nodes"), (0, 1)),
    Fault("two report at once", _at_once("report {good}", "report {good}"), (0, 1)),
    host("no files", {}),
    host("empty files", dict.fromkeys(("proc/cpuinfo", "proc/meminfo", "sys/devices/system/cpu/online"), "")),
    host("CPUs that are none", {"sys/devices/system/cpu/online": "abc\n"}),
    host("CPUs beyond all", {"sys/devices/system/cpu/online": "0-400000000\n"}),
    host("CPUs offline", {"sys/devices/system/cpu/online": "0,2,4-5\n"}),
    host("node without CPUs", {"sys/devices/system/node/node3/cpulist": "\n"}),
    host("node of an odd name", {"sys/devices/system/node/node0x/cpulist": "0\n"}),
    host("pool of an odd name", {"sys/kernel/mm/hugepages/hugepages-xkB/nr_hugepages": "1\n"}),
    host("pool that says nothing", {"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages": "\n"}),
    host("switch of no choice", {"sys/kernel/mm/transparent_hugepage/enabled": "always never\n"}),
    host("cache of an odd size", {"sys/devices/system/cpu/cpu0/cache/index0/size": "lots\n"}),
]
