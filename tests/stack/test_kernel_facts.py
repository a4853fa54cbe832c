"""The facts of a kernel have one home, kernel.yaml: CMake writes the rest, and refuses contradictions."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from conftest import ROOT, run

KERNELS = ROOT / "kernels"
INDIRECT = sorted(
    file.parent
    for file in KERNELS.glob("micro/*/CMakeLists.txt")
    if "pagewise_indirect_kernel()" in file.read_text()
)


@pytest.fixture
def configured(tmp_path: Path) -> Callable[[Path], tuple[int, str]]:
    """Configures a copy of the kernels' folder with gather only; exit code and output."""

    def configure(source: Path) -> tuple[int, str]:
        done = run("cmake", "-S", source, "-B", tmp_path / "build", "-DBUILD_TESTING=OFF")
        return done.returncode, done.stdout

    return configure


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A copy of the kernels' folder with one micro-kernel, gather."""
    folder = shutil.copytree(KERNELS, tmp_path / "kernels")
    (folder / "micro" / "CMakeLists.txt").write_text("add_subdirectory(gather)\n")
    return folder


def test_a_kernel_of_indirect_access_costs_at_most_three_files_and_fifty_lines() -> None:
    assert len(INDIRECT) >= 4
    for folder in INDIRECT:
        files = [file for file in folder.rglob("*") if file.is_file()]
        assert len(files) <= 3
        assert sum(len(file.read_text().splitlines()) for file in files) <= 50


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("equation: a(i) = b(c(i))", "equation: a(i) = b(d(i))"),
        ("equation: a(i) = b(c(i))", "equation: a(i) = a(c(i)) + s*b(c(i))"),
        ("loads: 1.5, ", "loads: 2, "),
        ("loads: 1.5, ", ""),
        ("flops: 0", "flops: 2"),
        (", loop]", "]"),
    ],
)
def test_contradicting_facts_are_refused(
    source: Path, configured: Callable[[Path], tuple[int, str]], old: str, new: str
) -> None:
    assert configured(source)[0] == 0
    file = source / "micro" / "gather" / "kernel.yaml"
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))
    code, output = configured(source)
    assert code != 0
    assert "CMake Error" in output and "gather/kernel.yaml" in output


@pytest.mark.parametrize("wrong", ["a(c(i)) + s*b(i)", "b(c(i)) + s*d(i)", "a(i) + s*b(i) + s*d(i)"])
def test_the_indices_of_an_equation_must_match(
    source: Path, configured: Callable[[Path], tuple[int, str]], wrong: str
) -> None:
    """All have the traffic of gather_two, which does not show the mistake."""
    (source / "micro" / "CMakeLists.txt").write_text("add_subdirectory(gather_two)\n")
    assert configured(source)[0] == 0
    file = source / "micro" / "gather_two" / "kernel.yaml"
    text = file.read_text()
    right = "equation: a(i) = b(c(i)) + s*d(c(i))"
    assert text.count(right) == 1
    file.write_text(text.replace(right, f"equation: a(i) = {wrong}"))
    code, output = configured(source)
    assert code != 0
    assert "CMake Error" in output and "gather_two/kernel.yaml" in output


def test_a_kernel_that_is_sensitive_to_loop_needs_its_loop(
    source: Path, configured: Callable[[Path], tuple[int, str]]
) -> None:
    (source / "micro" / "gather" / "loop.f90").unlink()
    code, output = configured(source)
    assert code != 0
    assert "CMake Error" in output and "gather/kernel.yaml" in output


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
    done = run("cmake", f"-DFILES={files}", f"-DOUTPUT={tmp_path}", "-P", script)
    assert done.returncode == 0, done.stdout
    for file in descriptions:
        content = yaml.safe_load(file.read_text())
        assert json.loads((tmp_path / f"{content['name']}.json").read_text()) == content, file


def test_a_description_that_cannot_be_read_is_named(
    source: Path, configured: Callable[[Path], tuple[int, str]]
) -> None:
    file = source / "micro" / "gather" / "kernel.yaml"
    file.write_text(file.read_text().replace("smoke: {", "smoke: {{"))
    code, output = configured(source)
    assert code != 0
    assert "CMake Error" in output and "gather/kernel.yaml" in output


@pytest.mark.long
def test_a_page_policy_is_an_entry_of_one_file(source: Path, tmp_path: Path) -> None:
    policies = source / "pages" / "policies.json"
    new = {"name": "plain", "pages": "none", "text": "base pages", "cost": "nothing"}
    policies.write_text(json.dumps([*json.loads(policies.read_text()), new]))
    build = tmp_path / "build"
    options = ("-DBUILD_TESTING=OFF", "-DPAGEWISE_HUGEPAGES=plain", "-DCMAKE_BUILD_TYPE=Debug", "-GNinja")
    for command in (("cmake", "-S", source, "-B", build, *options), ("ninja", "-C", build, "pw-gather")):
        done = run(*command)
        assert done.returncode == 0, done.stdout
    record = tmp_path / "record.jsonl"
    done = run(build / "micro/gather/pw-gather", "--working-set", "300kB", "--record", record)
    assert done.returncode == 0, done.stdout
    pages = json.loads(record.read_text())["pages"]
    assert (pages["policy"], pages["huge_coverage"]) == ("plain", 0)
