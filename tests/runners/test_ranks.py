"""MPI ranks: their CPUs, their launcher, and what is verified of each of them."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from builders import configuration, record, varied
from own_program import Own, needs_madvise
from pagewise.analysis.validity import exclusion
from pagewise.core.errors import SelectionError, SetupError
from pagewise.core.record_parts import Binding, ProcessPlacement, RankUse
from pagewise.core.structure import to_data
from pagewise.machine.placement import Where, placements
from pagewise.session.ranks import Ranks
from pagewise.stack.launcher import KINDS, RankLauncher, find_launcher
from scripts import called, write_script
from stage import BASE, ROOT, THP, TRIAD, Stage
from test_placement import A64FX, XEON, machine

SOURCE = Path(__file__).with_name("own_programs") / "ranks.c"
needs_mpi = pytest.mark.skipif(
    None in (shutil.which("mpicc"), shutil.which("mpiexec")), reason="MPI is not installed"
)


def by_rank(of: str, ranks: int, *threads: int, **where: tuple[str, ...]) -> list[list[int]]:
    (actual,) = placements(Where(threads=threads, ranks=(ranks,), **where), machine(of))
    assert actual.ranks == ranks
    return [list(cpus) for cpus in actual.cpus_by_rank]


def test_ranks_are_round_robin_over_core_memory_groups_or_together():
    spread = by_rank(A64FX, 12, 4, bind=("spread",))
    assert [cpus[0] // 12 for cpus in spread] == [0, 1, 2, 3] * 3
    assert sorted(cpu for cpus in spread for cpu in cpus) == list(range(48))
    assert all(cpus[0] // 12 == cpus[-1] // 12 for cpus in spread)
    assert [cpus[0] // 12 for cpus in by_rank(A64FX, 3, 4)] == [0, 0, 0]
    assert by_rank(XEON, 2, 2, bind=("spread",)) == [[2, 3], [6, 7]]
    assert by_rank(XEON, 2, 2, bind=("spread+smt",)) == [[3, 19], [7, 23]]
    assert by_rank(XEON, 2, cpus=("0-3",)) == [[0, 1], [2, 3]]
    (both,) = placements(Where(ranks=(2,), bind=("close", "spread")), machine("core:2 pu:1"))
    assert both.also == ("spread",)


@pytest.mark.parametrize(
    "where",
    [
        Where(ranks=(49,)),
        Where(threads=(24,), ranks=(3,)),
        Where(threads=(13,), ranks=(2,), bind=("spread",)),
        Where(ranks=(2,), cpus=("0-2",)),
    ],
)
def test_ranks_that_do_not_fit_are_refused(where: Where):
    with pytest.raises(SelectionError):
        placements(where, machine(A64FX))


def launcher_at(folder: Path, name: str, reports: str) -> Path:
    return write_script(folder / name, f"#!/bin/sh\necho '{reports}'\n")


def test_the_launcher_belongs_to_the_programs_mpi_or_the_site(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PAGEWISE_ROOT", str(tmp_path))
    monkeypatch.delenv("PAGEWISE_SITE", raising=False)
    hydra = launcher_at(tmp_path / "other", "mpiexec", "HYDRA build details:")
    own = launcher_at(tmp_path / "mpi/bin", "mpiexec", "mpiexec (OpenRTE) 4.1.4")
    library = tmp_path / "mpi/lib/libmpi.so.40"
    library.parent.mkdir()
    library.touch()
    variables = {"PATH": f"{hydra.parent}:/bin"}
    assert find_launcher([library], variables) == RankLauncher("mpiexec-openmpi", str(own))
    assert find_launcher([], variables) == RankLauncher("mpiexec-hydra", str(hydra))
    launcher_at(tmp_path / "strange", "mpiexec", "fast launcher")
    with pytest.raises(SetupError):
        monkeypatch.setenv("PATH", str(tmp_path / "strange"))
        find_launcher([], variables | {"PATH": str(tmp_path / "strange")})
    site = tmp_path / "here"
    shutil.copytree(ROOT / "envs/sites/debian", site)
    named = yaml.safe_load((site / "site.yaml").read_text())
    named |= {"name": "here", "launcher": {"kind": "mpiexec-hydra", "options": ["-quiet"]}}
    (site / "site.yaml").write_text(yaml.safe_dump(named))
    (tmp_path / "envs").symlink_to(ROOT / "envs")
    monkeypatch.setenv("PAGEWISE_SITE", str(site))
    assert find_launcher([], variables) == RankLauncher("mpiexec-hydra", str(hydra), ("-quiet",))


@pytest.mark.parametrize("kind", KINDS)
def test_a_rank_is_bound_by_its_number_before_its_program_starts(tmp_path: Path, kind: str):
    """The launchers' variables, without the launchers."""
    (place,) = placements(Where(ranks=(1,)))
    ranks = Ranks(RankLauncher(kind, "true"), place, tmp_path / "ranks")
    command = ranks.command(["sh", "-c", "echo $OMP_PLACES; taskset -cp $$"])
    assert ranks.failure() is not None
    started = command[len(ranks.launcher.command(1, 1)) :]
    for variable in KINDS[kind].variables:
        done = called(started, env={"PATH": "/usr/bin:/bin", variable: "0"}, check=True)
        openmp, *_, cpus = done.stdout.split()
        assert (openmp, cpus) == (f"{{{place.cpus[0]}}}", str(place.cpus[0]))
    assert ranks.rank_uses() == (RankUse(0, place.cpus, place.memory.reported),) and ranks.failure() is None
    assert called(started, env={}).returncode == 4


@pytest.mark.parametrize(
    ("change", "code"),
    [({}, None), ({"cpus": (0,)}, "wrong_placement"), ({"coverage": 0.4}, "wrong_pages"), (None, "failed")],
)
def test_one_wrong_rank_excludes_the_run_and_is_named(change: dict | None, code: str | None):
    """Both ranks are right but for the change of rank 1; None: it is missing."""
    made = record(configuration(label=THP), 1.0)
    bound = Binding("close", 1, (0, 1), "default", ProcessPlacement((0, 1), "default"), 2)
    made = varied(varied(made, "run", bound=to_data(bound)), "placement", threads=1, cpus=[0, 1])
    uses = [RankUse(0, (0,), "default", made.pages)]
    if change is not None:
        pages = replace(made.pages, huge_coverage=change.get("coverage", 1.0))
        uses.append(RankUse(1, change.get("cpus", (1,)), "default", pages))
    fault = exclusion(replace(made, ranks=tuple(uses)))
    assert (fault and fault.code) == code and (fault is None or "rank 1" in fault.reason)


@pytest.fixture(scope="module")
def program(programs: Path) -> str:
    called(["mpicc", "-O2", "-Wall", "-Werror", SOURCE, "-o", programs / "ranks"], check=True)
    return "ranks"


@pytest.mark.long
@needs_mpi
@needs_madvise
def test_each_rank_of_a_program_is_verified(own: Own, program: str):
    """Rank 1 refuses huge pages, rank 0 has them."""
    selected = ("--ranks", "2", "--rounds", "1", "--baseline", "thp", "--policies", "thp,none")
    done = own.run(*selected, "--check", "right: 2 of 2", program=program, way="32 wrong")
    assert own.statuses() == {"none": {"ok"}, "thp": {"pages_unavailable"}}, done.stdout + done.stderr
    base, wrong = (next(r for r in own.records() if r.configuration.hugepages == p) for p in ("none", "thp"))
    assert base.run.bound.ranks == 2 and [use.rank for use in base.ranks] == [0, 1]
    assert [use.cpus for use in base.ranks] == [(cpu,) for cpu in base.run.bound.cpus]
    first, second = wrong.ranks
    assert first.pages.huge_coverage >= 0.8 and second.pages.huge_coverage < 0.8
    assert "rank 1" in own.reason("thp") and wrong.program.processes == 2
    assert own.stage.read_result().manifest.placement.ranks == 2


@pytest.mark.long
@needs_mpi
def test_a_rank_that_dies_fails_its_run(own: Own, program: str):
    own.run("--ranks", "2", "--rounds", "1", "--policies", "none", program=program, way="1 dies", code=1)
    assert {one.failure.exit_code for one in own.records()} == {7}


@pytest.mark.long
def test_more_ranks_than_cpus_and_a_missing_launcher_end_before_any_run(own: Own):
    own.run("--ranks", "4096", code=2)
    empty = own.folder / "empty"
    empty.mkdir()
    for name in ("hyperfine", "lstopo-no-graphics"):
        (empty / name).symlink_to(shutil.which(name) or name)
    own.stage.environment["PATH"] = str(empty)
    own.run("--ranks", "1", code=3)
    assert not own.stage.results.exists()


@pytest.mark.long
@needs_mpi
def test_ranks_of_a_kernel_are_in_its_record(stage: Stage):
    """With thp, rank 1 is on base pages."""
    for label, mode in ((BASE, "ok"), (THP, "wrong_rank")):
        stage.add("gcc-12.2.0", label, [{**TRIAD, "ranks": True}], mode=mode)
    stage.compare("--rounds", "1", "--no-sweep", "--ranks", "2", code=1)
    for one in stage.read_result().records:
        assert [use.rank for use in one.ranks] == [0, 1] and one.run.bound.ranks == 2
        fault = exclusion(one)
        assert (one.configuration.hugepages == "thp") == (fault is not None and "rank 1" in fault.reason)


def test_a_kernel_of_one_process_has_no_ranks(stage: Stage):
    stage.add("gcc-12.2.0", BASE, [TRIAD])
    assert stage.compare("--plan", "--ranks", "1").returncode == 2
