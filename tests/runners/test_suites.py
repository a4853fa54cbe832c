"""The known third-party codes: their files, and their patterns against what the codes print."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.result import Result
from pagewise.session.processes import Shell
from pagewise.workloads.program.suite import SuiteFile, example, known_codes, read_code
from scripts import called, write_script
from stage import ROOT, Stage, write_case

OUTPUTS = Path(__file__).with_name("suite_outputs")
CHECK = ("check         passed", "check         failed")
# By code: values of its metrics, and a text of its output with one that it has where its result is wrong.
OUTPUT_OF: dict[str, tuple[dict[str, float | None], str, str]] = {
    "hpcc": (
        dict.fromkeys(("ptrans", "randomaccess", "fft_mpi", "hpl", "stream_triad")),
        "Success=1",
        "Success=0",
    ),
    "stream": ({"triad": None, "copy": None}, "Solution Validates", "Failed Validation on array a[]"),
    "npb": ({"rate": 2161.49, "time": 25.31}, "SUCCESSFUL", "UNSUCCESSFUL"),
    "hpl": ({"rate": 9.9534, "time": 14.47}, "PASSED", "FAILED"),
    "lulesh": ({"figure_of_merit": 3364.486, "time": 6.42}, "6.413183e-13", "6.413183e-03"),
    "minife": ({"cg": 223577.0, "cg_time": 0.73506, "program_time": 1.34695}, "0.00140664", "nan"),
    "cloverleaf": ({"wall_clock": 20.137}, "considered PASSED", "considered NOT PASSED"),
    "flash-x": ({"hydro": 13.362, "evolution": 15.005}, "2.9233E-04", "2.8233E-04"),
    "sqlite": ({"fill": 0.280, "index": 0.097, "join": 0.473}, "matches 399991", "matches 399990"),
    "gcc": ({"compiler": None}, "f1999:", "f1998:"),
    "numpy": (
        {"gather": 0.464684, "fft": 0.109585, "sort": 0.257917, "dictionary": 0.155428},
        "all results are right",
        "AssertionError",
    ),
    "lammps": ({"rate": 74.050, "loop_time": 1.35044}, "-4.6223613", "-4.1223613"),
    "gromacs": ({"rate": None}, "Finished mdrun", "nan"),
    "java": ({"random_reads": 0.098953716, "hash_map": 0.187916362}, "499999500000", "499999500001"),
    "redis": ({"throughput": 40883.07, "p50": 0.111, "p99": 7.583, "p99_9": 11.479}, "====== GET", "ERR"),
    "memcached": ({"set": 3.180, "get": 2.818}, "Time total", "FAIL"),
    "postgresql": (
        {"throughput": 23747.337824, "p50": 0.128, "p99": 0.335, "p99_9": 0.749},
        "60000/60000",
        "59999/60000",
    ),
    "likwid-bench": ({"bandwidth": 6.82866}, "Test: triad_avx_fma", "Test: triad_avx"),
    "multichase": ({"latency": 133.9}, "133.9", "mmap failed"),
    "babelstream": ({"triad": 12249.928}, "Number of elements: 22369621", "Number of elements: 33554432"),
    "bwbench": ({"triad": 11710.0}, "Solution Validates", "Failed Validation"),
    "openblas": ({"arithmetic": 10.1595}, "all results are right", "AssertionError"),
    "triad": ({"triad": 4248.4 * 126.372 / 42.396}, *CHECK),
    "loops": ({"bandwidth": 6.0223}, *CHECK),
    "peak-flops": ({"arithmetic": 11.385}, *CHECK),
    "pointer-chase": ({"latency": 1606.5 * 274.701 / 421.124}, *CHECK),
    "random-access": ({"randomaccess": 0.017702}, *CHECK),
    "dgemm": ({"arithmetic": 9.6619 * 207.0 / 151.054}, *CHECK),
}
# Kernels of pagewise, and other codes that users build themselves.
OWN_BUILDS = {name for name, (_, *texts) in OUTPUT_OF.items() if tuple(texts) == CHECK}
OWN_BUILDS |= {"flash-x", "multichase", "babelstream", "bwbench"}


def code(name: str):
    return read_code(known_codes(ROOT)[name])


def fault(name: str, text: str, folder: Path) -> str | None:
    with Shell(folder, {}, folder) as shell:
        actual = [check.fault(text, shell) for check in code(name).checks]
    return next((one for one in actual if one is not None), None)


def test_the_example_of_a_case_is_one(tmp_path: Path):
    (tmp_path / "mine.yaml").write_text(example())
    mine = read_code(tmp_path / "mine.yaml", option="--case mine.yaml")
    assert mine.name == "mine" and mine.part.service is not None and len(mine.metrics) == 1
    # All fields are shown, but those of known codes.
    shown = set(re.findall(r"^(?:# )?(\w+):", example(), re.M))
    of_codes = {"name", "summary", "source", "cases", "packages", "obtain", "start", "module", "relative_to"}
    assert shown == {item.name for item in fields(SuiteFile)} - of_codes


@pytest.mark.long
@pytest.mark.parametrize(("last", "status"), [("true", "ok"), ("exit 3", "failed")])
def test_a_case_of_ones_own_finds_its_program_and_input(suites: Stage, last: str, status: str):
    write_script(suites.folder / "opt/mine", "#!/bin/sh\ncat given text >result; cat made\n")
    (suites.folder / "given").write_text("value 7\n")
    case = write_case(
        suites.folder, programs=["./opt/mine"], inputs=["given"], input={"text": "right"}, reads=["res*"],
        setup=["test -x {bin}/mine", "echo prepared >made", last], checks=["right", "prepared"],
        metrics=[{"label": "Value", "unit": "s", "better": "lower", "pattern": r"^value (\S+)"}],
    )  # fmt: skip
    done = suites.compare("--policies", "none", "--rounds", "1", "--case", case)
    records = suites.read_result().records
    assert {record.status for record in records} == {status}, done.stderr
    assert status != "ok" or {record.metrics["value"] for record in records} == {7.0}
    assert not (suites.folder / "result").exists()


def test_the_environments_name_these_codes():
    assert set(known_codes(ROOT)) == set(OUTPUT_OF)
    reported = yaml.safe_load((ROOT / "envs/suites/spack.yaml").read_text())["spack"]
    specs = [*reported["definitions"][0]["codes"], *reported["specs"]]
    built = {name for name in set(OUTPUT_OF) - OWN_BUILDS if not code(name).part.packages}
    assert {spec.split("@")[0].split()[0] for spec in specs if isinstance(spec, str)} == built


@pytest.mark.parametrize("name", OUTPUT_OF)
def test_only_a_right_output_passes_and_gives_every_metric(name: str, tmp_path: Path):
    part = code(name).part
    assert part.name and part.title and part.summary and part.source and part.programs and part.checks
    text = (OUTPUTS / f"{name}.txt").read_text()
    reported = {one.metric.field: one.value(text) for one in code(name).metrics if not one.optional}
    assert reported and None not in reported.values() and all(value > 0 for value in reported.values())
    values, right, wrong = OUTPUT_OF[name]
    for field, value in values.items():
        assert field in reported and (value is None or reported[field] == pytest.approx(value))
    assert right in text
    faults = [fault(name, output, tmp_path) for output in (text, text.replace(right, wrong), "")]
    assert [one is None for one in faults] == [True, False, False]


@pytest.mark.parametrize("name", [name for name in OUTPUT_OF if code(name).part.relative_to])
def test_the_reference_of_a_code_has_its_metrics(name: str):
    own = code(name)
    other, _, case = (own.part.relative_to or "").partition(":")
    other = {one.metric for one in read_code(known_codes(ROOT)[other], case).metrics}
    aimed = {one.metric for one in own.metrics if one.metric.field in own.targets}
    assert aimed and aimed <= other


def test_every_fault_of_a_file_is_reported(tmp_path: Path):
    file = tmp_path / "codes.yaml"
    file.write_text("schema: pagewise.suite/1\nname: 7\ntitle: ''\nother: 1\n")
    with pytest.raises(FormatError) as caught:
        read_code(file)
    for reported in ("name: 7", "title", "'other'"):
        assert reported in caught.value.message
    file.write_text("a: [")
    with pytest.raises(FormatError) as caught:
        read_code(file)
    assert caught.value.where == str(file)
    data = yaml.safe_load(known_codes(ROOT)["npb"].read_text())
    (tmp_path / "cg.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(FormatError, match="name: 'npb'"):
        read_code(tmp_path / "cg.yaml")
    data["metrics"][0]["pattern"] = "Mop/s"
    (tmp_path / "npb.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(SelectionError, match="'Mop/s'"):
        read_code(tmp_path / "npb.yaml")


@pytest.fixture
def suites(tmp_path: Path) -> Stage:
    """A checkout with the codes, and a stand-in of STREAM that is loaded by a module."""
    stage = Stage(tmp_path)
    shutil.copytree(ROOT / "envs/suites/codes", tmp_path / "envs/suites/codes")
    (tmp_path / "opt").mkdir()
    write_script(tmp_path / "opt/stream_c.exe", f"#!/bin/sh\ncat {OUTPUTS}/stream.txt\n")
    module = tmp_path / ".pagewise/modules/suites/stream/5.10.lua"
    module.parent.mkdir(parents=True)
    module.write_text(f'prepend_path("PATH", "{tmp_path}/opt")\n')
    return stage


def metrics(result: Result) -> set[tuple[str, str, str]]:
    """Field, unit and better direction of each metric of a result with a single program."""
    (subject,) = result.subjects
    return {(metric.field, metric.unit, metric.better) for metric in subject.benchmark.metrics}


def compared(suites: Stage, *words: str) -> Result:
    suites.compare("--policies", "none", *words, code=0)
    return suites.read_result()


@pytest.mark.long
def test_a_code_is_located_by_its_module_and_its_metrics_are_reported(suites: Stage):
    result = compared(suites, "--rounds", "2", "--suite", "stream")
    assert ("triad", "MB/s", "higher") in metrics(result)
    assert result.folder.name.endswith("-stream")
    assert all(one.metrics["triad"] > 1000 for one in result.records if one.series == "compare")


@pytest.mark.long
@pytest.mark.parametrize(
    ("script", "metric", "words"),
    [
        (
            f"grep -q sim_nsubzones flash.par && cat {OUTPUTS}/flash-x.txt >sedov.log",
            ("hydro", "s", "lower"),
            ["--suite", "flash-x"],
        ),
        pytest.param(
            f"grep -q '^2 *Qs' hpccinf.txt && cat {OUTPUTS}/hpcc.txt >hpccoutf.txt",
            ("hpl", "Tflop/s", "higher"),
            ["--suite", "hpcc", "--ranks", "2"],
            marks=pytest.mark.skipif(shutil.which("mpiexec") is None, reason="MPI is not installed"),
        ),
    ],
    ids=["parameters", "ranks"],
)
def test_a_program_of_the_user_gets_the_input_of_its_code_and_its_file_is_read(
    suites: Stage, script: str, metric: tuple[str, str, str], words: list[str]
):
    program = write_script(suites.folder / "program", f"#!/bin/sh\n{script}\n")
    result = compared(suites, "--rounds", "1", *words, "--", str(program))
    assert metric in metrics(result) and {one.status for one in result.records} == {"ok"}


@pytest.mark.parametrize(
    ("name", "code", "reported"),
    [
        ("flash-x", 3, ["flashx", code("flash-x").obtain]),
        ("minife", 3, ["miniFE.x", "make stack ENV=suites"]),
        ("sqlite", 3, ["apt-get install", " sqlite3"]),
        ("nothing", 2, [*OUTPUT_OF]),
    ],
)
def test_a_code_that_is_not_here_is_missing_with_how_to_get_it(
    suites: Stage, name: str, code: int, reported: list[str]
):
    file = suites.folder / "envs/suites/codes/sqlite.yaml"
    file.write_text(file.read_text().replace("programs: [sqlite3]", "programs: [nowhere-there]"))
    done = suites.run("compare", "--suite", name, code=code)
    assert all(text in " ".join(done.stderr.split()) for text in reported)


@pytest.mark.long
def test_a_suite_of_a_package_runs_with_its_policies(suites: Stage, unavailable: Callable[[str], NoReturn]):
    if shutil.which("sqlite3") is None:
        unavailable("needs sqlite3 (make setup-tests)")
    file = suites.folder / "envs/suites/codes/sqlite.yaml"
    file.write_text(re.sub("policies: .*", "policies: [none, thp]", file.read_text()))
    suites.compare("--rounds", "1", "--suite", "sqlite", code=0)
    result = suites.read_result()
    assert {record.status for record in result.records} == {"ok"} and len(result.records) == 5
    assert {name for name, *_ in metrics(result)} >= {"fill", "index", "join"}
    table = json.loads(suites.run("results", "query", "programs", str(suites.results), "--json").stdout)
    (row,) = table["rows"]
    assert (row["program"], row["policy"], row["excluded"]) == ("sqlite", "thp", None)
    assert row["time_ratio"] > 0 and row["memory_ratio"] > 0 and row["p99_ratio"] is None


@pytest.mark.parametrize(
    ("endings", "code"), [((0, 1, 3), 0), ((3, 3, 3), 4), ((0, 70, 0), 70), ((0, 130, 0), 130)]
)
def test_the_gallery_measures_installed_programs(tmp_path: Path, endings: tuple[int, ...], code: int):
    for name in ("setup/gallery", "setup/messages.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    write_script(
        tmp_path / "pagewise",
        '#!/bin/sh\necho "$@" >>calls\ntest "$1" != compare || exit "$(sed -n "$(wc -l <calls)p" endings)"\n',
    )
    (tmp_path / "endings").write_text("".join(f"{ending}\n" for ending in endings))
    settings = {"PATH": os.environ["PATH"], "SUITES": "redis sqlite java"}
    done = called([tmp_path / "setup" / "gallery", "--rounds", "5"], cwd=tmp_path, env=settings)
    calls = [line.split() for line in (tmp_path / "calls").read_text().splitlines()]
    assert done.returncode == code
    suites = [words[2] for words in calls if words[0] == "compare"]
    assert suites == ["redis", "sqlite", "java"][: 2 if code == 130 else 3]
    assert any(words[:3] == ["results", "query", "programs"] for words in calls) == (code in (0, 70))
