"""Every fault of the tables is handled: no traceback, no hang, the right exit code, no other changes."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

import pytest
from fault import Fault, make_place

from conftest import fill
from stage import Stage

# docs/explanation/security.md names the classes.
CLASSES = ("options", "results", "inputs", "surroundings")
FEWEST = 150
FAULTS: dict[str, list[Fault]] = {name: importlib.import_module(name).FAULTS for name in CLASSES}
# Faults of options that end before a comparison are in `make check`, all others in `make test`.
ROWS = [
    pytest.param(row, id=f"{name}: {row.name}", marks=[] if name == "options" else [pytest.mark.long])
    for name, rows in FAULTS.items()
    for row in rows
]


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Stage:
    stage = fill(Stage(tmp_path_factory.mktemp("faults")))
    done = stage.compare("--rounds", "3", "--no-sweep", "--seed", "5")
    # 1: on a busy machine runs may be excluded.
    assert done.returncode in (0, 1), done.stderr
    return stage


@pytest.mark.parametrize("fault", ROWS)
def test_is_survived(fault: Fault, origin: Stage, tmp_path: Path):
    fault.survive(make_place(tmp_path, origin.modules, origin.result()))


def test_the_faults_are_many_and_different():
    names = Counter(row.name for rows in FAULTS.values() for row in rows)
    assert names.total() >= FEWEST and max(names.values()) == 1
