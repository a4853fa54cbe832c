"""Event files of the kernels and of the runner, invalid ones, formulas, units, the selection by CPU."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path

import pytest

import libpfm
from pagewise.core.errors import FormatError, SelectionError, SetupError
from pagewise.core.events import Cpu, EventFile
from pagewise.core.findings import good, note
from pagewise.core.formula import Formula
from pagewise.core.structure import to_data
from pagewise.workloads.counters.machine import EVENTS as OF_KERNEL
from pagewise.workloads.counters.machine import choose, read_cpu
from stage import EVENTS

FILES = {file.stem: file for folder in (EVENTS, OF_KERNEL) for file in sorted(folder.glob("*.yaml"))}
ALL = [EventFile.from_file(file) for file in FILES.values()]
BY_NAME = {file.name: file for file in ALL}
GOOD = good("hardware counters", "")
VIRTUAL = note("hardware counters", "none here: a virtual machine", "count on a bare machine")

SMALL = {
    "schema": "pagewise.events/1",
    "name": "small",
    "title": "Small",
    "pmu": "small",
    "libpfm": "4.0",
    "counters": {"programmable": 2, "fixed": 1},
    "source": "nowhere",
    "reference": {"cycles": "CYCLES"},
    "constants": {"LINE": {"value": 64, "unit": "bytes", "source": "nowhere"}},
    "events": {
        "CYCLES": {"native": "cyc", "unit": "cycles", "description": "c", "fixed": True},
        "MISSES": {"native": "mis", "unit": "count", "description": "m"},
        "FILLS": {"native": "fil", "unit": "count", "description": "f"},
    },
    "groups": [{"name": "all", "title": "All", "events": ["CYCLES", "MISSES", "FILLS"]}],
    "metrics": [{"name": "rate", "title": "Rate", "formula": "FILLS * LINE / seconds", "unit": "GB/s"}],
}


def rates(name: str, counts: dict[str, float], seconds: float) -> dict[str, float | None]:
    """The metrics of a CPU's event file for these counts."""
    file = BY_NAME[name]
    values = file.base_values(counts, seconds)
    return {metric.name: metric.value(values) for metric in file.metrics}


@pytest.mark.parametrize("file", ALL, ids=FILES)
def test_libpfm_supports_every_name(file: EventFile):
    """Asks this libpfm if it supports the CPU, or uses the recorded answers of another libpfm."""
    unknown, unchecked = [], set()
    pmus = (file.pmu,) if isinstance(file.pmu, str) else file.pmu
    for event in file.events.values():
        for pmu in ("perf",) if event.native.startswith("perf::") else pmus:
            if pmu in libpfm.pmus():
                fault = libpfm.fault(pmu, event.native)
                unknown += [] if fault is None else [f"{pmu}::{event.native}: {fault}"]
            elif any(pmu == recorded for recorded, _ in libpfm.recorded()):
                known = (pmu, event.native) in libpfm.recorded()
                unknown += [] if known else [f"{pmu}::{event.native} is not in libpfm_encodings.txt"]
            else:
                unchecked.add(pmu)
    assert unknown == []
    if unchecked:
        pytest.skip(f"this libpfm does not support {', '.join(sorted(unchecked))}")


def test_metrics_with_the_same_name_are_the_same_on_every_cpu():
    """So that rates of different CPUs, and published rates, can be compared."""
    texts_by_name: dict[str, set[tuple[str, str]]] = {}
    for file in ALL:
        for metric in file.metrics:
            texts_by_name.setdefault(metric.name, set()).add((metric.title, metric.unit))
    assert {name: texts for name, texts in texts_by_name.items() if len(texts) > 1} == {}


@pytest.mark.parametrize("name", ["power9", "power10"])
def test_powers_counters_match_the_codes(name: str):
    for event in BY_NAME[name].events.values():
        code = libpfm.recorded()[(name, event.native)]
        assert event.fixed or event.counter == (code >> 16) & 0xF, event.native


def test_a64fx_divides_all_instructions_into_classes():
    """Classes of table 14-1 of the manual, with counts by hand: they and all others add up to 1."""
    a64fx = BY_NAME["a64fx"]
    counts = {name: 0.0 for name in a64fx.events} | {
        **{"INST_SPEC": 1000.0, "FP_SPEC": 300.0, "FP_FMA_SPEC": 200.0, "FP_RECPE_SPEC": 20.0},
        **{"FP_CVT_SPEC": 11.0, "FP_MV_SPEC": 12.0, "ASE_SVE_INT_SPEC": 13.0, "PRD_SPEC": 14.0},
        **{"LD_SPEC": 250.0, "BASE_LD_REG_SPEC": 60.0, "ASE_SVE_LD_SPEC": 190.0, "FP_LD_SPEC": 10.0},
        **{"SVE_LDR_REG_SPEC": 7.0, "BC_LD_SPEC": 6.0, "SVE_LD_GATHER_SPEC": 5.0, "SVE_LDFF_SPEC": 4.0},
        **{"ST_SPEC": 100.0, "ASE_SVE_ST_SPEC": 90.0, "FP_ST_SPEC": 3.0, "SVE_ST_SCATTER_SPEC": 2.0},
        **{"PRF_SPEC": 30.0, "SVE_PRF_GATHER_SPEC": 8.0, "SVE_PRF_CONTIG_SPEC": 9.0, "DCZVA_SPEC": 1.0},
        **{"BR_PRED": 40.0, "CRYPTO_SPEC": 2.0, "SVE_MOVPRFX_SPEC": 5.0},
    }
    shares = rates("a64fx", counts, 1.0)
    whole = ("fp", "conversions", "moves", "vector_integer", "predicates", "loads", "stores", "prefetches")
    whole += ("zero_lines", "branches", "encryption", "movprfx", "base")
    assert sum(shares[f"mix_{name}"] for name in whole) == pytest.approx(1.0)
    assert shares["mix_basic_fp"] == pytest.approx(0.08) and shares["mix_base"] == pytest.approx(0.222)
    assert shares["mix_basic_vector_loads"] == pytest.approx(0.158)
    assert shares["mix_basic_vector_stores"] == pytest.approx(0.085)
    assert shares["mix_line_prefetches"] == pytest.approx(0.013)
    # Each event of the mix has its share.
    used = {name for metric in a64fx.metrics if metric.name.startswith("mix_") for name in metric.names}
    mixed = {name for group in a64fx.groups if group.name.startswith("mix") for name in group.events}
    assert mixed - used == {"CPU_CYCLES"}


def test_a64fx_has_busy_rates_of_l2_and_memory_and_flops_by_precision():
    # Two threads of a core memory group, each of which counts what is of the whole group.
    counts = {"CPU_CYCLES": 2 * 1e6, "L2_PIPE_VAL": 2 * 4e5, "BUS_READ_TOTAL_MEM": 2 * 2e5}
    counts |= {"BUS_WRITE_TOTAL_MEM": 2 * 1e5, "FP_SCALE_OPS_SPEC": 10.0, "FP_FIXED_OPS_SPEC": 8.0}
    counts |= {"FP_DP_SCALE_OPS_SPEC": 9.0, "FP_DP_FIXED_OPS_SPEC": 0.0, "FP_SP_SCALE_OPS_SPEC": 1.0}
    counts |= {"FP_SP_FIXED_OPS_SPEC": 2.0, "FP_HP_SCALE_OPS_SPEC": 0.0, "FP_HP_FIXED_OPS_SPEC": 6.0}
    values = rates("a64fx", counts, 1.0)
    assert values["cmg_l2_busy"] == pytest.approx(0.4)
    # 3e5 lines of 256 bytes in 1e6 cycles, of 128 bytes per cycle.
    assert values["cmg_memory_busy"] == pytest.approx(0.6)
    shares = [values[f"flops_{precision}_share"] for precision in ("fp64", "fp32", "fp16")]
    assert shares == pytest.approx([36 / 48, 6 / 48, 6 / 48])


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        # Only one counter can count two events of a group.
        (
            lambda d: [d["events"][name].update(counter=5) for name in ("MISSES", "FILLS")],
            ("groups.0", "2", "5"),
        ),
        (lambda d: d.pop("pmu"), ("'pmu'",)),
        (lambda d: d.update(extra=1), ("'extra'",)),
        (lambda d: d["events"]["MISSES"].update(unit="furlongs"), ("events.MISSES.unit",)),
        (lambda d: d["events"]["MISSES"].update(native="a b"), ("events.MISSES.native",)),
        (lambda d: d["groups"][0]["events"].append("NONE"), ("groups.0", "NONE")),
        (lambda d: d["groups"][0]["events"].remove("CYCLES"), ("groups.0", "CYCLES")),
        (lambda d: d["counters"].update(programmable=1), ("groups.0", "2", "1")),
        (lambda d: d["counters"].update(fixed=0), ("groups.0", "1", "0", "fixed")),
        (lambda d: d["groups"][0]["events"].remove("FILLS"), ("events.FILLS",)),
        (lambda d: d["reference"].update(cycles="NONE"), ("reference.cycles", "NONE")),
        (lambda d: d["events"]["MISSES"].update(native="fil"), ("events", "fil")),
        (lambda d: d["groups"].append(d["groups"][0]), ("groups", "all")),
        (lambda d: d["metrics"].append(d["metrics"][0]), ("metrics", "rate")),
        (lambda d: d["metrics"][0].update(formula="FILLS / NONE"), ("metrics.0", "NONE")),
        (lambda d: d["metrics"][0].update(formula="FILLS ** 2"), ("metrics.0", "FILLS ** 2")),
        (lambda d: d["metrics"][0].update(formula="CYCLES + FILLS"), ("metrics.0", "CYCLES + FILLS")),
        (lambda d: d["metrics"][0].update(formula="FILLS * LINE"), ("metrics.0", "byte^1", "GB/s")),
        (lambda d: d["metrics"][0].update(unit="miles"), ("metrics.0", "'miles'")),
        (lambda d: d["constants"]["LINE"].update(unit="lines"), ("constants.LINE", "'lines'")),
    ],
)
def test_an_invalid_file_is_refused_with_the_place(change, cause: tuple[str, ...]):
    data = copy.deepcopy(SMALL)
    change(data)
    with pytest.raises(FormatError) as caught:
        EventFile.from_dict(data, "here")
    head, *lines = caught.value.message.splitlines()
    assert caught.value.where == "here" and "pagewise.events/1" in head
    # As separate words.
    patterns = [rf"(?<![\w.]){re.escape(part)}(?!\.?\w)" for part in cause]
    assert any(all(re.search(pattern, line) for pattern in patterns) for line in lines)


def extended(folder: Path, **changes: object) -> EventFile:
    """A file that extends the small one."""
    for name, content in (("small", SMALL), ("next", {"extends": "small", "name": "next"} | changes)):
        (folder / f"{name}.yaml").write_text(json.dumps(content))
    return EventFile.from_file(folder / "next.yaml")


def test_a_file_extends_another_of_its_folder(tmp_path: Path):
    misses = {"native": "other", "unit": "count", "description": "m"}
    group = {"name": "all", "title": "All", "events": ["CYCLES", "MISSES"]}
    changes = {"libpfm": "5.0", "without": ["FILLS", "rate"], "events": {"MISSES": misses}}
    file = extended(tmp_path, **changes, groups=[group])
    assert (file.name, file.libpfm, file.pmu) == ("next", "5.0", "small")
    assert {name: event.native for name, event in file.events.items()} == {"CYCLES": "cyc", "MISSES": "other"}
    assert [group.events for group in file.groups] == [("CYCLES", "MISSES")]
    assert not file.metrics


@pytest.mark.parametrize(
    "change", [{"extends": "none"}, {"extends": "next"}, {"without": ["NONE"]}, {"groups": [1]}]
)
def test_a_wrong_extension_of_a_file_is_refused(tmp_path: Path, change: dict[str, object]):
    with pytest.raises(FormatError) as caught:
        extended(tmp_path, **change)
    assert caught.value.where.startswith(str(tmp_path))


def test_formulas_compute_in_base_units():
    small = EventFile.from_dict(SMALL, "here")
    values = small.base_values({"FILLS": 1e9}, 2.0)
    assert values == {"LINE": 64.0, "FILLS": 1e9, "seconds": 2.0}
    assert small.metrics[0].value(values) == pytest.approx(32.0)
    assert small.metrics[0].names == ("FILLS", "LINE", "seconds")
    software = rates("software", {"TASK_CLOCK": 4e9, "PAGE_FAULTS": 100}, 2.0)
    assert software == {"page_fault_rate": 25.0, "cpus_used": 2.0, "context_switch_rate": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a + b * c", 14.0),
        ("(a + b) * c", 20.0),
        ("a - b - c", -5.0),
        ("-a / b", -2 / 3),
        ("2 * a / 4", 1.0),
        ("a / (b - 3)", None),
        ("a / none", None),
    ],
)
def test_formulas(text: str, value: float | None):
    result = Formula.of(text).value({"a": 2.0, "b": 3.0, "c": 4.0})
    assert result == (value if value is None else pytest.approx(value))


INVALID = ("True", "a if b else c", "a.b", "a[0]", "f(a)", "'a'", "", "a;b", "1j", "a % b", "a +", "a ** 2")


@pytest.mark.parametrize("text", [*INVALID, "__import__('os')"])
def test_invalid_formulas_are_refused(text: str):
    with pytest.raises(ValueError, match=re.escape(repr(text))):
        Formula.of(text)


def test_a64fx_energy_and_traffic_match_its_manual():
    """Twelve threads of one core memory group, 1 s at 2 GHz: what the group counts, each of them counts."""
    threads = 12
    counts = {
        "CPU_CYCLES": threads * 2e9,
        "EA_CORE": threads * 1e9 / 8,  # 1 J each
        "EA_L2": threads * 4e9 / 32,  # 4 J
        "EA_MEMORY": threads * 20e9 / 256,  # 20 J
        "BUS_READ_TOTAL_MEM": threads * 200e9 / 256,  # 200 GB
        "BUS_WRITE_TOTAL_CMG1": threads * 50e9 / 256,
    }
    values = rates("a64fx", counts, 1.0)
    assert values["core_energy"] == pytest.approx(12.0) and values["core_power"] == pytest.approx(12.0)
    assert values["cmg_l2_energy"] == pytest.approx(4 / 2)  # nJ per cycle at 2 GHz
    assert values["cmg_memory_energy"] == pytest.approx(20 / 2)
    assert values["cmg_memory_read"] == pytest.approx(100.0)
    assert values["cmg_to_cmg1"] == pytest.approx(25.0)


def test_groups_are_selected():
    zen4 = BY_NAME["zen4"]
    assert [group.name for group in zen4.select(["cache", "tlb"])] == ["tlb", "cache"]
    assert zen4.select([]) == zen4.groups
    with pytest.raises(SelectionError) as caught:
        zen4.select(["nothing"])
    assert caught.value.where == "--groups" and "'nothing'" in caught.value.message
    assert zen4.natives(zen4.groups[0])[0] == "CYCLES_NOT_IN_HALT"


CPUS = {
    "a64fx": "CPU implementer\t: 0x46\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: 0x001\n",
    "neoverse-n1": "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n",
    "neoverse-v1": "CPU implementer\t: 0x41\nCPU part\t: 0xd40\n",
    "neoverse-v2": "CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n",
    "power9": "processor\t: 0\ncpu\t\t: POWER9, altivec supported\nclock\t\t: 3800MHz\n",
    "power10": "processor\t: 0\ncpu\t\t: POWER10 (architected), altivec supported\n",
    "zen2": "vendor_id\t: AuthenticAMD\ncpu family\t: 23\nmodel\t\t: 49\nmodel name\t: AMD EPYC 7742\n",
    "zen3": "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 1\n",
    "zen4": "vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 17\n",
    "zen5": "vendor_id\t: AuthenticAMD\ncpu family\t: 26\nmodel\t\t: 2\n",
    "skylake": "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n",
    "icelake": "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n",
    "sapphirerapids": "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 143\n",
    "generic": "vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 60\n",
}


@pytest.mark.parametrize("name", CPUS)
def test_the_file_for_a_cpu(tmp_path: Path, name: str):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text(f"processor\t: 0\n{CPUS[name]}\n{CPUS[name]}")
    cpu = read_cpu(tmp_path)
    assert choose(ALL, cpu, papi=True, hardware=GOOD).file.name == name
    assert [file.name for file in ALL if file.matches and file.matches.fits(cpu)] in ([name], [])


def test_all_files_are_known_and_the_same_after_a_manifest():
    assert {*CPUS, "perf", "software"} == set(FILES) == {file.name for file in ALL}
    assert [EventFile.from_dict(json.loads(json.dumps(to_data(file))), "here") for file in ALL] == ALL


def test_files_without_a_cpu_are_fallbacks_with_a_reason():
    assert {file.name for file in ALL if file.matches is None} == {"generic", "perf", "software"}
    assert {file.name for file in ALL if file.is_software} == {"software"}
    zen4 = Cpu(vendor="AuthenticAMD", family=0x19, model=0x11)
    none = choose(ALL, zen4, papi=True, hardware=VIRTUAL)
    assert none.file.name == "software" and none.remedy == VIRTUAL.remedy
    assert VIRTUAL.detail in none.reason and BY_NAME["zen4"].title in none.reason
    plain = choose(ALL, zen4, papi=False, hardware=GOOD)
    assert (plain.file.name, "PAPI" in plain.reason, "+papi" in plain.remedy) == ("perf", True, True)
    assert choose(ALL, Cpu(), papi=True, hardware=GOOD).file.name == "generic"
    assert choose(ALL, zen4, papi=False, hardware=VIRTUAL, named="a64fx").file.name == "a64fx"
    with pytest.raises(SelectionError) as caught:
        choose(ALL, zen4, papi=True, hardware=GOOD, named="none")
    assert caught.value.where == "--events" and "'none'" in caught.value.message
    with pytest.raises(SetupError, match=r"software\.yaml"):
        choose([BY_NAME["zen4"]], zen4, papi=True, hardware=VIRTUAL)
