"""The known third-party codes: their files, and their patterns against what the codes print."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from pagewise.core.errors import FormatError, SelectionError
from pagewise.core.result import Result, read_result
from pagewise.session.processes import Shell
from pagewise.workloads.program.suite import SuiteFile, example, known_codes, read_code
from scripts import write_script
from stage import ROOT, Stage, write_case

OUTPUTS = Path(__file__).with_name("suite_outputs")
VALUES = {
    "hpcc": {"ptrans": None, "randomaccess": None, "fft_mpi": None, "hpl": None, "stream_triad": None},
    "stream": {"triad": None, "copy": None},
    "npb": {"rate": 2161.49, "time": 25.31},
    "hpl": {"rate": 9.9534, "time": 14.47},
    "lulesh": {"figure_of_merit": 3364.486, "time": 6.42},
    "minife": {"cg": 223577.0, "cg_time": 0.73506, "program_time": 1.34695},
    "cloverleaf": {"wall_clock": 20.137},
    "flash-x": {"hydro": 13.362, "evolution": 15.005},
    "sqlite": {"fill": 0.280, "index": 0.097, "join": 0.473},
    "gcc": {"compiler": None},
    "numpy": {"gather": 0.464684, "fft": 0.109585, "sort": 0.257917, "dictionary": 0.155428},
    "lammps": {"rate": 74.050, "loop_time": 1.35044},
    "gromacs": {"rate": None},
    "java": {"random_reads": 0.098953716, "hash_map": 0.187916362},
    "redis": {"throughput": 40883.07, "p50": 0.111, "p99": 7.583, "p99_9": 11.479},
    "memcached": {"set": 3.180, "get": 2.818},
    "postgresql": {"throughput": 23747.337824, "p50": 0.128, "p99": 0.335, "p99_9": 0.749},
    "likwid-bench": {"bandwidth": 6.82866},
    "multichase": {"latency": 133.9},
    "babelstream": {"triad": 12249.928},
    "bwbench": {"triad": 11710.0},
    "openblas": {"arithmetic": 10.1595},
    "triad": {"triad": 4248.4 * 126.372 / 42.396},
    "loops": {"bandwidth": 6.0223},
    "peak-flops": {"arithmetic": 11.385},
    "pointer-chase": {"latency": 1606.5 * 274.701 / 421.124},
    "random-access": {"randomaccess": 0.017702},
    "dgemm": {"arithmetic": 9.6619 * 207.0 / 151.054},
}
# Codes that users build themselves, and kernels of pagewise.
OWN_BUILDS = {
    *("flash-x", "multichase", "babelstream", "bwbench"),
    *("triad", "loops", "peak-flops", "pointer-chase", "random-access", "dgemm"),
}
# What each code prints where its result is wrong.
WRONG = {
    "hpcc": ("Success=1", "Success=0"),
    "stream": ("Solution Validates", "Failed Validation on array a[]"),
    "npb": ("SUCCESSFUL", "UNSUCCESSFUL"),
    "hpl": ("PASSED", "FAILED"),
    "lulesh": ("6.413183e-13", "6.413183e-03"),
    "minife": ("0.00140664", "nan"),
    "cloverleaf": ("considered PASSED", "considered NOT PASSED"),
    "flash-x": ("2.9233E-04", "2.8233E-04"),
    "sqlite": ("matches 399991", "matches 399990"),
    "gcc": ("f1999:", "f1998:"),
    "numpy": ("all results are right", "AssertionError"),
    "lammps": ("-4.6223613", "-4.1223613"),
    "gromacs": ("Finished mdrun", "nan"),
    "java": ("499999500000", "499999500001"),
    "redis": ("====== GET", "ERR"),
    "memcached": ("Time total", "FAIL"),
    "postgresql": ("60000/60000", "59999/60000"),
    "likwid-bench": ("Test: triad_avx_fma", "Test: triad_avx"),
    "multichase": ("133.9", "mmap failed"),
    "babelstream": ("Number of elements: 22369621", "Number of elements: 33554432"),
    "bwbench": ("Solution Validates", "Failed Validation"),
    "openblas": ("all results are right", "AssertionError"),
    **dict.fromkeys(
        ("triad", "loops", "peak-flops", "pointer-chase", "random-access", "dgemm"),
        ("check         passed", "check         failed"),
    ),
}


def code(name: str):
    return read_code(known_codes(ROOT)[name])


def fault(name: str, text: str, folder: Path) -> str | None:
    with Shell(folder, {}, folder) as shell:
        actual = [check.fault(text, shell) for check in code(name).checks]
    return next((one for one in actual if one is not None), None)


def test_these_codes_are_known_and_described():
    assert set(known_codes(ROOT)) == set(VALUES)
    for part in (code(name).part for name in VALUES):
        assert part.name and part.title and part.summary and part.source and part.programs
        assert part.metrics and part.checks


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
    words = ("--policies", "none", "--rounds", "1", "--case", case)
    done = suites.run("compare", "--output", str(suites.results), *words)
    records = read_result(suites.result()).records
    assert {record.status for record in records} == {status}, done.stderr
    assert status != "ok" or {record.metrics["value"] for record in records} == {7.0}
    assert not (suites.folder / "result").exists()


def test_the_environments_name_these_codes():
    reported = yaml.safe_load((ROOT / "envs/suites/spack.yaml").read_text())["spack"]
    specs = [
        *reported["definitions"][0]["codes"],
        *(one for one in reported["specs"] if isinstance(one, str)),
    ]
    built = {name for name in set(VALUES) - OWN_BUILDS if not code(name).part.packages}
    assert {spec.split("@")[0].split()[0] for spec in specs} == built


@pytest.mark.parametrize("name", VALUES)
def test_a_right_output_gives_every_metric_and_passes(name: str, tmp_path: Path):
    text = (OUTPUTS / f"{name}.txt").read_text()
    reported = {one.field: one.value(text) for one in code(name).metrics if not one.optional}
    assert None not in reported.values() and all(value > 0 for value in reported.values())
    for field, value in VALUES[name].items():
        assert field in reported and (value is None or reported[field] == pytest.approx(value))
    assert fault(name, text, tmp_path) is None


@pytest.mark.parametrize("name", VALUES)
def test_a_wrong_or_a_cut_output_does_not_pass(name: str, tmp_path: Path):
    text = (OUTPUTS / f"{name}.txt").read_text()
    right, wrong = WRONG[name]
    assert right in text
    assert fault(name, text.replace(right, wrong), tmp_path) is not None
    assert fault(name, "", tmp_path) is not None


@pytest.mark.parametrize("name", [name for name in VALUES if code(name).part.relative_to])
def test_the_reference_of_a_code_has_its_metrics(name: str):
    own = code(name)
    other, _, case = (own.part.relative_to or "").partition(":")
    other = {one.metric for one in read_code(known_codes(ROOT)[other], case).metrics}
    aimed = {one.metric for one in own.metrics if one.field in own.targets}
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


def test_a_file_of_another_name_and_a_pattern_that_is_none(tmp_path: Path):
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


@pytest.mark.long
def test_a_code_is_located_by_its_module_and_its_metrics_are_reported(suites: Stage):
    words = ("--policies", "none", "--rounds", "2", "--suite", "stream")
    done = suites.run("compare", "--output", str(suites.results), *words, code=0)
    assert any("STREAM" in line and "stream/5.10" in line for line in done.stderr.splitlines())
    result = read_result(suites.result())
    assert ("triad", "MB/s", "higher") in metrics(result)
    assert result.folder.name.endswith("-stream")
    assert all(one.metrics["triad"] > 1000 for one in result.records if one.series == "compare")


@pytest.mark.long
def test_flash_x_of_the_user_gets_its_parameters_and_its_log_is_read(suites: Stage):
    program = suites.folder / "flashx"
    output = OUTPUTS / "flash-x.txt"
    write_script(program, f"#!/bin/sh\ngrep -q sim_nsubzones flash.par && cat {output} >sedov.log\n")
    words = ("--policies", "none", "--rounds", "1", "--suite", "flash-x")
    suites.run("compare", "--output", str(suites.results), *words, "--", str(program), code=0)
    assert ("hydro", "s", "lower") in metrics(read_result(suites.result()))


@pytest.mark.long
@pytest.mark.skipif(shutil.which("mpiexec") is None, reason="MPI is not installed")
def test_the_input_of_a_code_has_the_number_of_ranks(suites: Stage):
    program = suites.folder / "hpcc"
    output = OUTPUTS / "hpcc.txt"
    write_script(program, f"#!/bin/sh\ngrep -q '^2 *Qs' hpccinf.txt && cat {output} >hpccoutf.txt\n")
    words = ("--policies", "none", "--rounds", "1", "--ranks", "2", "--suite", "hpcc")
    done = suites.run("compare", "--output", str(suites.results), *words, "--", str(program))
    assert "hpl" in {name for name, *_ in metrics(read_result(suites.result()))}, done.stderr
    assert {one.status for one in read_result(suites.result()).records} == {"ok"}


@pytest.mark.parametrize(
    ("name", "code", "reported"),
    [
        ("flash-x", 3, ["flashx", code("flash-x").obtain]),
        ("minife", 3, ["miniFE.x", "make stack ENV=suites"]),
        ("sqlite", 3, ["apt-get install", " sqlite3"]),
        ("nothing", 2, [*VALUES]),
    ],
)
def test_a_code_that_is_not_here_is_missing_with_how_to_get_it(
    suites: Stage, name: str, code: int, reported: list[str]
):
    file = suites.folder / "envs/suites/codes/sqlite.yaml"
    file.write_text(file.read_text().replace("programs: [sqlite3]", "programs: [nowhere-there]"))
    done = suites.run("compare", "--suite", name)
    assert done.returncode == code and all(text in " ".join(done.stderr.split()) for text in reported)


@pytest.mark.long
def test_a_suite_of_a_package_runs_with_its_policies(suites: Stage, unavailable: Callable[[str], NoReturn]):
    if shutil.which("sqlite3") is None:
        unavailable("needs sqlite3 (make setup-tests)")
    file = suites.folder / "envs/suites/codes/sqlite.yaml"
    file.write_text(re.sub("policies: .*", "policies: [none, thp]", file.read_text()))
    suites.run("compare", "--output", str(suites.results), "--rounds", "1", "--suite", "sqlite", code=0)
    result = read_result(suites.result())
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
    command = [tmp_path / "setup" / "gallery", "--rounds", "5"]
    done = subprocess.run(command, cwd=tmp_path, env=settings, check=False)
    calls = [line.split() for line in (tmp_path / "calls").read_text().splitlines()]
    assert done.returncode == code
    suites = [words[2] for words in calls if words[0] == "compare"]
    assert suites == ["redis", "sqlite", "java"][: 2 if code == 130 else 3]
    assert any(words[:3] == ["results", "query", "programs"] for words in calls) == (code in (0, 70))
