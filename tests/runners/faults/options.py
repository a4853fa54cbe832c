"""Options and arguments: odd numbers and units, empty, very long, other scripts, control characters."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from fault import Ended, Fault, Place

#: By exit codes: values of options, or of the `{}` in commands.
Values = Mapping[tuple[int, ...], Mapping[str, list[str]]]
LONG = "x" * 5000
# Options of `kernels --plan`, which starts nothing.
PLANNED: Values = {
    (0,): {"--rounds": ["٣"], "--kernels": ["", ","], "--configurations": ["*" * 40]},
    (2,): {
        "--rounds": ["0", "-1", "1001", "", "1e3", "9" * 5000],
        "--threads": ["0", "4096"],
        "--timeout": ["0"],
        "--until": ["nan%"],
        "--budget": ["-5m"],
        "--seed": ["-1", "9" * 30],
        "--aa": ["11"],
        "--kernels": ["[", "[/]", LONG, "\x1b[2J", "\udcff"],
        "--configurations": ["[!"],
        "--baseline": ["", "[/bold]"],
        "--policies": ["thp", "hugetlbfs:1g", "thp:0k", "thp:-1k", "hugetlbfs:1.5m"],
        "--cpus": ["", "0-400000000", "abc", "0,0", "9" * 30],
        "--bind": ["membind:", "membind:0-400000000", "interleave:x", "smt:-1", "smt:99", "\u202e"],
        "--resume": ["/nonexistent"],
    },
    (3,): {"--modules": ["/nonexistent", "", "/dev/null"]},
    (0, 2): {"--policies": ["thp:" + "9" * 30 + "g"]},
    (2, 4): {"--vary": ["prefetchers=[/]"]},
    (0, 2, 3): {"--env": ["../../etc"]},
}
# Whole commands, `{good}` and `{bad}` are results.
COMMANDS: Values = {
    (0,): {"results diff {good} {}": ["{good}"]},
    (2,): {
        "{}": ["", "\x1b[31mcompare"],
        "kernels {}": [LONG],
        "kernels --name {}": ["../x"],
        "kernels --resume {}": ["{good}", "{bad}"],
        "compare {}": ["--"],
        "compare --rounds 1 -- {}": ["/nonexistent", "/", "/dev/zero"],
        "compare --rounds 1 --metric {} -- true": ["[", "a=("],
        "compare --rounds 1 --check {} -- true": ["("],
        "compare --rounds 1 --prepare-pages {} -- true": ["2M:1e400g"],
        "compare --rounds 1 --sample-interval {} -- true": ["nan"],
        "compare --rounds 1 --enough-coverage {} -- true": ["nan"],
        "run {}": ["none/hardware-regular"],
        "run {} -- pw-chase": ["["],
        "run *none* -- {}": ["\x1b[31m"],
        "results diff {}": ["{good}"],
        "results diff {good} {good} --threshold {}": ["nan"],
        "results list {}": ["/nonexistent"],
        "results query {}": ["SELECT nothing", "/nonexistent.sql"],
        "results query {} /dev/null": ["SELECT 1"],
        "results query {} {good}": ["COPY records TO '/dev/full'"],
        "results query {} --write /proc/x/y {good}": ["COPY records TO 'x'"],
        "results rerun {}": ["{good}"],
    },
    (3,): {
        "list --modules {}": ["/dev/null"],
        "report {}": ["", "/dev/null", "/nonexistent/\x1b[31m[/]", LONG],
        "results diff {good} {}": ["/nonexistent"],
    },
    (4,): {
        "kernels --rounds 1 --no-sweep --name {}": ["x" * 300],
        "kernels --rounds 1 --no-sweep --output {}": ["/dev/null/x"],
        "results list {}": [LONG],
    },
    (0, 2): {"{}": ["--"]},
    (2, 3): {"results show {}": ["/etc/passwd"]},
    (0, 1, 2, 3): {"kernels --rounds 1 --no-sweep --kernels chase --name {}": [""]},
    (2, 3, 4): {"counters --groups {}": ["[/]"]},
}


def _with_value(command: str, value: str) -> Callable[[Place], Ended]:
    words = [value if word == "{}" else word for word in command.split()]
    return lambda place: place.run(*place.words(words))


def _faults(rows: Values, start: str = "", end: str = "") -> list[Fault]:
    return [
        Fault(ascii(command.replace("{}", value[:20])), _with_value(command, value), codes)
        for codes, commands in rows.items()
        for name, values in commands.items()
        for command in [start + name + end]
        for value in values
    ]


FAULTS = _faults(PLANNED, "kernels --plan ", " {}") + _faults(COMMANDS)
