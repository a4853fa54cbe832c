"""The plan of a comparison with peers, and what is made of its samples."""

from __future__ import annotations

import dataclasses
import math

import pytest

from builders import a_host, configuration, record
from pagewise.analysis.targets import Aim, answers, split
from pagewise.core.errors import SelectionError
from pagewise.core.host import Cache
from pagewise.report.views import peers as views
from pagewise.workloads.peers import plan
from pagewise.workloads.peers.analysis import CARRIED, Candidate, Sample, carried_on, judged
from pagewise.workloads.peers.analysis import rows as unjudged
from pagewise.workloads.peers.bench import figure, page_fault
from pagewise.workloads.peers.peer import Ask
from pagewise.workloads.peers.plan import MIB, Match, Ours, Target, Theirs

HOST = a_host(
    caches=(Cache(1, 32 * 1024, 1), Cache(2, MIB, 1), Cache(3, 36 * MIB, 2)),
    memory_bytes=24 * 1024 * MIB,
)
TRIAD = Match(
    "memory",
    (),
    1000,
    Ours("triad", plan.STREAM, ("*",)),
    Theirs("likwid-bench", ("triad",)),
    (Target("all", 0.97), Target("compiler", 0.9)),
)
CHASE = dataclasses.replace(TRIAD, better="lower", unit="ns", targets=(Target("all", 1 / 1.03, 1.03),))
OURS = {name: Candidate("ours", f"ours-{name}", name) for name in ("gcc", "llvm")}
THEIRS = Candidate("theirs", "theirs", None)
REASON = "a reason given by the test"


def rows(*arguments):
    return judged(unjudged(*arguments))


def sample(match: Match, candidate: Candidate, number: int, value: float | None, series="compare", **more):
    return Sample(match.name, candidate, series, number, 1, ("x",), value, **more)


def series(match: Match, candidate: Candidate, values, kind="compare") -> list[Sample]:
    return [sample(match, candidate, number, value, kind) for number, value in enumerate(values, start=1)]


def steady(value: float, count: int = 9) -> list[float]:
    return [value * (1 + 0.002 * math.sin(7 * number)) for number in range(count)]


def measured(match: Match, gcc: float, llvm: float, theirs: float) -> list[Sample]:
    return [
        *series(match, OURS["gcc"], steady(gcc)),
        *series(match, OURS["gcc"], steady(gcc)[::-1], "aa"),
        *series(match, OURS["llvm"], steady(llvm)),
        *series(match, THEIRS, steady(theirs)[::-1]),
    ]


def test_the_sizes_fit_the_machine():
    size = plan.sizes(HOST)
    assert size.caches == {"L1": 16 * 1024, "L2": MIB // 2, "L3": 9 * MIB}
    assert (size.memory, size.stream, size.table) == (256 * MIB, 512 * MIB, 128 * MIB)
    assert size.matrices == 16 * 4000**2
    small = plan.sizes(a_host(caches=(), memory_bytes=512 * MIB))
    assert small.caches == {} and small.memory == 128 * MIB


def test_the_plan_holds_what_is_to_be_compared():
    found = plan.matches(plan.sizes(HOST), ["gcc", "llvm"], 2)
    names = [one.name for one in found]
    assert len(set(names)) == len(names)
    for name in (
        "schoenauer_triad/L1/likwid-bench",
        "stream_sum/memory/likwid-bench/2 cores",
        "stream_triad/memory/bwbench/llvm/thp",
        "pointer_chase/L3/multichase/none",
        "random_access/memory/hpcc/thp",
        "transpose/memory/hpcc/none",
        "stencil7/memory/limit of schoenauer_triad",
        "stencil7/memory/regular stores/nontemporal",
    ):
        assert name in names
    assert not any(one.threads > 1 for one in plan.matches(plan.sizes(HOST), ["gcc"], 1))


def test_comparisons_are_chosen_by_kernel_name_and_peer():
    found = plan.matches(plan.sizes(HOST), ["gcc", "llvm"], 2)
    assert {m.against for m in plan.select(found, ["pointer_*"], None, False)} == {"multichase"}
    assert {m.level for m in plan.select(found, ["*/L1/*"], None, False)} == {"L1"}
    assert {m.against for m in plan.select(found, [], ["hpcc", "stream"], False)} == {"hpcc", "stream"}
    quick = plan.select(found, [], None, True)
    assert {m.level for m in quick} == {"L1", "memory"} and {m.threads for m in quick} == {1}
    with pytest.raises(SelectionError):
        plan.select(found, ["nothing"], None, False)


def test_the_best_of_all_and_each_compilers_best_have_a_row():
    best, gcc, llvm = rows(TRIAD, measured(TRIAD, 9.9, 8.0, 10.0), None, 1)
    assert (best.scope, gcc.scope, llvm.scope) == ("all", "gcc", "llvm")
    assert best.ours.candidate == OURS["gcc"] and best.speedup.median == pytest.approx(0.99, abs=0.005)
    assert (best.answer, gcc.answer, llvm.answer) == ("met", "met", "not met")
    assert best.floor < 0.02


def test_of_latencies_the_lower_is_better_and_both_sides_of_the_band_count():
    for ours, expected in ((100.0, "met"), (110.0, "not met"), (90.0, "not met")):
        (row,) = rows(CHASE, measured(CHASE, ours, 300.0, 100.0), None, 1)
        assert row.answer == expected
        assert row.speedup.median == pytest.approx(100.0 / ours, rel=0.01)


def aim(median: float, spread: float, floor: float | None, rounds: int = 9, least: float = 1.0) -> Aim:
    values = tuple(median * (1.0 + spread * math.sin(7 * number)) for number in range(rounds))
    return Aim(values, floor, least, math.inf, 1)


@pytest.mark.parametrize(
    ("aimed", "expected"),
    [
        (aim(0.99, 0.02, 0.02), "inconclusive"),
        (aim(0.95, 0.01, 0.10), "inconclusive"),
        (aim(1.05, 0.50, 0.53), "inconclusive"),
        (aim(1.001, 0.01, 0.02), "met"),
        (aim(0.95, 0.01, 0.02), "not met"),
        (aim(1.5, 0.01, 0.02, rounds=2), "inconclusive"),
        (aim(1.5, 0.01, None), "inconclusive"),
        (aim(1.5, 0.01, 0.1, rounds=0), "inconclusive"),
        (Aim((1.05, 1.06, 1.07, 1.05), 0.01, 0.97, 1.03, 1), "not met"),
    ],
)
def test_an_answer_needs_more_than_the_noise(aimed, expected):
    assert answers([aimed]) == [expected]


def test_answers_allow_for_their_number():
    """Significant alone, and not among many."""
    near = Aim((0.97, 0.94, 0.985, 0.93, 0.96, 0.985, 0.995), 0.001, 1.0, math.inf, 1)
    assert answers([near]) == ["not met"]
    noise = [aim(1.0, 0.05, 0.001, least=1.0) for _ in range(20)]
    assert answers([near, *noise])[0] == "inconclusive"


def test_the_two_modes_of_a_machine_are_distinguished():
    assert split([45, 46, 44, 78, 79]) == pytest.approx(math.sqrt(46 * 78))
    assert split([45, 46, 47, 48]) is None
    assert split([45, 46, 47, 78]) is None
    two = dataclasses.replace(TRIAD, threads=2, targets=(Target("all", 0.97),))
    mode = [45.0, 78.0] * 4 + [45.0]
    samples = [
        *series(two, OURS["gcc"], mode),
        *series(two, OURS["gcc"], mode, "aa"),
        *series(two, THEIRS, [*mode[:6], 45.0, 45.0, 78.0]),
    ]
    (row,) = rows(two, samples, None, 1)
    assert row.speedup.pairs == 7 and row.speedup.median == 1.0 and row.answer == "met"
    (note,) = row.notes
    assert {"7", "9"} <= set(note.split())


def test_the_best_of_the_trial_are_carried_on_each_compilers_own():
    slow = Candidate("ours", "slow", "gcc")
    samples = [
        sample(TRIAD, OURS["gcc"], 0, 10.0, "trial"),
        sample(TRIAD, slow, 0, 7.0, "trial"),
        sample(TRIAD, OURS["llvm"], 0, 5.0, "trial"),
        sample(TRIAD, THEIRS, 0, 4.0, "trial"),
        sample(TRIAD, Candidate("theirs", "dead", None), 0, None, "trial", reason="crashed"),
    ]
    assert carried_on(samples, TRIAD) == {OURS["gcc"], OURS["llvm"], THEIRS}
    assert slow in carried_on(samples, CHASE) and OURS["gcc"] not in carried_on(samples, CHASE)
    many = [sample(TRIAD, Candidate("theirs", str(n), None), 0, 10 - n / 100, "trial") for n in range(9)]
    assert {c.label for c in carried_on(many, TRIAD)} == {str(n) for n in range(CARRIED)}


def test_a_wrong_result_spoils_a_candidate_and_wrong_pages_a_run():
    good = measured(TRIAD, 9.9, 8.0, 10.0)
    for code in ("wrong_pages", "pages_unavailable"):
        (row, *_) = rows(
            TRIAD, [*good, sample(TRIAD, OURS["gcc"], 10, None, reason=REASON, code=code)], None, 1
        )
        assert row.ours.candidate == OURS["gcc"]
    (row, *_) = rows(TRIAD, [*good, sample(TRIAD, OURS["gcc"], 10, None, reason=REASON)], None, 1)
    assert row.ours.candidate == OURS["llvm"]
    assert OURS["gcc"].label in row.notes[0] and REASON in row.notes[0]


def test_a_side_without_figures_is_reported_with_the_reason():
    samples = [
        *series(TRIAD, OURS["gcc"], steady(9.0)),
        sample(TRIAD, THEIRS, 0, None, "trial", reason=REASON),
    ]
    for row in rows(TRIAD, samples, None, 1):
        assert "theirs" in row.missing.split() and "ours" not in row.missing.split() and row.theirs is None
        (note,) = row.notes
        assert THEIRS.label in note and REASON in note
    (absent, _) = rows(TRIAD, [], REASON, 1)
    assert absent.missing == REASON


def test_a_figure_stands_for_the_passes_that_the_peers_figure_stands_for():
    made = record(configuration(), [2.0, 1.0, 6.0], metrics={"rate": 10.0, "latency_ns": 3.0})
    rate = Ours("k", "rate", ("*",))
    assert figure(made, rate, "best") == pytest.approx(20.0)
    assert figure(made, rate, "worst") == pytest.approx(10 / 3)
    assert figure(made, rate, "mean") == pytest.approx(20 / 3)
    assert figure(made, Ours("k", "latency_ns", ("*",)), "best") == pytest.approx(1.5)
    assert figure(made, Ours("k", "absent", ("*",)), "best") is None


def test_the_report_has_answers_and_what_is_missing():
    found = judged(
        [*rows(TRIAD, measured(TRIAD, 9.9, 8.0, 10.0), None, 1), *rows(CHASE, [], "multichase: gone", 1)]
    )
    (section,) = views.sections(found)
    table, notes = section.blocks
    assert {row[-1].value for row in table.rows} == {"met", "not met"} and len(table.rows) == 3
    assert "ours: ours-gcc" in notes.text
    (missing,) = views.missing(found)
    assert [text.text for text in missing.blocks] == ["multichase: gone"]


@pytest.mark.parametrize(
    ("share", "ask", "wrong"),
    [
        (0.97, Ask("triad", 256 * MIB, pages="thp"), False),
        (0.60, Ask("triad", 256 * MIB, pages="thp"), True),
        (0.60, Ask("triad", 9 * MIB, pages="thp"), False),
        (0.00, Ask("triad", 9 * MIB, pages="thp"), True),
        (0.00, Ask("triad", 256 * MIB), False),
        (0.50, Ask("triad", 256 * MIB), True),
    ],
)
def test_a_peer_on_other_pages_than_asked_for_is_left_out(share, ask, wrong):
    fault = page_fault(share, ask)
    assert (None if fault is None else fault.code) == ("wrong_pages" if wrong else None)


def test_libraries_stand_against_direct_calls_of_the_same_library():
    providers = {"blas": ["netlib-lapack", "openblas"], "fftw": ["fftw"]}
    found = {one.name: one for one in plan.matches(plan.sizes(HOST), ["gcc", "llvm"], 1, providers)}
    direct = {name: one for name, one in found.items() if one.against in ("cblas", "fftw")}
    assert len(direct) == 2 + 4 * 2 + 3
    for one in direct.values():
        assert one.details == (one.other.library,) and one.name.endswith(f"/{one.other.library}")
    own = found["blocked_dgemm/1536 rows/cblas/openblas"]
    assert [target.least for target in own.targets] == [0.85, 0.85]
    assert own.working_set == 3 * 1536**2 * 8 and own.ours.alternatives == (("--rows", "1536"),)
    called = found["zgemm/500 rows/cblas/openblas"]
    assert called.ours.configurations == ("none/hardware-regular-openblas",)
    assert [target.least for target in called.targets] == [1.0]
    assert "zgemm/250 rows/cblas/netlib-lapack" in found


def test_what_a_compiler_cannot_vectorise_is_said_beside_its_figure():
    found = {one.name: one for one in plan.matches(plan.sizes(HOST), ["gcc", "llvm"], 1)}
    match = found["math_functions/L1/sleef/erf/llvm"]
    assert {"llvm", "erf"} <= set(match.remark.split())
    assert rows(match, [], None, 0)[0].notes == (match.remark,)
    assert not found["math_functions/L1/sleef/erf/gcc"].remark
