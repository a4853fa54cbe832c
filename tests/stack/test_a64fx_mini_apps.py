"""The mini-apps on an emulated A64FX: right results with every vector length, and the generated code."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
import yaml

from conftest import A64FX_LENGTHS, disassembly, emulate, installed, spack, succeed

pytestmark = pytest.mark.release

#: Small enough for an emulator.
ARGUMENTS = {
    "ember": ("--problem", "sedov", "--lowest-level", "0", "--highest-level", "1", "--steps", "2"),
    "helmholtz": ("--points", "stellar", "--mode", "re", "--zones", "500", "--repetitions", "1"),
}
#: The data structures of the studies, next to the default ones.
STRUCTURES = {"ember": ("--scheme", "flash"), "helmholtz": ("--table", "arrays")}


@pytest.fixture(scope="module")
def minis(small: Path, checkout: Path, unavailable: Callable[[str], NoReturn]) -> dict[str, Path]:
    """The installation folders of the mini-apps, built for vectors of any length."""
    packages = small / ".pagewise" / "emulated-a64fx" / "packages.yaml"
    if "hdf5" not in yaml.safe_load(packages.read_text())["packages"]:
        unavailable("needs HDF5 for aarch64 (make setup-tests)")
    # The table does not depend on the machine that computes it, and emulation takes minutes.
    table = "pagewise-eos-table@develop"
    content = yaml.safe_load((checkout / "envs" / "mini-apps" / "spack.yaml").read_text())
    content["spack"]["specs"] = [f"{table} %pagewise-gcc"]
    (checkout / "envs" / "table").mkdir()
    (checkout / "envs" / "table" / "spack.yaml").write_text(yaml.safe_dump(content))
    spack(checkout, checkout / "envs" / "table", "install", "--no-cache")
    (prefix,) = installed(checkout, "table")
    external = {"externals": [{"spec": f"{table} target=aarch64", "prefix": str(prefix)}]}
    environment = small / "envs" / "a64fx-mini-apps" / "spack.yaml"
    environment.parent.mkdir()
    content = yaml.safe_load((small / "envs" / "a64fx-emulated" / "spack.yaml").read_text())
    content["spack"]["packages"] = {"pagewise-eos-table": {**external, "buildable": False}}
    develop = yaml.safe_load((small / "envs" / "common" / "develop" / "develop.yaml").read_text())
    del develop["develop"]["pagewise-eos-table"]
    for entry in develop["develop"].values():
        entry["path"] = str(small / "kernels")
    content["spack"]["include"].remove("../common/develop")
    content["spack"] |= develop
    content["spack"]["specs"] = content["spack"]["specs"][1:]
    environment.write_text(yaml.safe_dump(content).replace("- prefetch=hardware\n", ""))
    succeed(small / "setup" / "stack", "a64fx-mini-apps")
    prefixes = installed(small, "a64fx-mini-apps")
    return {prefix.parent.name.removeprefix("pagewise-"): prefix for prefix in prefixes}


@pytest.mark.parametrize(
    ("bits", "of_studies"), [*((bits, False) for bits in A64FX_LENGTHS), (A64FX_LENGTHS[-1], True)]
)
@pytest.mark.parametrize("name", ARGUMENTS)
def test_results_are_right_with_vectors_of_any_length(
    minis: dict[str, Path], tmp_path: Path, name: str, bits: int, of_studies: bool
) -> None:
    record = tmp_path / "record.jsonl"
    program = minis[name] / "bin" / f"pw-{name}"
    arguments = (*ARGUMENTS[name], *(STRUCTURES[name] if of_studies else ()))
    done = emulate(program, *arguments, "--threads", "2", "--record", str(record), bits=bits)
    assert done.returncode == 0, done.stdout
    content = json.loads(record.read_text())
    assert content["status"] == "ok" and content["validation"]["passed"]
    assert content["configuration"]["prefetch"] == "software"


def test_embers_sweeps_are_vector_length_agnostic_sve(minis: dict[str, Path]) -> None:
    code = disassembly(minis["ember"] / "bin" / "pw-ember")
    operations = re.findall(r"\tf(?:add|sub|mul|div|sqrt|mla|mls|mad|msb|nmsb)\tz\d+\.d", code)
    assert "whilelo" in code and len(operations) > 500, len(operations)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_lines_are_prefetched(minis: dict[str, Path], name: str) -> None:
    # Without prefetch=software there are 48.
    assert disassembly(minis[name] / "bin" / f"pw-{name}").count("\tprfm\t") > 100
