"""The variant `sector`: lines in sources, flags for a stand-in of Fujitsu's compiler, refusals elsewhere."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from pagewise.core.kernel import Kernel, read_source
from pagewise.core.structure import document
from pagewise.core.units import parse_bytes
from test_a64fx_compilers import stand_in_site

from conftest import AARCH64, ROOT, configure, run, spack, stand_ins, succeed

KERNELS = ROOT / "kernels" / "micro"
#: The array with a sector, and its ways, as the A64FX guide has them; of DGEMM, what these lines can express.
LINES = {
    "indirect_daxpy/loop.f90": ("b", "L2=10"),
    "stencil7/loop.f90": ("u", "L2=13"),
    "blocked_dgemm/kernel.f90": ("panel", "L2=7,L1=2"),
}


def test_kernels_with_lines_for_sectors_list_them_and_no_others_do() -> None:
    listed = {
        file.parent.name
        for file in KERNELS.glob("*/kernel.yaml")
        if "sector" in yaml.safe_load(file.read_text())["sensitive_to"]
    }
    written = {file for file in KERNELS.glob("*/*.f90") if "SCACHE_ISOLATE" in file.read_text()}
    assert {str(file.relative_to(KERNELS)) for file in written} == set(LINES)
    assert listed == {file.parent.name for file in written}


@pytest.mark.parametrize("name", LINES)
def test_the_lines_match_the_guide_around_the_loops(name: str) -> None:
    """They open and close in this order, and are comments for every compiler without them."""
    array, ways = LINES[name]
    text = [line.strip() for line in (KERNELS / name).read_text().splitlines()]
    assert [line for line in text if "SCACHE" in line] == [
        f"!OCL SCACHE_ISOLATE_WAY({ways})",
        f"!OCL SCACHE_ISOLATE_ASSIGN({array})",
        "!OCL END_SCACHE_ISOLATE_ASSIGN",
        "!OCL END_SCACHE_ISOLATE_WAY",
    ]
    first = text.index(f"!OCL SCACHE_ISOLATE_ASSIGN({array})")
    assert text[first + 1].startswith("do ")
    assert text[text.index("!OCL END_SCACHE_ISOLATE_ASSIGN") - 1] == "end do"


def test_case_1_has_the_sizes_of_the_guide() -> None:
    """b fits into its ten of 16 ways of 8 MiB; the other arrays have 8 Mi elements."""
    described = document(Kernel, read_source(KERNELS / "indirect_daxpy" / "kernel.yaml")).at_scale(
        "a64fx-guide"
    )
    given = dict(pairwise(described.compare.arguments))
    b, traffic = parse_bytes(given["--table-size"]), described.traffic
    assert b == 9 * 2**19 < 10 * 2**23 / 16
    # Of the loads, one is from b; an index is half a double.
    streams = (traffic.loads - 1) * traffic.element_bytes
    assert (parse_bytes(given["--working-set"]) - b) / streams == 2**23


def configured(folder: Path, *options: str, fujitsu: bool = True) -> tuple[int, str]:
    """CMake's answer to options, with Fujitsu's compilers as stand-ins or with this machine's."""
    words = [f"-D{option}" for option in options]
    if fujitsu:
        flags = ("-DCMAKE_C_FLAGS=-Nclang", "-DCMAKE_Fortran_FLAGS=-KSVE,A64FX")
        done = configure(stand_ins(folder, "fcc", "frt"), "fcc", "frt", *AARCH64, *flags, *words)
    else:
        done = run("cmake", "-G", "Ninja", "-S", ROOT / "kernels", "-B", folder / "build", *words)
    return done.returncode, done.stdout


def source_of(call: list[str]) -> str:
    """The source of a compilation, with its folder."""
    return next("/".join(Path(word).parts[-2:]) for word in call if word.endswith(".f90"))


@pytest.mark.release
def test_fujitsus_compiler_follows_the_lines_only_in_a_build_with_sectors(tmp_path: Path) -> None:
    code, output = configured(tmp_path, "PAGEWISE_SECTOR=isolate", "PAGEWISE_LOOP=compiler")
    assert code == 0, output
    names = [name.partition("/")[0] for name in LINES]
    plain = ("pw-stream_copy", "pw-stencil7-timed-hardware-regular-loop-compiler")
    succeed("ninja", "-C", tmp_path / "build", *(f"pw-{name}" for name in names), *plain)
    calls = [json.loads(line) for line in (tmp_path / "calls.jsonl").read_text().splitlines()]
    compiled = [call["arguments"] for call in calls if call["program"] == "frt" and "-c" in call["arguments"]]
    with_lines = [call for call in compiled if "-Kocl" in call]
    assert all("-Khpctag" in call for call in with_lines)
    sources = {source_of(call) for call in with_lines}
    assert set(LINES) <= sources and {source.partition("/")[0] for source in sources} <= set(names)
    assert any(source_of(call) == "stencil7/loop.f90" and "-Kocl" not in call for call in compiled)
    # Fujitsu's C compiler in clang mode does not know these options.
    assert not any("-Khpctag" in call["arguments"] for call in calls if call["program"] == "fcc")
    links = [
        call["arguments"] for call in calls if "-o" in call["arguments"] and "-c" not in call["arguments"]
    ]
    record = tmp_path / "record.jsonl"
    program = tmp_path / "build" / "micro" / "stencil7" / "pw-stencil7"
    words = ("--grid", "45x21x37", "--repetitions", "1", "--pages", "none", "--record", record)
    succeed(ROOT / "kernels" / "cmake" / "emulate", program, *words, PAGEWISE_PASSES="1")
    built = json.loads(record.read_text())
    assert built["configuration"]["sector"] == "isolate" and built["validation"]["passed"]
    linked = {
        name: call for call in links for name in (*names, "stream_copy") if f"micro/{name}/pw-{name}" in call
    }
    assert {name for name, call in linked.items() if "-Khpctag" in call} == set(names)


@pytest.mark.parametrize(
    ("options", "fujitsu"),
    [
        (("PAGEWISE_SECTOR=isolate", "PAGEWISE_LOOP=compiler"), False),
        (("PAGEWISE_SECTOR=isolate",), True),
        (("PAGEWISE_SECTOR=all",), True),
    ],
)
def test_cmake_refuses_sectors_elsewhere(options: tuple[str, ...], fujitsu: bool, tmp_path: Path) -> None:
    code, output = configured(tmp_path, *options, fujitsu=fujitsu)
    assert code != 0 and "CMake Error" in output and "PAGEWISE_SECTOR" in output


def test_an_environment_compares_builds_without_and_with_sectors(small: Path, tmp_path: Path) -> None:
    """With the site fugaku's stand-ins; modules and CMake name the sectors."""
    stand_in_site(small, "fugaku", tmp_path / "fugaku")
    content = yaml.safe_load((small / "envs" / "a64fx" / "spack.yaml").read_text())
    content["spack"]["include"][0] = str(tmp_path / "fugaku")
    content["spack"]["specs"] = content["spack"]["specs"][-1:]
    folder = small / "envs" / "sectors"
    folder.mkdir()
    (folder / "spack.yaml").write_text(yaml.safe_dump(content))
    spack(small, folder, "concretize")
    script = "import spack.environment as e; "
    script += "print(*(f'{p.module_tail} {p.cmake_args()}' for p in "
    script += "(s.package for s in e.active_environment().concrete_roots())), sep=chr(10))"
    answer = spack(small, folder, "python", "-c", script)
    lines = [line for line in answer.stdout.splitlines() if line.startswith("hardware-regular-loop-compiler")]
    assert len(lines) == 3
    for line in lines:
        isolated = line.startswith("hardware-regular-loop-compiler-sector-isolate ")
        assert f"PAGEWISE_SECTOR:STRING={'isolate' if isolated else 'none'}" in line
    assert sum("=isolate" in line for line in lines) == 2
