"""The policy `where`: only selected memory is on huge pages, in C, C++, Fortran and Python."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile

from launched import MIB, Launcher
from pagewise.core.manifest_parts import Origin
from pagewise.workloads.simulation.origins import name_origins
from pagewise.workloads.simulation.selection import write_selection

#: Programs, and the library.
SOURCES = Path(__file__).with_name("selected")
_LEAST = 1024


def compiled(out: Path, *words: str | Path, compiler: str = "cc") -> Path:
    subprocess.run([compiler, "-o", out, *words], check=True)
    return out


def origins_of(folder: Path, *command: str | Path, modules: Sequence[Path] = ()) -> tuple[Origin, ...]:
    """The origins of a program: sites of its run, and static objects of `modules`."""
    library, out = folder / "sites.so", folder / "sites"
    if not library.exists():
        compiled(library, "-O1", "-shared", "-fPIC", SOURCES / "sites.c")
    out.unlink(missing_ok=True)
    environment = {**os.environ, "SITES": str(out), "LD_PRELOAD": str(library), "NUMPY_MADVISE_HUGEPAGE": "0"}
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    about: dict[str, Any] = {"begin": 0, "end": 0, "page_faults": 0, "allocations": 1}
    about |= {"name": "", "module": "", "frames": []}
    reported = []
    for line in out.read_text().splitlines():
        size, *words = line.split()
        places = zip(words[::2], words[1::2], strict=True)
        frames = [{"module": str(Path(path).resolve()), "offset": int(offset)} for path, offset in places]
        reported.append(about | {"kind": "allocation", "frames": frames[:14], "bytes": int(size)})
    for module in modules:
        static = about | {"kind": "static", "module": str(module)}
        with module.open("rb") as stream:
            for symbol in ELFFile(stream).get_section_by_name(".symtab").iter_symbols():
                size = symbol["st_size"]
                if symbol["st_info"]["type"] == "STT_OBJECT" and size >= _LEAST:
                    reported.append(static | {"name": symbol.name, "bytes": size})
    # By size, because only the first ones are kept.
    for each in reported:
        each |= {"distant": {}, "counts": {"L1D_TLB_REFILL": 1, "PAGE_WALKS": max(each["bytes"], 1)}}
    return name_origins(reported)


ARRAYS = ("first_array", "second_array", "mapping", "new_node", "zeroed", "other_zeroed", "filled")
HUGE = 2 * MIB


@pytest.fixture(scope="module")
def arrays(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("arrays") / "arrays", "-g", "-O2", SOURCES / "arrays.c")


def selected(folder: Path, names: Collection[str], *command: str | Path, modules: list[Path]) -> Path:
    """A selection of the origins with these names."""
    every = origins_of(folder, *command, modules=modules)
    origins = [each for each in every if each.name.partition("(")[0] in names]
    assert {origin.name.partition("(")[0] for origin in origins} == set(names)
    write_selection(folder / "selection.txt", origins)
    return folder / "selection.txt"


def where(launcher: Launcher, *words: str | Path) -> tuple[str, list[dict[str, Any]]]:
    """The output of a program with a selection, and the records."""
    done = launcher.run("--record", "pages.jsonl", "--where", *words)
    assert done.returncode == 0, done.stderr
    return done.stdout, launcher.records()


NAMES = (["first_array"], ["new_node"], ["zeroed"], ["filled"], ["mapping"], ["second_array", "filled"])


@pytest.mark.parametrize("names", NAMES)
def test_only_selected_memory_is_on_huge_pages(launcher: Launcher, tmp_path: Path, arrays: Path, names):
    selection = selected(tmp_path, names, arrays, modules=[arrays])
    plain = json.loads(launcher.run("none", "--", arrays).stdout)
    output, (record,) = where(launcher, selection, "--", arrays)
    pages = json.loads(output)
    assert pages["sum"] == plain["sum"]
    for name in ARRAYS:
        assert pages[name] >= 3 * HUGE if name in names else pages[name] == 0, (name, pages)
    assert record["met"] and record["policy"] == "where" and record["coverage"] > 0.9
    used = record["selected"]
    assert used["huge_bytes"] >= 0.9 * used["resident_bytes"] > 0
    assert used["allocated_bytes"] > 0 or names == ["mapping"]


def test_a_result_folder_names_its_selection(launcher: Launcher, tmp_path: Path, arrays: Path) -> None:
    selected(tmp_path, ["first_array"], arrays, modules=[])
    done = launcher.run("--quiet", "--where", tmp_path, "where+bss", "--", arrays)
    pages = json.loads(done.stdout)
    assert pages["first_array"] and pages["zeroed"] and pages["other_zeroed"] and not pages["second_array"]
    by_variable = launcher.run("where", "--", arrays, PAGEWISE_WHERE=str(tmp_path / "selection.txt"))
    assert json.loads(by_variable.stdout)["first_array"]


def test_a_changed_binary_is_refused(launcher: Launcher, tmp_path: Path, arrays: Path) -> None:
    mine = tmp_path / "arrays"
    shutil.copy(arrays, mine)
    selection = selected(tmp_path, ["first_array"], mine, modules=[])
    assert launcher.run("--quiet", "--where", selection, "--", mine).returncode == 0
    compiled(mine, "-O1", SOURCES / "arrays.c")
    for words in (["--quiet"], ["--check"]):
        done = launcher.run(*words, "--where", selection, "--", mine)
        assert done.returncode == 3
    answer = json.loads(done.stdout)
    assert not answer["available"] and answer["remedy"]
    # The same name elsewhere.
    (tmp_path / "other").mkdir()
    moved = shutil.move(mine, tmp_path / "other")
    assert launcher.run("--where", selection, "--", moved).returncode == 3


def test_a_malformed_or_missing_selection_is_refused(launcher: Launcher, tmp_path: Path, arrays: Path):
    file = tmp_path / "selection.txt"
    malformed = ("allocation", "allocation abc", "heap abc", "static abc", "wrapper a+1 b+1")
    for text in ("", "# only a comment", *malformed):
        file.write_text(f"{text}\n" if text else "")
        assert launcher.run("--where", file, "--", arrays).returncode == 3, text
    assert launcher.run("--where", tmp_path / "missing", "--", arrays).returncode == 3
    assert launcher.run("where", "--", arrays).returncode == 3
    assert launcher.run("--where", file, "thp", "--", arrays).returncode == 2


def test_a_selection_of_other_files_is_reported(launcher: Launcher, tmp_path: Path, arrays: Path):
    file = tmp_path / "selection.txt"
    file.write_text("allocation 00ff+0x10 00ff+0x20  # gone\n")
    done = launcher.run("--record", tmp_path / "pages.jsonl", "--where", file, "--", arrays)
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 2
    (record,) = launcher.records()
    assert not record["met"] and not any(json.loads(done.stdout)[name] for name in ARRAYS)


@pytest.mark.parametrize("threads", ["1", "4"])
def test_memory_keeps_its_content(launcher: Launcher, tmp_path: Path, threads: str) -> None:
    """Random sequences of all functions, in threads and in forked children, at selected and other sites."""
    stress = compiled(tmp_path / "stress", "-g", "-O1", "-pthread", SOURCES / "stress.c")
    selection = selected(tmp_path, ["selected"], stress, "1", modules=[])
    _, records = where(launcher, selection, "--", stress, threads)
    assert any(record["selected"]["allocated_bytes"] > HUGE for record in records)


@pytest.mark.long
@pytest.mark.parametrize("optimized", ["-O0", "-O2"])
def test_containers_of_cpp(launcher: Launcher, tmp_path: Path, optimized: str) -> None:
    """The site is behind functions of the standard library, which allocate for their callers."""
    program = compiled(tmp_path / "vectors", "-g", optimized, SOURCES / "containers.cpp", compiler="c++")
    for filled, other in (("map", "vector"), ("vector", "map")):
        selection = selected(tmp_path, [f"fill_{filled}"], program, modules=[])
        pages = json.loads(launcher.run("--quiet", "--where", selection, "--", program).stdout)
        assert pages[filled] >= HUGE and pages[other] == 0


def test_allocatables_of_fortran(launcher: Launcher, tmp_path: Path) -> None:
    words = ("-g", "-O2", f"-J{tmp_path}", SOURCES / "states.f90")
    program = compiled(tmp_path / "states", *words, compiler="gfortran")
    selection = selected(tmp_path, ["states::allocate_first", "states::table"], program, modules=[program])
    output, (record,) = where(launcher, selection, "--", program)
    assert output == launcher.run("none", "--", program).stdout != ""
    # One array of 16 MB of two, and one static array of 16 MB.
    assert record["met"] and 26e6 < record["selected"]["huge_bytes"] < 40e6


@pytest.mark.long
def test_arrays_of_numpy(launcher: Launcher, tmp_path: Path) -> None:
    """An extension module is loaded after the start; its own advice is ignored."""
    code = "import numpy, sys; a = numpy.ones(3 << 20); print(float(a.sum()))"
    command = (sys.executable, "-c", code)
    large = (each for each in origins_of(tmp_path, *command) if each.bytes == 24 * MIB)
    origins = [each for each in large if "_multiarray_umath" in " ".join(each.modules.values())]
    assert len(origins) == 1
    write_selection(tmp_path / "selection.txt", origins)
    output, (record,) = where(launcher, tmp_path, "--", *command)
    assert float(output) == 3 << 20
    assert record["met"] and record["selected"]["huge_bytes"] >= 22 * MIB
    (tmp_path / "selection.txt").write_text("allocation 00ff+0x10 00ff+0x20\n")
    _, (_, record) = where(launcher, tmp_path, "--", *command)
    assert record["selected"]["huge_bytes"] == 0


def test_the_module_of_a_selection(launcher: Launcher, tmp_path: Path, arrays: Path) -> None:
    selection = selected(tmp_path, ["first_array"], arrays, modules=[])
    done = launcher.run("--module", "--where", selection)
    assert done.returncode == 0 and str(selection) in done.stdout and "selected.so" in done.stdout
    assert launcher.run("--module", "where").returncode == 2
    assert subprocess.run([launcher.program, "--where", selection], check=False).returncode == 2
