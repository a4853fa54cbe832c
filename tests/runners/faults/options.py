"""Options and arguments: odd numbers and units, empty, very long, other scripts, control characters."""

from __future__ import annotations

from fault import Ended, Fault, Place

LONG = "x" * 5000
# Options of `compare --plan`, which starts nothing, and the exit code.
PLANNED = [
    (["--rounds", "0"], 2),
    (["--rounds", "-1"], 2),
    (["--rounds", "1001"], 2),
    (["--rounds", ""], 2),
    (["--rounds", "1e3"], 2),
    (["--rounds", "9" * 5000], 2),
    (["--rounds", "٣"], 0),
    (["--threads", "0"], 2),
    (["--threads", "4096"], 2),
    (["--timeout", "0"], 2),
    (["--until", "nan%"], 2),
    (["--budget", "-5m"], 2),
    (["--seed", "-1"], 2),
    (["--seed", "9" * 30], 2),
    (["--aa", "11"], 2),
    (["--kernels", ""], 0),
    (["--kernels", ","], 0),
    (["--kernels", "["], 2),
    (["--kernels", "[/]"], 2),
    (["--kernels", LONG], 2),
    (["--kernels", "\x1b[2J"], 2),
    (["--kernels", "\udcff"], 2),
    (["--configurations", "*" * 40], 0),
    (["--configurations", "[!"], 2),
    (["--baseline", ""], 2),
    (["--baseline", "[/bold]"], 2),
    (["--policies", "thp"], 2),
    (["--policies", "hugetlbfs:1g"], 2),
    (["--policies", "thp:0k"], 2),
    (["--policies", "thp:-1k"], 2),
    (["--policies", "thp:" + "9" * 30 + "g"], (0, 2)),
    (["--policies", "hugetlbfs:1.5m"], 2),
    (["--cpus", ""], 2),
    (["--cpus", "0-400000000"], 2),
    (["--cpus", "abc"], 2),
    (["--cpus", "0,0"], 2),
    (["--cpus", "9" * 30], 2),
    (["--bind", "membind:"], 2),
    (["--bind", "membind:0-400000000"], 2),
    (["--bind", "interleave:x"], 2),
    (["--bind", "smt:-1"], 2),
    (["--bind", "smt:99"], 2),
    (["--bind", "\u202e"], 2),
    (["--vary", "prefetchers=[/]"], (2, 4)),
    (["--modules", "/nonexistent"], 3),
    (["--modules", ""], 3),
    (["--modules", "/dev/null"], 3),
    (["--env", "../../etc"], (0, 2, 3)),
    (["--resume", "/nonexistent"], 2),
]  # fmt: skip
# Whole commands, `{good}` and `{bad}` are results.
COMMANDS = [
    ([""], 2),
    (["--"], (0, 2)),
    (["\x1b[31mcompare"], 2),
    (["kernels", LONG], 2),
    (["kernels", "--resume", "{good}"], 2),
    (["kernels", "--name", "../x"], 2),
    (["kernels", "--name", "", "--rounds", "1", "--no-sweep", "--kernels", "chase"], (2, 3, 0, 1)),
    (["kernels", "--name", "x" * 300, "--rounds", "1", "--no-sweep"], 4),
    (["kernels", "--output", "/dev/null/x", "--rounds", "1", "--no-sweep"], 4),
    (["results", "diff", "{good}", "{good}", "--threshold", "nan"], 2),
    (["results", "diff", "{good}", "{good}"], 0),
    (["results", "diff", "{good}"], 2),
    (["results", "diff", "{good}", "/nonexistent"], 3),
    (["report", ""], 3),
    (["report", "/dev/null"], 3),
    (["report", "/nonexistent/\x1b[31m[/]"], 3),
    (["report", LONG], 3),
    (["results", "show", "/etc/passwd"], (2, 3)),
    (["results", "list", "/nonexistent"], 2),
    (["results", "list", LONG], 4),
    (["results", "query", "SELECT nothing"], 2),
    (["results", "query", "/nonexistent.sql"], 2),
    (["results", "query", "SELECT 1", "/dev/null"], 2),
    (["results", "query", "COPY records TO '/dev/full'", "{good}"], 2),
    (["results", "query", "COPY records TO 'x'", "--write", "/proc/x/y", "{good}"], 2),
    (["list", "--modules", "/dev/null"], 3),
    (["run", "none/hardware-regular"], 2),
    (["run", "[", "--", "pw-chase"], 2),
    (["run", "*none*", "--", "\x1b[31m"], 2),
    (["compare", "--rounds", "1", "--", "/nonexistent"], 2),
    (["compare", "--rounds", "1", "--", "/"], 2),
    (["compare", "--rounds", "1", "--", "/dev/zero"], 2),
    (["compare", "--rounds", "1", "--metric", "[", "--", "true"], 2),
    (["compare", "--rounds", "1", "--metric", "a=(", "--", "true"], 2),
    (["compare", "--rounds", "1", "--check", "(", "--", "true"], 2),
    (["compare", "--prepare-pages", "2M:1e400g", "--rounds", "1", "--", "true"], 2),
    (["compare", "--sample-interval", "nan", "--rounds", "1", "--", "true"], 2),
    (["compare", "--enough-coverage", "nan", "--rounds", "1", "--", "true"], 2),
    (["compare", "--"], 2),
    (["counters", "--groups", "[/]"], (2, 3, 4)),
    (["kernels", "--resume", "{bad}"], 2),
    (["results", "rerun", "{good}"], 2),
]  # fmt: skip


def planned(arguments: list[str], codes: int | tuple[int, ...]) -> Fault:
    def happen(place: Place) -> Ended:
        return place.run("kernels", "--plan", *arguments)

    return Fault(f"option {_shown(arguments)}", happen, _codes(codes))


def whole(arguments: list[str], codes: int | tuple[int, ...]) -> Fault:
    def happen(place: Place) -> Ended:
        return place.run(*(one.format(good=place.good, bad=place.bad) for one in arguments))

    return Fault(f"command {_shown(arguments)}", happen, _codes(codes))


def _codes(codes: int | tuple[int, ...]) -> tuple[int, ...]:
    return codes if isinstance(codes, tuple) else (codes,)


def _shown(arguments: list[str]) -> str:
    return ascii(" ".join(one[:20] for one in arguments))


FAULTS = [planned(*row) for row in PLANNED] + [whole(*row) for row in COMMANDS]
