"""A stand-in for a kernel: writes records like pw-<kernel>, after a short sleep.

The module's variables set its configuration (PAGEWISE_*) and its behaviour:
PW_FAKE_MODE (ok, check_failed, pages, wrong_pages, wrong_rank, wrong_cpu, crash, illegal, hang, usage,
silent, extra_turn),
PW_FAKE_FACTOR (slowness), PW_FAKE_SLOW (soa:2: twice as slow with the argument soa),
PW_FAKE_INTERLEAVED (how often as slow when its memory is interleaved),
PW_FAKE_SLEEP (seconds), PW_FAKE_TURNS (it takes turns; a file in which all programs count them),
PW_FAKE_WITHOUT (an unavailable page policy), PW_FAKE_REFUSED (events that cannot be counted),
PW_FAKE_CRASH_ON (an event at which it crashes), PW_FAKE_FAULT (see faulty.py), PW_FAKE_NODES (see
apply_node_settings), PW_FAKE_LIBRARY_FILE (of the library PAGEWISE_LIBRARY). With PAPI, it counts
PAGEWISE_EVENTS: with huge pages a tenth of the TLB misses.
"""

# A test run starts thousands of these, so slow imports (pathlib, random, datetime) are avoided.
import json
import math
import os
import sys
import time

BEGAN = time.monotonic()
STARTED = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
MIB = 1024 * 1024
HUGE = 2 * MIB
WRONG = {"wrong_pages": {"pages": {"huge_coverage": 0.5}}, "wrong_cpu": {"placement": {"cpus": [4095]}}}
LADDERS = {"stride": ["1", "2", "4", "8"], "type": ["fp64", "fp32"]}


def option(name: str, default: str) -> str:
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default


def bytes_of(text: str) -> int:
    return int(text.removesuffix("MiB")) * MIB if text.endswith("MiB") else int(text)


def page_size(policy: str) -> int:
    size = policy.partition(":")[2]
    units = {"k": 1024, "m": MIB, "g": 1024 * MIB}
    return int(size[:-1]) * units[size[-1]] if size else 4096 if policy == "none" else HUGE


def normal() -> float:
    """An approximately normal random number: the sum of 12 bytes has the standard deviation 256."""
    return (sum(os.urandom(12)) - 12 * 127.5) / 256


def record(size: int, factor: float, **options: object) -> dict:
    policy = option("--pages", os.environ["PAGEWISE_HUGEPAGES"])
    seconds = in_turns(factor * size / 40e9) if "--turns" in sys.argv else []
    seconds = seconds or [factor * size / 40e9 * math.exp(0.01 * normal()) for _ in range(5)]
    ordered = sorted(seconds)
    median = (ordered[len(seconds) // 2] + ordered[(len(seconds) - 1) // 2]) / 2
    huge = size if policy != "none" else 0
    page = page_size(policy)
    return {
        "schema": "pagewise.record/1",
        "kernel": sys.argv[0].rpartition("/pw-")[2],
        "started": STARTED,
        "status": "ok",
        "configuration": {
            "version": "0.1.0",
            "compiler": os.environ["PAGEWISE_COMPILER"],
            "compiler_version": "fake",
            "compiler_options": "",
            "hugepages": os.environ["PAGEWISE_HUGEPAGES"],
            "prefetch": os.environ["PAGEWISE_PREFETCH"],
            "stores": os.environ["PAGEWISE_STORES"],
            "loop": os.environ.get("PAGEWISE_LOOP", "explicit"),
            "openmp": True,
            "papi": os.environ.get("PAGEWISE_PAPI") == "on",
        },
        "options": {"threads": int(option("--threads", "1")), **options},
        "sizes": {
            "elements": size // 32,
            "element_bytes": 8,
            "arrays": 4,
            "working_set_bytes": size,
            "array_spacing_bytes": 0,
        },
        "seconds": {"first_touch": size / 2e9 if policy == "none" else size / 8e9, "repetitions": seconds},
        "passes_per_repetition": 1,
        "traffic": {"bytes_stream": size, "bytes_hardware": size * 1.25, "flops": size / 16},
        "metrics": {
            "bandwidth_stream_gb_per_s": size / median / 1e9,
            "bandwidth_hardware_gb_per_s": 1.25 * size / median / 1e9,
            "latency_ns": 1e9 * median / 1e3,
            "gflop_per_s": size / 16 / median / 1e9,
        },
        "validation": {"passed": True, "method": "closed form", "error": 0.0, "tolerance": 0.0},
        "pages": {
            "policy": policy,
            "page_size_requested_bytes": page,
            "page_size_observed_bytes": page,
            "huge_coverage": huge / size,
            "base_page_size_bytes": 4096,
            "method": "smaps",
            "arrays": arrays(size, huge, page),
        },
        "page_faults": {
            "first_touch_minor": size // page,
            "first_touch_major": 0,
            "compute_minor": 0,
            "compute_major": 0,
        },
        **counted(sum(seconds), policy != "none"),
        "placement": {"threads": 1, "cpus": sorted(os.sched_getaffinity(0)), "numa_nodes": [0]},
        "host": {"hostname": "fake", "cpu": "fake", "kernel": "6.0", "base_page_size_bytes": 4096},
    }


def in_turns(seconds: float) -> list:
    """The seconds of each turn: the speed of the machine changes by half and back."""
    import signal

    over, repetitions, most = [], [], int(option("--turns", ""))
    signal.signal(signal.SIGUSR1, lambda *_: over.append(True))
    os.kill(os.getpid(), signal.SIGSTOP)
    while len(repetitions) <= most:
        os.kill(os.getpid(), signal.SIGSTOP)
        if over or len(repetitions) == most:
            break
        with open(os.environ["PW_FAKE_TURNS"], "ab+", buffering=0) as file:  # noqa: PTH123
            file.write(b".")
            turns = os.fstat(file.fileno()).st_size
        if os.environ.get("PW_FAKE_MODE") == "extra_turn" and not repetitions:
            repetitions.append(seconds)
        repetitions.append(seconds * math.exp(0.001 * normal() + 0.2 * math.sin(turns / 60)))
        # The runner measures the turns, too.
        time.sleep(repetitions[-1])
    return repetitions


def arrays(size: int, huge: int, page: int) -> list:
    """That of each rank, of which the last may have no huge pages."""
    ranks = range(rank_and_number()[1])
    of_rank = {
        "bytes": size // len(ranks),
        "huge_bytes": huge // len(ranks),
        "page_size_observed_bytes": page,
    }
    actual = [{"name": f"a.{rank}" if len(ranks) > 1 else "a", **of_rank} for rank in ranks]
    if os.environ.get("PW_FAKE_MODE") == "wrong_rank":
        actual[-1] |= {"huge_bytes": 0, "page_size_observed_bytes": 4096}
    return actual


def rank_and_number() -> tuple:
    """This rank and the number of ranks, by the launcher's variables."""
    pairs = (("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"), ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"))
    actual = next((pair for pair in pairs if "OMP_PLACES" in os.environ and pair[1] in os.environ), None)
    return tuple(int(os.environ[name]) for name in actual) if actual else (0, 1)


def counted(seconds: float, huge: bool) -> dict:
    """Counts of the events in PAGEWISE_EVENTS, with fixed rates per second, in two regions."""
    wanted = [name for name in os.environ.get("PAGEWISE_EVENTS", "").split(",") if name]
    software = all(name.startswith("perf::") for name in wanted)
    if not wanted or (os.environ.get("PAGEWISE_PAPI") != "on" and not software):
        return {"counters": {"unavailable": "built without PAPI"}}
    refused = [name for name in wanted if name in os.environ.get("PW_FAKE_REFUSED", "").split(",")]
    rates = {"CYC": 2.5e9, "INST": 5e9, "CLOCK": 1e9}
    rates |= {"TLB": 1e5, "FAULT": 4e2} if huge else {"TLB": 1e6, "FAULT": 4e3}
    counts = {
        name: round(seconds * next((rate for part, rate in rates.items() if part in name.upper()), 1e7))
        for name in wanted
        if name not in refused
    }
    half = {name: count // 2 for name, count in counts.items()}
    uneven = {name: 1.25 for name, count in counts.items() if count}
    parts = ("seconds", "seconds_mean_of_threads", "seconds_exclusive")
    facts = {"calls": 2, "threads": 2, "imbalance": uneven, **dict.fromkeys(parts, seconds / 2)}
    result = {
        "counters": counts,
        "counters_source": "software" if software else "papi",
        "regions": [
            {"name": "hydro", "path": "step/hydro", **facts, "counts": half},
            {"name": "step", "path": "step", **facts, "counts": counts},
        ],
    }
    if refused:
        result["counters_refused"] = {name: "no such event" for name in refused}
    return result


def failed(size: int, status: str, exit_code: int, message: str, remedy: str) -> dict:
    kept = ("schema", "kernel", "started", "configuration", "options")
    failure = {"exit_code": exit_code, "message": message, "remedy": remedy}
    return {
        **{key: value for key, value in record(size, 1.0).items() if key in kept},
        "status": status,
        "failure": failure,
    }


def curve_factor(size: int) -> float:
    return 0.15 if size < 32 * 1024 else 0.35 if size < MIB else 0.5 if size < 32 * MIB else 1.0


def apply_node_settings() -> None:
    """Take `factor` and `sleep` from <hostname>.json in PW_FAKE_NODES; no THP if the setting is never."""
    if "PW_FAKE_NODES" not in os.environ:
        return
    from pathlib import Path

    file = Path(os.environ["PW_FAKE_NODES"]) / f"{os.uname().nodename}.json"
    settings = json.loads(file.read_text()) if file.exists() else {}
    factor = float(os.environ.get("PW_FAKE_FACTOR", "1")) * settings.get("factor", 1.0)
    os.environ |= {"PW_FAKE_FACTOR": str(factor), "PW_FAKE_SLEEP": str(settings.get("sleep", 0.002))}
    never = "[never]" in Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
    if never and os.environ["PAGEWISE_HUGEPAGES"] == "thp":
        os.environ["PW_FAKE_MODE"] = "wrong_pages"


def print_version() -> int:
    print(f"library    {os.environ.get('PAGEWISE_LIBRARY')}: {os.environ.get('PW_FAKE_LIBRARY_FILE')}")
    return 0


def print_options() -> int:
    size = f"{64 * len(os.sched_getaffinity(0))}MiB"
    options = [{"name": "working-set", "kind": "bytes", "default": size, "help": "64 MiB per CPU"}]
    if "PW_FAKE_TURNS" in os.environ:
        options.append({"name": "turns", "kind": "count", "default": 0, "help": "stop before each"})
    print(json.dumps(options))
    return 0


def slower_by_memory() -> float:
    if "PW_FAKE_INTERLEAVED" not in os.environ:
        return 1.0
    with open("/proc/self/numa_maps", encoding="ascii") as file:  # noqa: PTH123 pathlib takes long to import
        interleaved = " interleave:" in file.read()
    return float(os.environ["PW_FAKE_INTERLEAVED"]) if interleaved else 1.0


def slower_by_option() -> float:
    argument, _, factor = os.environ.get("PW_FAKE_SLOW", "").partition(":")
    return float(factor) if argument in sys.argv else 1.0


def main() -> int:
    unavailable = option("--pages", "as built") == os.environ.get("PW_FAKE_WITHOUT", "")
    mode = "pages" if unavailable else os.environ.get("PW_FAKE_MODE", "ok")
    factor = float(os.environ.get("PW_FAKE_FACTOR", "1")) * slower_by_memory() * slower_by_option()
    size = bytes_of(option("--working-set", "64MiB"))
    time.sleep(float(os.environ.get("PW_FAKE_SLEEP", "0.002")))
    crash_on = os.environ.get("PW_FAKE_CRASH_ON")
    if mode == "illegal":
        os.kill(os.getpid(), 4)  # SIGILL
    if mode == "crash" or (crash_on and crash_on in os.environ.get("PAGEWISE_EVENTS", "").split(",")):
        import signal

        print("about to crash", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    if mode == "hang":
        time.sleep(600)
    if mode == "usage":
        print("pw-fake: error: unknown option --repetitions\n  remedy: --help", file=sys.stderr)
        return 2
    if mode == "silent":
        return 0
    records, code = [], 0
    if mode == "pages":
        print(
            "pw-fake: error: 32 huge pages of 2048 KiB are missing\n  remedy: sysctl vm.nr_hugepages=32",
            file=sys.stderr,
        )
        records = [
            failed(
                size,
                "pages_unavailable",
                3,
                "32 huge pages of 2048 KiB are missing",
                "sysctl vm.nr_hugepages=32",
            )
        ]
        code = 3
    elif mode == "check_failed":
        records, code = ([failed(size, "check_failed", 1, "sum is 3, not 4", "report this compiler")], 1)
    elif option("--sweep", "") == "working-set":
        sizes = [int(8192 * 2 ** (step / 2)) for step in range(29)]
        records = [record(step, factor * curve_factor(step)) for step in sizes]
    elif "--sweep" in sys.argv:
        name, _, named = option("--sweep", "").partition("=")
        values = named.split(",") if named else LADDERS[name]
        records = [
            record(size, factor * (1 + number), **{name.replace("-", "_"): value})
            for number, value in enumerate(int(text) if text.isdigit() else text for text in values)
        ]
    else:
        records = [record(size, factor)]
        # The runner measures how long a run takes, so it takes as long as it reports.
        time.sleep(max(0.0, sum(records[0]["seconds"]["repetitions"]) - (time.monotonic() - BEGAN)))
    for row in records:
        for part, wrong in WRONG.get(mode, {}).items():
            row[part] |= wrong
    file = os.open(option("--record", "/dev/stdout"), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(file, written(records))
    os.close(file)
    return code


def written(records: list[dict]) -> bytes:
    """The bytes to append for these records; a fault of the red team changes them."""
    if "PW_FAKE_FAULT" in os.environ and "--sweep" not in sys.argv:
        sys.path.insert(0, os.environ["PW_FAKE_FAULTS"])
        import faulty

        return faulty.written(records)
    return "".join(json.dumps(row) + "\n" for row in records).encode()


apply_node_settings()
if rank_and_number()[0] > 0:
    sys.exit(0)
QUERIES = {"--version": print_version, "--list-options": print_options}
sys.exit(next((answer for option, answer in QUERIES.items() if option in sys.argv), main)())
