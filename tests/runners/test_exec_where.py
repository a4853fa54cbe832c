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
    about: dict[str, Any] = {"begin": 0, "end": 0, "page_faults": 0, "allocations": 1, "name": ""}
    reported = []
    for line in out.read_text().splitlines():
        size, *words = line.split()
        places = zip(words[::2], words[1::2], strict=True)
        frames = [{"module": str(Path(path).resolve()), "offset": int(offset)} for path, offset in places]
        reported.append(
            {**about, "kind": "allocation", "module": "", "frames": frames[:14], "bytes": int(size)}
        )
    for module in modules:
        with module.open("rb") as stream:
            table = ELFFile(stream).get_section_by_name(".symtab")
            objects = [symbol for symbol in table.iter_symbols() if symbol["st_info"]["type"] == "STT_OBJECT"]
        static = {**about, "kind": "static", "module": str(module), "frames": []}
        reported += [
            {**static, "name": symbol.name, "bytes": size}
            for symbol in objects
            if (size := symbol["st_size"]) >= _LEAST
        ]
    # By size, because only the first ones are kept.
    return name_origins(
        [
            {**each, "distant": {}, "counts": {"L1D_TLB_REFILL": 1, "PAGE_WALKS": max(each["bytes"], 1)}}
            for each in reported
        ]
    )


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


@pytest.mark.parametrize(
    "names", [["first_array"], ["new_node"], ["zeroed"], ["filled"], ["mapping"], ["second_array", "filled"]]
)
def test_only_selected_memory_is_on_huge_pages(
    launcher: Launcher, tmp_path: Path, arrays: Path, names: list[str]
) -> None:
    selection = selected(tmp_path, names, arrays, modules=[arrays])
    plain = json.loads(launcher.run("none", "--", arrays).stdout)
    done = launcher.run("--record", tmp_path / "pages.jsonl", "--where", selection, "--", arrays)
    assert done.returncode == 0, done.stderr
    pages = json.loads(done.stdout)
    assert pages["sum"] == plain["sum"]
    for name in ARRAYS:
        assert (pages[name] >= 3 * HUGE) == (name in names), (name, pages)
        assert pages[name] == 0 or name in names
    record = json.loads((tmp_path / "pages.jsonl").read_text())
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
    shutil.rmtree(tmp_path / "other", ignore_errors=True)
    (tmp_path / "other").mkdir()
    moved = shutil.move(mine, tmp_path / "other")
    assert launcher.run("--where", selection, "--", moved).returncode == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# only a comment\n",
        "allocation\n",
        "allocation abc\n",
        "heap abc\n",
        "static abc\n",
        "wrapper a+1 b+1\n",
    ],
)
def test_a_malformed_selection_is_refused(
    launcher: Launcher, tmp_path: Path, arrays: Path, text: str
) -> None:
    file = tmp_path / "selection.txt"
    file.write_text(text)
    assert launcher.run("--where", file, "--", arrays).returncode == 3
    assert launcher.run("--where", tmp_path / "missing", "--", arrays).returncode == 3
    assert launcher.run("where", "--", arrays).returncode == 3
    assert launcher.run("--where", file, "thp", "--", arrays).returncode == 2


def test_a_selection_of_other_files_is_reported(launcher: Launcher, tmp_path: Path, arrays: Path) -> None:
    file = tmp_path / "selection.txt"
    file.write_text("allocation 00ff+0x10 00ff+0x20  # gone\n")
    done = launcher.run("--record", tmp_path / "pages.jsonl", "--where", file, "--", arrays)
    assert done.returncode == 0 and len(done.stderr.splitlines()) == 2
    record = json.loads((tmp_path / "pages.jsonl").read_text())
    assert not record["met"] and not any(json.loads(done.stdout)[name] for name in ARRAYS)


@pytest.mark.parametrize("threads", ["1", "4"])
def test_memory_keeps_its_content(launcher: Launcher, tmp_path: Path, threads: str) -> None:
    """Random sequences of all functions, in threads and in forked children, at selected and other sites."""
    stress = compiled(tmp_path / "stress", "-g", "-O1", "-pthread", SOURCES / "stress.c")
    selection = selected(tmp_path, ["selected"], stress, "1", modules=[])
    done = launcher.run("--record", tmp_path / "pages.jsonl", "--where", selection, "--", stress, threads)
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in (tmp_path / "pages.jsonl").read_text().splitlines()]
    assert any(record["selected"]["allocated_bytes"] > HUGE for record in records)


@pytest.mark.long
@pytest.mark.parametrize("optimized", ["-O0", "-O2"])
def test_containers_of_cpp(launcher: Launcher, tmp_path: Path, optimized: str) -> None:
    """The site is behind functions of the standard library, which allocate for their callers."""
    program = compiled(tmp_path / "vectors", "-g", optimized, SOURCES / "containers.cpp", compiler="c++")
    selection = selected(tmp_path, ["fill_map"], program, modules=[])
    pages = json.loads(launcher.run("--quiet", "--where", selection, "--", program).stdout)
    assert pages["map"] >= HUGE and pages["vector"] == 0
    selection = selected(tmp_path, ["fill_vector"], program, modules=[])
    pages = json.loads(launcher.run("--quiet", "--where", selection, "--", program).stdout)
    assert pages["vector"] >= HUGE and pages["map"] == 0


def test_allocatables_of_fortran(launcher: Launcher, tmp_path: Path) -> None:
    program = compiled(
        tmp_path / "states", "-g", "-O2", f"-J{tmp_path}", SOURCES / "states.f90", compiler="gfortran"
    )
    selection = selected(tmp_path, ["states::allocate_first", "states::table"], program, modules=[program])
    outputs = []
    for words in (["none"], ["--record", tmp_path / "pages.jsonl", "--where", selection]):
        outputs.append(launcher.run(*words, "--", program).stdout)
    assert outputs[0] == outputs[1] != ""
    record = json.loads((tmp_path / "pages.jsonl").read_text())
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
    done = launcher.run("--record", tmp_path / "one.jsonl", "--where", tmp_path, "--", *command)
    assert done.returncode == 0 and float(done.stdout) == 3 << 20
    record = json.loads((tmp_path / "one.jsonl").read_text())
    assert record["met"] and record["selected"]["huge_bytes"] >= 22 * MIB
    (tmp_path / "selection.txt").write_text("allocation 00ff+0x10 00ff+0x20\n")
    launcher.run("--record", tmp_path / "none.jsonl", "--where", tmp_path, "--", *command)
    record = json.loads((tmp_path / "none.jsonl").read_text())
    assert record["selected"]["huge_bytes"] == 0


def test_the_module_of_a_selection(launcher: Launcher, tmp_path: Path, arrays: Path) -> None:
    selection = selected(tmp_path, ["first_array"], arrays, modules=[])
    done = launcher.run("--module", "--where", selection)
    assert done.returncode == 0 and str(selection) in done.stdout and "selected.so" in done.stdout
    assert launcher.run("--module", "where").returncode == 2
    assert subprocess.run([launcher.program, "--where", selection], check=False).returncode == 2
