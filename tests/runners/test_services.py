"""Services under page policies, and their load next to them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from own_program import Own
from pagewise.core.record import Record
from pagewise.machine.groups import can_freeze
from pagewise.workloads.program.service import PORT, Service
from scripts import called

HERE = Path(__file__).with_name("own_programs")
SERVER, LOAD = (f"{sys.executable} -B {HERE / name}" for name in ("server.py", "load.py"))
#: What server.py prints.
CANNOT_START = "cannot start"
METRICS = ["--metric", "throughput[req/s]=throughput: (\\S+)"]
for percent in ("50", "99", "99.9"):
    METRICS += ["--metric", f"p{percent}[ms]=^p{percent}: (\\S+)"]


def compare(
    own: Own, *arguments: str, service: str = f"{SERVER} {PORT}", setup: Sequence[str] = (), **part: object
) -> subprocess.CompletedProcess[str]:
    program, *words = service.split()
    part = {"load": f"{LOAD} {PORT}", **part}
    case = own.case(programs=[program], arguments=words, setup=list(setup), service=part)
    return own.stage.run("compare", "--output", str(own.stage.results), *case, *arguments)


def failed(own: Own, *arguments: str, **part: Any) -> Record:
    """The record of a comparison whose first run fails; its log was kept."""
    done = compare(own, "--policies", "none", "--rounds", "1", *arguments, **part)
    assert done.returncode == 1, done.stdout + done.stderr
    (record, *_) = own.records()
    assert record.status == "failed" and record.run.wall_seconds is None
    assert (own.stage.result() / record.run.log).exists()
    return record


@pytest.mark.long
def test_a_service_is_under_the_policy_and_its_load_is_not(own: Own):
    done = compare(
        *(own, "--policies", "none,reuse", "--rounds", "1", *METRICS),
        *("--check", "^service thp=0", "--check", "^load thp=1 tunables=$"),
        service=f"{SERVER} {PORT} setup",
        setup=["echo by setup > made-before"],
        fill=["cp made-before made-after"],
        ready=f"tcp:{PORT}",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert own.statuses() == {"none": {"ok"}, "reuse": {"ok"}}
    for record in own.records():
        metrics = record.metrics
        assert 0 < metrics["p50"] <= metrics["p99"] <= metrics["p99_9"] and metrics["throughput"] > 0
        # The memory is that of the service; faults and CPU time, which are the load's, are not reported.
        assert metrics["peak_memory_gib"] > 64 / 1024 and record.program.processes == 1
        assert record.page_faults is None and "user_seconds" not in metrics
        assert record.run.left_behind is None
    manifest = json.loads((own.stage.result() / "manifest.json").read_text())
    assert next(iter(manifest["programs"].values()))["service"]["ready"] == f"tcp:{PORT}"
    assert manifest["subjects"][0]["kernel"]["metrics"][0]["field"] == "throughput"


@pytest.mark.long
@pytest.mark.parametrize("port", [PORT, "fixed"])
def test_services_with_their_loads_run_in_slices_if_asked(own: Own, port: str):
    """At the same time, which needs a control group, and a port for each."""
    if port == "fixed":
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
    expected = {port == PORT and can_freeze()}
    # On a busy machine, a load may take longer in slices than alone, and then runs whole.
    for _ in range(4):
        done = compare(
            *(own, "--policies", "none,reuse", "--rounds", "1", "--method", "turns", *METRICS),
            service=f"{SERVER} {port}",
            load=f"sh -c 'for i in 1 2 3 4 5 6; do {LOAD} {port} || exit; done'",
            ready=f"tcp:{port}",
        )
        assert done.returncode == 0, done.stdout + done.stderr
        records = [*own.records(), *own.records("aa")]
        in_slices = {one.run.whole_because is None for one in records}
        if in_slices == expected:
            break
    assert in_slices == expected
    assert [one.status for one in records] == ["ok"] * 3
    for one in records:
        assert one.run.method == ("turns" if expected == {True} else "runs")
        assert ((one.run.slices or 0) > 1) == (one.run.method == "turns")
        # The clock of the load continues while it is frozen.
        assert ("throughput" in one.metrics) == (one.run.method == "runs")
    assert all(one.metrics["peak_memory_gib"] > 64 / 1024 for one in records)


@pytest.mark.long
@pytest.mark.parametrize(
    ("arguments", "commands", "code", "reported"),
    [
        ([], {"service": f"{SERVER} {PORT} dies"}, 1, CANNOT_START),
        (["--timeout", "0.5"], {"service": f"{SERVER} {PORT} silent"}, 124, ""),
        ([], {"load": f"{LOAD} {PORT} die"}, 134, "SIGABRT"),
        ([], {"fill": [f"echo {CANNOT_START} >&2; exit 7"]}, 4, CANNOT_START),
    ],
)
def test_a_service_or_a_command_around_it_that_fails(
    own: Own, arguments: list[str], commands: dict[str, Any], code: int, reported: str
):
    record = failed(own, *arguments, **commands)
    log = (own.stage.result() / record.run.log).read_text()
    assert record.failure.exit_code == code and reported in f"{record.failure.message}\n{log}"
    assert called(["pgrep", "-f", f"{SERVER.split()[-1]} .* silent"]).stdout == ""


@pytest.mark.long
def test_a_port_in_use_is_refused_before_the_service_starts(own: Own):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        record = failed(own, service=f"{SERVER} {port}", load=f"{LOAD} {port}", ready=f"tcp:{port}")
    assert record.failure.exit_code == 4 and str(port) in record.failure.message


@pytest.mark.parametrize(
    ("command", "part", "code", "reported"),
    [
        ("compare", {"load": "no-such-program"}, 2, "no-such-program"),
        ("compare", {"load": "true", "ready": "tcp:http"}, 3, "ready"),
        ("compare", {"load": "true", "ready": "("}, 3, "ready"),
        ("compare", {"load": "'"}, 3, "load"),
        ("compare --ranks 2", {"load": "true"}, 2, "--ranks"),
        ("compare -k triad", {"load": "true"}, 2, "-k"),
        ("counters", {"load": "true"}, 2, ""),
    ],
)
def test_wrong_usage_is_reported_before_anything_is_run(
    own: Own, command: str, part: dict[str, str], code: int, reported: str
):
    case = own.case(programs=["true"], service=part)
    done = own.stage.run(*command.split(), "--output", str(own.stage.results), *case)
    assert done.returncode == code and reported in done.stderr
    assert not own.stage.results.exists()


def test_one_free_port_is_written_wherever_it_is_named():
    service = Service(("load", f"--port={PORT}"), None, (f"echo {PORT}",), (f"fill {PORT}",))
    placed, command = service.on_port(["server", PORT])
    port = command[1]
    assert int(port) > 1023
    assert placed == Service(("load", f"--port={port}"), f"tcp:{port}", (f"echo {port}",), (f"fill {port}",))
    plain = Service(("load",))
    assert plain.on_port(["server"]) == (plain, ["server"])


@pytest.mark.long
def test_a_setup_that_takes_too_long_is_ended_with_all_it_started(own: Own):
    sleeper = f"sleep {60_000 + os.getpid()}"
    command = f"{sleeper} & setsid {sleeper} & wait"
    record = failed(own, "--timeout", "1s", setup=[command])
    assert record.failure.exit_code == 124
    assert {(left.command, left.ended) for left in record.run.left_behind} == {(sleeper, True)}
    assert not is_running(sleeper)


@pytest.mark.long
def test_daemons_of_commands_around_the_load_are_ended_on_request(own: Own):
    sleepers = [f"sleep {60_000 + number + os.getpid()}" for number in (0, 60_000)]
    selected = ("--policies", "none", "--rounds", "1", *METRICS, "--end-leftovers")
    setup, fill = ([f"setsid {sleeper} & true"] for sleeper in sleepers)
    done = compare(own, *selected, setup=setup, fill=fill)
    assert done.returncode == 0, done.stdout + done.stderr
    for record in own.records():
        assert sorted((left.command, left.ended) for left in record.run.left_behind) == [
            (sleeper, True) for sleeper in sorted(sleepers)
        ]
    assert not any(map(is_running, sleepers))


def is_running(command: str) -> bool:
    return called(["pgrep", "-fx", command]).returncode == 0
