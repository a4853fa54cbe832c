"""The facts of a kernel have one home, kernel.yaml: CMake writes the rest, and refuses contradictions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from pagewise.core.kernel import read_source

from conftest import ROOT, run, succeed

KERNELS = ROOT / "kernels"
#: By the line that makes a kernel of this kind, the most files of a kernel, and the fewest kernels.
KINDS = {"pagewise_indirect_kernel()": (3, 4), "pagewise_stream_kernel()": (2, 10)}
GATHER_TWO, TRIAD = "equation: a(i) = b(c(i)) + s*d(c(i))", "equation: a(i) = b(i) + s * c(i)"
#: Contradictions in a kernel.yaml. Those of gather_two do not change its traffic.
CONTRADICTIONS = (
    ("gather", "equation: a(i) = b(c(i))", "equation: a(i) = b(d(i))"),
    ("gather", "equation: a(i) = b(c(i))", "equation: a(i) = a(c(i)) + s*b(c(i))"),
    ("gather", "loads: 1.5, ", "loads: 2, "),
    ("gather", "loads: 1.5, ", ""),
    ("gather", "flops: 0", "flops: 2"),
    ("gather", ", loop]", "]"),
    ("gather", "options: {", "options: {{"),
    ("gather", "extends: ../../harness/indirect.yaml", "extends: kernel.yaml"),
    ("gather_two", GATHER_TWO, "equation: a(i) = a(c(i)) + s*b(i)"),
    ("gather_two", GATHER_TWO, "equation: a(i) = b(c(i)) + s*d(i)"),
    ("gather_two", GATHER_TWO, "equation: a(i) = a(i) + s*b(i) + s*d(i)"),
    ("stream_triad", "traffic: {loads: 2,", "traffic: {loads: 3,"),
    ("stream_triad", "write_allocate: 1, flops: 2", "write_allocate: 1, flops: 1"),
    ("stream_triad", "stores: 1, write_allocate: 1, ", "stores: 1, "),
    ("stream_triad", TRIAD, "equation: a(i) = b(i) + s * d(i)"),
    ("stream_triad", TRIAD, "equation: a(i) = sqrt(b(i))"),
    ("stream_triad", f"{TRIAD}\n", ""),
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the folder with four micro-kernels, because all take half a minute."""
    folder = shutil.copytree(KERNELS, tmp_path_factory.mktemp("facts") / "kernels")
    names = dict.fromkeys((*(kernel for kernel, _, _ in CONTRADICTIONS), "stencil7"))
    lines = [f"add_subdirectory({name})\n" for name in names]
    (folder / "micro" / "CMakeLists.txt").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def configured(source: Path) -> Callable[[], tuple[int, str]]:
    """Configures it again; exit code and output."""

    def configure() -> tuple[int, str]:
        done = run("cmake", "-S", source, "-B", source.with_name("build"), "-DBUILD_TESTING=OFF")
        return done.returncode, done.stdout

    code, output = configure()
    assert code == 0, output
    return configure


@pytest.mark.parametrize("kind", KINDS)
def test_a_kernel_costs_few_files_and_fifty_lines(kind: str) -> None:
    most, fewest = KINDS[kind]
    actual = [file.parent for file in KERNELS.glob("micro/*/CMakeLists.txt") if kind in file.read_text()]
    assert len(actual) >= fewest
    for folder in actual:
        files = [file for file in folder.rglob("*") if file.is_file()]
        assert len(files) <= most
        assert sum(len(file.read_text().splitlines()) for file in files) <= 50


@pytest.mark.parametrize(("kernel", "old", "new"), CONTRADICTIONS)
def test_contradicting_facts_are_refused(
    source: Path, configured: Callable[[], tuple[int, str]], kernel: str, old: str, new: str
) -> None:
    file = source / "micro" / kernel / "kernel.yaml"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    code, output = configured()
    file.write_text(text)
    assert code != 0 and "CMake Error" in output and f"{kernel}/kernel.yaml" in output


def test_a_kernel_that_is_sensitive_to_loop_needs_its_loop(
    source: Path, configured: Callable[[], tuple[int, str]]
) -> None:
    loop = source / "micro" / "stencil7" / "loop.f90"
    kept = loop.rename(loop.with_suffix(".kept"))
    code, output = configured()
    kept.rename(loop)
    assert code != 0 and "CMake Error" in output and "stencil7/kernel.yaml" in output
    assert configured()[0] == 0


READER = """
include({kernels}/cmake/PagewiseYaml.cmake)
foreach(_file ${{FILES}})
    pagewise_json(${{_file}} _json)
    pagewise_member("${{_json}}" _name name)
    file(CONFIGURE OUTPUT ${{OUTPUT}}/${{_name}}.json CONTENT "@_json@" @ONLY)
endforeach()
"""


def test_the_build_reads_every_description_as_yaml(tmp_path: Path) -> None:
    descriptions = sorted(
        file for file in KERNELS.glob("m*/*/*.yaml") if "schema: pagewise.kernel/" in file.read_text()
    )
    assert len(descriptions) > 40
    script = tmp_path / "read.cmake"
    script.write_text(READER.format(kernels=KERNELS))
    files = ";".join(map(str, descriptions))
    succeed("cmake", f"-DFILES={files}", f"-DOUTPUT={tmp_path}", "-P", script)
    for file in descriptions:
        content = read_source(file)
        assert json.loads((tmp_path / f"{content['name']}.json").read_text()) == content, file


@pytest.mark.long
def test_a_page_policy_is_an_entry_of_one_file(source: Path, tmp_path: Path) -> None:
    policies = source / "pages" / "policies.json"
    new = {"name": "plain", "pages": "none", "text": "base pages", "cost": "nothing"}
    policies.write_text(json.dumps([*json.loads(policies.read_text()), new]))
    build = tmp_path / "build"
    options = ("-DBUILD_TESTING=OFF", "-DPAGEWISE_HUGEPAGES=plain", "-DCMAKE_BUILD_TYPE=Debug", "-GNinja")
    for command in (("cmake", "-S", source, "-B", build, *options), ("ninja", "-C", build, "pw-gather")):
        succeed(*command)
    record = tmp_path / "record.jsonl"
    succeed(build / "micro/gather/pw-gather", "--working-set", "300kB", "--record", record)
    pages = json.loads(record.read_text())["pages"]
    assert (pages["policy"], pages["huge_coverage"]) == ("plain", 0)
