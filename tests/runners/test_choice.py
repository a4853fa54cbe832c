"""What is measured: selection by kernels, configurations and baseline, from a catalog that real Lmod gave."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timezone
from itertools import product
from pathlib import Path

import pytest

from pagewise.cli.measuring import options_of
from pagewise.core.errors import RefusedError, SelectionError
from pagewise.core.result import create_folder
from pagewise.stack.catalog import Catalog, read_catalog
from pagewise.stack.lmod import find_init, load_each
from pagewise.workloads.kernels.choose import KernelOptions, choose
from stage import CHASE, GATHER, TRIAD, Stage


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Catalog:
    stage = Stage(tmp_path_factory.mktemp("catalog"))
    for compiler in ("gcc-12.2.0", "llvm-22.1.8"):
        for pages, prefetch in (("none", "hardware"), ("thp", "hardware"), ("none", "block")):
            stage.add(compiler, (pages, prefetch, "regular"), [TRIAD, CHASE, GATHER])
    return read_catalog(stage.modules, find_init(None))


def options(**changes: object) -> KernelOptions:
    given = {"environment": "default", "baseline": "none/hardware-regular", "rounds": 3, "name": "x"}
    return options_of(KernelOptions, {**given, **changes})


@pytest.mark.parametrize(
    ("patterns", "names"),
    [
        ((), ["chase", "triad"]),
        (("triad",), ["triad"]),
        (("tri*",), ["triad"]),
        (("memory/triad",), ["triad"]),
        (("memory/*",), ["chase", "triad"]),
        (("*",), ["chase", "gather", "triad"]),
        (("gather", "*/t*"), ["gather", "triad"]),
    ],
)
def test_kernels_by_name_glob_and_group(catalog: Catalog, patterns, names):
    subjects = choose(catalog, options(kernels=patterns))
    assert [one.benchmark.name for one in subjects] == names
    cells = {"chase": 4, "gather": 4, "triad": 6}
    assert [len(one.cells) for one in subjects] == [cells[name] for name in names]


@pytest.mark.parametrize(
    ("pattern", "near"),
    [
        ("traid", ["triad"]),
        ("memory", ["memory/*", "chase", "triad"]),
        ("indirect/x*", ["indirect/*", "gather"]),
        ("Gather", ["gather"]),
        ("zzz", ["indirect/*", "memory/*"]),
    ],
)
def test_a_name_that_fits_nothing_is_reported_with_the_nearest(catalog: Catalog, pattern, near):
    with pytest.raises(SelectionError) as caught:
        choose(catalog, options(kernels=("triad", pattern)))
    assert caught.value.where == str(catalog.tree) and pattern in caught.value.message
    known = {"chase", "gather", "triad", "indirect/*", "memory/*"}
    assert [word for word in re.findall(r"[\w/*]+", caught.value.remedy) if word in known] == near


def test_a_tree_without_default_kernels_is_reported(stage: Stage):
    stage.add("gcc-12.2.0", ("none", "hardware", "regular"), [GATHER])
    with pytest.raises(SelectionError) as caught:
        choose(read_catalog(stage.modules, find_init(None)), options())
    assert caught.value.where == str(stage.modules) and "--kernels" in caught.value.remedy


@pytest.mark.parametrize(
    "pattern", ["gcc-*/thp/*", "pagewise-micro/*/gcc*/thp/*", "gcc-12.2.0/thp/hardware-regular"]
)
def test_the_baseline_of_a_selected_compiler_is_measured_too(catalog: Catalog, pattern):
    (one,) = choose(catalog, options(kernels=("triad",), configurations=(pattern,)))
    measured = {f"{cell.measured.compiler}/{cell.measured.label}" for cell in one.cells}
    assert measured == {"gcc-12.2.0/none/hardware-regular", "gcc-12.2.0/thp/hardware-regular"}


def test_the_reference_among_libraries_is_the_baseline(catalog: Catalog):
    entries = []
    for entry, library in product(catalog.entries, ("blis", "netlib-lapack", "openblas")):
        named = f"{entry.configuration.module}-{library}"
        built = replace(entry.configuration, library=library, module=named)
        entries.append(replace(entry, configuration=built))
    libraries = replace(catalog, entries=tuple(sorted(entries, key=lambda e: e.configuration.sort_key())))

    def baselines(**changes: object) -> set[str]:
        subjects = choose(libraries, options(kernels=("gather",), **changes))
        return {c.measured.label for one in subjects for c in one.cells if c.is_baseline}

    assert baselines() == {"none/hardware-regular-netlib-lapack"}
    assert baselines(baseline="none/hardware-regular-blis") == {"none/hardware-regular-blis"}
    assert baselines(baseline="thp/*") == {"thp/hardware-regular-netlib-lapack"}
    with pytest.raises(SelectionError) as caught:
        baselines(baseline="none/*")
    assert caught.value.where == "--baseline"


@pytest.mark.parametrize(
    ("changes", "given", "matches"),
    [
        ({"configurations": ("icc*",)}, "icc*", None),
        ({"baseline": "thp/block-regular"}, "thp/block-regular", []),
        ({"baseline": "none/*"}, "none/*", ["none/block-regular", "none/hardware-regular"]),
    ],
)
def test_patterns_without_a_match_are_reported(catalog: Catalog, changes, given, matches):
    with pytest.raises(SelectionError) as caught:
        choose(catalog, options(**changes))
    assert caught.value.where == (str(catalog.tree) if matches is None else "--baseline")
    assert given in caught.value.message
    labels = re.findall(r"\w+/\w+-\w+", caught.value.message.replace(given, ""))
    assert labels == (matches or [])


def test_the_environment_matches_the_module_alone(catalog: Catalog, monkeypatch):
    monkeypatch.setenv("LD_PRELOAD_OF_MINE", "1")
    actual = {entry.configuration.label: entry.environment for entry in catalog.entries}
    for label, environment in actual.items():
        assert environment["PAGEWISE_HUGEPAGES"] == label.split("/")[0]
        assert environment["PATH"].startswith(environment["PAGEWISE_PREFIX"] + "/bin:")
        assert sum("/opt/pagewise-micro" in part for part in environment["PATH"].split(":")) == 1
        assert not any(name.startswith(("BASH_FUNC", "_ModuleTable")) for name in environment)
        assert "LD_PRELOAD_OF_MINE" not in environment


def test_a_module_that_does_not_load_is_reported(stage: Stage):
    stage.module("needs", ['depends_on("nowhere/1.0")'])
    stage.module("fine", ['setenv("VALUE", "a=b; $c")'])
    needs, fine, absent = load_each(find_init(None), stage.modules, ["needs", "fine", "absent"])
    assert needs.environment is None and "nowhere/1.0" in needs.message
    assert fine.environment is not None and fine.environment["VALUE"] == "a=b; $c"
    assert absent.environment is None and "absent" in absent.message


def test_folders_of_one_second_do_not_meet(tmp_path: Path):
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    names = [create_folder(tmp_path, "run", now).name for _ in range(3)]
    assert names == ["20260102T030405Z-run", "20260102T030405Z-run-2", "20260102T030405Z-run-3"]
    with pytest.raises(SelectionError) as unnamed:
        create_folder(tmp_path, "a/b", now)
    assert unnamed.value.where == "--name"
    (tmp_path / "file").write_text("")
    with pytest.raises(RefusedError) as refused:
        create_folder(tmp_path / "file", "run", now)
    assert str(refused.value.where) == str(tmp_path / "file")
