"""Markers of all tests, and the limit on the time of those that are not marked."""

from __future__ import annotations

import os

import pytest

MARKERS = {
    "long": "takes over a second: part of `make test`, not of `make check`",
    "systems": "sets up fresh systems or builds images, as root: part of `make test-systems`",
    "release": "takes minutes, or repeats another test elsewhere: only part of `make test-all`",
}
#: CPU seconds that a test without a mark may take, with its programs, while nothing else runs: not elapsed ones, which a
#: pause of the machine prolongs.
LIMIT = 1.0
#: Factor of the limit while other processes run.
BUSY = 4.0
USED = pytest.StashKey[float]()


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers. Tests make folders as with the usual umask, whatever that of the user is.

    Without arguments only unmarked tests run.
    """
    os.umask(0o022)
    if (
        config.args_source is not pytest.Config.ArgsSource.ARGS
        and not config.option.markexpr
    ):
        config.option.markexpr = " and ".join(f"not {name}" for name in MARKERS)
    for name, purpose in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {purpose}")


def slowdown() -> float:
    """Return 1 where nothing else runs, by the workers of this run and the load average, else at least BUSY."""
    processes = max(
        int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), os.getloadavg()[0]
    )
    if processes <= 1:
        return 1.0
    return BUSY * max(1.0, processes / len(os.sched_getaffinity(0)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> object:
    """Keep the CPU time of the test and of its programs."""
    begin = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        item.stash[USED] = sum(os.times()[:4]) - begin


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> pytest.TestReport:
    """Fail a test without a mark that takes too long; fixtures do not count."""
    report = yield
    limit = LIMIT * slowdown()
    marked = any(item.get_closest_marker(name) for name in MARKERS)
    used = item.stash.get(USED, 0.0)
    if call.when == "call" and report.passed and not marked and used > limit:
        report.outcome = "failed"
        report.longrepr = f"{item.nodeid} used {used:.1f} s of CPU time, over {limit:.1f} s: make it faster, or mark it long"
    return report
